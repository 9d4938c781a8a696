"""Processes that go on together: they leave one view for the same next one (docs/spec/properties.md 3 D8, 4 O5)."""

from collections import defaultdict

from antiphon.properties.tables.columns import BoolArray
from antiphon.properties.tables.history import NEVER, History


def surviving_together(history: History, promised: BoolArray) -> list[list[int]]:
    """The stays of at least two processes that leave the same view for the same next one.

    `promised` is by process and group; other stays are not judged.
    """
    stays = history.stays
    found: dict[tuple[int, int, int, int], list[int]] = defaultdict(list)
    for stay, (process, group) in enumerate(zip(stays.process.tolist(), stays.group.tolist(), strict=True)):
        onward = _onward(history, stay)
        if onward is not None and promised[process, group]:
            found[group, int(stays.view[stay]), *onward].append(stay)
    return [survivors for survivors in found.values() if len(survivors) > 1]


def _onward(history: History, stay: int) -> tuple[int, int] | None:
    """The next view; or the quiet end, which is common to the live members of a component; or None."""
    stays, world = history.stays, history.world
    following, process = stays.following[stay], int(stays.process[stay])
    if following >= 0:
        return int(stays.view[following]), -1
    if stays.leave[stay] < NEVER:
        return None  # whether or not it asked to join again
    if world.quiet and world.component[process] >= 0 and process in stays.members[stay]:
        return -1, int(world.component[process])
    return None


def end_of_stay(history: History, stay: int) -> int:
    """The row at which the stay ends."""
    following = history.stays.following[stay]
    return int(history.stays.row[following] if following >= 0 else history.logs.end[history.stays.process[stay]] - 1)


def view_and_next(history: History, stay: int) -> tuple[str, ...]:
    """The view of the stay, and the next one if there is one."""
    stays, views = history.stays, history.views
    return tuple(views[stays.view[at]] for at in (stay, int(stays.following[stay])) if at >= 0)
