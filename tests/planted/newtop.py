"""Bugs to plant in the cores of Newtop: one rule of its membership left out, or turned, at a time.

Each is a function that patches a method; `BUGS` says which rule that is and where it acts. Two are planted in the
simulated network. `tests/planted/plant.py` searches for runs that show them; docs/design/planted.md tells the results.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from antiphon.core.effects import Effect, Frame, InstallView
from antiphon.core.vectors import BEYOND
from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.frames import BlockFrame, RefuteFrame, SequencedFrame, SuspectFrame
from antiphon.protocols.newtop.gate import Reason
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.holdings import Holdings
from antiphon.protocols.newtop.membership.agreement import Agreement, Detection
from antiphon.protocols.newtop.membership.installer import ViewInstaller
from antiphon.protocols.newtop.membership.suspector import Suspector
from antiphon.protocols.newtop.membership.views import (
    ClosedChange,
    FlushChange,
    HaltedChange,
    RemoveChange,
    ViewChange,
)
from antiphon.protocols.newtop.news import News
from antiphon.protocols.newtop.numbers import Numbers
from antiphon.protocols.newtop.ordering.blocks import SlowOrder, TotalOrder
from antiphon.protocols.newtop.ordering.relative import RelativeOrder
from antiphon.protocols.newtop.ordering.vectors import FastOrder
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.protocols.newtop.progress import Progress
from antiphon.protocols.newtop.reception import Reception
from antiphon.protocols.newtop.recovery.streams import _Incoming, _Outgoing, _Store
from antiphon.protocols.newtop.silence import Silence
from antiphon.protocols.newtop.symmetric import Symmetric
from antiphon.sim.links import Links
from antiphon.types import ProcessId, View

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Traits:
    """Traits of a run, for any rig: a bug is searched for in runs where its rule acts."""

    service: str
    view_change: str
    flow_control: int
    datagrams: bool
    groups: int
    by_block: bool
    suspicions: int
    """True if the run contains false suspicions from outside."""
    stalls: bool
    """True if an application consumes nothing for a while."""
    changes: frozenset[str] = frozenset()
    """The changes that the run contains: join, leave, form, merge, recover."""
    merges: bool = False
    """True if members look for peers that they have lost."""


Fits = Callable[[Traits], bool]


@dataclass(frozen=True, slots=True)
class Bug:
    """One rule left out, or turned."""

    rule: str
    """The rule that is left out, by its name in the specification."""
    sentence: str
    """The effect of the bug."""
    plant: Plant
    fits: Fits = lambda _: True
    wanted: tuple[str, ...] = ()
    """The properties that the specification says it must violate; if empty, any violation counts."""
    rigs: tuple[str, ...] = ("membership", "schedules")
    """The rigs in which it can be planted."""

    @property
    def name(self) -> str:
        """The name for tests and for the command."""
        return self.plant.__name__


# -------------------------------------------------------------------------------- where a rule acts


def _stormy(traits: Traits) -> bool:
    return traits.suspicions >= 3


def _total(traits: Traits) -> bool:
    return traits.service == "total"


def _removing(traits: Traits) -> bool:
    return traits.view_change == "remove"


def _closed(traits: Traits) -> bool:
    return traits.view_change == "closed"


def _closed_stalling(traits: Traits) -> bool:
    return _closed(traits) and traits.stalls


def _slow(traits: Traits) -> bool:
    return traits.service == "causal-slow"


def _flushing(traits: Traits) -> bool:
    return traits.service in ("causal-fast", "causal-relative", "causal-vector")


def _relative_groups(traits: Traits) -> bool:
    return traits.service == "causal-relative" and traits.groups > 1


def _flushing_groups(traits: Traits) -> bool:
    return _flushing(traits) and traits.groups > 1


def _crossing(traits: Traits) -> bool:
    return traits.groups > 1 and not _flushing(traits)


def _streams(traits: Traits) -> bool:
    return not traits.datagrams


def _datagrams(traits: Traits) -> bool:
    return traits.datagrams


def _paced(traits: Traits) -> bool:
    return traits.flow_control > 0


def _paced_apart(traits: Traits) -> bool:
    return traits.flow_control > 0 and not traits.by_block


def _paced_by_block(traits: Traits) -> bool:
    return traits.flow_control > 0 and traits.by_block


def _paced_flushing(traits: Traits) -> bool:
    return _flushing(traits) and traits.flow_control > 0


# -------------------------------------------------------------------------------- rows of docs/spec/properties.md 9


def removed_member_holds_stability(patch: pytest.MonkeyPatch) -> None:
    for vectors in (Progress, FlowControl):
        patch.setattr(vectors, "fail", lambda self, rank: self.received.raise_to(rank, BEYOND))


def failed_one_by_one(patch: pytest.MonkeyPatch) -> None:
    """Each member of a detection counts up to its own last number: the view changes behind the largest."""
    patch.setattr(Detection, "last", property(lambda self: max(last for _, last in self.failed)))


def nothing_discarded_at_confirm(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TotalOrder, "failed", lambda *_: [])


def closed_at_the_first_remove(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClosedChange, "delivered", RemoveChange.delivered)


def closed_without_blocking(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClosedChange, "holds_senders", False)


def halted_only_by_agreement(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HaltedChange, "halts", False)


def halted_until_the_agreement(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HaltedChange, "holds_senders", False)


def refuted_suspicions_halt(patch: pytest.MonkeyPatch) -> None:
    """Senders go on only when a view is installed."""

    def halt(self: Agreement) -> None:
        if self._group.change.halts and self.suspicions:
            self._group.gate.hold(Reason.MEMBER_SUSPECTED)

    patch.setattr(Agreement, "_halt", halt)


def no_nulls(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Silence, "owe", lambda _self, _block, _now: None)


def excluded_and_content(patch: pytest.MonkeyPatch) -> None:
    """Condition viii left out: no marks, and a member that learns of its exclusion goes on as before."""
    no_marks(patch)
    patch.setattr(Agreement, "parted", lambda *_: None)


def views_overtake_messages(patch: pytest.MonkeyPatch) -> None:
    drain = NewtopProcess.drain

    def two_paths(self: NewtopProcess, now: int) -> list[Effect]:
        effects = drain(self, now)
        views = [effect for effect in effects if isinstance(effect, InstallView)]
        return views + [effect for effect in effects if not isinstance(effect, InstallView)]

    patch.setattr(NewtopProcess, "drain", two_paths)


def messages_overtake_views(patch: pytest.MonkeyPatch) -> None:
    drain = NewtopProcess.drain

    def two_paths(self: NewtopProcess, now: int) -> list[Effect]:
        effects = drain(self, now)
        views = [effect for effect in effects if isinstance(effect, InstallView)]
        return [effect for effect in effects if not isinstance(effect, InstallView)] + views if now else effects

    patch.setattr(NewtopProcess, "drain", two_paths)


def the_removed_still_heard(patch: pytest.MonkeyPatch) -> None:
    """9.3, first sentence, left out for data: messages of an excluded member are delivered in their turn."""
    record = Reception.record

    def heeding(self: Reception, group: NewtopGroup, frame: BlockFrame, now: int) -> bool:
        if frame.sender in group.roster.ranks or frame.sender not in group.roster.columns or not frame.payloads:
            return record(self, group, frame, now)
        self._order.received(group, frame, now)
        self._stirred[frame.group] = group
        return True

    patch.setattr(Reception, "record", heeding)


def buffers_of_the_removed_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Holdings, "drop", lambda _self, _frames: None)


# -------------------------------------------------------------------------------- agreement


def refutes_of_strangers_ignored(patch: pytest.MonkeyPatch) -> None:
    """E-22: acted on only if the pair is among our own suspicions."""
    on_refute = Agreement._on_refute

    def printed(self: Agreement, frame: RefuteFrame, now: int) -> None:
        if self.suspicions.get(frame.suspect) == frame.last_block:
            on_refute(self, frame, now)

    patch.setattr(Agreement, "_on_refute", printed)


def votes_never_withdrawn(patch: pytest.MonkeyPatch) -> None:
    """E-22, the other half: a refutation brings messages and takes no vote back."""
    withdraw = Agreement._withdraw

    def stubborn(self: Agreement, voter: ProcessId, suspect: ProcessId, last: int) -> None:
        if voter == self._me:
            withdraw(self, voter, suspect, last)

    patch.setattr(Agreement, "_withdraw", stubborn)


def suspects_accuse_in_vain(patch: pytest.MonkeyPatch) -> None:
    """E-23: accusations by a suspected member wait unread."""
    patch.setattr(Agreement, "_examine", lambda *_: None)


def accusations_read_once(patch: pytest.MonkeyPatch) -> None:
    """E-75."""
    patch.setattr(Agreement, "_pending_accusations", lambda *_: [])


def no_grace_for_two(patch: pytest.MonkeyPatch) -> None:
    """E-25."""
    patch.setattr(Agreement, "_in_grace", lambda *_: False)


def words_cancel_in_any_view(patch: pytest.MonkeyPatch) -> None:
    """E-25: a rule that is safe in a view of two only."""
    patch.setattr(Agreement, "_alone_with", lambda *_: True)
    patch.setattr(Agreement, "_in_grace", lambda *_: False)


def words_never_cancel(patch: pytest.MonkeyPatch) -> None:
    """E-25: grace, but messages that arrive during it do not count."""
    admits = Agreement.admits

    def deaf(self: Agreement, frame: Frame, now: int) -> bool:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Agreement, "_alone_with", lambda *_: False)
            return admits(self, frame, now)

    patch.setattr(Agreement, "admits", deaf)


class _Unsure(set[ProcessId]):
    def add(self, _: ProcessId) -> None:
        pass


def own_words_cancelled(patch: pytest.MonkeyPatch) -> None:
    """E-52: in a view of two a suspicion that rests on the other's own word is cancelled like any other."""
    init = Agreement.__init__

    def begin(self: Agreement, *each: Any) -> None:
        init(self, *each)
        self._sure = _Unsure()

    patch.setattr(Agreement, "__init__", begin)


