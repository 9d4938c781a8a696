"""D14 answers: a request to a group has answers of enough members, and by a quiet end it has them (multicast.md 4).

The notes' two service scenarios ask for this. `any` and `first` need one member of the view
in force at the client, `majority` more than half of them, `all` every one; who is lost neither counts nor is awaited.
Only a group of which nobody is left may answer with nothing.
"""

from collections.abc import Sequence

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import IntArray
from antiphon.properties.tables.history import History
from antiphon.properties.tables.quiet import who_is_stable
from antiphon.properties.verdicts.findings import Broken, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation

_Waiting = list[tuple[int, int, int]]
"""Stop row, group, and how many requests."""


def check_answers(history: History, promises: Promises) -> list[Verdict]:
    """D14: enough members answered each request that was answered; at a quiet end, all of a stable client's were."""
    rows = history.of_kind("answer")
    rows = rows[promises.pairs("D14")[history.rows.process[rows], history.rows.group[rows]]]
    stay = history.stay_at(rows)
    flaws = [_flaw(history, row, at) for row, at in zip(rows.tolist(), stay.tolist(), strict=True)]
    short = [place for place, flaw in enumerate(flaws) if flaw]
    waiting = _unanswered(history, promises) if history.world.quiet else []

    def tell(position: int) -> Violation:
        if position >= len(short):
            return _tell_waiting(history, waiting[position - len(short)])
        return _tell_short(history, int(rows[short[position]]), flaws[short[position]])

    opportunities = np.bincount(history.rows.group[rows], minlength=len(history.groups))
    for _, group, count in waiting:
        opportunities[group] += count
    at: IntArray = np.array([*rows[short].tolist(), *(row for row, _, _ in waiting)], np.int64)
    groups: IntArray = np.array([*history.rows.group[rows[short]].tolist(), *(g for _, g, _ in waiting)], np.int64)
    return over_groups(history, promises, "D14", opportunities, Broken(at, groups, tell))


def _flaw(history: History, row: int, stay: int) -> str:
    """What is wrong with an answer, in words; nothing if it is empty."""
    detail, members = history.details[row], [history.process_name(each) for each in history.stays.members[stay]]
    by = detail.get("by")
    if not isinstance(by, list) or len({*map(str, by)}) < len(by):
        return "names somebody twice"
    if strangers := sorted({*by} - {*members}):
        return f"counts {strangers[0]}, which is not in its view"
    if not by and all(_crashed_by(history, each, row) for each in history.stays.members[stay]):
        return ""
    needed = {"majority": len(members) // 2 + 1, "all": len(members)}.get(str(detail.get("mode")), 1)
    return f"has {len(by)} of {needed} that it asked for" if len(by) < needed else ""


def _crashed_by(history: History, process: int, row: int) -> bool:
    logs, times = history.logs, history.rows.time
    return bool(logs.crashed[process]) and bool(times[logs.end[process] - 1] <= times[row])


def _unanswered(history: History, promises: Promises) -> _Waiting:
    stable = who_is_stable(history, promises, "D14")
    code_of = {group: code for code, group in enumerate(history.groups)}
    found = []
    for row in history.of_kind("stop").tolist():
        unanswered = history.details[row].get("unanswered", {})
        for group, count in unanswered.items() if isinstance(unanswered, dict) else ():
            code = code_of.get(group, -1)
            if isinstance(count, int) and count > 0 and code >= 0 and stable[history.rows.process[row], code]:
                found.append((row, code, count))
    return found


def _tell_short(history: History, row: int, flaw: str) -> Violation:
    who, index, detail = history.process_name(history.rows.process[row]), history.index(row), history.details[row]
    by: Sequence[str] = detail.get("by") or ()
    group = history.groups[history.rows.group[row]]
    asked = f"request {detail.get('request')} of {who} to {group} ({detail.get('mode')})"
    sentence = f"the answer to {asked} {flaw} (index {index})"
    return Violation(sentence, (who, *map(str, by)), (), (index,))


def _tell_waiting(history: History, waiting: tuple[int, int, int]) -> Violation:
    row, group, count = waiting
    who, index = history.process_name(history.rows.process[row]), history.index(row)
    sentence = (
        f"{who} had no answer to {count} of its requests to {history.groups[group]} (index {index}) "
        f"when the run ended quiet"
    )
    return Violation(sentence, (who,), (), (index,))
