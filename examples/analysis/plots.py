"""The plots of docs/guide/analysis.md, from answers that `antiphon sql … --out` wrote.

The page has the commands that make the runs and the answers. Then:

python examples/analysis/plots.py out docs/images/analysis
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from matplotlib import rc_context
from matplotlib.figure import Figure

STYLE: Any = {"svg.hashsalt": "antiphon", "svg.fonttype": "none", "font.size": 9}
LOOKS = (("o", "-"), ("s", "--"), ("^", ":"), ("x", "-."))
"""Marker and line of each curve: some curves lie on each other."""
Row = dict[str, Any]


def curves(rows: Iterable[Row], by: str, x: str, y: str) -> dict[str, tuple[list[float], list[float]]]:
    """By the value of one column: the values of two others, as a curve."""
    drawn: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        xs, ys = drawn.setdefault(str(row[by]), ([], []))
        xs.append(row[x])
        ys.append(row[y])
    return drawn


def draw(path: Path, rows: Iterable[Row], title: str, by: str, x: tuple[str, str], y: tuple[str, str]) -> None:
    """Draw the curves; `x` and `y` are a column and the label of its axis."""
    with rc_context(STYLE):
        figure = Figure(figsize=(6, 3.2), layout="constrained")
        axes = figure.add_subplot(title=title, xlabel=x[1], ylabel=y[1])
        for (name, (xs, ys)), (marker, line) in zip(curves(rows, by, x[0], y[0]).items(), LOOKS, strict=False):
            axes.plot(xs, ys, marker=marker, linestyle=line, fillstyle="none", label=name)
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(title=by, frameon=False)
        figure.savefig(path, metadata={"Date": None})


def plots(answers: Path, images: Path) -> None:
    """Draw all three."""
    found = {
        name: pq.read_table(answers / f"{name}.parquet").to_pylist() for name in ("broken", "latency", "view_changes")
    }
    broken = [{**row, "rule": "as printed" if row["as_printed"] else "adopted"} for row in found["broken"]]
    sigma, runs = ("sigma", "sigma of the latencies"), ("broke_o3", "runs of 5")
    draw(images / "broken.svg", broken, "Runs that broke O3", "rule", sigma, runs)
    silence, mean = ("silence_ms", "time_silence, ms"), ("mean_ms", "mean latency, ms")
    draw(images / "latency.svg", found["latency"], "Latency against silence", "members", silence, mean)
    timeout, since = ("suspect_after_ms", "suspect_after, ms"), ("mean_ms", "since the fault, ms")
    title = "Time until the new view of a majority"
    draw(images / "view_changes.svg", found["view_changes"], title, "fault", timeout, since)


if __name__ == "__main__":
    plots(Path(sys.argv[1]), Path(sys.argv[2]))
