"""Strangers and lying members attack three members under load, over TCP and UDP, with real processes.

For every kind of frame each number is pushed to its extremes, by a stranger and by a member; then come floods, garbage,
connections that are never read, and more (`tools/lab/attacks.py`). After each attack all honest members must deliver
again within three suspicion times; or, if a member lied, it is excluded and they deliver again. Memory, tasks and file
descriptors stay within the bounds of docs/design/runtime.md. Exit code 1 if an attack succeeds. Run from the root:

    python -m benchmarks.hostile [--quick] [--transport tcp] [--by stranger] [--attack PATTERN ...] [--json FILE]
"""

import argparse
import asyncio
import contextlib
import fnmatch
import json
import logging
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from antiphon import Member, Message
from antiphon.node.lines import orders
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.protocols.newtop.settings import Values
from antiphon.types import GroupId, ProcessId, ViewId, first_view
from tools.lab.attacks import ATTACKS, STRANGER, Attack, Targets, field_name, fields, lies, number_attack
from tools.lab.processes import Process, open_files, resident_bytes, tell
from tools.lab.strangers import address_of

GROUP: Final = GroupId("orders")
SUSPECT_AFTER_S: Final = 0.5
RECOVERY_S: Final = 3 * SUSPECT_AFTER_S
GIVE_UP_S: Final = 20.0
"""If members do not deliver by then, the attack has done lasting damage."""
MARK_S: Final = 0.25
"""How often each member sends a message that all others must deliver."""
WHOLE_S: Final = 30.0
"""Members that an attack has separated must be in one view again by then."""
RSS_GROWTH_MAX: Final = 256 << 20
TASKS_MAX: Final = 1_200
FILES_MAX: Final = 1_750
"""Bounds of one member: docs/design/runtime.md, "What a member may hold"."""
HONEST: Final = ("p1", "p2", "p3")
LIAR: Final = "p0"
LOAD_BYTES: Final = 200
LOAD_PAUSE_S: Final = 0.01


# One member, in its process


class Worker:
    """A member that sends all the time, and reports its deliveries."""

    def __init__(self, member: Member, name: str) -> None:
        self.member = member
        self.name = name
        self.peak = {"rss": 0, "tasks": 0, "files": 0}
        self.gap_s = 0.0
        self._delivered_at = time.monotonic()

    async def run(self) -> None:
        """Join, and follow the orders of the supervisor."""
        tell("address", address=self.member.address)
        self.group = await self.member.join(GROUP)
        tell("ready", rss=resident_bytes())
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(each()) for each in (self._read, self._load, self._watch)]
        async for order in orders():
            match order["do"]:
                case "mark":
                    tasks.append(asyncio.create_task(self.group.send(f"mark {order['number']}".encode())))
                case "sample":
                    self._sample(order["number"])
                case "lie":
                    await self._lie(order["kind"], order["place"])
                    tell("lied", number=order["number"])
        for task in tasks:
            task.cancel()

    async def _read(self) -> None:
        async for event in self.group:
            if isinstance(event, Message):
                now = time.monotonic()
                self.gap_s, self._delivered_at = max(self.gap_s, now - self._delivered_at), now
                if event.payload.startswith(b"mark "):
                    tell("mark", number=int(event.payload[5:]), sender=event.sender.partition("#")[0])

    async def _load(self) -> None:
        while True:
            await self.group.send(b"load" + bytes(LOAD_BYTES))
            await asyncio.sleep(LOAD_PAUSE_S)

    async def _watch(self) -> None:
        while True:
            now = {"rss": resident_bytes(), "tasks": len(asyncio.all_tasks()), "files": open_files()}
            self.peak = {key: max(value, now[key]) for key, value in self.peak.items()}
            await asyncio.sleep(0.05)

    def _sample(self, number: int) -> None:
        view = self._view
        tell(
            "sample",
            number=number,
            peak=self.peak,
            gap=round(max(self.gap_s, time.monotonic() - self._delivered_at), 3),
            known=self._known,
            terms=self._terms,
            view=None if view is None else [view.group, view.id, view.members],
            offenders=len(self.group.health.offenders),
        )
        self.peak, self.gap_s = dict.fromkeys(self.peak, 0), 0.0

    @property
    def _view(self) -> Any:
        assert isinstance(self.member._process.core, NewtopProcess)
        found = self.member._process.core.current(GROUP)
        return None if found is None else found.view

    @property
    def _known(self) -> int:
        assert isinstance(self.member._process.core, NewtopProcess)
        return self.member._process.core.counter.value

    @property
    def _terms(self) -> Values:
        """The settings that members compare."""
        assert isinstance(self.member._process.core, NewtopProcess)
        assert self.member._process.core._formations is not None
        return self.member._process.core._formations.steps._terms.of(GROUP)

    async def _lie(self, kind: str, place: int) -> None:
        """Transmit a kind of frame with one number at its extremes, past our own core."""
        view, transport = self._view, self.member._process.driver.transport
        if view is None:
            return
        for sealed in lies(view, self.member.id, self._known, self._terms, kind, place):
            transport.send(sealed, [peer for peer in view.members if peer != self.member.id])
            transport.flush()
            await asyncio.sleep(0.002)


