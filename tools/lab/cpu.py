"""CPU time of a process and everything below it, from /proc."""

import os
from pathlib import Path


def cpu_seconds() -> dict[int, float]:
    """CPU seconds of this process and its descendants, by process id; workers run until the end."""
    found: dict[int, tuple[int, float]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        found[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    below = {os.getpid()}
    while more := {process for process, (parent, _) in found.items() if parent in below} - below:
        below |= more
    return {process: found[process][1] for process in below}
