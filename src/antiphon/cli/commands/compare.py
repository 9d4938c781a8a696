"""`antiphon compare SCENARIO --out DIR`: run one workload under many protocols; show cost and properties of each."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.markup import escape
from rich.table import Table

from antiphon import __version__
from antiphon.cli.commands.simulate import parse_seeds, simulate_one
from antiphon.cli.shared.output import Json, as_json, out, print_json, progress, waiting
from antiphon.cli.shared.paths import path_argument, place_option
from antiphon.cli.shared.pool import map_parallel
from antiphon.cli.shared.sessions import Conf, DriverMemory, Master, ShipPackages, SparkChoice, spark_choice, started
from antiphon.cli.shared.verdicts import EXIT
from antiphon.errors import ConfigurationError
from antiphon.properties.promises import JUDGED, NOT_JUDGED
from antiphon.properties.verdicts.verdict import Verdict
from antiphon.properties.verdicts.wording import promise
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import read_scenario, run_id, scenario_toml, with_seed
from antiphon.scenario.variants import changes, variant, variants
from antiphon.trace.directory import appearing, check_free, write_index
from antiphon.trace.places import Place

if TYPE_CHECKING:
    from antiphon.pipeline.figures.measures import RunStatistics
    from antiphon.report.comparison import Comparison, Contender, Finding, Judgement

_SIGNS: Final = {"kept": "✓+", "broken": "✗-", "no opportunity": "○·", "cannot tell": "??"}
"""For each standing, the sign if the property is promised, and the sign if it is not."""
_NO_FURTHER: Final = "±"
_STYLE: Final = {"kept": "green", "broken": "bold red", "no opportunity": "dim", "cannot tell": "bold yellow"}
_SENTENCE: Final = {
    "hold": "every protocol keeps its promises",
    "violated": "a protocol breaks a promise",
    "unknown": "not judged: a trace is ill-formed or empty",
}


@dataclass(frozen=True, slots=True)
class _Entry:
    """One protocol of the comparison."""

    name: str
    scenarios: tuple[Scenario, ...]
    """One for each seed."""
    runs: tuple[str, ...]
    """The ids of the runs."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Request:
    """The parsed command line."""

    scenario: Scenario
    seeds: Sequence[int]
    entries: tuple[_Entry, ...]
    skipped: tuple[tuple[str, str], ...]


