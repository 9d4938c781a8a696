"""The printed rules that are wrong, each in a class of its own: evidence, for the simulator only (errata-newtop.md).

No other module depends on them. `scenarios/errata/` has a scenario for each except E-45, in which the printed
rule breaks a promise that the adopted one keeps; docs/design/as-printed.md has the results.
"""

from collections import deque
from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from antiphon.core.effects import Frame
from antiphon.protocols.newtop.flow.windows import FlowControl
from antiphon.protocols.newtop.frames import (
    BlockFrame,
    Flow,
    MembershipFrame,
    Notice,
    RefuteFrame,
    RelativeStamp,
    SuspectFrame,
)
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.membership.agreement import Agreement, AgreementCallbacks, Detection
from antiphon.protocols.newtop.membership.suspector import Suspector
from antiphon.protocols.newtop.membership.views import ClosedChange, RemoveChange, SequencerChange, ViewChange
from antiphon.protocols.newtop.ordering.blocks import SlowOrder, TotalOrder
from antiphon.protocols.newtop.ordering.contract import Order
from antiphon.protocols.newtop.ordering.relative import RelativeOrder
from antiphon.protocols.newtop.ordering.vectors import FastOrder, Key, Known, VectorOrder
from antiphon.protocols.newtop.rules import ADOPTED, Rules
from antiphon.protocols.newtop.sequencing.turns import Turns
from antiphon.protocols.newtop.settings import NewtopSettings, Service
from antiphon.protocols.newtop.silence import Silence
from antiphon.types import GroupId, ProcessId, View


class ReversedVectorTest(VectorOrder):
    """E-1, Macedo94 §2.6.3: deliver m of i at j if `vc_j[i] = vc(m)[i] + 1`."""

    def _lacking(self, frame: BlockFrame, past: Known) -> Key | None:
        own = frame.group, frame.sender
        return None if self._known.get(own, 0) == past[own] + 1 else own


class RepeatingSilence(Silence):
    """E-6, Macedo94 §7.2.8: only nulls with a number *smaller* than the last one sent are dropped.

    So a message does not answer its own number, and a null repeats it.
    """

    def __init__(self, timeout_ns: int) -> None:
        super().__init__(timeout_ns)
        self._answering = False

    def due(self, now: int) -> bool:
        """The caller sends the null at once; the null is the answer."""
        self._answering = super().due(now)
        return self._answering

    def spoke(self, block: int) -> None:
        """A null answers all numbers up to its own, any other message those below its own."""
        super().spoke(block if self._answering else block - 1)
        self._answering = False


class TotalWithoutCrossNulls(TotalOrder):
    """E-9: the extra nulls of Macedo94 §4.4 left out."""

    crosses: ClassVar[bool] = False


class SlowWithoutCrossNulls(SlowOrder):
    """E-9, for the Slow order."""

    crosses: ClassVar[bool] = False


class ReversedRelativeTest(RelativeOrder):
    """E-11, Macedo94 Fig. 5.5: deliver when `m.ldv >= LDV`; no second condition and no updates."""

    def _may_go(self, frame: BlockFrame) -> bool:
        assert isinstance(frame.stamp, RelativeStamp)
        delivered = self._delivered[frame.group]
        return all(told >= reached for told, reached in zip(frame.stamp.delivered, delivered, strict=True))

    def _deliver(self, frame: BlockFrame) -> None:
        self._undelivered[frame.group].remove(frame.block)

    def sent(self, group: NewtopGroup, frame: BlockFrame, now: int) -> None:
        """Stamps are built as printed, so they do not match the deliveries here."""
        super().sent(group, frame, now)
        self._delivered[frame.group][group.roster.my_rank] = 0


_ANY_GROUP: Final = GroupId("any")
"""Replaces the group in stamps: an entry has room for one group."""


class KeyedByProcess(FastOrder):
    """E-13, Macedo94 §5.5: GLDV has one entry per process, for all groups."""

    def _key(self, group: GroupId, process: ProcessId) -> Key:  # noqa: ARG002
        return _ANY_GROUP, process

    def _concerns(self, key: Key) -> bool:
        return any(key[1] in group.view.ranks for group in self._groups.values())


