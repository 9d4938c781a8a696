"""The view changes of a run in words: which members left a group and why, which joined, and which go on."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from antiphon.sim.run import Run
from antiphon.types import process_id


@dataclass(frozen=True, slots=True)
class ViewChange:
    """One view after the first, over all its installers; also the first view of a formed group."""

    group: str
    view: str
    members: list[str]
    primary: bool | None
    """True if the view calls itself primary; None if views are not agreed on."""
    first_seconds: float
    """When its first member installed it; `last_seconds` is when its last member did."""
    last_seconds: float
    installed_by: list[str]
    left: list[dict[str, Any]]
    """The removed members with reason, accusers, last number and delays, as the first installer recorded them."""
    epoch: int | None
    """For the first view of a formed group: how often the group has been formed."""
    merged: list[list[str]]
    """For a formed group: the lists of members that came together from one earlier view."""
    joined: list[str]
    """For a formed group: its installers that came from no earlier view."""


def view_changes(run: Run) -> list[ViewChange]:
    """The view changes of a traced run, in the order of their first installation."""
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
    """One line for each change that the members agreed on."""
    for change in changes:
        parts = [*map(_departure, change.left), *_arrivals(change)]
        if parts:
            side = "" if change.primary else ", not primary"
            yield f"{change.first_seconds:.3f} s  {change.group}: {'; '.join(parts)} → {' '.join(change.members)}{side}"


def _arrivals(change: ViewChange) -> Iterator[str]:
    """How the members of a formed group came together."""
    if change.epoch is None:
        return
    if len(change.merged) > 1:
        yield f"{' and '.join(' '.join(each) for each in change.merged)} merge"
    if change.joined and change.merged:
        yield f"{' '.join(change.joined)} {'joins' if len(change.joined) == 1 else 'join'}"
    elif len(change.merged) < 2:  # no member came from elsewhere
        yield f"{' '.join(change.members)} form it{' again' if change.merged else ''}"


def _departure(left: dict[str, Any]) -> str:
    if left["reason"] == "left":
        return f"{left['process']} has left"
    why = f"{left['reason']}, not heard for {left['silent_ns'] / 1e9:.3f} s, agreed in {left['agreed_ns'] / 1e9:.3f} s"
    return f"{left['process']} is out after number {left['last_block']} ({why}, by {' '.join(left['accusers'])})"