async def work(name: str, peers: list[str], transport: str) -> None:
    """Be a member until the supervisor ends."""
    async with Member(name=name, peers=peers, transport=transport, suspect_after=SUSPECT_AFTER_S) as member:
        await Worker(member, name).run()


# The supervisor


@dataclass
class Outcome:
    """The outcome of one attack."""

    name: str
    by: str
    transport: str
    recovery_s: float | None = None
    """Time until all honest members delivered again; None if they never did."""
    excluded: bool = False
    """Whether the liar was excluded."""
    gap_s: float = 0.0
    """The longest time without a delivery at a member, during the attack and after it."""
    rss_growth: int = 0
    tasks: int = 0
    files: int = 0
    fault: str = ""

    def judge(self) -> None:
        """Return the problems, if there are any."""
        if self.fault:
            return
        if self.recovery_s is None:
            self.fault = f"no delivery within {GIVE_UP_S:g} s"
        elif self.recovery_s > RECOVERY_S and not self.excluded:
            self.fault = f"delivery only after {self.recovery_s:.1f} s"
        elif self.rss_growth > RSS_GROWTH_MAX:
            self.fault = f"RSS grew by {self.rss_growth >> 20} MiB"
        elif self.tasks > TASKS_MAX:
            self.fault = f"{self.tasks:,} tasks"
        elif self.files > FILES_MAX:
            self.fault = f"{self.files:,} file descriptors"