def votes_kept(patch: pytest.MonkeyPatch) -> None:
    """E-44."""
    patch.setattr(Agreement, "_forget", lambda *_: None)


def no_marks(patch: pytest.MonkeyPatch) -> None:
    """E-45: messages do not name the members that their sender has excluded."""
    transmit = Symmetric._transmit

    def unmarked(self: Symmetric, frame: BlockFrame, now: int, effects: list[Effect]) -> BlockFrame:
        return transmit(self, frame._replace(excluded=()), now, effects)

    patch.setattr(Symmetric, "_transmit", unmarked)


def pending_before_news(patch: pytest.MonkeyPatch) -> None:
    """E-26e: pending frames are processed before the messages of the refutation."""
    on_refute = Agreement._on_refute

    def hasty(self: Agreement, frame: RefuteFrame, now: int) -> None:
        if frame.suspect in self.suspicions and any(
            message.block > self._group.reached(frame.suspect) for message in frame.messages
        ):
            for held in self._pending.pop(frame.suspect, ()):
                if isinstance(held, BlockFrame):
                    self._callbacks.accept(held, now)
                else:
                    self._pending.setdefault(frame.suspect, []).append(held)
        on_refute(self, frame, now)

    patch.setattr(Agreement, "_on_refute", hasty)


def pending_past_the_filter(patch: pytest.MonkeyPatch) -> None:
    """E-26e: all pending frames are processed, even if one of them makes their sender suspected again."""
    admits, replay, replaying = Agreement.admits, Agreement._replay, [0]

    def open_door(self: Agreement, frame: Frame, now: int) -> bool:
        return (replaying[0] > 0 and frame.sender not in self.failed) or admits(self, frame, now)

    def through(self: Agreement, process: ProcessId, now: int) -> None:
        replaying[0] += 1
        try:
            replay(self, process, now)
        finally:
            replaying[0] -= 1

    patch.setattr(Agreement, "admits", open_door)
    patch.setattr(Agreement, "_replay", through)