class ForgetfulRelative(RelativeOrder):
    """E-15, Macedo94 §5.6: GBN is assigned on delivery, and the second condition looks at one row only."""

    def _deliver(self, frame: BlockFrame) -> None:
        super()._deliver(frame)
        self._blocks[frame.group] = frame.block

    def _passed(self, name: GroupId, block: int) -> bool:
        row = any(frame.block == block for held in self._held.values() for frame in held if frame.group == name)
        return self._groups[name].complete_block >= block and not row


class TakenIsStable(FlowControl):
    """E-18, Macedo95 §3.5: `SV_i[i] := Δ_i`, which declares messages stable that others may not have."""

    def require(self, flow: Flow) -> None:
        """Accept what the printed rule says."""

    def settle(self) -> None:
        """As adopted, then as printed."""
        super().settle()
        self.stable = max(self.stable, self.complete)


class OpenRowsOnly(Suspector):
    """E-19, Macedo94 §6.3.2: a member that owes nothing is never suspected; crashes in idle groups are not detected."""

    def _accuse(self, group: NewtopGroup, now: int) -> None:
        while self._samples and self._samples[0][1] <= group.complete_block:
            self._samples.popleft()
        for process, rank in [*group.roster.ranks.items()]:
            if rank != group.roster.my_rank and self._charge(group, process, rank, {}, now) == "silent":
                group.agreement.suspect(process, "silent", now)

    def _probes(self, group: NewtopGroup) -> bool:  # noqa: ARG002
        return False


class ObedientAgreement(Agreement):
    """E-20, Macedo94 §6.3.2 with ch. 8: messages of the agreement are numbered like others, so they obey the window."""

    def __init__(
        self, me: ProcessId, group: NewtopGroup, settings: NewtopSettings, callbacks: AgreementCallbacks
    ) -> None:
        super().__init__(me, group, settings, callbacks)
        self._waiting: deque[MembershipFrame] = deque()

    def _tell(self, frame: MembershipFrame, now: int) -> None:
        self._waiting.append(frame)
        self._let_go(now)

    def evaluate(self, now: int) -> None:
        """Frames that wait go first: the window may be open again."""
        self._let_go(now)
        super().evaluate(now)

    def _let_go(self, now: int) -> None:
        flow = self._group.flow
        while self._waiting and (flow is None or flow.permits(flow.counter + 1, 0)):
            super()._tell(self._waiting.popleft(), now)


class DeafToOthersRefutations(Agreement):
    """E-22, Macedo94 §6.3.2 (iv): a refutation of a member that we do not suspect is ignored, no vote withdrawn."""

    def _on_refute(self, frame: RefuteFrame, now: int) -> None:
        if self.suspicions.get(frame.suspect) == frame.last_block:
            super()._on_refute(frame, now)

    def _withdraw(self, voter: ProcessId, suspect: ProcessId, last: int) -> None:
        if voter == self._me:
            super()._withdraw(voter, suspect, last)  # our own vote is in `suspicions` there, and is removed with it


class BlindToPending(Agreement):
    """E-23, Macedo94 §6.3.2: all messages of a suspected member wait, including its suspicions of others."""

    def _examine(self, frame: SuspectFrame, now: int) -> None:
        """Wait until its sender is no longer suspected."""


class NeverParted(Agreement):
    """E-24, Macedo94 §6.3.2 (viii): `(P_j, lbn_j) ∈ detection_j` never holds: no member confirms its own failure."""

    def excludes_me(self, frame: Frame) -> bool:  # noqa: ARG002
        """Never."""
        return False


class WithoutGrace(Agreement):
    """E-25, Macedo94 §6.3.2 (v): in a view of two a suspected member is out at once."""

    def _in_grace(self, now: int) -> bool:  # noqa: ARG002
        return False


class BlindToMarks(Agreement):
    """E-45, Macedo94 §6.3.2: messages do not say which members their sender has excluded."""

    def excludes_me(self, frame: Frame) -> bool:
        """True only if a control frame says so."""
        return not isinstance(frame, BlockFrame) and super().excludes_me(frame)