class Campaign:
    """Three honest members, and a liar where members attack."""

    def __init__(self, transport: str, by: str, seed: int, scale: float) -> None:
        self.transport = transport
        self.by = by
        self._dice = random.Random(seed)
        self._scale = scale
        self._number = 0
        self._members: dict[str, Process] = {}
        self._begun_with: dict[str, int] = {}
        self.damage = ""
        """The lasting damage of the last attack; then the members must be started anew."""

    async def open(self) -> None:
        """Start the members, all of them new."""
        self._members.clear()
        for name in HONEST:
            await self._start(name)
        if self.by == "member":
            await self._start(LIAR)
        await self._whole()

    async def close(self) -> None:
        """End them, whatever state they are in."""
        for process in self._members.values():
            with contextlib.suppress(ProcessLookupError):
                process.signal(signal.SIGKILL)
            with contextlib.suppress(OSError):
                await process.close()

    async def _start(self, name: str) -> None:
        peers = [process.all("address")[0]["address"] for other, process in self._members.items() if other != name]
        process = Process("benchmarks.hostile", name, peers=peers, transport=self.transport)
        await process.start()
        await process.heard("address")
        self._members[name] = process
        self._begun_with[name] = (await process.heard("ready", within_s=WHOLE_S))["rss"]

    @property
    def _honest(self) -> list[Process]:
        return [self._members[name] for name in HONEST]

    async def samples(self, names: tuple[str, ...] = HONEST) -> dict[str, dict[str, Any]]:
        """The current samples of the members, and the changes since the last ones."""
        self._number += 1
        found = {}
        for name in names:
            await self._members[name].tell("sample", number=self._number)
        for name in names:
            found[name] = await self._members[name].heard("sample", self._is_last)
            self._members[name].reports[1:] = [
                report for report in self._members[name].reports[1:] if report["event"] in ("address", "ready")
            ]
        return found

    def _is_last(self, report: dict[str, Any]) -> bool:
        return bool(report["number"] == self._number)

    async def _whole(self) -> str:
        """Wait until all are in one view; restart a liar that does not come back. Return the problem, if any."""
        expected = len(self._members)
        for _ in range(2):
            deadline = time.monotonic() + WHOLE_S
            while time.monotonic() < deadline:
                views = [sample["view"] for sample in (await self.samples()).values()]
                if (
                    all(view is not None and len(view[2]) == expected for view in views)
                    and len({*map(str, views)}) == 1
                ):
                    return ""
                await asyncio.sleep(0.1)
            if LIAR not in self._members:
                break
            with contextlib.suppress(ProcessLookupError):
                self._members[LIAR].signal(signal.SIGKILL)
            try:
                await self._start(LIAR)
            except SystemExit as silence:
                return f"lasting damage: {silence}"
        return f"members are not in one view again after {WHOLE_S:g} s"

    async def attack(self, name: str, attack: Attack | None, kind: str = "", place: int = 0) -> Outcome:
        """One attack, and what follows from it."""
        outcome = Outcome(name, self.by, self.transport)
        before = (await self.samples())[HONEST[0]]
        try:
            if attack is not None:
                await attack(self._targets(before))
            else:
                await self._lie(kind, place)
        except (OSError, TimeoutError) as error:
            outcome.fault = f"the attack could not be made: {error!r}"
        outcome.recovery_s = await self._recovery()
        await self._measure(outcome)
        outcome.judge()
        self.damage = await self._whole()
        outcome.fault = outcome.fault or self.damage
        return outcome

    def _targets(self, sample: dict[str, Any]) -> Targets:
        group, view_id, members = sample["view"]
        terms = tuple((name, value) for name, value in sample["terms"])
        found = first_view(GroupId(group), frozenset(map(ProcessId, members)))
        view = type(found)(found.group, ViewId(view_id), found.members)
        addresses = tuple(address_of(process.all("address")[0]["address"]) for process in self._honest)
        return Targets(addresses, view, sample["known"], terms, self._dice, self._scale)

    async def _lie(self, kind: str, place: int) -> None:
        self._number += 1
        number = self._number
        await self._members[LIAR].tell("lie", kind=kind, place=place, number=number)
        await self._members[LIAR].heard("lied", lambda report: report["number"] == number)

    async def _recovery(self) -> float | None:
        """The time until every honest member has delivered a new message of each honest member in its view."""
        begun = time.monotonic()
        numbers: list[int] = []
        while time.monotonic() - begun < GIVE_UP_S:
            self._number += 1
            numbers.append(self._number)
            for process in self._honest:
                await process.tell("mark", number=self._number)
            tried = time.monotonic()
            while time.monotonic() - tried < MARK_S:  # a message of a member that is then separated arrives nowhere
                if any(map(self._all_marked, numbers)):
                    return time.monotonic() - begun
                await asyncio.sleep(0.005)
        return None

    def _all_marked(self, number: int) -> bool:
        return all(
            {report["sender"] for report in process.all("mark") if report["number"] == number} >= {*HONEST}
            for process in self._honest
        )

    async def _measure(self, outcome: Outcome) -> None:
        samples = await self.samples()
        for name, sample in samples.items():
            peak = sample["peak"]
            outcome.gap_s = max(outcome.gap_s, sample["gap"])
            outcome.rss_growth = max(outcome.rss_growth, peak["rss"] - self._begun_with[name])
            outcome.tasks = max(outcome.tasks, peak["tasks"])
            outcome.files = max(outcome.files, peak["files"])
        if self.by == "member":
            outcome.excluded = all(
                sample["view"] is None or not any(each.startswith(LIAR) for each in sample["view"][2])
                for sample in samples.values()
            )

    def plan(self, patterns: list[str], quick: bool) -> Iterator[tuple[str, Attack | None, str, int]]:
        """The attacks that were asked for: name, what strangers do, and the number that a member lies about."""
        liar = STRANGER if self.by == "stranger" else ProcessId(f"{LIAR}#1")
        view = first_view(GroupId("orders@1099511627776"), frozenset({*map(ProcessId, HONEST), liar} - {STRANGER}))
        found: list[tuple[str, Attack | None, str, int]] = []
        for kind, place in fields(view, liar):
            name = field_name(view, liar, kind, place)
            honest = None if self.by == "member" else number_attack(self.transport, kind, place)
            found.append((name, honest, kind, place))
        if quick:
            found = self._dice.sample(found, 12)
        if self.by == "stranger":
            found += [(name, attack, "", 0) for name, attack in ATTACKS[self.transport].items()]
        for each in found:
            if not patterns or any(fnmatch.fnmatch(each[0], f"*{pattern}*") for pattern in patterns):
                yield each