def pending_dropped(patch: pytest.MonkeyPatch) -> None:
    """E-26e: a refutation brings its messages, and the pending frames are dropped."""
    patch.setattr(Agreement, "_replay", lambda self, process, _now: self._pending.pop(process, None))


def gaps_taken(patch: pytest.MonkeyPatch) -> None:
    """E-26f: messages of a refutation are taken although some before them are missing."""
    on_refute = Agreement._on_refute

    def careless(self: Agreement, frame: RefuteFrame, now: int) -> None:
        if frame.suspect not in self._group.roster.ranks or frame.suspect in self.failed or frame.suspect == self._me:
            on_refute(self, frame, now)
            return
        before, chained = self._group.reached(frame.suspect), []
        for message in frame.messages:
            if message.block > before:
                chained.append(message._replace(previous_block=before))
                before = message.block
        on_refute(self, replace(frame, messages=tuple(chained)), now)

    patch.setattr(Agreement, "_on_refute", careless)


def counter_behind_the_suspect(patch: pytest.MonkeyPatch) -> None:
    """E-26j: a suspicion does not raise the counter."""
    suspect = Agreement.suspect

    def low(self: Agreement, process: ProcessId, reason: str, now: int) -> None:
        counter = self._group.numbers.counter
        before = counter.value
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Agreement, "evaluate", lambda *_: None)
            suspect(self, process, reason, now)
        counter.value = max(before, self._group.numbers.sent)
        self.evaluate(now)

    patch.setattr(Agreement, "suspect", low)