def compare(
    scenario: Annotated[Path, path_argument("SCENARIO", "A scenario file (TOML).")],
    out_directory: Annotated[Place, place_option("--out", "DIR", "Directory for traces and page.")],
    protocols: Annotated[
        str | None,
        typer.Option(
            "--protocols",
            metavar="NAME,…",
            help="Protocols, such as newtop:total,classic:causal,acks:vector; default: all that can run the scenario.",
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", metavar="A..B", help="Run every seed from A to B; default: the scenario's.")
    ] = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Do not write DIR/compare.html.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace other runs in the output directory.")] = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
    driver_memory: DriverMemory = None,
    ship_packages: ShipPackages = False,
) -> None:
    """Run one workload under many protocols, and compare what each costs and which properties it keeps.

    Every property is judged for every protocol, promised or not. Exit code 0: every protocol keeps its promises. 1: one
    does not. 3: not judged.
    """
    choice = spark_choice(master, conf, driver_memory, ship_packages)
    request = _request(read_scenario(scenario), protocols, seeds)
    check_free(out_directory, [run for entry in request.entries for run in entry.runs], force=force)
    with appearing(out_directory) as aside:
        cut_off = _simulate(request, aside)
        comparison = _compared(request, cut_off, aside, choice)
        document = _document(comparison)
        (aside / "compare.json").write_text(as_json(document), "utf-8")
        if not no_page:
            _write_page(comparison, aside)
    if json:
        print_json(document)
    else:
        _print(comparison, out_directory, with_page=not no_page)
    raise typer.Exit(EXIT[comparison.overall])


def _request(scenario: Scenario, protocols: str | None, seeds: str | None) -> _Request:
    if scenario.trace == "off":
        raise ConfigurationError('compare needs traces, but the scenario has trace = "off"')
    numbers = parse_seeds(scenario, seeds, None)
    names = variants() if protocols is None else dict.fromkeys(name.strip() for name in protocols.split(","))
    entries, skipped = [], []
    for name in names:
        try:
            changed = variant(scenario, name)
        except ConfigurationError as error:
            if protocols is not None:
                raise
            skipped.append((name, str(error).removeprefix(f"{scenario.name} cannot run under {name}: ")))
            continue
        scenarios = tuple(with_seed(changed, number) for number in numbers)
        entries.append(_Entry(name, scenarios, tuple(map(run_id, scenarios)), tuple(changes(scenario, changed))))
    if not entries:
        raise ConfigurationError(f"no protocol can run {scenario.name}; {skipped[0][1]}")
    return _Request(scenario, numbers, tuple(entries), tuple(skipped))


def _simulate(request: _Request, directory: Place) -> frozenset[str]:
    """Run everything and write the traces; returns the runs that never became quiet."""
    scenarios = [scenario for entry in request.entries for scenario in entry.scenarios]
    names = [entry.name for entry in request.entries for _ in entry.scenarios]
    index, cut_off = [], set()
    work = partial(simulate_one, carry="bytes", check=False, directory=directory)
    with closing(map_parallel(work, scenarios)) as outcomes, progress("simulating") as advance:
        for name, scenario in zip(names, scenarios, strict=True):
            with _naming_the_run(name, scenario):
                outcome = next(outcomes)
            index.append((outcome.record, outcome.scenario_toml))
            if not outcome.summary.quiet:
                cut_off.add(outcome.summary.run)
            advance(len(index), len(scenarios))
    write_index(directory, index)
    return frozenset(cut_off)


@contextmanager
def _naming_the_run(name: str, scenario: Scenario) -> Iterator[None]:
    """Add the run to an error: results come in the order of the scenarios, so the awaited run has failed."""
    try:
        yield
    except Exception as error:
        error.add_note(f"antiphon: {name} failed under seed {scenario.seed}: run {run_id(scenario)} did not end")
        raise


def _compared(request: _Request, cut_off: frozenset[str], directory: Place, choice: SparkChoice) -> "Comparison":
    """Judge and measure all runs, in one Spark session.

    They are judged twice, because a protocol often promises less than the property says: for each group by itself, or
    only without crashes.
    """
    from antiphon.pipeline.dataset import Dataset  # noqa: PLC0415
    from antiphon.pipeline.figures.statistics import statistics_of_parts  # noqa: PLC0415
    from antiphon.pipeline.jobs.verify import verify  # noqa: PLC0415
    from antiphon.report.comparison import Comparison, Contender, judgements  # noqa: PLC0415

    spark, found = started(choice, light=True), Dataset.of(directory)
    with progress("judging what is promised") as advance:
        promised = verify(spark, found, progress=advance)
    with progress("judging everything") as advance:
        required = verify(spark, found, progress=advance, required=frozenset(JUDGED))
    with waiting("measuring"):
        figures = statistics_of_parts(spark, found, {entry.name: entry.runs for entry in request.entries})
    return Comparison(
        scenario=request.scenario.name,
        scenario_toml=scenario_toml(request.scenario),
        seeds=tuple(request.seeds),
        antiphon_version=__version__,
        percentiles=figures[request.entries[0].name].percentiles,
        contenders=tuple(
            Contender(
                name=entry.name,
                runs=entry.runs,
                notes=(*entry.notes, *_quietness(entry.runs, cut_off), *_left_out(figures[entry.name].overall)),
                figures=figures[entry.name].overall,
                judgements=judgements(_of(entry.runs, promised), _of(entry.runs, required)),
            )
            for entry in request.entries
        ),
        skipped=request.skipped,
    )


def _of(runs: Sequence[str], verdicts: Sequence[Verdict]) -> list[Verdict]:
    own = frozenset(runs)
    return [verdict for verdict in verdicts if verdict.run in own]


def _quietness(runs: Sequence[str], cut_off: frozenset[str]) -> list[str]:
    count = sum(run in cut_off for run in runs)
    note = f"{count} of {len(runs)} runs were cut off before they were quiet: liveness is not judged for them"
    return [note] if count else []


def _left_out(figures: "RunStatistics") -> list[str]:
    count = figures.sent_to_nobody
    note = f"{count:,} messages were sent without receivers; the stability latency leaves them out"
    return [note] if count else []


def _write_page(comparison: "Comparison", directory: Place) -> None:
    from antiphon.report.compare_page import render_comparison  # noqa: PLC0415

    (directory / "compare.html").write_text(render_comparison(comparison), "utf-8")


# ------------------------------------------------------------------------------ output


def _document(comparison: "Comparison") -> dict[str, Any]:
    """The document that `--json` prints and `compare.json` holds; nothing in it depends on the machine."""
    return {
        "scenario": comparison.scenario,
        "antiphon_version": comparison.antiphon_version,
        "seeds": list(comparison.seeds),
        "verdict": comparison.overall,
        "percentiles": comparison.percentiles,
        "protocols": [_entry(contender) for contender in comparison.contenders],
        "skipped": [{"protocol": name, "reason": reason} for name, reason in comparison.skipped],
        "not_judged": list(NOT_JUDGED),
    }


def _entry(contender: "Contender") -> dict[str, Any]:
    return {
        "protocol": contender.name,
        "runs": list(contender.runs),
        "notes": list(contender.notes),
        "figures": asdict(contender.figures),
        "properties": [_property(each) for each in contender.judgements],
    }


def _property(judgement: "Judgement") -> dict[str, Any]:
    document = {"property": judgement.property_id, "promised": judgement.promised, "standing": judgement.standing}
    return document | {"promise": judgement.promise and asdict(judgement.promise), "worded": asdict(judgement.worded)}


def _print(comparison: "Comparison", directory: Place, *, with_page: bool) -> None:
    out.print(_figures(comparison))
    out.print(_matrix(comparison))
    _say("promised: ✓ kept, ✗ broken, ○ no opportunity; not promised: + kept, - broken, · no opportunity;")
    _say("± kept as promised, but broken beyond the promise (over several groups, or with crashes); ? not judged")
    for sentence in _findings(comparison):
        _say(sentence)
    for contender in comparison.contenders:
        work = contender.figures.costs
        if work is not None:
            _say(f"{contender.name}: work of senders {work.sender_work:,} steps, of receivers {work.receiver_work:,}")
    for names, note in _together((each.name, note) for each in comparison.contenders for note in each.notes):
        _say(f"{names}: {note}")
    for names, reason in _together(comparison.skipped):
        _say(f"skipped {names}: {reason}")
    _say(f"traces{' and compare.html' if with_page else ''} in {directory}")
    out.print(f"[bold]{comparison.overall}[/]: {_SENTENCE[comparison.overall]}", highlight=False)


def _together(statements: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Merge equal statements: the protocols that each concerns, and the statement."""
    names: dict[str, list[str]] = {}
    for name, sentence in statements:
        names.setdefault(sentence, []).append(name)
    return ((", ".join(own), sentence) for sentence, own in names.items())


def _figures(comparison: "Comparison") -> Table:
    title = "Latency (ms); messages (copies) and bytes per multicast; messages per second when idle; most messages held"
    table = Table(title=title, title_justify="left")
    table.add_column("protocol", no_wrap=True)
    figures = [figure for figure in comparison.figures if figure.kind != "work"]
    for figure in figures:
        table.add_column(figure.name.replace(" ", "\n"), justify="right", overflow="fold")
    for contender in comparison.contenders:
        table.add_row(contender.name, *(_number(figure.kind, figure.of(contender.figures)) for figure in figures))
    return table


def _number(kind: str, value: float | None) -> str:
    if value is None:
        return "-"
    if kind == "time":
        return f"{value / 1e6:,.2f}"
    return f"{value:,.0f}" if kind == "count" or value >= 1000 else f"{value:,.3g}"


def _matrix(comparison: "Comparison") -> Table:
    """A row for each protocol, a column for each property, one sign in each cell."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("protocol", no_wrap=True)
    for name in comparison.properties:
        table.add_column(name, no_wrap=True)
    for contender in comparison.contenders:
        judged = {each.property_id: each for each in contender.judgements}
        table.add_row(contender.name, *(_sign(judged.get(name)) for name in comparison.properties))
    return table


def _sign(judgement: "Judgement | None") -> str:
    if judgement is None:
        return " "
    if judgement.goes_no_further:
        return _NO_FURTHER
    sign = _SIGNS[judgement.standing][0 if judgement.promised else 1]
    style = _STYLE[judgement.standing] if judgement.promised else "dim"
    return f"[{style}]{sign}[/]"


def _findings(comparison: "Comparison") -> Iterator[str]:
    """Every broken promise; then, for each property, what is broken without a promise, with its first example."""
    expected: dict[str, list[tuple[str, Finding]]] = {}
    for contender in comparison.contenders:
        for judgement, finding in contender.findings:
            what = f"{judgement.property_id} {promise(judgement.property_id).name}"
            if finding.standing == "cannot tell":
                yield f"{contender.name} could not be judged, {what}: {_witness(finding)}"
            elif judgement in contender.broken_promises:
                yield f"{contender.name} breaks its promise {what}: {_witness(finding)}"
            else:
                reach = "beyond the promise" if judgement.promised else "not promised"
                expected.setdefault(f"{what}, {reach}", []).append((contender.name, finding))
    for what, found in sorted(expected.items(), key=lambda each: comparison.properties.index(each[0].split()[0])):
        yield f"{what}, is broken by {', '.join(name for name, _ in found)}; the first: {_witness(found[0][1])}"


def _witness(finding: "Finding") -> str:
    more = f" ({finding.violations - 1:,} more)" if finding.violations > 1 else ""
    return f"{finding.sentence}{more}, run {finding.run}"


def _say(sentence: str) -> None:
    out.print(escape(sentence), highlight=False, soft_wrap=True)
