"""The time of `antiphon check` on one small run, from the start of its process to its end, and where it goes.

Wall time, and CPU time of the process, of Java and of the Python workers, which depends less on what else is running.

    python -m benchmarks.startup [--rounds 5] [--way 'NAME=KEY=VALUE;…'] [--json FILE]

Each `--way` is a name and settings of Spark that replace ours; ways take turns, beside the settings of antiphon.
"""

import argparse
import contextlib
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

from tools.lab.cpu import cpu_seconds

BEGAN: Final = "ANTIPHON_STARTUP_BEGAN"
STEPS: Final = (
    "imports",
    "Java is probed",
    "JVM starts",
    "SparkContext",
    "session",
    "job planned",
    "first Python worker",
    "job",
    "answer",
    "exit",
)
SCENARIO: Final = """
name = "small"
group = [{ name = "orders", members = 3 }]
workload = [{ group = "orders", messages = 20, interval = "10ms" }]
"""


class Marks:
    """Times since the process began, by the name of the step that has ended then."""

    def __init__(self) -> None:
        self.began = float(os.environ[BEGAN])
        self.times: dict[str, float] = {}
        self.cpu: dict[str, float] = {}

    def mark(self, step: str) -> None:
        if step not in self.times:
            self.times[step] = time.time() - self.began
            self.cpu[step] = sum(cpu_seconds().values())

    def after(self, module: Any, name: str, step: str) -> None:
        """Mark a step when a function returns."""
        function = getattr(module, name)

        def marked(*arguments: Any, **named: Any) -> Any:
            found = function(*arguments, **named)
            self.mark(step)
            return found

        setattr(module, name, marked)


def child(directory: str, settings: Mapping[str, str]) -> None:
    """Check the run with marks at the steps; tells them on standard output."""
    marks = Marks()
    cli = importlib.import_module("antiphon.cli.main")
    for name in ("antiphon.cli.app", "antiphon.cli.commands.check", "antiphon.pipeline.jobs.verify"):
        importlib.import_module(name)
    session = importlib.import_module("antiphon.pipeline.spark.session")
    context = importlib.import_module("pyspark.core.context")
    tasks = importlib.import_module("antiphon.pipeline.jobs.tasks")
    sessions = importlib.import_module("antiphon.cli.shared.sessions")
    output = importlib.import_module("antiphon.cli.commands.check")
    marks.mark("imports")
    marks.after(session, "java_home", "Java is probed")
    marks.after(context, "launch_gateway", "JVM starts")
    marks.after(session.SparkContext, "getOrCreate", "SparkContext")
    marks.after(sessions, "started", "session")
    marks.after(tasks, "as_trace_error", "job planned")
    marks.after(tasks, "collected", "job")
    marks.after(output, "print_json", "answer")
    first = Path(tempfile.mkdtemp(prefix="antiphon-startup-")) / "first"
    verify = importlib.import_module("antiphon.pipeline.jobs.verify")
    setattr(verify, "in_tasks", noting(tasks.in_tasks, first))  # noqa: B010 - it is a module that mypy knows
    replaced = [f"--conf={key}={value}" for key, value in settings.items()]
    sys.argv = ["antiphon", "check", directory, "--json", *replaced]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        cli.main()
    marks.times["first Python worker"] = float(first.read_text()) - marks.began
    shutil.rmtree(first.parent)
    print(json.dumps([marks.times, marks.cpu]))


def noting(in_tasks: Callable[..., Any], first: Path) -> Callable[..., Any]:
    """A job whose tasks note when they begin."""

    def noted(spark: Any, directory: Any, shares: Any, work: Callable[..., Any], *rest: Any) -> Any:
        def begun(own: Any) -> Any:
            first.write_text(str(time.time()))
            yield from work(own)

        return in_tasks(spark, directory, shares, begun, *rest)

    return noted


def run(directory: Path, settings: Mapping[str, str]) -> dict[str, float]:
    """Seconds of each step of one call."""
    began = time.time()
    command = [sys.executable, "-m", "benchmarks.startup", "--child", str(directory), json.dumps(settings)]
    done = subprocess.run(command, env=os.environ | {BEGAN: str(began)}, stdout=subprocess.PIPE, text=True, check=True)
    times, cpu = json.loads(done.stdout)
    times["exit"] = time.time() - began
    ends = [times[step] for step in STEPS]
    return {step: end - before for step, end, before in zip(STEPS, ends, [0.0, *ends], strict=False)} | {
        "all": ends[-1],
        "all, CPU": cpu["answer"],
    }


@contextlib.contextmanager
def small_run() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "small.toml"
        path.write_text(SCENARIO)
        command = [sys.executable, "-m", "antiphon", "simulate", str(path), "--out", f"{scratch}/run"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        yield Path(scratch) / "run"


def parsed(way: str) -> tuple[str, dict[str, str]]:
    name, _, settings = way.partition("=")
    return name, dict(setting.split("=", maxsplit=1) for setting in settings.split(";") if setting)


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], json.loads(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--way", action="append", default=[], metavar="NAME=KEY=VALUE;…")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    ways = {"antiphon": {}, **dict(map(parsed, asked.way))}
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    with small_run() as directory:
        run(directory, {})  # files into memory
        for number in range(asked.rounds):
            for name in [*ways][:: -1 if number % 2 else 1]:
                taken[name].append(run(directory, ways[name]))
                print(f"round {number + 1}: {name} {taken[name][-1]['all']:.1f} s", flush=True)
    found = {
        name: {step: median(each[step] for each in runs) for step in (*STEPS, "all", "all, CPU")}
        for name, runs in taken.items()
    }
    for step in (*STEPS, "all", "all, CPU"):
        print(f"{step:<20}" + "".join(f"{found[name][step]:>10.2f}" for name in found))
    if asked.json is not None:
        asked.json.write_text(
            json.dumps({"command": sys.argv, "cores": os.cpu_count(), "ways": found}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
