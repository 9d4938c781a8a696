"""The page of a comparison: figures of every protocol, bars for the main ones, and a matrix of the properties."""

from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from antiphon.pipeline.figures.measures import RunStatistics
from antiphon.properties.verdicts.wording import promise
from antiphon.report.bars import Bar, bar_chart
from antiphon.report.comparison import Comparison, Contender, Figure, Finding, Judgement, Standing
from antiphon.report.figures import NOTHING, TimeUnit, count, ratio, unit_for, whole
from antiphon.report.templating import Banner, FigureTable, environment, style
from antiphon.report.wording import SYMBOLS

MARKS: Final[dict[Standing, str]] = {
    "kept": SYMBOLS["pass"],
    "broken": SYMBOLS["violated"],
    "no opportunity": SYMBOLS["vacuous"],
    "cannot tell": SYMBOLS["unknown"],
}
"""A sign for each standing, so that colour is never the only difference."""

_SEEDS_SHOWN_MAX: Final = 6
_CHARTS: Final = (
    ("Delivery latency", "Mean; the whisker ends at the 99th percentile.", "delivery mean", "delivery p99"),
    ("Stability latency", "At the sender. Mean and 99th percentile.", "stability mean", "stability p99"),
    ("Answer latency", "Of requests to the group. Mean and 99th percentile.", "answer mean", "answer p99"),
    ("Messages per multicast", "Every copy of every frame.", "messages", None),
    ("Bytes on the wire per multicast", "Headers and payloads of all copies.", "wire bytes", None),
)
"""Title, sentence, and the figures that give the bar and its whisker."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """How a property fared under one protocol, as shown in the matrix."""

    sign: str
    classes: str
    label: str


@dataclass(frozen=True, slots=True)
class _Breach:
    """A property that one protocol breaks, or for which it could not be judged."""

    name: str
    reach: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class _Chart:
    title: str
    sentence: str
    svg: Markup


def render_comparison(comparison: Comparison) -> str:
    """Render the page as HTML text; the same comparison gives the same text."""
    templates = environment()
    text = templates.get_template("compare.html.j2").render(
        comparison=comparison,
        style=style(templates, "page.css", "compare.css"),
        banner=_banner(comparison),
        seeds=_seeds(comparison.seeds),
        table=_table(comparison),
        charts=_charts(comparison),
        promise=promise,
        matrix=_matrix(comparison),
        marks=MARKS,
        broken=_broken(comparison),
    )
    return text.lstrip() + "\n"


def _banner(comparison: Comparison) -> Banner:
    symbol = SYMBOLS[comparison.overall]
    if comparison.overall == "hold":
        return Banner(symbol, "Every protocol keeps its promises", tuple(_lines(comparison)))
    if comparison.overall == "unknown":
        return Banner(symbol, "Unknown: some traces could not be judged", tuple(_lines(comparison)))
    broken = [
        f"{each.property_id} by {contender.name}"
        for contender in comparison.contenders
        for each in contender.broken_promises
    ]
    return Banner(symbol, "Broken promises: " + ", ".join(broken), tuple(_lines(comparison)))


def _lines(comparison: Comparison) -> list[str]:
    runs = sum(len(contender.runs) for contender in comparison.contenders)
    lines = [f"{count(len(comparison.contenders), 'protocol')}, {count(runs, 'run')} of the same workload."]
    if comparison.skipped:
        lines.append(f"{count(len(comparison.skipped), 'protocol')} cannot run it; the reasons are below.")
    return lines


def _seeds(seeds: tuple[int, ...]) -> str:
    if len(seeds) > _SEEDS_SHOWN_MAX:
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


# ------------------------------------------------------------------------------ figures


def _unit(comparison: Comparison) -> TimeUnit:
    """One unit for all latencies, so that delivery and stability can be compared."""
    return unit_for(max((value for bar in _latencies(comparison) for value in bar), default=0))


def _latencies(comparison: Comparison) -> list[tuple[float, ...]]:
    figures = [figure for figure in comparison.figures if figure.kind == "time"]
    values = [[figure.of(each.figures) for figure in figures] for each in comparison.contenders]
    return [tuple(value for value in own if value is not None) for own in values]


def _table(comparison: Comparison) -> FigureTable:
    unit = _unit(comparison)
    heads = [f"{each.name} ({unit.name})" if each.kind == "time" else each.name for each in comparison.figures]
    return FigureTable(
        caption="Figures of each protocol",
        heads=("protocol", "sent", "delivered", *heads),
        rows=tuple(_row(each, comparison.figures, unit) for each in comparison.contenders),
    )


def _row(contender: Contender, figures: tuple[Figure, ...], unit: TimeUnit) -> tuple[str, ...]:
    traffic = contender.figures.traffic
    cells = [_formatted(figure, contender.figures, unit) for figure in figures]
    return (contender.name, whole(traffic.sent), whole(traffic.delivered), *cells)


def _formatted(figure: Figure, run: RunStatistics, unit: TimeUnit) -> str:
    value = figure.of(run)
    if figure.kind == "time":
        return unit.format(value)
    return ratio(value) if figure.kind == "ratio" else whole(None if value is None else int(value))


def _charts(comparison: Comparison) -> list[_Chart]:
    """Bar charts of the main figures, if some protocol has them."""
    known = {figure.name: figure for figure in comparison.figures}
    return [
        _chart(comparison, title, sentence, known[name], known[upto] if upto else None)
        for title, sentence, name, upto in _CHARTS
        if name in known
    ]


def _chart(comparison: Comparison, title: str, sentence: str, figure: Figure, upto: Figure | None) -> _Chart:
    unit = _unit(comparison) if figure.kind == "time" else None
    families = list(dict.fromkeys(map(_family, comparison.contenders)))
    bars = [
        Bar(each.name, families.index(_family(each)), figure.of(each.figures), upto.of(each.figures) if upto else None)
        for each in comparison.contenders
    ]
    title = f"{title} ({unit.name})" if unit else title
    prefix = f"chart-{figure.name.replace(' ', '-')}"
    svg = bar_chart(title, bars, unit.format if unit else ratio, prefix)
    return _Chart(title, sentence, Markup(svg))  # noqa: S704 - the tree of elements escapes what it holds


def _family(contender: Contender) -> str:
    return contender.name.partition(":")[0]


# ------------------------------------------------------------------------------ properties


def _matrix(comparison: Comparison) -> list[tuple[str, list[tuple[_Mark, ...]]]]:
    """For each property, a cell for each protocol."""
    judged = [{each.property_id: each for each in contender.judgements} for contender in comparison.contenders]
    return [(name, [_cell(own.get(name)) for own in judged]) for name in comparison.properties]


def _cell(judgement: Judgement | None) -> tuple[_Mark, ...]:
    """Usually one mark; two if the property is broken only beyond the promise."""
    if judgement is None:
        return (_Mark(NOTHING, "", "not judged"),)
    found = judgement.promise or judgement.worded
    marks = [_mark(found, "promised" if judgement.promised else "not promised")]
    if judgement.broken_beyond:
        marks.append(_mark(judgement.worded, "beyond the promise"))
    return tuple(marks)


def _mark(finding: Finding, where: str) -> _Mark:
    classes = finding.standing.replace(" ", "-") + (" promised" if where == "promised" else "")
    label = f"{where}, {finding.standing}, opportunities: {finding.opportunities:,}"
    return _Mark(MARKS[finding.standing], classes, label)


def _broken(comparison: Comparison) -> list[tuple[str, list[_Breach]]]:
    """For each property the protocols that break it or could not be judged, in the order of the matrix."""
    breaches = [
        (judgement, _Breach(contender.name, _reach(judgement, finding), finding))
        for contender in comparison.contenders
        for judgement, finding in contender.findings
    ]
    found = {
        name: [each for judgement, each in breaches if judgement.property_id == name] for name in comparison.properties
    }
    return [(name, own) for name, own in found.items() if own]


def _reach(judgement: Judgement, finding: Finding) -> str:
    """How the protocol's promise relates to the finding."""
    if finding.standing == "cannot tell":
        return "whose trace is ill-formed"
    if judgement.goes_no_further:
        return "which promises less and keeps that promise"
    if judgement.broken_beyond:
        return "which promises less and had no opportunity to break that promise"
    return "which promises it" if judgement.promised else "which does not promise it"
