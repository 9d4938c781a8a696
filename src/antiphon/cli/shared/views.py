"""The changes of views in a run, for people: who left which group, why, who came, and who goes on."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from antiphon.sim.run import Run
from antiphon.types import process_id


@dataclass(frozen=True, slots=True)
class ViewChange:
    """One view after the first, at all who installed it; also the first one of a group that was formed."""

    group: str
    view: str
    members: list[str]
    primary: bool | None
    """Whether it calls itself primary; None where views are not agreed on."""
    first_seconds: float
    """When the first of its members got to it; `last_seconds` is the last one's time."""
    last_seconds: float
    installed_by: list[str]
    left: list[dict[str, Any]]
    """Who is not in it any more, with reason, accusers, last number and delays, as the first member tells."""
    epoch: int | None
    """Of the first view of a formed group: how many formations lie behind it."""
    merged: list[list[str]]
    """Of such a one: those who came from a view before it, together; one list each."""
    joined: list[str]
    """Of such a one: those who came from nowhere, as far as they got to it."""


def view_changes(run: Run) -> list[ViewChange]:
    """Those of a run that was traced, in the order of their first installation."""
    rows: dict[tuple[str, str], list[tuple[int, str, dict[str, Any]]]] = {}
    for history in run.histories:
        for row in history.rows:
            if row["kind"] == "view" and (row["previous"] is not None or "epoch" in json.loads(row["detail"] or "{}")):
                who = process_id(history.process, history.incarnation)
                rows.setdefault((row["group"], row["view"]), []).append((row["time"], who, row))
    changes = [_change(group, view, sorted(own, key=lambda each: each[:2])) for (group, view), own in rows.items()]
    return sorted(changes, key=lambda change: (change.first_seconds, change.group, change.view))


def _change(group: str, view: str, rows: list[tuple[int, str, dict[str, Any]]]) -> ViewChange:
    first = rows[0][2]
    detail = json.loads(first["detail"] or "{}")
    joined = sorted(process for _, process, row in rows if row["previous"] is None)
    return ViewChange(
        group=group,
        view=view,
        members=list(first["members"]),
        primary=detail.get("primary"),
        first_seconds=rows[0][0] / 1e9,
        last_seconds=rows[-1][0] / 1e9,
        installed_by=[process for _, process, _ in rows],
        left=detail.get("left", []),
        epoch=detail.get("epoch"),
        merged=[each for each in detail.get("classes", []) if not {*each} <= {*joined}],
        joined=joined,
    )


def sentences(changes: list[ViewChange]) -> Iterator[str]:
    """One line a change that members agreed on."""
    for change in changes:
        told = [*map(_departure, change.left), *_arrivals(change)]
        if told:
            side = "" if change.primary else ", not primary"
            yield f"{change.first_seconds:.3f} s  {change.group}: {'; '.join(told)} → {' '.join(change.members)}{side}"


def _arrivals(change: ViewChange) -> Iterator[str]:
    """How the members of a formed group came to be in it together."""
    if change.epoch is None:
        return
    if len(change.merged) > 1:
        yield f"{' and '.join(' '.join(each) for each in change.merged)} merge"
    if change.joined and change.merged:
        yield f"{' '.join(change.joined)} {'joins' if len(change.joined) == 1 else 'join'}"
    elif len(change.merged) < 2:  # nobody came from elsewhere
        yield f"{' '.join(change.members)} form it{' anew' if change.merged else ''}"


def _departure(left: dict[str, Any]) -> str:
    if left["reason"] == "left":
        return f"{left['process']} has left"
    why = f"{left['reason']}, unheard for {left['silent_ns'] / 1e9:.3f} s, agreed in {left['agreed_ns'] / 1e9:.3f} s"
    return f"{left['process']} is out after number {left['last_block']} ({why}, by {' '.join(left['accusers'])})"
