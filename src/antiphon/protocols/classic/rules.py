"""The rules that a process follows: the adopted ones, unless `as_printed.py` replaces some by printed ones."""

from dataclasses import dataclass

from antiphon.protocols.classic.ordering.two_phase import SiteClock


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a process; the defaults are the adopted ones."""

    clock: type[SiteClock] = SiteClock
    refuses_the_lost: bool = True
    """Refuse late frames of a lost process (docs/spec/multicast.md 4, N7); see `site.py`."""


ADOPTED = Rules()
