"""Does Ctrl-C at any moment of a campaign end it well? Many campaigns, each interrupted at a random moment.

All campaigns run in this process and share one Spark session, so hundreds of interrupts take minutes. With `--fresh`
each runs as a process group of its own and is interrupted as from a terminal; then Spark starts each time. Well ended
means: exit code 130, one sentence that it was interrupted and no traceback, the runs judged so far reported and kept.
The seed draws the moment: half of them lie after the first result, the others anywhere from the start. With `--load 2`
two busy processes slow everything down.

    python -m benchmarks.interrupts --times 200 --load 2 --json interrupts.json
"""

import argparse
import contextlib
import io
import json
import logging
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from antiphon.cli.main import main as antiphon

RUNS: Final = 400
"""More than can be judged before the interrupt."""
SECONDS_MAX: Final = 300.0
"""Timeout for every step, also on a busy machine."""
SENTENCE: Final = "antiphon: interrupted; no unfinished files were left\n"

End = tuple[int, str, str]
"""Exit code, standard output, standard error."""


def interrupted(place: Path, chance: random.Random, campaign: Callable[[list[str], Callable[[], None]], End]) -> Any:
    """One campaign, and everything that is wrong with its end."""
    early, delay = chance.random() < 0.5, chance.random()
    times: list[float] = []

    def moment() -> None:
        """Returns when the interrupt is due."""
        deadline = time.monotonic() + SECONDS_MAX
        while not early and not any(place.glob("runs.unfinished/parts/[0-9]*.parquet")):
            assert time.monotonic() < deadline, f"no result came in {SECONDS_MAX:.0f} s"
            time.sleep(0.005)
        time.sleep(0.05 + delay)
        times.append(time.monotonic())

    arguments = ["campaign", "fixed-group", "--runs", str(RUNS), "--json", "--out", str(place / "runs")]
    wrong = [*_complaints(place, *campaign(arguments, moment))]
    return {
        "when": "early" if early else "at work",
        "seconds": round(time.monotonic() - times[0], 2) if times else None,
        "wrong": wrong,
    }


def here(arguments: list[str], moment: Callable[[], None]) -> End:
    def interrupt() -> None:
        moment()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    out, err = io.StringIO(), io.StringIO()
    code: Any = None
    sys.argv = ["antiphon", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        thread.start()
        try:
            antiphon()
        except SystemExit as end:
            code = end.code
    thread.join(60)
    logging.disable(logging.NOTSET)
    return code, out.getvalue(), err.getvalue()


def _warm_up() -> None:
    """Import everything and start Spark: an import that is interrupted cannot be tried again in the same process."""
    sys.argv = ["antiphon", "campaign", "fixed-group", "--runs", "2", "--json"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        antiphon()


def fresh(arguments: list[str], moment: Callable[[], None]) -> End:
    command = [sys.executable, "-m", "antiphon.cli.main", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        moment()
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS_MAX)  # until no process holds the pipes
    return process.returncode, out, err


def _complaints(place: Path, code: int, out: str, err: str) -> list[str]:
    wrong = []
    if code != 130:
        wrong.append(f"exit code {code}")
    if not err.endswith(SENTENCE) or "Traceback" in err:
        wrong.append(f"it said {err[-400:]!r}")
    parts = [*place.glob("runs.unfinished/parts/[0-9]*.parquet")]
    told = re.search(r"([\d,]+) of [\d,]+ runs are kept", err)
    reported = json.loads(out)["runs"] if out else None
    if parts and (told is None or reported is None):
        wrong.append(f"{len(parts)} parts are kept and not reported")
    if told is not None and int(told[1].replace(",", "")) != reported:
        wrong.append(f"it reports {reported} runs and keeps {told[1]}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--load", type=int, default=0, help="busy processes beside it")
    parser.add_argument("--fresh", action="store_true", help="a process and a Spark session for each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    command, chance = sys.argv, random.Random(arguments.seed)
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(arguments.load)]
    results = []
    try:
        if not arguments.fresh:
            _warm_up()
        for number in range(1, arguments.times + 1):
            place = Path(tempfile.mkdtemp(prefix="antiphon-interrupts-"))
            result = interrupted(place, chance, fresh if arguments.fresh else here)
            shutil.rmtree(place, ignore_errors=True)
            results.append(result)
            print(f"{number:4} {result}", flush=True)
    finally:
        for process in load:
            process.kill()
            process.wait()
    counts = Counter(f"{result['when']}: {'wrong' if result['wrong'] else 'well'}" for result in results)
    print(dict(sorted(counts.items())))
    if arguments.json is not None:
        document = {"command": command, "cores": os.cpu_count(), "results": results}
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    sys.exit(any(result["wrong"] for result in results))


if __name__ == "__main__":
    main()
