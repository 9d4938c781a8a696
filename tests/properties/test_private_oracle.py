"""Private views and acknowledgments against naive checkers: S1, S5, S6, O2, L2, L6 and L8, on mostly wrong traces."""

import json
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from tests.support.traces.handmade import Trace, verdicts
from tests.support.traces.stability_oracle import Message, Naive, some_prefixes

GROUP = "orders"
TAKERS = ["p1", "p2", "p3"]
PROCESSES = [*TAKERS, "x"]
Row = dict[str, Any]


class Wild:
    """Processes connect with any others, and report anything; only the logs are well formed."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        options = {"stability": rng.choice(["own", "all"])}
        roles = {"p1": "both", "p2": rng.choice(["both", "receiver"]), "x": "sender"} if rng.random() < 0.9 else {}
        roles |= {"p3": "both"} if rng.random() < 0.8 else {}
        self.trace = Trace(
            {GROUP: TAKERS},
            protocol="acks",
            service="fifo",
            outside={GROUP: ["x"]},
            options=options,
            roles=roles,
            sources={"p3": ["p1", "x"]} if rng.random() < 0.3 else {},
        )
        self.installed: Counter[str] = Counter()
        self.up = list(PROCESSES)
        self.names: list[str] = []

    def run(self) -> pa.Table:
        for process in PROCESSES:
            self.trace.start(process)
            self._install(process)
        for _ in range(self.rng.randint(40, 130)):
            self._step(self.rng.choice(self.up))
        for process in self.up:
            if self.rng.random() < 0.2:
                self.trace.stop(process, **{self.rng.choice(["held", "waiting"]): {GROUP: self.rng.randrange(3)}})
        components = self.rng.choice([None, [PROCESSES], [["p1", "p2"], ["p3", "x"]]])
        events = self.trace.end(components=components, settled=False)
        at = events.schema.get_field_index("time")
        times = pa.array([time // 3 for time in events["time"].to_pylist()], pa.int64())
        return events.set_column(at, events.schema.field(at), times)

    def _install(self, process: str) -> None:
        receivers, senders = (
            [other for other in names if other != process and self.rng.random() < 0.85] for names in (TAKERS, PROCESSES)
        )
        if self.rng.random() < 0.5:
            senders.append(process)
        self.installed[process] += 1
        view, members = f"{self.installed[process]:03}.{process}", {process, *receivers, *senders}
        self.trace.view(process, GROUP, view, sorted(members), receivers=receivers, senders=senders)

    def _step(self, process: str) -> None:
        rng, trace, dice = self.rng, self.trace, self.rng.random()
        lacking = [mid for mid in trace.sent if (process, mid) not in trace.had]
        if dice < 0.2 or not trace.sent:
            trace.send(process, GROUP)
        elif dice < 0.4 and lacking:
            trace.receive(process, *lacking[:2])
        elif dice < 0.6 and process != "x":
            self._deliver(process)
        elif dice < 0.68:
            trace.stable(process, self._prefixes(process), GROUP)
        elif dice < 0.72:
            trace.discard(process, self._prefixes(process), GROUP)
        elif dice < 0.82:
            names = [name for name in PROCESSES if rng.random() < 0.85]
            self.names.append(trace.acknowledge(process, names, GROUP))
        elif dice < 0.93 and self.names:
            trace.acknowledged(process, rng.choice([*self.names, "orders/p1/acknowledgment/lost"]), GROUP)
        elif dice < 0.98:
            self._install(process)
        elif dice < 0.99:
            trace.row(process, rng.choice(["leave", "join"]), group=GROUP)
        elif len(self.up) > 2:
            trace.crash(process)
            self.up.remove(process)

    def _prefixes(self, process: str) -> dict[str, int]:
        own = [mid for mid in self.trace.sent if mid.sender == process]
        return some_prefixes(self.rng, own if own and self.rng.random() < 0.6 else self.trace.sent)

    def _deliver(self, process: str) -> None:
        """Deliver a message, mostly the next of some sender."""
        sender = self.rng.choice(PROCESSES)
        done = [
            row["number"]
            for row in self.trace.rows
            if (row["kind"], row["process"]) == ("deliver", process) and row["sender"] == sender
        ]
        number = max(done, default=-1) + (1 if self.rng.random() < 0.85 else 2)
        self.trace.deliver(process, *(mid for mid in self.trace.sent if (mid.sender, mid.number) == (sender, number)))


class Private(Naive):
    """Scopes of private views, walked row by row."""

    def _by_blocks(self) -> bool:
        return False

    def _asked(self, at: int, message: Message) -> Iterable[str]:
        row = self.rows[at]
        sent = [
            place
            for place, each in enumerate(self.rows[:at])
            if each["kind"] == "send" and self._message(each) == message
        ]
        own = [place for place in sent if self.rows[place]["process"] == row["process"]]
        if own:
            return self.lasting(own[0], at)
        return self.view_at(at)["receivers"]

    def view_at(self, at: int) -> dict[str, list[str]]:
        views = [row for row in self._own(at, at) if row["kind"] == "view"]
        view: dict[str, list[str]] = json.loads(views[-1]["detail"])
        return view

    def lasting(self, begin: int, end: int) -> set[str]:
        """Receivers in the view at one place, and in all up to another."""
        found = set(self.view_at(begin)["receivers"])
        for row in self.rows[begin:end]:
            if row["kind"] == "view" and row["process"] == self.rows[begin]["process"]:
                found &= set(json.loads(row["detail"])["receivers"])
        return found

    def log(self, process: str) -> list[Row]:
        return [row for row in self.rows if row["process"] == process]

    def stays(self, process: str) -> bool:
        moves = [row["kind"] for row in self.log(process) if row["kind"] in ("join", "leave")]
        return self.log(process)[-1]["kind"] == "stop" and moves[-1:] != ["leave"] and bool(self.company(process))

    def company(self, process: str) -> list[str]:
        named = next(row["detail"] for row in self.rows if row["kind"] == "faults_end")
        return (
            next((names for names in json.loads(named)["components"] if process in names), []) if named else PROCESSES
        )

    def learns_all(self, process: str) -> bool:
        return bool(json.loads(self.log(process)[0]["detail"])["options"]["stability"] == "all")

    def sends(self) -> Iterable[tuple[int, Row]]:
        return ((at, row) for at, row in enumerate(self.rows) if row["kind"] == "send" and self.stays(row["process"]))

    def end_of(self, process: str) -> int:
        return 1 + max(at for at, row in enumerate(self.rows) if row["process"] == process)

    def to_the_end(self, at: int) -> list[str]:
        """The processes to which a send is addressed until the end, in the same component."""
        sender = self.rows[at]["process"]
        lasting = self.lasting(at, self.end_of(sender))
        return [other for other in sorted(lasting) if self.stays(other) and other in self.company(sender)]

    def has_delivered(self, process: str, message: Message) -> bool:
        return any(row["kind"] == "deliver" and self._message(row) == message for row in self.log(process))

    def undelivered(self) -> int:
        """L2."""
        lost = sum(
            other != "x" and not self.has_delivered(other, self._message(row))
            for at, row in self.sends()
            for other in self.to_the_end(at)
        )
        stop = self.log("x")[-1]
        waiting = json.loads(stop["detail"] or "{}").get("waiting", {}) if self.stays("x") else {}
        return lost + bool(waiting.get(GROUP))

    def unstable(self) -> int:
        """L6."""
        lost = 0
        for at, row in self.sends():
            all_know = self.learns_all(row["process"])
            others = [other for other in self.to_the_end(at) if all_know] + [row["process"]]
            for other in {*others}:
                mark = self._mark("stable", self.end_of(other), other, GROUP, row["process"])
                lost += mark < row["number"]
        return lost

    def kept(self) -> int:
        """L8."""
        lost: int = sum(
            self._mark("discard", self.end_of(row["process"]), row["process"], GROUP, row["process"]) < row["number"]
            for _, row in self.sends()
        )
        stops = [row for row in self.rows if row["kind"] == "stop" and self.stays(row["process"])]
        return lost + sum(bool(json.loads(row["detail"] or "{}").get("held", {}).get(GROUP)) for row in stops)

    def unknowing(self) -> tuple[int, int]:
        """S5: violations and opportunities."""
        bad = counted = 0
        left = {json.loads(row["detail"])["frame"]: row for row in self.rows if row["kind"] == "transmit"}
        for at, row in enumerate(self.rows):
            detail = json.loads(row["detail"] or "{}") if row["kind"] == "receive" else {}
            if detail.get("type") != "acknowledgment" or detail["frame"] not in left:
                continue
            sent, view, reader = left[detail["frame"]], self.view_at(at), row["process"]
            if sent["process"] in view["receivers"]:
                needed = {reader, *view["senders"]} if self.learns_all(reader) else {reader}
                counted += 1
                bad += not needed <= {*json.loads(sent["detail"])["senders"], sent["process"]}
        return bad, counted

    def disconnected(self) -> tuple[int, int]:
        """S6: violations and opportunities."""
        lost = [
            loss for process in PROCESSES for side in ("receivers", "senders") for loss in self.losses(process, side)
        ]
        ends = [end for sender in PROCESSES for taker in TAKERS for end in self.ends(sender, taker)]
        return sum([*lost, *ends]), len(lost) + len(ends)

    def losses(self, process: str, side: str) -> Iterable[bool]:
        """For each peer that a view no longer names: True if it was lost more often than it or the process departed."""
        before: set[str] = set()
        gone: Counter[str] = Counter()
        for row in self.log(process):
            named = {*json.loads(row["detail"])[side]} - {process} if row["kind"] == "view" else before
            for peer in before - named:
                gone[peer] += 1
                went = [
                    each
                    for each in self.rows
                    if each["process"] in (process, peer)
                    and each["kind"] in ("leave", "crash")
                    and each["time"] <= row["time"]
                ]
                yield gone[peer] > len(went)
            before = named

    def ends(self, sender: str, taker: str) -> Iterable[bool]:
        """For each configured pair that is present at the end: True if one does not count the other."""
        parts = [json.loads(self.log(process)[0]["detail"])["groups"][GROUP] for process in (sender, taker)]
        told = sender != taker and all("role" in part for part in parts)
        if not told or parts[0]["role"] == "receiver" or sender not in parts[1].get("sources", PROCESSES):
            return
        if self.stays(sender) and self.stays(taker) and taker in self.company(sender):
            for process, peer, side in ((sender, taker, "receivers"), (taker, sender, "senders")):
                views = [row for row in self.log(process) if row["kind"] == "view"]
                yield peer not in json.loads(views[-1]["detail"])[side]

    def gaps(self) -> tuple[int, int]:
        """O2: violations and opportunities; within an unbroken run of views, from its first delivery on.

        The run of a message is decided when it is received.

        A process knows which of its own messages it sent in the run, so these are due from the first on.
        """
        bad = owed = 0
        for process in TAKERS:
            runs: dict[str, list[int]] = {}
            ever: set[tuple[str, int]] = set()
            taken: dict[tuple[str, int], list[int] | None] = {}
            sent = 0
            for row in self.log(process):
                if row["kind"] in ("send", "receive") and row["number"] is not None:
                    taken.setdefault((row["sender"], row["number"]), runs.get(row["sender"]))
                if row["kind"] == "view":
                    sources = {process, *json.loads(row["detail"])["senders"]}
                    runs = {sender: runs.get(sender, [sent] if sender == process else []) for sender in sources}
                elif row["kind"] == "leave":
                    runs = {}
                elif row["kind"] == "send":
                    sent += 1
                elif row["kind"] == "deliver" and (row["sender"], row["number"]) not in ever:
                    run = taken.get((row["sender"], row["number"]), runs.get(row["sender"]))
                    if run is not None:
                        due = any(number < row["number"] for number in run)
                        owed += due
                        bad += due and (row["sender"], row["number"] - 1) not in ever
                        run.append(row["number"])
                    ever.add((row["sender"], row["number"]))
        return bad, owed


@pytest.mark.parametrize("block", range(4))
def test_checkers_agree_with_naive_ones(block: int) -> None:
    seen: Counter[tuple[str, bool]] = Counter()
    for seed in range(block * 50, block * 50 + 50):
        events = Wild(seed).run()
        naive, found = Private(events), verdicts(events)
        told = {name: found[name, GROUP] for name in ("S1", "S2", "S4", "S5", "S6", "O2", "L2", "L6", "L8")}
        expected = {name: naive.found[name, GROUP] for name in ("S1", "S2", "S4")}
        expected |= {"L2": naive.undelivered(), "L6": naive.unstable(), "L8": naive.kept()}
        expected |= {"S5": naive.unknowing()[0], "S6": naive.disconnected()[0], "O2": naive.gaps()[0]}
        assert {name: told[name].violations for name in expected} == expected, seed
        assert told["S5"].opportunities == naive.unknowing()[1], seed
        assert told["S6"].opportunities == naive.disconnected()[1], seed
        assert told["O2"].opportunities == naive.gaps()[1], seed
        for name, count in expected.items():
            seen[name, bool(count)] += 1
    assert all(seen[name, True] > 5 for name in ("S1", "S2", "S4", "S5", "S6", "O2", "L2", "L6", "L8"))
