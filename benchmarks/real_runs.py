"""Every scenario of `scenarios/real` with real processes, over TCP and UDP: its faults happen, and all promises hold.

A run counts if its trace shows the effect of each fault (a killed process that was excluded, blocked senders, a state
that a joiner took over, a view with both sides of a split), if it became quiet, and if every promised property holds.
Otherwise the exit code is 1. InterGroup multicasts, so it is played over UDP only. Run from the root:

    python -m benchmarks.real_runs [--only NAME] [--transport tcp|udp] [--rounds 1] [--keep DIR] [--json]
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from antiphon.cli.commands.run import TRANSPORTS
from tools.lab.real_runs import SCENARIOS, Result, play, transports_of


def main() -> None:
    """Play all scenarios; print a table, and a sentence for each problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", help="one scenario")
    parser.add_argument("--transport", choices=[*TRANSPORTS], help="one transport")
    parser.add_argument("--rounds", type=int, default=1, help="play the whole list this number of times")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where traces of runs that fail go")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    arguments = parser.parse_args()
    scenarios = [path for path in sorted(SCENARIOS.glob("*.toml")) if arguments.only in (None, path.stem)]
    transports = [each for each in TRANSPORTS if arguments.transport in (None, each)]
    if not scenarios:
        parser.error(f"no scenario {arguments.only!r}; there are {', '.join(p.stem for p in SCENARIOS.glob('*.toml'))}")
    pairs = [(path, each) for path in scenarios for each in transports if each in transports_of(path)]
    plan = pairs * arguments.rounds
    results = []
    for number, (path, transport) in enumerate(plan, 1):
        results.append(play(path, transport, arguments.keep))
        print(f"{number}/{len(plan)} {_line(results[-1])}", file=sys.stderr, flush=True)
    if arguments.json:
        print(json.dumps([asdict(result) | {"holds": result.holds} for result in results], indent=1))
    else:
        Console(width=None if sys.stdout.isatty() else 120).print(_table(results))
    sys.exit(not all(result.holds for result in results))


def _line(result: Result) -> str:
    said = "holds" if result.holds else "; ".join((*result.missing, *result.violated))
    return f"{result.scenario} over {result.transport}: {said}"


def _table(results: list[Result]) -> Table:
    table = Table("scenario", "transport", title="Real processes on this machine", title_justify="left")
    for name in ("wall s", "delivered", "views", "blocked"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for result in results:
        figures = f"{result.delivered:,}", str(result.views), str(result.blocks)
        verdict = "[green]holds[/]" if result.holds else "[bold red]does not hold[/]"
        table.add_row(result.scenario, result.transport, f"{result.wall_seconds:.1f}", *figures, verdict)
    return table


if __name__ == "__main__":
    main()
