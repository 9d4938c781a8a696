"""`antiphon run SCENARIO --out DIR`: run a scenario with real processes and sockets on this machine."""

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from antiphon.cli.commands.simulate import outcome_of, print_outcomes
from antiphon.cli.shared.interrupts import Interrupted
from antiphon.cli.shared.output import Json
from antiphon.cli.shared.paths import path_argument, path_option
from antiphon.cli.shared.run_table import watching
from antiphon.cli.shared.verdicts import Every, exit_code
from antiphon.errors import ConfigurationError
from antiphon.node.refusals import refuse
from antiphon.node.supervisor import run_locally
from antiphon.properties.verdicts.summary import VerdictSummary
from antiphon.scenario.read import read_scenario, run_id, with_transport
from antiphon.trace.directory import appearing, check_free, write_run
from antiphon.trace.segments import segments_in

Sockets = Literal["tcp", "udp"]
TRANSPORTS: Final[dict[Sockets, Literal["stream", "datagram"]]] = {"tcp": "stream", "udp": "datagram"}
"""The names of the transports in a scenario."""


def run(
    scenario: Annotated[Path, path_argument("SCENARIO", "A scenario file (TOML).")],
    out_directory: Annotated[
        Path | None,
        path_option("--out", "DIR", "Directory for the trace; without it nothing is kept."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Judge the run at once, in this process.")] = False,
    transport: Annotated[
        Sockets | None,
        typer.Option("--transport", help="Transport to use; default: network.transport of the scenario."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace other runs in the output directory.")] = False,
    every: Every = False,
    json: Json = False,
) -> None:
    """Run a scenario with one process for each member, over TCP or UDP on this machine; a crash is a kill.

    The network is this machine's: latency, loss, bandwidth and hosts of the scenario have no effect, except loss with
    intergroup. The trace has the same form as that of a simulation, but no two runs are the same. `antiphon watch DIR`
    shows the run while it goes on. Ctrl-C ends it early and keeps the trace so far (exit code 130).
    """
    chosen = read_scenario(scenario)
    if transport is not None:
        chosen = with_transport(chosen, TRANSPORTS[transport])
    refuse(chosen)
    if chosen.trace == "off":
        raise ConfigurationError('antiphon run writes a trace, but the scenario has trace = "off"')
    if out_directory is not None:
        check_free(out_directory, [run_id(chosen)], force=force)
    started = time.perf_counter()
    with (
        nullcontext(None) if out_directory is None else appearing(out_directory) as aside,
        segments_in(aside) as segments,
    ):
        with watching(chosen.name) as watch:
            played = run_locally(chosen, watch, segments)
        outcome = outcome_of(played, started, check, aside, clock="wall")
        if aside is not None:
            write_run(aside, outcome.record, outcome.scenario_toml)
    print_outcomes([outcome], out_directory, check, json, traced=True, every=every)
    if played.interrupted:
        if out_directory is not None:
            raise Interrupted(f"the trace up to the interrupt is in {out_directory}")
        raise KeyboardInterrupt
    if check:
        raise typer.Exit(exit_code(VerdictSummary.of(outcome.verdicts)))
