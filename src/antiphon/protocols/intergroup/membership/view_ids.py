"""The ids of views: where a view begins, what began it, and who (docs/spec/intergroup.md 2; M7, M27, J10, J22).

An id is a text, so that it can stand in a trace. Ids of one process sort in the order in which it installs the views.
"""

from enum import IntEnum

from antiphon.types import ProcessId, ViewId, split_process_id


class Kind(IntEnum):
    """What begins a view, in rising order."""

    CONSENSUS = 1
    """An MC message, or the start of the first sender."""
    CHANGE = 2
    """A process was added or left, in order (PADD, PLEAVE)."""
    JOIN = 3
    """The process joined a view that existed."""
    RESET = 4
    """The process begins again."""
    PRIVATE = 5
    """A receiver of another service hears other senders than before; the view is its own."""


def view_id(start: int, kind: Kind, leader: ProcessId, number: int) -> ViewId:
    """The id of a view that begins at the stamp `start`; `number` tells apart what one leader begins."""
    name, incarnation = split_process_id(leader)
    return ViewId(f"{start:020d}.{kind:d}.{name}.{incarnation}.{number:06d}")


def is_led_by(view: ViewId, start: int, leader: ProcessId) -> bool:
    """True for the ids of views that begin at that stamp with an MC message of that leader."""
    return view.rpartition(".")[0] == view_id(start, Kind.CONSENSUS, leader, 0).rpartition(".")[0]


def joined_id(start: int, base: ViewId, joiner: ProcessId) -> ViewId:
    """The id that a process shows for a view that it joined at the stamp `start` (M27).

    A process that comes back may join at the same stamp as before, so its incarnation is part of the id (J22).
    """
    _, incarnation = split_process_id(joiner)
    return ViewId(f"{start:020d}.{Kind.JOIN:d}.{base}" + (f".{incarnation}" if incarnation else ""))