async def run(arguments: argparse.Namespace) -> list[Outcome]:
    """All attacks that were asked for."""
    outcomes: list[Outcome] = []
    for transport in arguments.transport or ["tcp", "udp"]:
        for by in arguments.by or ["stranger", "member"]:
            campaign = Campaign(transport, by, arguments.seed, 0.2 if arguments.quick else 1.0)
            plan = [*campaign.plan(arguments.attack, arguments.quick)]
            try:
                for number, (name, attack, kind, place) in enumerate(plan, start=1):
                    if number == 1 or campaign.damage:
                        await campaign.close()
                        await campaign.open()
                    outcome = await campaign.attack(name, attack, kind, place)
                    outcomes.append(outcome)
                    print(f"{transport} {by} {number}/{len(plan)} {name}: {outcome.fault or 'holds'}", file=sys.stderr)
            finally:
                await campaign.close()
    return outcomes


def print_table(outcomes: list[Outcome]) -> None:
    """One line for each transport and attacker, and one for each attack that succeeded."""
    print(
        f"{'transport':<10}{'by':<10}{'attacks':>8}{'succeed':>8}{'excluded':>9}{'recovery s':>12}{'gap s':>8}"
        f"{'RSS +MiB':>10}{'tasks':>7}{'files':>7}"
    )
    for transport, by in dict.fromkeys((each.transport, each.by) for each in outcomes):
        group = [each for each in outcomes if (each.transport, each.by) == (transport, by)]
        recovery = max((each.recovery_s or GIVE_UP_S for each in group), default=0)
        print(
            f"{transport:<10}{by:<10}{len(group):>8}{sum(bool(each.fault) for each in group):>8}"
            f"{sum(each.excluded for each in group):>9}{recovery:>12.2f}{max(each.gap_s for each in group):>8.2f}"
            f"{max(each.rss_growth for each in group) >> 20:>10}{max(each.tasks for each in group):>7}"
            f"{max(each.files for each in group):>7}"
        )
    for each in outcomes:
        if each.fault:
            print(f"{each.transport} {each.by}, {each.name}: {each.fault}")


def main() -> None:
    """Attack, judge, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transport", choices=("tcp", "udp"), action="append", help="default: both")
    parser.add_argument("--by", choices=("stranger", "member"), action="append", help="default: both")
    parser.add_argument("--attack", action="append", default=[], metavar="PATTERN", help="only attacks with such names")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="twelve numbers of each attacker, smaller floods")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker is not None:
        asyncio.run(work(**json.loads(arguments.worker)))
        return
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # members end connections that attacks still write to
    outcomes = asyncio.run(run(arguments))
    print_table(outcomes)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1))
    sys.exit(any(each.fault for each in outcomes))


if __name__ == "__main__":
    main()
