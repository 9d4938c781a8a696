"""Charts as inline SVG, drawn by matplotlib without a display or global figures; equal figures give equal bytes.

Colours are drawn as placeholders and replaced by variables of the page's style sheet, so that a chart follows dark
mode. A chart contains no text from a scenario: names are in the page around it.
"""

import re
from collections.abc import Sequence
from html import escape
from io import StringIO
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from antiphon.pipeline.figures.histograms import LatencyHistogram, MessagesOverTime
from antiphon.report.figures import duration, unit_for

_INK, _FAINT, _FIRST, _SECOND, _THIRD = "#010101", "#020202", "#030303", "#040404", "#050505"
_VARIABLES: Final = {
    _INK: "var(--muted)",
    _FAINT: "var(--rule)",
    _FIRST: "var(--c0)",
    _SECOND: "var(--c1)",
    _THIRD: "var(--c2)",
}
_SETTINGS: Final[Any] = {
    "svg.fonttype": "none",  # text stays text: it can be read aloud, searched and restyled
    "svg.hashsalt": "antiphon",
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "grid.color": _FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
}


def latency_chart(histogram: LatencyHistogram, prefix: str) -> str:
    """Deliveries by latency as one SVG element; `prefix` begins every id in it."""
    unit = unit_for(histogram.edges_ns[-1])
    with rc_context(_SETTINGS):
        figure, axes = _axes(5.4, 2.7)
        edges = [edge / unit.ns for edge in histogram.edges_ns]
        axes.stairs(histogram.counts, edges, fill=True, color=_FIRST)
        axes.set_xlabel(f"latency ({unit.name})")
        axes.set_ylabel("deliveries")
        axes.set_xlim(min(0, edges[0]), edges[-1])
        return _svg(figure, prefix, "Latency distribution", _latency_description(histogram))


def course_chart(course: MessagesOverTime, prefix: str, happenings_ns: Sequence[int] = ()) -> str:
    """Sends, deliveries and nulls over time as one SVG element; external events are numbered from 1."""
    start_ns = course.edges_ns[0]
    unit = unit_for(course.edges_ns[-1] - start_ns)
    width_ns = course.edges_ns[1] - course.edges_ns[0]
    with rc_context(_SETTINGS):
        figure, axes = _axes(10.8, 2.9)
        edges = [(edge - start_ns) / unit.ns for edge in course.edges_ns]
        axes.stairs(course.deliveries, edges, fill=True, color=_FIRST, alpha=0.22)
        axes.stairs(course.deliveries, edges, color=_FIRST, linewidth=1.6, label="deliveries", baseline=None)
        axes.stairs(course.sends, edges, color=_SECOND, linewidth=1.6, linestyle="--", label="sends", baseline=None)
        axes.stairs(course.nulls, edges, color=_THIRD, linewidth=1.8, linestyle=":", label="nulls", baseline=None)
        for number, time_ns in enumerate(happenings_ns, 1):
            _happening(axes, time_ns / unit.ns, number)
        axes.set_xlabel(f"time since the run began ({unit.name})")
        axes.set_ylabel(f"per {duration(width_ns)}")
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(bottom=0)
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)
        return _svg(figure, prefix, "Messages over time", _course_description(course))


def _happening(axes: Any, x: float, number: int) -> None:
    axes.axvline(x, color=_INK, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(
        str(number), (x, 1), xycoords=("data", "axes fraction"), xytext=(0, 2), textcoords="offset points", ha="center"
    )


def _axes(width: float, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.add_subplot()
    axes.grid(axis="y")
    axes.tick_params(length=3)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    return figure, axes


def _latency_description(histogram: LatencyHistogram) -> str:
    total = sum(histogram.counts)
    fullest = max(range(len(histogram.counts)), key=histogram.counts.__getitem__)
    low, high = (duration(edge) for edge in histogram.edges_ns[fullest : fullest + 2])
    return f"{total:,} deliveries; the fullest of {len(histogram.counts)} bins lies between {low} and {high}."


def _course_description(course: MessagesOverTime) -> str:
    return (
        f"{sum(course.sends):,} sends, {sum(course.deliveries):,} deliveries and {sum(course.nulls):,} null frames "
        f"in {len(course.sends)} bins of {duration(course.edges_ns[1] - course.edges_ns[0])}."
    )


def _svg(figure: Figure, prefix: str, title: str, description: str) -> str:
    """The figure as an element that can be placed in a page beside others."""
    out = StringIO()
    figure.savefig(out, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    text = out.getvalue()
    body = text[text.index(">", text.index("<svg")) + 1 :]
    body = re.sub(r"<style.*?</style>|<metadata.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r'href="#', f'href="#{prefix}-', body)
    body = body.replace("url(#", f"url(#{prefix}-")
    for placeholder, variable in _VARIABLES.items():
        body = body.replace(placeholder, variable)
    box = re.search(r'viewBox="([^"]+)"', text)
    assert box is not None
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" class="chart" '
        f'viewBox="{box[1]}" role="img" aria-labelledby="{prefix}-title {prefix}-desc">'
        f'<title id="{prefix}-title">{escape(title)}</title><desc id="{prefix}-desc">{escape(description)}</desc>'
        f"{body.strip()}"
    )
