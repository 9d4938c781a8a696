"""D14 answers: enough members answer each request to a group, at the latest by a quiet end (docs/spec/multicast.md 4).

The two service scenarios of the lecture notes need this. `any` and `first` need an answer from one member of the
client's current view, `majority` from more than half of them, `all` from every one. A member that is lost does not
count and is not waited for. The answer may be empty only if no member of the group is left. Where members agree on
views, the view in which the request was delivered counts instead (`requests.py`).
"""

from collections.abc import Sequence

import numpy as np

from antiphon.properties.checks.requests import agreed_flaws
from antiphon.properties.promises import Promises
from antiphon.properties.tables.columns import KIND, IntArray
from antiphon.properties.tables.history import History
from antiphon.properties.tables.quiet_end import stable_members
from antiphon.properties.verdicts.findings import Violations, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation

_Waiting = list[tuple[int, int, int]]
"""Row of the `stop` event, group, and number of unanswered requests."""


def check_answers(history: History, promises: Promises) -> list[Verdict]:
    """D14: each answered request has enough answers; at a quiet end, a stable client has no unanswered request."""
    rows = history.of_kind("answer", "unanswered")
    rows = rows[promises.pairs("D14")[history.rows.process[rows], history.rows.group[rows]]]
    agreed = promises.of_family(lambda promised: promised.cuts)[history.rows.process[rows]]
    found = agreed_flaws(history, rows[agreed].tolist())
    rows = np.sort(np.concatenate([rows[~agreed], np.array([*found], np.int64)]))
    stay = history.stay_at(rows)
    flaws = [
        found[row] if row in found else _flaw(history, row, at)
        for row, at in zip(rows.tolist(), stay.tolist(), strict=True)
    ]
    short = [place for place, flaw in enumerate(flaws) if flaw]
    waiting = _unanswered(history, promises) if history.world.quiet else []

    def describe(position: int) -> Violation:
        if position >= len(short):
            return _describe_waiting(history, waiting[position - len(short)])
        return _describe_short(history, int(rows[short[position]]), flaws[short[position]])

    opportunities = np.bincount(history.rows.group[rows], minlength=len(history.groups))
    for _, group, count in waiting:
        opportunities[group] += count
    at: IntArray = np.array([*rows[short].tolist(), *(row for row, _, _ in waiting)], np.int64)
    groups: IntArray = np.array([*history.rows.group[rows[short]].tolist(), *(g for _, g, _ in waiting)], np.int64)
    return over_groups(history, promises, "D14", opportunities, Violations(at, groups, describe))


def _flaw(history: History, row: int, stay: int) -> str:
    """What is wrong with an answer, in words; empty if nothing is."""
    detail, members = history.details[row], [history.process_name(each) for each in history.stays.members[stay]]
    by = detail.get("by")
    if not isinstance(by, list) or len({*map(str, by)}) < len(by):
        return "names a process twice"
    if strangers := sorted({*by} - {*members}):
        return f"counts {strangers[0]}, which is not in the client's view"
    if not by and all(_crashed_by(history, each, row) for each in history.stays.members[stay]):
        return ""
    needed = {"majority": len(members) // 2 + 1, "all": len(members)}.get(str(detail.get("mode")), 1)
    return f"has {len(by)} of the {needed} that were requested" if len(by) < needed else ""


def _crashed_by(history: History, process: int, row: int) -> bool:
    logs, times = history.logs, history.rows.time
    return bool(logs.crashed[process]) and bool(times[logs.end[process] - 1] <= times[row])


def _unanswered(history: History, promises: Promises) -> _Waiting:
    stable = stable_members(history, promises, "D14")
    code_of = {group: code for code, group in enumerate(history.groups)}
    found = []
    for row in history.of_kind("stop").tolist():
        unanswered = history.details[row].get("unanswered", {})
        for group, count in unanswered.items() if isinstance(unanswered, dict) else ():
            code = code_of.get(group, -1)
            if isinstance(count, int) and count > 0 and code >= 0 and stable[history.rows.process[row], code]:
                found.append((row, code, count))
    return found


def _describe_short(history: History, row: int, flaw: str) -> Violation:
    who, index, detail = history.process_name(history.rows.process[row]), history.index(row), history.details[row]
    by: Sequence[str] = detail.get("by") or ()
    group = history.groups[history.rows.group[row]]
    asked = f"request {detail.get('request')} of {who} to {group} ({detail.get('mode')})"
    ended = "the answer to" if history.rows.kind[row] == KIND["answer"] else "the end of"
    sentence = f"{ended} {asked} {flaw} (index {index})"
    return Violation(sentence, (who, *map(str, by)), (), (index,))


def _describe_waiting(history: History, waiting: tuple[int, int, int]) -> Violation:
    row, group, count = waiting
    who, index = history.process_name(history.rows.process[row]), history.index(row)
    sentence = (
        f"{who} had no answer to {count} of its requests to {history.groups[group]} (index {index}) "
        f"when the run ended quiet"
    )
    return Violation(sentence, (who,), (), (index,))
