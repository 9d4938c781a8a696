"""Phrases and counts that several membership checkers share in their verdicts."""

from collections.abc import Iterable

import numpy as np

from antiphon.properties.tables.columns import IntArray
from antiphon.properties.tables.history import History
from antiphon.properties.tables.membership import Membership
from antiphon.properties.verdicts.verdict import Violation


def counted(history: History, membership: Membership, stays: Iterable[int]) -> IntArray:
    """The number of these stays in each group."""
    groups = np.array([membership.group[stay] for stay in stays], np.int64)
    return np.bincount(groups, minlength=len(history.groups))


def names(history: History, members: Iterable[int]) -> str:
    """These processes as a list in a sentence."""
    return ", ".join(history.process_name(member) for member in sorted(members)) or "nobody"


def view_of(history: History, membership: Membership, stay: int) -> str:
    """The id of the view of a stay."""
    return history.views[membership.view[stay]]


def about(
    history: History, membership: Membership, sentence: str, stays: Iterable[int], others: Iterable[int] = ()
) -> Violation:
    """A violation shown by these `view` rows; it also names the `others`."""
    shown = [*stays]
    whose = [history.process_name(membership.process[stay]) for stay in shown]
    return Violation(
        sentence,
        tuple(dict.fromkeys([*whose, *(history.process_name(other) for other in others)])),
        (),
        tuple(history.index(membership.row[stay]) for stay in shown),
        tuple(dict.fromkeys(view_of(history, membership, stay) for stay in shown)),
    )


def installed(history: History, membership: Membership, stay: int) -> str:
    """The phrase that a process installed a view, with the index."""
    who = history.process_name(membership.process[stay])
    return f"{who} installed view {view_of(history, membership, stay)} (index {history.index(membership.row[stay])})"
