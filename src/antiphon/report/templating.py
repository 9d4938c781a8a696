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
    """The verdict, as the first thing that a reader sees."""

    symbol: str
    headline: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table of figures; its cells are formatted texts."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    foot: tuple[str, ...] | None = None


def environment() -> Environment:
    """The template environment, and the filters that templates may use."""
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
    """The contents of our style sheets, to be inlined in the page."""
    return Markup("\n".join(templates.get_template(sheet).render() for sheet in sheets))  # noqa: S704 - our own files
