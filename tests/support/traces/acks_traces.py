"""Good runs of the acknowledgment protocols, by a reference that sees everything.

Views are private, and processes join and leave. Channels are FIFO and end when a process leaves; acknowledgments are
lost or late. Some runs are static: all send and receive, and each process learns the stability of all messages.
"""

import random
from collections import defaultdict
from functools import cache

import pyarrow as pa

from tests.support.traces.handmade import Mid, Trace

GROUP = "orders"


@cache
def good_acks_trace(seed: int, stability: str = "own") -> pa.Table:
    """A run of the reference: right by construction."""
    return _Acks(random.Random(f"{stability} {seed}"), stability).run()


class _Acks:
    def __init__(self, rng: random.Random, stability: str) -> None:
        self._rng, self._all = rng, stability == "all"
        names = [f"p{number}" for number in range(1, rng.randint(4, 6))]
        self._role = {
            name: "both" if self._all else rng.choice(("both", "both", "both", "sender", "receiver")) for name in names
        }
        if not self._all:
            self._role |= {"p1": "both", "p2": "both"}
        takers = [name for name in names if self._role[name] != "sender"]
        outside = {GROUP: [name for name in names if self._role[name] == "sender"]}
        self._trace = Trace(
            {GROUP: takers},
            protocol="acks",
            service="fifo",
            outside=outside,
            options={"stability": stability},
            roles=self._role,
            sources=self._some_sources(names),
        )
        self._present: set[str] = set()
        self._absent = set(names)
        self._receivers: dict[str, set[str]] = {name: set() for name in names}
        self._senders: dict[str, set[str]] = {name: set() for name in names}
        self._joining: dict[str, set[str]] = {name: set() for name in names}
        self._channel: dict[tuple[str, str], list[Mid]] = defaultdict(list)
        self._got: dict[tuple[str, str], int] = defaultdict(lambda: -1)
        self._acked: dict[tuple[str, str], int] = {}
        self._under_way: list[tuple[str, str, str, int]] = []
        self._known: dict[tuple[str, str], int] = defaultdict(lambda: -1)
        self._freed: dict[str, int] = defaultdict(lambda: -1)
        self._installed: dict[str, int] = defaultdict(int)

    def _some_sources(self, names: list[str]) -> dict[str, list[str]]:
        """In some runs the last receiver hears only p1."""
        last = names[-1]
        chosen = not self._all and self._takes(last) and self._rng.random() < 0.3
        return {last: ["p1"]} if chosen else {}

    def run(self) -> pa.Table:
        names = sorted(self._absent)
        for name in names:
            self._trace.start(name)
        self._late = set() if self._all else {name for name in names[2:] if self._rng.random() < 0.2}
        self._begin([name for name in names if name not in self._late])
        for _ in range(self._rng.randint(60, 140)):
            self._step()
        self._late -= {row["process"] for row in self._trace.rows if row["kind"] in ("join", "crash")}
        self._drain()
        return self._trace.end(settled=False)

    def _begin(self, names: list[str]) -> None:
        self._present, self._absent = set(names), self._absent - set(names)
        for name in names:
            others = self._present - {name}
            if self._sends(name):
                self._receivers[name] = {other for other in others if self._hears(other, name)}
            if self._takes(name):
                self._senders[name] = {other for other in others if self._hears(name, other)}
            self._acked |= {(name, other): -1 for other in self._receivers[name]}
            self._install(name)

    def _step(self) -> None:
        process = self._rng.choice(sorted(self._present))
        dice = self._rng.random()
        if not self._all and dice < 0.05:
            self._come_or_go()
        elif dice < 0.25 and self._sends(process):
            self._send(process)
        elif dice < 0.6 and self._takes(process):
            self._receive(process)
        elif dice < 0.75 and self._takes(process):
            self._acknowledge(process, 0.7)
        elif dice < 0.85:
            self._hear()
        elif dice < 0.95:
            self._learn(process)
        else:
            self._free(process)

    def _sends(self, process: str) -> bool:
        return self._role[process] != "receiver"

    def _takes(self, process: str) -> bool:
        return self._role[process] != "sender"

    def _hears(self, process: str, sender: str) -> bool:
        sources = self._trace.sources.get(process)
        return self._sends(sender) and self._takes(process) and (sources is None or sender in sources)

    def _install(self, process: str) -> None:
        receivers, senders = self._receivers[process], self._senders[process]
        view = f"{self._installed[process]:03}.{process}"
        self._installed[process] += 1
        members = sorted({process, *receivers, *senders})
        self._trace.view(process, GROUP, view, members, receivers=sorted(receivers), senders=sorted(senders))

    def _send(self, process: str) -> None:
        self._admit(process)
        mid = self._trace.send(process, GROUP)
        if self._takes(process):
            self._trace.deliver(process, mid)
        for other in sorted(self._receivers[process]):
            self._channel[process, other].append(mid)

    def _admit(self, process: str) -> None:
        """With its next message, or null, a sender counts the processes that have joined."""
        last = self._trace.numbers.get((GROUP, process), 0) - 1
        if self._joining[process]:
            self._receivers[process] |= self._joining[process]
            self._acked |= {(process, other): last for other in self._joining[process]}
            self._got |= {(other, process): last for other in self._joining[process]}
            self._joining[process] = set()
            self._install(process)

    def _receive(self, process: str) -> bool:
        full = [sender for sender in sorted(self._senders[process]) if self._channel[sender, process]]
        if full:
            mid = self._channel[self._rng.choice(full), process].pop(0)
            self._trace.receive(process, mid)
            self._trace.deliver(process, mid)
            self._got[process, mid.sender] = mid.number
        return bool(full)

    def _acknowledge(self, process: str, arrives: float) -> None:
        name = self._trace.acknowledge(process, sorted(self._senders[process]), GROUP)
        for sender in sorted(self._senders[process]):
            if self._rng.random() < arrives:
                self._under_way.append((sender, name, process, self._got[process, sender]))

    def _hear(self) -> None:
        if not self._under_way:
            return
        sender, name, process, number = self._under_way.pop(self._rng.randrange(len(self._under_way)))
        if sender in self._present:
            self._trace.acknowledged(sender, name, GROUP)
            if process in self._receivers[sender]:
                self._acked[sender, process] = max(self._acked[sender, process], number)

    def _learn(self, process: str) -> None:
        last = self._trace.numbers.get((GROUP, process), 0) - 1
        upto = {process: min((self._acked[process, other] for other in self._receivers[process]), default=last)}
        if self._all:
            upto = {sender: self._everywhere(sender) for sender in self._present}
        news = {sender: number for sender, number in upto.items() if number > self._known[process, sender]}
        if news:
            self._trace.stable(process, news, GROUP)
            self._known |= {(process, sender): number for sender, number in news.items()}

    def _everywhere(self, sender: str) -> int:
        last = self._trace.numbers.get((GROUP, sender), 0) - 1
        return min([last, *(self._got[other, sender] for other in self._present - {sender})])

    def _free(self, process: str) -> None:
        known = self._known[process, process]
        if known > self._freed[process]:
            self._trace.discard(process, {process: known}, GROUP)
            self._freed[process] = known

    def _come_or_go(self) -> None:
        if self._absent and self._rng.random() < 0.6:
            self._join(self._rng.choice(sorted(self._absent)))
        elif len(self._present) > 2:
            process, crash = self._rng.choice(sorted(self._present)), self._rng.random() < 0.3
            if crash:
                self._trace.crash(process)
            else:
                self._trace.row(process, "leave", group=GROUP, view=self._trace.views[process, GROUP])
            self._take_leave(process, crash)

    def _join(self, process: str) -> None:
        self._trace.row(process, "join", group=GROUP)
        self._absent.remove(process)
        for other in sorted(self._present):
            if self._hears(process, other):
                self._senders[process].add(other)
                self._joining[other].add(process)
            if self._hears(other, process):
                self._senders[other].add(process)
                self._joining[process].add(other)
                self._install(other)
        self._present.add(process)
        self._install(process)

    def _take_leave(self, process: str, crash: bool) -> None:
        self._present.remove(process)
        for other in sorted(self._present):
            known = {*self._receivers[other], *self._senders[other]}
            for peers in (self._receivers, self._senders, self._joining):
                peers[other].discard(process)
            self._channel[process, other].clear()
            self._channel[other, process].clear()
            if process in known:
                self._install(other)
        for peers in (self._receivers, self._senders, self._joining):
            peers[process].clear()
        if not crash:
            self._absent.add(process)
            self._install(process)

    def _drain(self) -> None:
        for process in sorted(self._late & self._absent):
            self._join(process)
        for process in sorted(self._present):
            self._admit(process)
        while any(self._receive(process) for process in sorted(self._present) if self._takes(process)):
            pass
        for process in sorted(self._present):
            if self._takes(process):
                self._acknowledge(process, 1.0)
        while self._under_way:
            self._hear()
        for process in sorted(self._present):
            self._learn(process)
            self._free(process)