def counter_behind_the_cut(patch: pytest.MonkeyPatch) -> None:
    """E-26j, and the confirmation does not raise it either."""
    counter_behind_the_suspect(patch)
    confirmed = ViewInstaller.confirmed

    def low(self: ViewInstaller, group: NewtopGroup, detection: Detection, now: int) -> None:
        before = group.numbers.counter.value
        confirmed(self, group, detection, now)
        group.numbers.counter.value = max(before, group.numbers.sent)

    patch.setattr(ViewInstaller, "confirmed", low)


# -------------------------------------------------------------------------------- suspector


def severed_ignored(patch: pytest.MonkeyPatch) -> None:
    """E-47: frames on a connection that has lost frames count as signs of life."""
    patch.setattr(Suspector, "severed", lambda *_: None)


def new_connections(patch: pytest.MonkeyPatch) -> None:
    """E-47: when a cut heals, streams go on after the hole (planted in the simulated network)."""
    mend = Links.mend

    def forgetting(self: Links, fault: Any = None) -> None:
        self.connections.clear()
        self._unused.clear()
        mend(self, fault)

    patch.setattr(Links, "mend", forgetting)


def new_connections_unnoticed(patch: pytest.MonkeyPatch) -> None:
    """E-47: both."""
    severed_ignored(patch)
    new_connections(patch)


def mute_while_any_agreement_runs(patch: pytest.MonkeyPatch) -> None:
    """E-50, clause b as first written: any silent member while any agreement runs."""
    patch.setattr(Agreement, "mute", lambda self, _process: min(self._recorded.values(), default=None))


def accused_only_if_silent(patch: pytest.MonkeyPatch) -> None:
    """E-50, clause c as first written: a suspicion of others is adopted only if the suspect is not heard."""
    accused = Agreement.accused

    def old(self: Agreement, before: int) -> list[ProcessId]:
        group = self._group
        return [
            process
            for process in accused(self, before)
            if group.suspector._silent_since(group.roster.ranks[process]) <= before
        ]

    patch.setattr(Agreement, "accused", old)


def accused_only_if_silent_and_no_null(patch: pytest.MonkeyPatch) -> None:
    """E-50, clause c as first written, with suspects that do not show life either."""
    accused_only_if_silent(patch)
    no_sign_of_life(patch)


def never_adopted(patch: pytest.MonkeyPatch) -> None:
    """E-50, clause c left out: suspicions of others are never adopted."""
    patch.setattr(Agreement, "accused", lambda *_: [])


def no_sign_of_life(patch: pytest.MonkeyPatch) -> None:
    """E-50, E-67: a suspect does not answer with a null."""
    patch.setattr(Agreement, "_show_life", lambda *_: None)


