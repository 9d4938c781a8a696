"""O6 strong total order and O8 causal total order: one key for all processes, over all groups and views.

The protocol's own stamp is tried first as a certificate: verified, never trusted (docs/spec/properties.md 7.3). If it
fails, the graph of consecutive deliveries (for O8 also of causes) decides. A cycle is a violation, reported with its
shortest witness. Without a cycle the order holds although the stamp is broken, and a note says so. Groups that are
ordered independently are decided one by one.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.cycles import Edges, consecutive, describe_cycle, knots, witness
from antiphon.properties.tables.history import Deliveries, History
from antiphon.properties.tables.past import Past
from antiphon.properties.tables.stamps import Stamps
from antiphon.properties.verdicts.findings import NOTHING, Violations, merged, over_run
from antiphon.properties.verdicts.verdict import Verdict, Violation


def check_total(history: History, promises: Promises, stamps: Stamps) -> list[Verdict]:
    """O6: a one-to-one key exists that grows along every process's deliveries, in all views.

    The deliveries of crashed processes are included if these promise O6 too.
    """
    decided = []
    for _, chosen in realms(history, promises, "O6"):
        asked = history.first.where(chosen)
        shared = np.bincount(asked.message, minlength=len(history.messages.number)) > 1
        opportunities = int(shared[asked.message].sum())
        found = _decide(history, asked, opportunities, stamps.flaw(chosen))
        decided.append(found if stamps.given(chosen) else replace(found, note=None))
    return _verdict(history, promises, "O6", decided)


def check_causal_total(history: History, promises: Promises, past: Past, stamps: Stamps) -> list[Verdict]:
    """O8: such a key exists that also grows from cause to effect, whether or not a process delivers both."""
    decided = []
    for groups, chosen in realms(history, promises, "O8"):
        compared = _compare_with_causes(history, past, stamps.of_messages(chosen))
        flaw = stamps.flaw(chosen) or compared.flaw
        causes = _causes_within(history, past, groups) if flaw else _NO_CAUSES
        found = _decide(history, history.first.where(chosen), compared.opportunities, flaw, causes, past)
        decided.append(found if stamps.given(chosen) else replace(found, note=None))
    return _verdict(history, promises, "O8", decided)


@dataclass(frozen=True, slots=True)
class _Decision:
    """The result for the messages that are held to one order."""

    opportunities: int
    broken: Violations
    note: str | None = None


def _verdict(history: History, promises: Promises, property_id: str, decided: list[_Decision]) -> list[Verdict]:
    """One verdict over all groups, including those that are ordered independently."""
    opportunities, broken = sum(each.opportunities for each in decided), merged([each.broken for each in decided])
    note = "; ".join(each.note for each in decided if each.note) or None
    return over_run(history, promises, property_id, opportunities, broken, note=note)


def realms(history: History, promises: Promises, property_id: str) -> list[tuple[BoolArray, BoolArray]]:
    """The groups that are held to one order together, and which of the first deliveries are judged there."""
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
    """Nothing if the certificate holds; else the result from the graph, with the causes if there is a past."""
    if flaw is None:
        return _Decision(opportunities, NOTHING)
    broken = without_order(history, asked, causes, past)
    if not len(broken.rows):
        return _Decision(opportunities, NOTHING, f"the order holds, but its stamp does not prove it: {flaw}")
    return _Decision(opportunities, broken)


def without_order(
    history: History, asked: Deliveries, causes: Edges = _NO_CAUSES, past: Past | None = None
) -> Violations:
    """One violation for each knot: in each of them, no order is possible."""
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
    # Each knot is located by its first delivery; the time of its witness would cost a search each.
    order = np.lexsort((tied.row, tied.process, history.rows.time[tied.row]))
    first_of_knot = np.unique(knot[order], return_index=True)[1]
    rows: IntArray = tied.row[order][first_of_knot]

    def describe(position: int) -> Violation:
        inside = (knot_of[causes[0]] == position) & (knot_of[causes[1]] == position)
        steps = witness(history, tied.where(knot == position), (causes[0][inside], causes[1][inside]))
        return describe_cycle(history, steps, past)

    return Violations(rows, history.rows.group[rows], describe)


# -------------------------------------------------------------------------------- causes and stamps


@dataclass(frozen=True, slots=True)
class _Compared:
    """The result of comparing stamps with happened-before."""

    opportunities: int
    """Number of messages with a cause from another sender, both delivered."""
    flaw: str | None


def _compare_with_causes(history: History, past: Past, rank: IntArray) -> _Compared:
    """The highest rank in the past of each message must be below its own; `rank` is -1 for messages not judged."""
    message = np.flatnonzero(rank >= 0)
    upto = _highest_upto(past, rank)
    sender = history.messages.sender
    dependent, highest = np.zeros(len(message), np.bool_), np.full(len(message), -1, np.int64)
    for column, begin in enumerate(past.stream_begin.tolist()):
        reach = past.reach[message, column].astype(np.int64)
        # A message is not in its own past, but all earlier messages of its stream are.
        reach = np.where(past.stream[message] == column, np.where(message > begin, message, 0), reach)
        dependent |= (upto[reach] >= 0) & (sender[message] != sender[begin])
        highest = np.maximum(highest, upto[reach])
    bad = np.flatnonzero(highest >= rank[message])
    if not len(bad):
        return _Compared(int(dependent.sum()), None)
    cause = int(np.flatnonzero(rank == highest[bad[0]])[0])
    names = history.message_name(cause), history.message_name(message[bad[0]])
    return _Compared(int(dependent.sum()), f"{names[0]} happened before {names[1]}, but its stamp is not smaller")


def _highest_upto(past: Past, rank: IntArray) -> IntArray:
    """For each reach: the highest rank in its stream up to there, -1 if none; a reach of 0 means none."""
    # Each stream is shifted above the previous one, so that the running maximum restarts there.
    height = past.stream * (int(rank.max(initial=0)) + 2)
    return np.concatenate([[-1], np.maximum.accumulate(rank + height) - height])
