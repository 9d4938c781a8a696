"""D14 where members agree on views: the view in which the client delivered its request decides (newtop.md 16).

Its members are the voters. Each process that answered must be a voter, and must have delivered the request. `first`
needs one answer, `majority` those of more than half of the voters. `all` needs those of every voter that is in each
view of the client from there up to the view in which the request ended. A request may fail for want of members only if
such voters and those that answered are no majority. What the trace of the client does not reach is not judged.
"""

from collections.abc import Sequence

import numpy as np

from antiphon.properties.tables.columns import KIND
from antiphon.properties.tables.history import History

_Place = tuple[int, int, int]
"""Group, client and number of a request."""


def agreed_flaws(history: History, rows: Sequence[int]) -> dict[int, str]:
    """For each of these rows that can be judged, what is wrong in words; empty if nothing is."""
    places = {row: _place(history, row) for row in rows}
    delivered = _deliveries(history, {place for place in places.values() if place is not None})
    flaws = {row: _flaw(history, row, None if place is None else delivered[place]) for row, place in places.items()}
    return {row: flaw for row, flaw in flaws.items() if flaw is not None}


def _place(history: History, row: int) -> _Place | None:
    number = history.details[row].get("number")
    if not isinstance(number, int):
        return None
    return int(history.rows.group[row]), int(history.rows.process[row]), number


def _deliveries(history: History, places: set[_Place]) -> dict[_Place, dict[int, int]]:
    """For each request, by process, the row at which it delivered the request."""
    found: dict[_Place, dict[int, int]] = {place: {} for place in places}
    messages, first = history.messages, history.first
    coded = zip(messages.group.tolist(), messages.sender.tolist(), messages.number.tolist(), strict=True)
    wanted = {message: place for message, place in enumerate(coded) if place in found}
    chosen = first.where(np.isin(first.message, [*wanted]))
    for row, process, message in zip(
        chosen.row.tolist(), chosen.process.tolist(), chosen.message.tolist(), strict=True
    ):
        found[wanted[message]][process] = row
    return found


def _flaw_of_query(history: History, row: int, by: list[str]) -> str | None:
    """A request outside the order: one process answers that is in the client's view, now or soon."""
    if history.rows.kind[row] != KIND["answer"]:
        return None
    if len(by) != 1:
        return f"has {len(by)} of the 1 that were requested"
    stay = int(history.stay_at(np.array([row]))[0])
    members = {history.process_name(each) for at in _chain(history, stay) for each in history.stays.members[at]}
    return "" if by[0] in members else f"counts {by[0]}, which is not in the client's view"


def _flaw(history: History, row: int, delivered: dict[int, int] | None) -> str | None:
    by = history.details[row].get("by")
    if not isinstance(by, list) or len({*map(str, by)}) < len(by):
        return "names a process twice"
    if delivered is None:
        return _flaw_of_query(history, row, by)
    return _flaw_of_request(history, row, by, delivered)


def _flaw_of_request(history: History, row: int, by: list[str], delivered: dict[int, int]) -> str | None:
    client = int(history.rows.process[row])
    if client not in delivered:
        return None
    stay = int(history.stay_at(np.array([delivered[client]]))[0])
    voters = [history.process_name(each) for each in history.stays.members[stay]] if stay >= 0 else []
    if strangers := sorted({*by} - {*voters}):
        return f"counts {strangers[0]}, which is not in the view in which the request was delivered"
    having = {history.process_name(process) for process in delivered}
    logged = {history.process_name(process) for process in np.flatnonzero(history.logs.member).tolist()}
    if deaf := sorted({*by} & logged - having):
        return f"counts {deaf[0]}, which has not delivered the request"
    remaining = _remaining(history, stay, history.details[row].get("view"), {*voters})
    if history.rows.kind[row] == KIND["answer"]:
        return _flaw_of_answers(str(history.details[row].get("mode")), by, len(voters), remaining)
    return _flaw_of_failure(str(history.details[row].get("reason")), by, len(voters), remaining)


def _flaw_of_answers(mode: str, by: list[str], voters: int, remaining: set[str] | None) -> str | None:
    needed = {"first": 1, "majority": voters // 2 + 1}.get(mode, 0)
    if len(by) < needed:
        return f"has {len(by)} of the {needed} that were requested"
    if mode != "all":
        return ""
    if remaining is None:
        return None
    missing = sorted(remaining - {*by})
    return f"does not have that of {missing[0]}, which was a member until then" if missing else ""


def _flaw_of_failure(reason: str, by: list[str], voters: int, remaining: set[str] | None) -> str | None:
    if reason != "few" or remaining is None:
        return None
    left = len(remaining | {*by})
    return f"came although {left} of {voters} members were left" if left > voters // 2 else ""


def _remaining(history: History, stay: int, view: object, voters: set[str]) -> set[str] | None:
    """The voters that are in each view of the client from this stay up to that view; None if it is not reached."""
    remaining = voters
    for at in _chain(history, stay):
        remaining = remaining & {history.process_name(each) for each in history.stays.members[at]}
        if history.views[history.stays.view[at]] == view:
            return remaining
    return None


def _chain(history: History, stay: int) -> list[int]:
    """The stays from this one on, of the same process in the same group."""
    chain = []
    while stay >= 0:
        chain.append(stay)
        stay = int(history.stays.following[stay])
    return chain
