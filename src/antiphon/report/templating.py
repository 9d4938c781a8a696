"""What all pages share: templates that escape every name, the style sheet, tables of figures."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from antiphon.report.figures import count, duration, whole

_TEMPLATES: Final = Path(__file__).with_name("templates")


@dataclass(frozen=True, slots=True)
class Banner:
    """The verdict, as the first thing a reader sees."""

    symbol: str
    headline: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table of figures: what its rows are, and cells that are text already."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    foot: tuple[str, ...] | None = None


def environment() -> Environment:
    """Where templates come from, and what they may call."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,  # names come from scenario files
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"whole": whole, "duration": duration, "count": count}
    return made


def style(templates: Environment, *sheets: str) -> Markup:
    """Style sheets of ours, one after the other, to stand in the page itself."""
    return Markup("\n".join(templates.get_template(sheet).render() for sheet in sheets))  # noqa: S704 - our own files
