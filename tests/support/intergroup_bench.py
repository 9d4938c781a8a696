"""Parts of the membership of InterGroup by themselves: a world with a choice of losses, a repair, a seat."""

import random
from collections.abc import Callable
from typing import TypeVar

from antiphon.core.clocks import TimestampClock
from antiphon.core.effects import Deliver, Effect, Frame, InstallView, Scope, Transmit
from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.handoff import Handoff
from antiphon.protocols.intergroup.frames import DataFrame, InterGroupFrame
from antiphon.protocols.intergroup.membership.claims import Claim, Claims, Survivor
from antiphon.protocols.intergroup.membership.epoch import Epoch
from antiphon.protocols.intergroup.membership.frames import (
    ChangeFrame,
    EpochEnd,
    ProposalFrame,
    RecoveryInfoFrame,
)
from antiphon.protocols.intergroup.membership.repair import Repair
from antiphon.protocols.intergroup.membership.seat import Seat
from antiphon.protocols.intergroup.membership.states import Event
from antiphon.protocols.intergroup.membership.steps import RepairSteps, Step
from antiphon.protocols.intergroup.membership.view_ids import Kind, view_id
from antiphon.protocols.intergroup.outlet import Outlet, Views
from antiphon.protocols.intergroup.rules import ADOPTED
from antiphon.protocols.intergroup.settings import InterGroupPlan, InterGroupSettings
from antiphon.types import ProcessId, View, ViewId, first_view
from tests.support.intergroup_world import GROUP, MS, SUSPECT_MS, World

A, B, C, D, E = (ProcessId(name) for name in "abcde")
SETTINGS = InterGroupSettings(suspect_after_ns=SUSPECT_MS * MS, tracing=True)
Kinds = TypeVar("Kinds", bound=InterGroupFrame)


class Lab(World):
    """A world that remembers what was transmitted, and loses what the test chooses."""

    lost: Callable[[Frame, ProcessId], bool] = staticmethod(lambda _frame, _to: False)
    """Called with each frame and each process that it is for."""
    transmitted: list[tuple[int, Frame]]
    """With the time in nanoseconds."""

    def _transmit(self, sender: ProcessId, effect: Transmit) -> None:
        if not hasattr(self, "transmitted"):
            self.transmitted = []
        self.transmitted.append((self.now, effect.frame))
        everybody = [name for name in self.cores if name != sender]
        for other in everybody if effect.to is Scope.GROUP else [ProcessId(str(effect.to))]:
            if not self.lost(effect.frame, other):
                super()._transmit(sender, effect._replace(to=other))

    def frames(self, kind: type[Kinds], sender: str = "", since: int = -1) -> list[Kinds]:
        """What was transmitted after that time."""
        return [
            frame
            for at, frame in getattr(self, "transmitted", ())
            if isinstance(frame, kind) and at > since and sender in ("", frame.sender)
        ]

    def seat(self, process: str) -> Seat:
        return self.cores[ProcessId(process)]._members[GROUP]._participant._seat

    def epoch(self, process: str) -> ViewId:
        return self.seat(process).epoch.id

    def now_us(self) -> int:
        return self.now // 1000


def context_of(me: ProcessId, view: View) -> MemberContext:
    draw = random.Random(1).random
    return MemberContext(me, InterGroupPlan(view), SETTINGS, TimestampClock(physical=True), draw, ADOPTED)


