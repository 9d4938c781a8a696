"""One control process, as a pure state machine (Berket00 ch. 2; docs/spec/intergroup.md 3).

A driver runs it like any core: `receive`, `tick` and `drain`, with `deadline` as the next time (`core/contract.py`).
The members of its host send it their frames, and get theirs from it, through the same two calls.
"""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, ClassVar, Final

from antiphon.core.effects import Channel, Frame, Scope, Transmit
from antiphon.protocols.intergroup.hierarchy.appropriateness import REACTION_NS, Position
from antiphon.protocols.intergroup.hierarchy.cuts import Cuts
from antiphon.protocols.intergroup.hierarchy.effects import HierarchyEffect, Listen
from antiphon.protocols.intergroup.hierarchy.frames import (
    AckReportFrame,
    CoordinatorFrame,
    CoordinatorLeaveFrame,
    CutRecord,
    DistanceAnswerFrame,
    DistanceQueryFrame,
    GlobalFrame,
    HierarchyFrame,
    LocalFrame,
    RingQueryFrame,
    SearchResponseFrame,
    Site,
)
from antiphon.protocols.intergroup.hierarchy.groups import (
    CoordinatorGroup,
    JoinedGroup,
    OwnGroup,
    Records,
    plausible,
)
from antiphon.protocols.intergroup.hierarchy.lookup import distance
from antiphon.protocols.intergroup.hierarchy.members import Members
from antiphon.protocols.intergroup.hierarchy.pacing import Meter, Pace
from antiphon.protocols.intergroup.hierarchy.records import merged
from antiphon.protocols.intergroup.hierarchy.rules import HierarchyContext
from antiphon.protocols.intergroup.hierarchy.settings import HierarchySettings
from antiphon.protocols.intergroup.hierarchy.states import Action, Input, State
from antiphon.protocols.intergroup.membership.frames import CutFrame
from antiphon.protocols.intergroup.repair.adaptation import SECOND
from antiphon.types import ProcessId

REVIEW_NS: Final = SECOND
"""How often a process looks for silent peers, and at its role."""
SITES_MAX: Final = 1_024


