"""O6 strong total order and O8 causal total order: one key for all processes, over all groups and views.

By certificate first: the protocol's own stamp is verified, never trusted (properties.md 7.3). If it fails, the graph
of consecutive deliveries, for O8 with the causes, decides: a cycle is a violation, told by its shortest witness; no
cycle, and the order holds although the stamp is broken, which a note says. Groups that keep their orders apart are
decided one by one.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.cycles import Edges, consecutive, knots, tell, witness
from antiphon.properties.tables.history import Deliveries, History
from antiphon.properties.tables.past import Past
from antiphon.properties.tables.stamps import Stamps
from antiphon.properties.verdicts.findings import NOTHING, Broken, merged, over_run
from antiphon.properties.verdicts.verdict import Verdict, Violation


def check_total(history: History, promises: Promises, stamps: Stamps) -> list[Verdict]:
    """O6: some one-to-one key grows along every process's deliveries, in whatever views.

    Those of crashed ones are included, where they too promise it.
    """
    decided = []
    for _, chosen in realms(history, promises, "O6"):
        asked = history.first.where(chosen)
        shared = np.bincount(asked.message, minlength=len(history.messages.number)) > 1
        opportunities = int(shared[asked.message].sum())
        decided.append(_decide(history, asked, opportunities, stamps.flaw(chosen)))
    return _told(history, promises, "O6", decided)


def check_causal_total(history: History, promises: Promises, past: Past, stamps: Stamps) -> list[Verdict]:
    """O8: some such key also grows from cause to effect, whether or not anybody delivers both."""
    decided = []
    for groups, chosen in realms(history, promises, "O8"):
        compared = _compare_with_causes(history, past, stamps.of_messages(chosen))
        flaw = stamps.flaw(chosen) or compared.flaw
        causes = _causes_within(history, past, groups) if flaw else _NO_CAUSES
        decided.append(_decide(history, history.first.where(chosen), compared.opportunities, flaw, causes, past))
    return _told(history, promises, "O8", decided)


@dataclass(frozen=True, slots=True)
class _Decision:
    """What became of the messages that are held to one order."""

    opportunities: int
    broken: Broken
    note: str | None = None


def _told(history: History, promises: Promises, property_id: str, decided: list[_Decision]) -> list[Verdict]:
    """One verdict over all groups, also of those that keep their orders apart."""
    opportunities, broken = sum(each.opportunities for each in decided), merged([each.broken for each in decided])
    note = "; ".join(each.note for each in decided if each.note) or None
    return over_run(history, promises, property_id, opportunities, broken, note=note)


def realms(history: History, promises: Promises, property_id: str) -> list[tuple[BoolArray, BoolArray]]:
    """The groups that are held to one order together, and which of the first deliveries are asked there."""
    first, realms = history.first, promises.realms(property_id)
    asked = promises.deliveries(property_id) & history.messages.known[first.message]
    together = [realms == each for each in np.unique(realms[promises.groups(property_id)])]
    return [(groups, asked & groups[first.group]) for groups in together]


_NO_CAUSES: Final = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def _causes_within(history: History, past: Past, groups: BoolArray) -> Edges:
    cause, effect = past.direct()
    both = groups[history.messages.group[cause]] & groups[history.messages.group[effect]]
    return cause[both], effect[both]


def _decide(
    history: History,
    asked: Deliveries,
    opportunities: int,
    flaw: str | None,
    causes: Edges = _NO_CAUSES,
    past: Past | None = None,
) -> _Decision:
    """Nothing if the certificate holds; else what the graph says, with the causes if there is a past to respect."""
    if flaw is None:
        return _Decision(opportunities, NOTHING)
    broken = without_order(history, asked, causes, past)
    if not len(broken.rows):
        return _Decision(opportunities, NOTHING, f"the order holds, but its stamp does not prove it: {flaw}")
    return _Decision(opportunities, broken)


def without_order(history: History, asked: Deliveries, causes: Edges = _NO_CAUSES, past: Past | None = None) -> Broken:
    """One violation per knot: each is a place where no order fits."""
    deliveries = consecutive(asked)
    edges = np.concatenate([deliveries[0], causes[0]]), np.concatenate([deliveries[1], causes[1]])
    found = knots(edges, len(history.messages.number))
    if not found:
        return NOTHING
    knot_of = np.full(len(history.messages.number), -1, np.int64)
    for position, messages in enumerate(found):
        knot_of[messages] = position
    tied = asked.where(knot_of[asked.message] >= 0)
    knot: IntArray = knot_of[tied.message]
    # Knots are told apart by their first delivery; the times of their witnesses would cost a search each.
    order = np.lexsort((tied.row, tied.process, history.rows.time[tied.row]))
    first_of_knot = np.unique(knot[order], return_index=True)[1]
    rows: IntArray = tied.row[order][first_of_knot]

    def told(position: int) -> Violation:
        inside = (knot_of[causes[0]] == position) & (knot_of[causes[1]] == position)
        steps = witness(history, tied.where(knot == position), (causes[0][inside], causes[1][inside]))
        return tell(history, steps, past)

    return Broken(rows, history.rows.group[rows], told)


# -------------------------------------------------------------------------------- causes and stamps


@dataclass(frozen=True, slots=True)
class _Compared:
    """Stamps held against happened-before."""

    opportunities: int
    """Messages with a cause of another sender, both delivered."""
    flaw: str | None


def _compare_with_causes(history: History, past: Past, rank: IntArray) -> _Compared:
    """The highest rank in the past of each message must be below its own; `rank` is -1 for what is not asked."""
    message = np.flatnonzero(rank >= 0)
    upto = _highest_upto(past, rank)
    sender = history.messages.sender
    dependent, highest = np.zeros(len(message), np.bool_), np.full(len(message), -1, np.int64)
    for column, begin in enumerate(past.stream_begin.tolist()):
        reach = past.reach[message, column].astype(np.int64)
        # A message is not in its own past, but all of its stream before it is.
        reach = np.where(past.stream[message] == column, np.where(message > begin, message, 0), reach)
        dependent |= (upto[reach] >= 0) & (sender[message] != sender[begin])
        highest = np.maximum(highest, upto[reach])
    bad = np.flatnonzero(highest >= rank[message])
    if not len(bad):
        return _Compared(int(dependent.sum()), None)
    cause = int(np.flatnonzero(rank == highest[bad[0]])[0])
    names = history.message_name(cause), history.message_name(message[bad[0]])
    return _Compared(int(dependent.sum()), f"{names[0]} happened before {names[1]}, yet its stamp is not the smaller")


def _highest_upto(past: Past, rank: IntArray) -> IntArray:
    """By reach: the highest rank in its stream up to there, -1 if none; a reach of 0 is none."""
    # Each stream lies above the one before it, so that a running maximum starts anew there.
    height = past.stream * (int(rank.max(initial=0)) + 2)
    return np.concatenate([[-1], np.maximum.accumulate(rank + height) - height])
