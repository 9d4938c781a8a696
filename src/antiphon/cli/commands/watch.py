"""`antiphon watch DIR`: follow a run while it goes on, as a live table; Spark reads its trace in parts."""

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.live import Live

from antiphon.cli.shared.output import Json, err, out, print_json, waiting
from antiphon.cli.shared.paths import path_argument, path_option
from antiphon.cli.shared.sessions import Conf, DriverMemory, Master, ShipPackages, spark_choice, started
from antiphon.cli.shared.watch_table import render_watch
from antiphon.errors import ConfigurationError, TraceError

if TYPE_CHECKING:
    from antiphon.pipeline.live.figures import Figures
    from antiphon.pipeline.live.stream import Watch
    from antiphon.trace.follow import Follower
    from antiphon.trace.members import Identity

_POLL_SECONDS: Final = 0.1


def watch(
    directory: Annotated[
        Path,
        path_argument("DIR", "The directory that `antiphon run --out DIR` or `Member(trace=DIR)` writes."),
    ],
    once: Annotated[bool, typer.Option("--once", help="Show what is there now, and exit.")] = False,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", help="How often to read new parts.")] = 0.5,
    checkpoint: Annotated[
        Path | None,
        path_option(
            "--checkpoint", "PATH", "A folder that remembers what was read; the same command goes on from there."
        ),
    ] = None,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
    driver_memory: DriverMemory = None,
    ship_packages: ShipPackages = False,
) -> None:
    """Watch a run until it ends: rates, latencies, views, and verdicts so far. A finished run is read to its end.

    Waits for a run if there is none yet. Members that trace themselves are followed until all have stopped.
    Properties that can be judged on a stream are judged on the way; exit code 1 means that one is violated.
    `antiphon check DIR` judges all of them afterwards. --json prints one document at the end.
    """
    choice = spark_choice(master, conf, driver_memory, ship_packages)
    if not 0.05 <= every <= 3600:
        raise ConfigurationError(f"--every {every:g} is not between 0.05 and 3,600 seconds")
    from antiphon.pipeline.live.places import find  # noqa: PLC0415
    from antiphon.pipeline.live.stream import Watch  # noqa: PLC0415
    from antiphon.trace.follow import Follower  # noqa: PLC0415
    from antiphon.trace.line_runs import line_files  # noqa: PLC0415
    from antiphon.trace.members import read_identity  # noqa: PLC0415

    if line_files(directory):
        raise TraceError(
            f"{directory} holds traces of another system, which cannot be followed; "
            "use `antiphon check` when its processes have stopped"
        )
    identity = read_identity(directory)
    place = find(directory)
    if place is None and identity is None and once:
        raise TraceError(f"{directory} has no run, and none is being written there")
    spark = started(choice)
    with nullcontext(checkpoint) if checkpoint is not None else _temporary() as remembered, _temporary() as folder:
        watched = Watch(spark, directory, remembered, every_s=every)
        if identity is None and not once:
            identity = _awaited(directory)
        if identity is not None:
            _follow_members(watched, Follower(directory, identity, folder), once=once)
        elif once and place is not None:
            with waiting("reading"):
                watched.read_what_is_there(place)
        else:
            with _shown() as show:
                watched.follow(show)
    if not once:
        _require_end(directory, watched.figures, members=identity is not None)
    if json:
        print_json(_document(directory, watched))
    else:
        out.print(render_watch(watched.figures))
    raise typer.Exit(1 if watched.figures.violated else 0)


def _awaited(directory: Path) -> "Identity | None":
    """Wait until there is a run; None if it is not one of members that trace themselves."""
    from antiphon.pipeline.live.places import find  # noqa: PLC0415
    from antiphon.trace.members import read_identity  # noqa: PLC0415

    is_told = False
    while (identity := read_identity(directory)) is None and find(directory) is None:
        if not is_told:
            typer.echo(f"waiting for a run in {directory}", err=True)
            is_told = True
        time.sleep(_POLL_SECONDS)
    return identity


def _follow_members(watched: "Watch", follower: "Follower", *, once: bool) -> None:
    from antiphon.pipeline.live.places import Place  # noqa: PLC0415
    from antiphon.trace.segments import began_ns  # noqa: PLC0415

    follower.step()
    place = Place(follower.folder, f"members-{secrets.token_hex(4)}", whole=False, began_ns=began_ns(follower.folder))
    if once:
        with waiting("reading"):
            watched.read_what_is_there(place)
        return
    with _shown() as show:

        def step(figures: "Figures") -> None:
            follower.step()
            show(figures)

        watched.follow(step, place)


@contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="antiphon-watch-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def _shown() -> "Iterator[Callable[[Figures], None]]":
    """Show a table on a terminal, nothing when piped."""
    if not err.is_terminal:
        yield lambda _: None
        return
    with Live(console=err, refresh_per_second=8, transient=True) as live:
        yield lambda figures: live.update(render_watch(figures))


def _require_end(directory: Path, figures: "Figures", *, members: bool) -> None:
    """At the end of a stream, a run must have no gaps; it must also be complete, unless it was killed.

    Members that trace themselves have no common end.
    """
    if figures.waiting:
        raise TraceError(f"events are missing in {directory}: {figures.waiting:,} come after a gap")
    if not figures.over and not members:
        typer.echo("antiphon: the run ended abnormally; this is all that its trace has", err=True)


def _document(directory: Path, watched: "Watch") -> dict[str, Any]:
    delay = watched.delay
    return {
        "directory": str(directory),
        "violated": watched.figures.violated,
        **asdict(watched.figures),
        "delay": {"events": delay.count, "p50_ns": delay.percentile(0.5), "p99_ns": delay.percentile(0.99)},
    }