class ControlProcess:
    """Decides what one control process does; the parts keep its tables."""

    def __init__(self, context: HierarchyContext, now: int) -> None:
        settings, draw = context.settings, context.draw
        self._context = context
        self.me = context.me
        self._machine = context.rules.machine()
        self._members = Members()
        self._cuts = Cuts(settings.cut_keep_ns)
        self.own = OwnGroup(context)
        self.joined: JoinedGroup | None = None
        self.coordinators = CoordinatorGroup(context)
        self._search = context.rules.search(settings.system_ttl, settings.ring_wait_ns)
        self._determination = context.rules.determination(settings.state_change_ns, draw)
        self._local, self._global = Pace(settings.bandwidth, draw), Pace(settings.bandwidth, draw)
        self._effects: list[HierarchyEffect] = [Listen((), coordinators=True)]
        self._listen_until: int | None = now + int(settings.listen_ns * (0.5 + draw()))
        self._review_at = now + int(REVIEW_NS * draw())
        self.deadline: int | None = now
        """When `tick` is due."""
        self._arm()

    @property
    def state(self) -> State:
        return self._machine.state

    @property
    def settings(self) -> HierarchySettings:
        return self._context.settings

    @property
    def site(self) -> Site:
        """Where the members of this host are."""
        return Site(self.me, self.me if self.joined is None else self.joined.coordinator)

    @property
    def known_coordinators(self) -> int:
        """NumCoords."""
        if self._machine.coordinates:
            return self.coordinators.number
        return 0 if self.joined is None else self.joined.numbers[0]

    @property
    def changes(self) -> Mapping[tuple[State, Input], int]:
        """How often each change of the state was made."""
        return self._machine.taken

    def known(self) -> set[ProcessId]:
        """Every other control process in its tables."""
        siblings = () if self.joined is None else self.joined.siblings.names()
        return {*self.own.children.names(), *siblings, *self.coordinators.peers.names()}

    def distance(self, site: Site) -> int:
        """The one-way distance to a site in nanoseconds, for the timers of requests and repairs."""
        return distance(self.me, site, self.own, self.joined, self.coordinators)

    # Inputs

    def receive(self, frame: Frame, now: int) -> None:
        """A frame of another control process, or of a member of this host."""
        receiver = self._RECEIVERS.get(type(frame))
        if receiver is not None and frame.sender != self.me:  # multicasts come back to their sender
            receiver(self, frame, now)

    def disconnected(self, member: ProcessId) -> None:
        """A member of this host has closed its connection, or crashed."""
        self._members.gone(member)

    def stop(self, now: int) -> None:
        """End in order: tell both groups. Afterwards nothing has an effect."""
        if self._machine.coordinates:
            self._tell_leaving(now)
            self._emit(
                self._leave_frame(now), self.coordinators.meter, Scope.COORDINATORS, self.settings.system_ttl, now
            )
        self._part(now)
        self._machine.stop()
        self._local.stop()
        self._global.stop()
        self._search.end()
        self._listen_until = None
        self._effects.append(Listen((), coordinators=False))
        self.deadline = None

    def tick(self, now: int) -> None:
        """Time has passed: do what is due."""
        if self.state is State.STOPPED:
            return
        if self._listen_until is not None and now >= self._listen_until:
            self._decide(now)
        if self._search.next_at is not None and now >= self._search.next_at:
            self._search_on(now)
        if now >= self._review_at:
            self._review(now)
        if self._local.has_ended(now) and self._local.is_due(now, self._local_members):
            self._speak_locally(now)
        if self._global.has_ended(now) and self._global.is_due(now, self.coordinators.number):
            self._speak_globally(now)
        self._arm()

    def drain(self, now: int) -> list[HierarchyEffect]:  # noqa: ARG002
        """Everything to do since the last call, in the order to do it."""
        effects, self._effects = self._effects, []
        return effects

    @property
    def has_effects(self) -> bool:
        """False if `drain` would return nothing."""
        return bool(self._effects)

    def _arm(self) -> None:
        times = (self._listen_until, self._search.next_at, self._local.next_at, self._global.next_at)
        self.deadline = min([self._review_at, *(at for at in times if at is not None)])

    # Frames of other control processes

    def _local_arrived(self, frame: LocalFrame, now: int) -> None:
        joined = self.joined
        if frame.coordinator == self.me:
            if self._machine.coordinates and self.own.meter.take(frame.size, now):
                self._child_spoke(frame, now)
        elif joined is not None and frame.coordinator == joined.coordinator:
            size = frame.size
            if joined.meter.take(size, now):
                self._local.heard(size)
                joined.sibling(frame, now)

    def _child_spoke(self, frame: LocalFrame, now: int) -> None:
        self._local.heard(frame.size)
        if self.own.heard(frame, now, admits=self._machine.admits):
            self._determination.contacted()
        self._pass_on(frame.cuts, now)
        if frame.leaving:
            self._check_emptied(now)

    def _coordinator_arrived(self, frame: CoordinatorFrame, now: int) -> None:
        joined = self.joined
        if joined is None or frame.sender != joined.coordinator:
            return
        size = frame.size
        if not joined.meter.take(size, now):
            return
        self._local.heard(size)
        if not joined.heard(frame, now):
            return
        if not self._machine.coordinates:
            for process, away, mean in frame.coordinator_distances:
                self.coordinators.peers.told(process, away, now, mean)
        self._tell_members(plausible(frame.records))
        self._pass_on(frame.cuts, now)
        if not joined.reaches():
            self._take(Input.LOST, now)

    def _global_arrived(self, frame: GlobalFrame, now: int) -> None:
        if not self._hears_coordinators:
            return
        size = frame.size
        if not self.coordinators.meter.take(size, now):
            return
        self._global.heard(size)
        if self.coordinators.heard(frame, now):
            self._pass_on(frame.cuts, now)

    def _queried(self, frame: RingQueryFrame, now: int) -> None:
        meter = self.coordinators.meter
        if (
            not self._machine.admits
            or not meter.take(frame.size, now)
            or not 1 <= frame.ttl <= self.settings.system_ttl
        ):
            return
        self.own.promise(frame.ttl, now)
        self._determination.contacted()
        answer = SearchResponseFrame(self.settings.name, self.me, frame.sender, frame.nonce, frame.ttl, len(self.own))
        if meter.room_at(answer.size, now) <= now and meter.take(answer.size, now):
            self._effects.append(Transmit(answer, frame.sender, Channel.DATAGRAM, frame.ttl))

    def _answered(self, frame: SearchResponseFrame, now: int) -> None:
        if frame.to == self.me:
            self._search.answered(frame, now)

    def _left(self, frame: CoordinatorLeaveFrame, now: int) -> None:
        """A coordinator steps down: ours, or one of the others."""
        known = self.coordinators.peers.get(frame.sender)
        if self._machine.coordinates and known is not None and frame.timestamp >= known.sent:
            self.coordinators.peers.remove(frame.sender)
        if self.joined is not None and frame.sender == self.joined.coordinator:
            self._take(Input.ABANDONED, now)
            self._arm()

    # Frames of members

    def _acknowledged(self, frame: AckReportFrame, now: int) -> None:
        self._members.report(frame, now)

    def _cut_told(self, frame: CutFrame, now: int) -> None:
        self._pass_on((CutRecord(frame.group, frame.epoch, frame.gate, frame.claims),), now)

    def _distances_asked(self, frame: DistanceQueryFrame, now: int) -> None:  # noqa: ARG002
        answer = tuple((site, self.distance(site)) for site in frame.sites[:SITES_MAX])
        self._effects.append(Transmit(DistanceAnswerFrame(frame.group, self.me, answer), frame.sender, Channel.STREAM))

    def _tell_members(self, records: Records) -> None:
        """Hand the system records to the members that they are about."""
        self._effects += self._members.told(records, self.site)

    def _pass_on(self, cuts: tuple[CutRecord, ...], now: int) -> None:
        """Cuts are urgent: all groups and members hear of them soon (M18)."""
        if not cuts or not self._cuts.add(cuts, now):
            return
        self._local.hurry(now)
        self._global.hurry(now)
        self._effects += self._members.told_cuts(self._cuts.records(), self.me)
        self._arm()

    # Messages of ours

    @property
    def _hears_coordinators(self) -> bool:
        return self._machine.coordinates or self._listen_until is not None

    @property
    def _local_members(self) -> int:
        """The members of the local group, with the coordinator; of the larger one in the dual role (H4)."""
        own = len(self.own) if self._machine.coordinates else 0
        return max(own, 0 if self.joined is None else self.joined.locals) + 1

    def _emit(self, frame: HierarchyFrame, meter: Meter, to: Scope, ttl: int, now: int) -> None:
        """A message leaves. Its meter counts it like one that arrives."""
        meter.take(frame.size, now)
        self._effects.append(Transmit(frame, to, Channel.DATAGRAM, ttl))

    def _group_records(self) -> Records:
        """What our local group acknowledges: members of this host and children."""
        return merged(chain(self._members.records(), self.own.records()))

    def _speak_locally(self, now: int) -> None:
        """Send LCon as a child, and CCon as a coordinator; both in the dual role."""
        cuts, joined = self._cuts.records(), self.joined
        messages: list[tuple[HierarchyFrame, Meter, int]] = []
        if joined is not None:
            messages.append((joined.frame(self._members.records(), cuts, now), joined.meter, joined.ttl))
        if self._machine.coordinates:
            records = merged(chain(self._group_records(), self.coordinators.records()))
            self._tell_members(records)
            answer = self.own.frame(self.coordinators, records, cuts, now)
            if answer.ttl > 0:
                messages.append((answer, self.own.meter, answer.ttl))
        if room_at := max((meter.room_at(frame.size, now) for frame, meter, _ in messages), default=now) - now:
            self._local.wait(now + room_at, self._local_members)
            return
        for frame, meter, ttl in messages:
            self._emit(frame, meter, Scope.LOCAL, ttl, now)
        if self.state in (State.TO_CHILD, State.LEAVING):
            self._tell_leaving(now)
        self._local.sent(sum(frame.size for frame, _, _ in messages), self._local_members, now)

    def _speak_globally(self, now: int) -> None:
        """Send GCon."""
        frame = self.coordinators.frame(self.own, self._group_records(), self._cuts.records(), now)
        meter = self.coordinators.meter
        room_at = meter.room_at(frame.size, now)
        if room_at > now:
            self._global.wait(room_at, self.coordinators.number)
            return
        self._emit(frame, meter, Scope.COORDINATORS, self.settings.system_ttl, now)
        self._global.sent(frame.size, self.coordinators.number, now)
        self._take(Input.ANNOUNCED, now)

    def _leave_frame(self, now: int) -> CoordinatorLeaveFrame:
        return CoordinatorLeaveFrame(self.settings.name, self.me, now)

    def _tell_leaving(self, now: int) -> None:
        """CoordLeave, to our children."""
        ttl = self.own.far_ttl(now)
        if ttl > 0:
            self._emit(self._leave_frame(now), self.own.meter, Scope.LOCAL, ttl, now)

    # Changes of the role

    def _take(self, what: Input, now: int) -> None:
        """Change the state, and do what belongs to the change."""
        action = self._machine.take(what)
        if action is not None:
            self._determination.reset()
            self._ACTIONS[action](self, now)
            self._arm()

    def _decide(self, now: int) -> None:
        """The time of listening is over (H11)."""
        thresholds = self.settings.thresholds_for(self.coordinators.told_population())
        few = self.coordinators.announced() <= thresholds.start
        self._take(Input.FEW if few else Input.ENOUGH, now)
        self._listen_until = None
        if not self._machine.coordinates:
            self.coordinators.clear()
        self._listen()

    def _search_on(self, now: int) -> None:
        """A ring has had its time: its best answer wins, or the next ring is asked."""
        if self._search.chosen() is not None:
            self._take(Input.FOUND, now)
            return
        ttl = self._search.next_ring(now)
        if ttl is None:
            self._take(Input.NOT_FOUND, now)
            return
        query = RingQueryFrame(self.settings.name, self.me, ttl, self._search.nonce)
        self._emit(query, self.coordinators.meter, Scope.COORDINATORS, ttl, now)

    def _review(self, now: int) -> None:
        """Remove what is silent (3.9), and look at the role (Table 2.2)."""
        self._review_at = now + REVIEW_NS
        least = self.settings.least_timeout_ns
        self._members.expire(now, least)
        self._cuts.expire(now)
        local = self._local.timeout(self._local_members, least)
        self.own.children.expire(now, local)
        self._check_emptied(now)
        if self.joined is not None:
            self.joined.siblings.expire(now, local)
            if self.joined.is_lost(now, local):
                self._take(Input.LOST, now)
        # A child learns of coordinators from CCons, so their pace counts
        self.coordinators.peers.expire(
            now, self._global.timeout(self.coordinators.number, least) if self._machine.coordinates else local
        )
        if self.state is State.COORDINATOR:
            self._review_coordinator(now)
        elif self.state is State.CHILD:
            self._review_child(now)

    def _review_coordinator(self, now: int) -> None:
        number, population = self.coordinators.number, self.coordinators.population(len(self.own))
        nearest = self.coordinators.nearest()
        near = nearest is not None and nearest <= self.settings.close_ns
        position = Position(True, number, len(self.own), population, near)
        wants = self._determination.review(position, self.settings.thresholds_for(population), now)
        if wants and number > 1 and not self.coordinators.includes_any(self.own.children):
            self._take(Input.STEP_DOWN, now)

    def _review_child(self, now: int) -> None:
        joined = self.joined
        assert joined is not None
        number, population = joined.numbers
        if number == 0:
            return
        near = joined.ttl <= self.settings.boundary_ttl
        reaction = max(2 * self._local.mean(self._local_members), REACTION_NS)
        position = Position(False, number, joined.locals, population, near, reaction)
        if self._determination.review(position, self.settings.thresholds_for(population), now):
            self._take(Input.STEP_UP if near else Input.FAR, now)

    def _check_emptied(self, now: int) -> None:
        if self.state is State.LEAVING and len(self.own) == 0:
            self._take(Input.EMPTIED, now)

    def _listen(self) -> None:
        groups = {self.me} if self._machine.coordinates else set()
        if self.joined is not None:
            groups.add(self.joined.coordinator)
        self._effects.append(Listen(tuple(sorted(groups)), self._hears_coordinators))

    def _part(self, now: int) -> None:
        """Tell the group that we had joined that we leave it."""
        if self.joined is not None:
            frame = self.joined.frame((), (), now, leaving=True)
            self._emit(frame, self.joined.meter, Scope.LOCAL, self.joined.ttl, now)
            self.joined = None

    # What belongs to a change: `Action`

    def _search_anywhere(self, now: int) -> None:
        self._search.begin(now)

    def _search_near(self, now: int) -> None:
        self._search.begin(now, self.settings.boundary_ttl)

    def _join(self, now: int) -> None:
        found = self._search.found
        assert found is not None
        self._part(now)
        self.joined = JoinedGroup(self._context, found.coordinator, found.ttl, now)
        self._listen()
        self._local.start(now)
        self._local.hurry(now)

    def _coordinate(self, now: int) -> None:
        self.coordinators.leaving = False
        if self._listen_until is None:
            self.coordinators.clear()  # what our coordinator has told of them
        self._search.end()
        self._listen()
        self._local.start(now)
        self._global.start(now)
        self._global.hurry(now)

    def _settle(self, now: int) -> None:
        self._part(now)
        self._listen()

    def _retire(self, now: int) -> None:
        self.coordinators.leaving = True
        self._global.hurry(now)
        self._local.hurry(now)
        self._search.begin(now)

    def _resume(self, now: int) -> None:
        self.coordinators.leaving = False
        self._search.end()
        self._global.hurry(now)
        self._settle(now)

    def _step_back(self, now: int) -> None:
        self._emit(self._leave_frame(now), self.coordinators.meter, Scope.COORDINATORS, self.settings.system_ttl, now)
        self._global.stop()
        self.own.clear()
        self.coordinators.clear()
        self._listen()

    def _forget(self, now: int) -> None:
        self.joined = None
        self.coordinators.clear()
        self._listen()
        self._search.begin(now)

    _ACTIONS: ClassVar[Mapping[Action, Callable[["ControlProcess", int], None]]] = {
        Action.SEARCH: _search_anywhere,
        Action.SEARCH_NEAR: _search_near,
        Action.JOIN: _join,
        Action.COORDINATE: _coordinate,
        Action.SETTLE: _settle,
        Action.RETIRE: _retire,
        Action.RESUME: _resume,
        Action.STEP_BACK: _step_back,
        Action.FORGET: _forget,
    }
    _RECEIVERS: ClassVar[Mapping[type[Any], Callable[["ControlProcess", Any, int], None]]] = {
        LocalFrame: _local_arrived,
        CoordinatorFrame: _coordinator_arrived,
        GlobalFrame: _global_arrived,
        RingQueryFrame: _queried,
        SearchResponseFrame: _answered,
        CoordinatorLeaveFrame: _left,
        AckReportFrame: _acknowledged,
        CutFrame: _cut_told,
        DistanceQueryFrame: _distances_asked,
    }