def no_sign_of_life_to_suspects(patch: pytest.MonkeyPatch) -> None:
    """E-67, the last sentence of 9.3: not to an accuser that it suspects itself."""
    examine = Agreement._examine

    def proud(self: Agreement, frame: SuspectFrame, now: int) -> None:
        if frame.suspect != self._me:
            examine(self, frame, now)

    patch.setattr(Agreement, "_examine", proud)


def blocking_is_no_charge(patch: pytest.MonkeyPatch) -> None:
    """E-51, clause d left out."""
    patch.setattr(Symmetric, "waits_for", lambda *_: False)


def no_announcements(patch: pytest.MonkeyPatch) -> None:
    """E-51, the other half: members announce completed numbers only on their messages."""

    def silent(self: News, *_: object) -> bool:
        self.at = None
        return False

    patch.setattr(News, "due", silent)


def notices_not_owed(patch: pytest.MonkeyPatch) -> None:
    """E-77."""
    for change in (ViewChange, ClosedChange, FlushChange):
        patch.setattr(change, "owing", lambda *_: {})


def deaf_is_no_charge(patch: pytest.MonkeyPatch) -> None:
    """E-80."""
    patch.setattr(Suspector, "_deaf", lambda *_: False)


# -------------------------------------------------------------------------------- views


def silent_groups_keep_the_cut_away(patch: pytest.MonkeyPatch) -> None:
    """E-43."""
    confirmed = ViewInstaller.confirmed

    def at_home(self: ViewInstaller, group: NewtopGroup, detection: Detection, now: int) -> None:
        before = self._answers.wanted
        confirmed(self, group, detection, now)
        self._answers.wanted = before

    patch.setattr(ViewInstaller, "confirmed", at_home)


def removes_install_their_own(patch: pytest.MonkeyPatch) -> None:
    """E-46: a remove installs the detection it was sent for, and no other."""

    def delivered(self: RemoveChange, frame: BlockFrame, _: View) -> list[Detection]:
        return [detection for detection in self.open if frame.notice and detection.failed == frame.notice.failed]

    patch.setattr(RemoveChange, "delivered", delivered)


def closed_before_a_smaller_cut(patch: pytest.MonkeyPatch) -> None:
    """E-46, closed mode: a later detection with a smaller number is not waited for."""

    def delivered(self: ClosedChange, frame: BlockFrame, view: View) -> list[Detection]:
        assert frame.notice is not None
        removes = self._removes[frame.notice.failed]
        removes.add(frame.sender)
        for place, detection in enumerate(self.open, start=1):
            if detection.failed == frame.notice.failed:
                gone = {process for each in self.open[:place] for process, _ in each.failed}
                return self.open[:place] if {*view.members} - gone <= removes else []
        return []

    patch.setattr(ClosedChange, "delivered", delivered)


def duties_go_with_rows(patch: pytest.MonkeyPatch) -> None:
    """E-48: the largest number received falls when messages are discarded, and so do the duties above the cut."""
    exclude = NewtopGroup.exclude

    def forgetting(self: NewtopGroup, detection: Detection, dropped: Any) -> None:
        failed = {self.roster.columns[process] for process, _ in detection.failed}
        exclude(self, detection, dropped)
        living = [
            number
            for rank, number in enumerate(self.progress.received.values)
            if rank not in failed and rank != self.roster.my_rank and number < 1 << 61
        ]
        numbers, silence = self.numbers, self.numbers.silence
        numbers.received = min(numbers.received, max([detection.last, *living]))
        silence._duties = type(silence._duties)(duty for duty in silence._duties if duty[0] <= numbers.received)
        silence.deadline = silence._duties[0][1] if silence._duties else None

    patch.setattr(NewtopGroup, "exclude", forgetting)


def duties_to_the_failed_go(patch: pytest.MonkeyPatch) -> None:
    """E-27: rows that only failed members made are not answered any more."""
    exclude = NewtopGroup.exclude

    def forgetting(self: NewtopGroup, detection: Detection, dropped: Any) -> None:
        exclude(self, detection, dropped)
        self.numbers.silence._duties.clear()
        self.numbers.silence.deadline = None

    patch.setattr(NewtopGroup, "exclude", forgetting)


