"""The peak memory of a process and all its descendants together."""

import threading
import time
from pathlib import Path
from typing import Final

_EVERY_S: Final = 0.25


class Peak:
    """Watches from a thread of its own until the process is gone."""

    def __init__(self, process: int) -> None:
        self._process, self._peak = process, 0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def bytes(self) -> int:
        """The peak; waits for the end of the process."""
        self._thread.join()
        return self._peak

    def _watch(self) -> None:
        while Path(f"/proc/{self._process}/smaps_rollup").exists():
            self._peak = max(self._peak, sum(map(_bytes, _family(self._process))))
            time.sleep(_EVERY_S)


def _family(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):  # it is gone
            continue
        children.setdefault(parent, []).append(int(status.parent.name))
    found = [root]
    for process in found:  # grows while it is walked
        found += children.get(process, [])
    return found


def _bytes(process: int) -> int:
    """Its memory; shared pages are divided among the processes that share them."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0
