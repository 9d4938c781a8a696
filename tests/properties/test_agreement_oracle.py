"""D13 against a naive checker that asks every two processes about every message."""

import json
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from tests.support.traces.handmade import Mid, Trace, verdicts

MEMBERS = ["p1", "p2", "p3", "p4"]
GROUPS = {"a": MEMBERS[:3], "b": MEMBERS[1:]}


def wild_trace(seed: int) -> pa.Table:
    """Members install random views, leave, crash, and deliver random messages, sent or not."""
    rng = random.Random(seed)
    trace = Trace(dict(GROUPS), protocol="classic", service="reliable", outside={"a": ["x"]}).begin()
    up = [*MEMBERS, "x"]
    for step in range(rng.randint(15, 60)):
        process = rng.choice(up)
        group, dice = rng.choice(trace.groups_of(process)), rng.random()
        if dice < 0.3:
            trace.send(process, group)
        elif dice < 0.35:
            trace.view(process, group, f"v{step}", [member for member in GROUPS[group] if rng.random() < 0.8] or ["p2"])
        elif dice < 0.38:
            trace.row(process, rng.choice(["leave", "join"]), group=group)
        elif dice < 0.40 and len(up) > 3:
            trace.crash(process)
            up.remove(process)
        elif dice < 0.42 and process != "x":
            trace.deliver(process, Mid(group, rng.choice(GROUPS[group]), 77, 0))
        elif process != "x":
            for mid in [mid for mid in trace.sent if mid.group == group and rng.random() < 0.3]:
                trace.deliver(process, mid)
    components = rng.choice([None, [MEMBERS], [MEMBERS[:2], [*MEMBERS[2:], "x"]], [MEMBERS[1:]]])
    return trace.end(components=components, settled=False)


class Naive:
    def __init__(self, events: pa.Table) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        for row in sorted(events.to_pylist(), key=lambda row: (row["process"], row["index"])):
            self.rows.setdefault(row["process"], []).append(row)
        named = next(row["detail"] for row in self.rows["world"] if row["kind"] == "faults_end")
        up = [process for process, rows in self.rows.items() if rows[-1]["kind"] == "stop"]
        self.components = json.loads(named)["components"] if named else [up]
        self.crashed = [process for process, rows in self.rows.items() if rows[-1]["kind"] == "crash"]

    def stays(self, process: str, group: str) -> bool:
        """True for a process that is in a component, still in the group, and a receiver."""
        moves = [
            row["kind"] for row in self.rows[process] if row["kind"] in ("join", "leave") and row["group"] == group
        ]
        return process != "x" and process not in self.crashed and moves[-1:] != ["leave"] and any(self.company(process))

    def company(self, process: str) -> list[str]:
        return next((names for names in self.components if process in names), [])

    def delivered(self, process: str, group: str) -> dict[Any, list[str]]:
        """Each message that was sent, with the members of the view in which it was delivered."""
        found: dict[Any, list[str]] = {}
        members: list[str] = []
        for row in self.rows[process]:
            if row["group"] == group and row["kind"] == "view":
                members = row["members"]
            elif row["group"] == group and row["kind"] == "deliver":
                message = row["sender"], row["number"]
                sends = [(each["sender"], each["number"]) for each in self.sends(group)]
                if message in sends or row["sender"] in self.crashed:
                    found.setdefault(message, members)
        return found

    def sends(self, group: str) -> list[dict[str, Any]]:
        return [row for rows in self.rows.values() for row in rows if (row["kind"], row["group"]) == ("send", group)]

    def owed(self, group: str) -> set[tuple[str, Any]]:
        """The messages that each process had to deliver, because a staying member delivered them."""
        owed = set()
        for process in GROUPS[group]:
            views = [row for row in self.rows[process] if (row["kind"], row["group"]) == ("view", group)]
            for message, members in self.delivered(process, group).items():
                others = [
                    other
                    for other in {*members} & {*views[-1]["members"]}
                    if self.stays(other, group) and other in self.company(process)
                ]
                if self.stays(process, group) and len(others) > 1:
                    owed |= {(other, message) for other in others}
        return owed

    def lost(self, group: str) -> set[tuple[str, Any]]:
        return {(other, message) for other, message in self.owed(group) if message not in self.delivered(other, group)}


@pytest.mark.parametrize("block", range(3))
def test_the_checker_agrees_with_a_naive_one(block: int) -> None:
    seen: Counter[bool] = Counter()
    for seed in range(block * 60, block * 60 + 60):
        events = wild_trace(seed)
        naive, found = Naive(events), verdicts(events)
        for group in GROUPS:
            told = found["D13", group]
            assert (told.violations, told.opportunities) == (len(naive.lost(group)), len(naive.owed(group))), seed
            seen[bool(naive.lost(group))] += 1
    assert min(seen[True], seen[False]) > 15
