"""One figure of many protocols as horizontal bars, each with its name and its number; SVG text, like the diagram.

Bars begin at zero, so that their lengths can be compared. A whisker extends to a larger figure of the same kind.
"""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from antiphon.report.figures import NOTHING
from antiphon.report.svg import add, drawing

_WIDTH: Final = 560
_NAMES: Final = 176
"""Width for the names."""
_NUMBERS: Final = 118
"""Width for the numbers behind the longest bar."""
_PITCH: Final = 26
_THICK: Final = 14


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a chart."""

    name: str
    colour: int
    """Index of one of the page's colours."""
    value: float | None
    """None if there is no such figure."""
    upto: float | None = None
    """The end of the whisker."""


def bar_chart(title: str, bars: Sequence[Bar], formatted: Callable[[float | None], str], prefix: str) -> str:
    """Draw the bars from top to bottom; `formatted` writes a number, and `prefix` begins every id."""
    height = _PITCH * len(bars) + 10
    root = drawing("bars", (_WIDTH, height), prefix, title, _description(bars, formatted))
    longest = max((value for bar in bars for value in (bar.value, bar.upto) if value is not None), default=0)
    scale = (_WIDTH - _NAMES - _NUMBERS) / longest if longest > 0 else 0
    add(root, "line", x1=_NAMES, y1=2, x2=_NAMES, y2=height - 2, class_="zero")
    for row, bar in enumerate(bars):
        _draw(add(root, "g"), bar, _PITCH * row + 5 + _PITCH / 2, scale, formatted)
    return ET.tostring(root, encoding="unicode")


def _draw(group: ET.Element, bar: Bar, y: float, scale: float, formatted: Callable[[float | None], str]) -> None:
    add(group, "text", bar.name, x=_NAMES - 10, y=y + 4, class_="name")
    end: float = _NAMES
    if bar.value is not None:
        width = round(bar.value * scale, 1)
        add(group, "rect", x=_NAMES, y=y - _THICK / 2, width=width, height=_THICK, class_=f"fill-{bar.colour}")
        end += width
    if bar.upto is not None:
        tip = round(_NAMES + bar.upto * scale, 1)
        add(group, "path", d=f"M{end:g} {y:g}H{tip:g}M{tip:g} {y - 5:g}V{y + 5:g}", class_="whisker")
        end = max(end, tip)
    add(group, "text", _numbers(bar, formatted), x=round(end + 8, 1), y=y + 4, class_="value")


def _numbers(bar: Bar, formatted: Callable[[float | None], str]) -> str:
    return formatted(bar.value) if bar.upto is None else f"{formatted(bar.value)} / {formatted(bar.upto)}"


def _description(bars: Sequence[Bar], formatted: Callable[[float | None], str]) -> str:
    numbers = (_numbers(bar, formatted) if bar.value is not None else NOTHING for bar in bars)
    return "; ".join(f"{bar.name} {number}" for bar, number in zip(bars, numbers, strict=True)) + "."