class RepairBench:
    """One repair at process a, and all that it asks of its host."""

    def __init__(self, members: str = "abc", me: ProcessId = A) -> None:
        view = first_view(GROUP, frozenset(ProcessId(name) for name in members))
        self.context = context_of(me, view)
        self.outlet = Outlet()
        self.epoch = Epoch(view.id, 0, 0, dict.fromkeys(view.members, 1), view.id, 0)
        self.own = Survivor(me, 0, 1, 0, (), (), 0)
        self.messages: dict[tuple[ProcessId, int], DataFrame] = {}
        self.wanted: set[tuple[ProcessId, int]] = set()
        self.reachable: set[ProcessId] = set()
        self.suspected: list[tuple[ProcessId, str]] = []
        self.decided: list[ChangeFrame] = []
        self.numbers = 0
        self.believes = True
        self.now = 0
        self.steps = RepairSteps()
        self.repair = Repair(self.context, self.outlet, self, 1, 0)

    # The host

    def survivor(self, *, with_receivers: bool) -> Survivor:
        return self.own if with_receivers else self.own._replace(receiver_claims=(), receiver_gate=0)

    def may_have(self, claims: Claims, gate: int) -> bool:
        return self.believes

    def has_parted(self, frame: ProposalFrame) -> bool:
        return frame.sender in self.epoch.stints and frame.epoch != self.epoch.id

    def next_needed(self, sender: ProcessId, stint: int) -> int:
        return stint

    def held(self, sender: ProcessId, seq: int) -> DataFrame | None:
        return self.messages.get((sender, seq))

    def want(self, sender: ProcessId, seq: int, now: int) -> None:
        self.wanted.add((sender, seq))

    def is_foreign(self, process: ProcessId, now: int) -> bool:
        return process in self.reachable

    def tell_suspicion(self, process: ProcessId, reason: str) -> None:
        self.suspected.append((process, reason))

    def next_number(self) -> int:
        self.numbers += 1
        return self.numbers

    def next_view_number(self) -> int:
        return 1

    def decide(self, change: ChangeFrame, now: int) -> None:
        self.decided.append(change)

    def step(self) -> Step:
        return self.repair.step

    # What others announce

    def propose(self, sender: ProcessId, processes: str, failed: str = "", run: int = 1) -> None:
        named, gone = (tuple(ProcessId(name) for name in names) for names in (processes, failed))
        self.repair.proposed(ProposalFrame(GROUP, sender, 1, run, self.epoch.id, 1, named, gone), self.now)

    def inform(
        self, sender: ProcessId, *, last: int = 0, gate: int = 0, round_: int | None = None, **claims: Claim
    ) -> None:
        """RecInfo for the present proposal."""
        told = tuple((ProcessId(name), claim) for name, claim in sorted(claims.items()))
        step = self.repair._round if round_ is None else round_
        info = RecoveryInfoFrame(
            GROUP, sender, self.epoch.id, self.repair._proposal, step, 1, gate, last, 1, told, (), 0
        )
        self.repair.informed(info, self.now)

    def later(self, ns: int) -> None:
        self.now += ns
        self.repair.advance(self.now)

    def announced(self, kind: type[Kinds]) -> list[Kinds]:
        """What is repeated now."""
        self.repair._repeat_at = self.now
        self.repair.advance(self.now)
        return [frame for frame in self.transmitted() if isinstance(frame, kind)]

    def transmitted(self) -> list[Frame]:
        effects: list[Effect] = []
        self.outlet.move_to(effects)
        return [each.frame for each in effects if isinstance(each, Transmit)]


class SeatBench:
    """The seat of one process in the configured view of some senders."""

    def __init__(self, members: str = "abc", me: ProcessId = A) -> None:
        self.view = first_view(GROUP, frozenset(ProcessId(name) for name in members))
        self.context = context_of(me, self.view)
        self.outlet = Outlet()
        handoff = Handoff(self.context, self.outlet)
        self.seat = Seat(self.context, self.outlet, Views(self.context, self.outlet), handoff)
        self.seat.begin_configured(self.view, 0)
        self.seat.standing.go(Event.CONFIGURED)

    def message(
        self, sender: ProcessId, seq: int, stamp: int, change: tuple[ProcessId, int] | None = None
    ) -> DataFrame:
        payloads = (f"{sender}{seq}".encode(),) if change is None else ()
        return DataFrame(GROUP, sender, seq, stamp, self.seat.epoch.id, 0, payloads, change=change)

    def take(self, *messages: DataFrame) -> None:
        """Messages arrive, and are not delivered yet."""
        for message in messages:
            self.seat.recovery.received(self.seat.log, message, 0)

    def change(self, origins: dict[str, str], final: dict[str, int], start: int = 100, gate: int = 0) -> ChangeFrame:
        """The change to these members, each from an epoch; `own`: from ours."""
        own = self.seat.epoch.id
        came = tuple((ProcessId(name), own if origin == "own" else ViewId(origin)) for name, origin in origins.items())
        last = tuple((ProcessId(name), seq) for name, seq in final.items())
        stints = tuple((process, 1) for process, _ in last)
        first = tuple((process, final.get(process, 0) + 1) for process, _ in came)
        epoch = view_id(start, Kind.CONSENSUS, came[0][0], 1)
        return ChangeFrame(GROUP, B, epoch, start, "p", 0, came, (EpochEnd(own, last, stints, gate),), first)

    def effects(self) -> list[Effect]:
        effects: list[Effect] = []
        self.outlet.move_to(effects)
        return effects

    def delivered(self) -> list[bytes]:
        return [each.frame.payloads[0] for each in self.effects() if isinstance(each, Deliver)]

    def shown(self) -> list[View]:
        return [each.view for each in self.effects() if isinstance(each, InstallView)]