def nulls_freed_by_flow_number(patch: pytest.MonkeyPatch) -> None:
    """E-49."""
    free = Holdings.free

    def early(self: Holdings, stable: int, effects: list[Effect]) -> None:
        free(self, stable, effects)
        nulls = self.buffers.nulls
        if nulls is not self.buffers.bounded:
            for frame in [frame for frame in nulls.held() if frame.flow is not None and frame.flow.number <= stable]:
                nulls.drop(frame.block, frame)

    patch.setattr(Holdings, "free", early)


def slow_cut_one_too_low(patch: pytest.MonkeyPatch) -> None:
    """E-60: the cut of total order."""
    failed = TotalOrder.failed

    def lower(self: SlowOrder, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(SlowOrder, "_ahead", 0)
            return failed(self, group, detection)

    patch.setattr(SlowOrder, "cut_after", 0)
    patch.setattr(SlowOrder, "failed", lower)


def flush_counts_unagreed(patch: pytest.MonkeyPatch) -> None:
    """E-61: a flush counts on arrival, not at its number, which is the same at all members."""
    take = Reception.take

    def eager(self: Reception, frame: Frame, now: int) -> None:
        if isinstance(frame, BlockFrame) and frame.notice is not None and frame.notice.kind == "flush":
            group = self._groups[frame.group]
            if frame.sender in group.roster.ranks and group.roster.me not in frame.excluded:
                group.change.flushed(frame)
                self._stirred[frame.group] = group
        take(self, frame, now)

    patch.setattr(Reception, "take", eager)


def flush_of_the_failed_awaited(patch: pytest.MonkeyPatch) -> None:
    """E-62."""
    complete = FlushChange.complete
    patch.setattr(FlushChange, "complete", lambda self, view, _failed: complete(self, view, frozenset()))


def blocks_named_elsewhere_not_answered(patch: pytest.MonkeyPatch) -> None:
    """E-63."""
    patch.setattr(Numbers, "expect", lambda *_: False)


def the_lost_awaited_until_the_view(patch: pytest.MonkeyPatch) -> None:
    """E-64: entries of failed members are skipped from the view on only."""
    fast, relative = FastOrder.failed, RelativeOrder.failed

    def waiting_fast(self: FastOrder, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:
        limits = dict(self._limits)
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(FastOrder, "_look_again", lambda *_: None)
            dropped = fast(self, group, detection)
        self._limits = limits
        return dropped

    def waiting_relative(self: RelativeOrder, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:
        limits = [*self._limits[group.view.group]]
        dropped = relative(self, group, detection)
        self._limits[group.view.group] = limits
        return dropped

    patch.setattr(FastOrder, "failed", waiting_fast)
    patch.setattr(RelativeOrder, "failed", waiting_relative)


def orphans_kept(patch: pytest.MonkeyPatch) -> None:
    """E-65: messages of failed members are delivered even if they depend on messages that no survivor has."""

    def fast(self: FastOrder, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:
        keys = {self._key(group.view.group, process) for process, _ in detection.failed}
        self._limits |= {key: self._received.get(key, 0) for key in keys}
        self._look_again(keys)
        return []

    def relative(self: RelativeOrder, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:
        for process, last in detection.failed:
            self._limits[group.view.group][group.roster.columns[process]] = last
        return []

    patch.setattr(FastOrder, "failed", fast)
    patch.setattr(RelativeOrder, "failed", relative)


def refused_nulls_never_step(patch: pytest.MonkeyPatch) -> None:
    """E-76."""
    patch.setattr(Symmetric, "_step", lambda self, _block, _flow, now, _effects: self._stall(now))


def flush_waits_for_the_window(patch: pytest.MonkeyPatch) -> None:
    """E-79."""
    send = Symmetric.send_waiting

    def patient(self: Symmetric, order: Any, now: int, effects: list[Effect]) -> int:
        refused = self._flow is not None and self._outgoing.flushes and self._admit(self._flow, now, effects) is None
        return 0 if refused else send(self, order, now, effects)

    patch.setattr(Symmetric, "send_waiting", patient)


def unseen_views_sent_in(patch: pytest.MonkeyPatch) -> None:
    """The rule `viewed` left out: in closed mode an application may send before it has read the view."""
    patch.setattr(ClosedChange, "closes", False)


# -------------------------------------------------------------------------------- datagrams


def control_in_no_order(patch: pytest.MonkeyPatch) -> None:
    """E-66: unnumbered frames are repaired like others, and handed up when they come."""
    receive, following = _Incoming.receive, _Incoming._following

    def at_once(self: _Incoming, frame: SequencedFrame, now: int) -> list[SequencedFrame]:
        fresh = frame.sequence > self._end and frame.sequence not in self._held
        ready = receive(self, frame, now)
        return [frame, *ready] if fresh and not isinstance(frame, BlockFrame) else ready

    def numbered(self: _Incoming) -> list[SequencedFrame]:
        return [frame for frame in following(self) if isinstance(frame, BlockFrame)]

    patch.setattr(_Incoming, "receive", at_once)
    patch.setattr(_Incoming, "_following", numbered)


def stability_frees_agreement(patch: pytest.MonkeyPatch) -> None:
    """E-78: stability counts as an acknowledgment of everything before it, frames of the agreement included."""

    def forget(self: _Outgoing, upto: int) -> None:
        for member, place in self._acknowledged.items():
            self._acknowledged[member] = max(place, upto)
        _Store.forget(self, upto)

    patch.setattr(_Outgoing, "forget", forget)


def settled_streams_not_skipped(patch: pytest.MonkeyPatch) -> None:
    """E-78, the other half: a member waits for ever for frames that a refutation has brought and no member keeps."""
    patch.setattr(_Incoming, "skip", lambda *_: [])


BUGS: Final[tuple[Bug, ...]] = (
    Bug("properties 9", "a removed member stays in the minimum of the stability vector", removed_member_holds_stability,
        wanted=("L6", "L8")),
    Bug("properties 9", "in a detection, each failed member counts up to its own last number",
        failed_one_by_one, _total,
        wanted=("O4", "D8")),
    Bug("properties 9", "nothing of a detection is discarded", nothing_discarded_at_confirm, _total),
    Bug("properties 9", "closed: the view changes at the first remove", closed_at_the_first_remove, _closed,
        wanted=("D6",), rigs=("membership",)),
    Bug("properties 9", "closed: sends are not blocked", closed_without_blocking, _closed, wanted=("D6", "D7"),
        rigs=("membership",)),
    Bug("9.6", "halted: a suspicion does not stop senders", halted_only_by_agreement, wanted=("D15",),
        rigs=("halted",)),
    Bug("9.6", "halted: senders go on when a failure is agreed", halted_until_the_agreement,
        wanted=("D6", "D7", "D15"), rigs=("halted",)),
    Bug("9.6", "halted: a refuted suspicion still stops senders", refuted_suspicions_halt, rigs=("halted",)),
    Bug("properties 9", "no nulls under silence", no_nulls, wanted=("L2", "L10")),
    Bug("E-24, E-45", "no member is marked, and a member that learns of its exclusion goes on", excluded_and_content),
    Bug("properties 9", "views are delivered before messages that precede them",
        views_overtake_messages, wanted=("D4", "D8")),
    Bug("properties 9", "messages are delivered before views that precede them",
        messages_overtake_views, wanted=("D4", "D8")),
    Bug("properties 9", "messages of a removed member are accepted (it was paused)", the_removed_still_heard,
        wanted=("D4", "D6", "D10")),
    Bug("properties 9", "buffers of a removed member are not freed", buffers_of_the_removed_kept, wanted=("L8",)),
    Bug("E-22", "a refutation of what we do not suspect is ignored", refutes_of_strangers_ignored, _stormy),
    Bug("E-22", "a refutation withdraws no vote", votes_never_withdrawn, _stormy),
    Bug("E-23", "accusations by suspects are ignored", suspects_accuse_in_vain, _stormy),
    Bug("E-75", "accusations by suspects are examined only once", accusations_read_once, _stormy),
    Bug("E-25", "no grace in a view of two", no_grace_for_two, _stormy),
    Bug("E-25", "no message cancels in a view of two", words_never_cancel, _stormy),
    Bug("E-25", "a message cancels in any view", words_cancel_in_any_view, _stormy),
    Bug("E-26e", "held frames are processed before the refutation's messages", pending_before_news, _stormy),
    Bug("E-26e", "held frames bypass the filter", pending_past_the_filter, _stormy),
    Bug("E-26e", "held frames are dropped", pending_dropped, _stormy),
    Bug("E-26f", "a refutation's messages are accepted across a gap", gaps_taken, _stormy),
    Bug("E-26j", "a suspicion does not raise the counter", counter_behind_the_suspect),
    Bug("E-26j", "neither a suspicion nor the confirmation raises the counter", counter_behind_the_cut),
    Bug("E-27", "no answer to rows of failed members", duties_to_the_failed_go),
    Bug("E-43", "a cut does not ask silent groups", silent_groups_keep_the_cut_away, _crossing),
    Bug("E-44", "votes are never forgotten", votes_kept, _stormy),
    Bug("E-45", "messages bear no mark", no_marks, _stormy),
    Bug("E-46", "a remove installs its own detection only", removes_install_their_own, _removing),
    Bug("E-46", "closed: a later detection with a smaller number is not waited for", closed_before_a_smaller_cut,
        _closed),
    Bug("E-47", "severed connections count as alive", severed_ignored, _streams),
    Bug("E-47", "frames of a new connection are taken", new_connections, _streams,
        rigs=("membership",)),
    Bug("E-47", "both", new_connections_unnoticed, _streams, rigs=("membership",)),
    Bug("E-48", "duties above the cut are dropped, RECD decreases", duties_go_with_rows),
    Bug("E-49", "nulls are freed by flow number", nulls_freed_by_flow_number, _paced_apart),
    Bug("E-50", "(b) any silent member while any agreement runs", mute_while_any_agreement_runs, _stormy),
    Bug("E-50", "(c) adopted only if the suspect is silent", accused_only_if_silent, _stormy),
    Bug("E-50", "(c) likewise, and no null", accused_only_if_silent_and_no_null, _stormy),
    Bug("E-50", "(c) never adopted", never_adopted, _stormy),
    Bug("E-50, E-67", "suspects show no life", no_sign_of_life, _stormy),
    Bug("E-67", "suspects show no life to their own suspects", no_sign_of_life_to_suspects, _stormy),
    Bug("E-51", "(d) left out", blocking_is_no_charge, _paced),
    Bug("E-51", "no announcements", no_announcements),
    Bug("E-52", "a suspicion that rests on the suspect's own message is cancelled by its next one",
        own_words_cancelled, _stormy),
    Bug("E-60", "Slow: the cut of total order", slow_cut_one_too_low, _slow),
    Bug("E-61", "a flush counts before it is agreed on", flush_counts_unagreed, _flushing),
    Bug("E-62", "the flush of a failed member is waited for", flush_of_the_failed_awaited, _flushing),
    Bug("E-63", "blocks that are only named in stamps are not answered",
        blocks_named_elsewhere_not_answered, _relative_groups),
    Bug("E-64", "entries of failed members count until the view", the_lost_awaited_until_the_view, _flushing_groups),
    Bug("E-65", "orphans of a detection are kept", orphans_kept, _flushing),
    Bug("E-66", "control frames in no order", control_in_no_order, _datagrams),
    Bug("E-76", "a refused null does not go in steps", refused_nulls_never_step, _paced_by_block),
    Bug("E-77", "a missing notice is no reason to suspect",
        notices_not_owed, lambda traits: _closed(traits) or _flushing(traits)),
    Bug("E-78", "stability frees frames of the agreement", stability_frees_agreement, _datagrams),
    Bug("E-78", "settled streams are not skipped", settled_streams_not_skipped, _datagrams),
    Bug("E-79", "a flush waits for the window", flush_waits_for_the_window, _paced_flushing),
    Bug("E-80", "deafness is no reason to suspect", deaf_is_no_charge, _datagrams),
    Bug("viewed", "closed: sends before the application has seen the view", unseen_views_sent_in, _closed_stalling,
        wanted=("D6",), rigs=("membership",)),
)  # fmt: skip