class ForgivingSilence(Silence):
    """E-27: see `TotalWithoutDuties`."""

    def forgive(self, blocks: Container[int]) -> None:
        """Stop answering these rows."""
        self._duties = deque(duty for duty in self._duties if duty[0] not in blocks)
        self.deadline = self._duties[0][1] if self._duties else None


class TotalWithoutDuties(TotalOrder):
    """E-27: with an excluded member, the duty to answer rows that only it had created is dropped."""

    def failed(self, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:
        """Drop those duties, then act as adopted."""
        gone = {process for process, _ in detection.failed}
        theirs = {frame.block for frame in group.holdings.buffers.held() if frame.sender in gone}
        others = {frame.block for frame in group.holdings.buffers.held() if frame.sender not in gone}
        assert isinstance(group.numbers.silence, ForgivingSilence)
        group.numbers.silence.forgive(theirs - others)
        return super().failed(group, detection)


class ClosedByName(ClosedChange):
    """E-28, Macedo94 §6.4: a remove names all failed members in view; removes with the same names are counted."""

    def confirmed(self, detection: Detection) -> Notice | None:
        """Also name the members of earlier open detections."""
        super().confirmed(detection)
        return Notice("remove", tuple(sorted(pair for each in self.open for pair in each.failed)))

    def delivered(self, frame: BlockFrame, view: View) -> list[Detection]:
        """Install when all others have named the same members."""
        assert frame.notice is not None
        named = frame.notice.failed
        self._removes[named].add(frame.sender)
        waited_for = {*view.members} - {process for process, _ in named}
        return [each for each in self.open if {*each.failed} <= {*named}] if waited_for <= self._removes[named] else []


def counted(view: View) -> str:
    """E-29, Macedo94 §6.4: a member's signature is the number of members it has excluded, not their names."""
    return str(len(view.excluded))


class SlowCutAsTotal(SlowOrder):
    """E-30, Macedo94 §6.5: views change after the number at which total order cuts, and no message above it counts."""

    cut_after: ClassVar[int | None] = 0

    def failed(self, group: NewtopGroup, detection: Detection) -> list[BlockFrame]:
        """Wrong, because messages with the next number may have been delivered."""
        gone = {process for process, _ in detection.failed}
        above = [frame for row in self._rows.values() for frame in row if frame.block > detection.last]
        dropped = [frame for frame in above if frame.group == group.view.group and frame.sender in gone]
        self._drop(dropped)
        return dropped


class OneDetectionARemove(RemoveChange):
    """E-46, Macedo94 §6.3.2 (ix): a remove installs only its own detection and ignores later ones."""

    def delivered(self, frame: BlockFrame, view: View) -> list[Detection]:  # noqa: ARG002
        """The detection that it was sent for."""
        assert frame.notice is not None
        return [detection for detection in self.open if detection.failed == frame.notice.failed]


class NothingDeferred(ClosedChange):
    """E-46 in closed mode: the last remove installs its detection although a later one has a smaller number."""

    def _leaves_to(self, later: list[Detection], block: int) -> bool:  # noqa: ARG002
        return False


class SilentSuspects(Agreement):
    """E-67: a suspected member sends no evidence; in an asymmetric group no other member can have it."""

    def _show_life(self, last: int, now: int) -> None:
        """Ignore the suspicion."""


class WaitsForLostViews(SequencerChange):
    """E-68: the place of a view change is announced once, by the current sequencer; its failure is a separate view."""

    def along(self, detection: Detection, number: int) -> list[Detection]:  # noqa: ARG002
        """None."""
        return []

    def untold(self) -> list[Notice]:
        """Nothing: other members should announce it."""
        return []


class OutOfTurn(Turns):
    """11.3 without rule 4: a member sends in other groups while its message is still under way to a sequencer."""

    def permits(self, group: NewtopGroup) -> bool:  # noqa: ARG002
        """Always."""
        return True


_SERVICES: Final[Mapping[str, frozenset[Service]]] = {
    "E-14": frozenset({"causal-relative"}),
    "E-31": frozenset({"total", "causal-slow"}),
    "E-43": frozenset({"total", "total-safe", "causal-slow"}),
    "E-73": frozenset({"total-safe"}),
    "E-74": frozenset({"total-safe"}),
}
"""By rule that is not an order, the orders in which it has an effect, if not in all."""
_ORDERS: Final[Mapping[str, Mapping[Service, type[Order]]]] = {
    "E-1": {"causal-vector": ReversedVectorTest},
    "E-9": {"total": TotalWithoutCrossNulls, "causal-slow": SlowWithoutCrossNulls},
    "E-11": {"causal-relative": ReversedRelativeTest},
    "E-13": {"causal-fast": KeyedByProcess},
    "E-15": {"causal-relative": ForgetfulRelative},
    "E-27": {"total": TotalWithoutDuties},
    "E-69": {"total": TotalWithoutDuties},
    "E-30": {"causal-slow": SlowCutAsTotal},
}
_CHANGES: Final[Mapping[str, Mapping[str, type[ViewChange]]]] = {
    "E-28": {"closed": ClosedByName},
    "E-31": {"cut": RemoveChange},
    "E-46": {"remove": OneDetectionARemove, "closed": NothingDeferred},
}
_OTHERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "E-6": {"silence": RepeatingSilence},
    "E-14": {"one_counter": False},
    "E-18": {"flow": TakenIsStable},
    "E-19": {"suspector": OpenRowsOnly},
    "E-19b": {"announces": False},
    "E-20": {"agreement": ObedientAgreement},
    "E-22": {"agreement": DeafToOthersRefutations},
    "E-23": {"agreement": BlindToPending},
    "E-24": {"agreement": NeverParted},
    "E-25": {"agreement": WithoutGrace},
    "E-27": {"silence": ForgivingSilence},
    "E-29": {"signature": counted},
    "E-43": {"answers_cuts": False},
    "E-45": {"agreement": BlindToMarks},
    "E-67": {"agreement": SilentSuspects},
    "E-68": {"sequencing": WaitsForLostViews},
    "E-69": {"silence": ForgivingSilence},
    "E-73": {"announces": False},
    "E-74": {"awaits_acknowledgments": False},
    "A-4": {"turns": OutOfTurn},
}
_WITH_FLOW_CONTROL: Final = frozenset({"E-18", "E-19b", "E-20"})
_WITH_MEMBERSHIP: Final = frozenset(
    "E-19 E-20 E-22 E-23 E-24 E-25 E-27 E-28 E-29 E-30 E-31 E-43 E-45 E-46 E-67 E-68 E-69 E-74".split()
)
_WITH_SEVERAL_GROUPS: Final = frozenset({"E-43", "E-69", "A-4"})
_WITH_SEQUENCER: Final = frozenset({"E-67", "E-68", "E-69", "A-4"})
ERRATA: Final = tuple(
    sorted(
        {*_ORDERS, *_CHANGES, *_OTHERS},
        key=lambda erratum: (erratum[0] != "E", int(erratum[2:].rstrip("b")), erratum),
    )
)
"""The errata whose printed rule can be followed."""


def concerns(
    erratum: str,
    services: frozenset[str],
    flow_control: int,
    view_change: str = "cut",
    *,
    membership: bool = True,
    overlapping: bool = True,
    sequencer: bool = True,
) -> bool:
    """True if the printed rule has an effect with these services and settings."""
    if (
        (erratum in _WITH_FLOW_CONTROL and not flow_control)
        or (erratum in _WITH_MEMBERSHIP and not membership)
        or (erratum in _WITH_SEVERAL_GROUPS and not overlapping)
        or (erratum in _WITH_SEQUENCER and not sequencer)
        or (erratum in _CHANGES and view_change not in _CHANGES[erratum])
    ):
        return False
    among = _SERVICES.get(erratum) or _ORDERS.get(erratum, {}).keys()
    return not among or bool(services & among)


def printed(errata: tuple[str, ...]) -> Rules:
    """The adopted rules, with the named ones replaced by their printed form."""
    rules = ADOPTED
    for erratum in errata:
        rules = replace(
            rules,
            orders={**rules.orders, **_ORDERS.get(erratum, {})},
            changes={**rules.changes, **_CHANGES.get(erratum, {})},
            **_OTHERS.get(erratum, {}),
        )
    return rules
