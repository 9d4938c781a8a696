"""Received frames: to which group they belong, and what each kind of frame means to it.

A table maps each kind to a method. A fast path skips the table for the usual case: a numbered frame of a member that is
not suspected.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.answers import Answers
from antiphon.protocols.newtop.asking.asking import Asking
from antiphon.protocols.newtop.bounds import Bounds
from antiphon.protocols.newtop.delivery import Delivery
from antiphon.protocols.newtop.formation.connections import Connections
from antiphon.protocols.newtop.frames import (
    AliveFrame,
    AskingFrame,
    BlockFrame,
    ConfirmedFrame,
    FormationFrame,
    InstallFrame,
    LeavingFrame,
    MembershipFrame,
    NeedFrame,
    NewtopFrame,
    Notice,
    RefuteFrame,
    SubmitFrame,
    SuspectFrame,
    ToSequencer,
    WantFrame,
)
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.groups import Groups
from antiphon.protocols.newtop.ordering.contract import Order

if TYPE_CHECKING:
    from antiphon.protocols.newtop.formation.formation import Formations

_Handler = Callable[["Reception", NewtopGroup, Any, int], None]


class Reception:
    """Invariant: a group in which something follows from a frame is stirred."""

    __slots__ = (
        "_answers",
        "_asking",
        "_bounds",
        "_connections",
        "_delivery",
        "_formations",
        "_groups",
        "_order",
        "_ordinary",
        "_stirred",
        "_suspecting",
        "_table",
    )

    def __init__(
        self,
        table: Groups,
        order: Order,
        answers: Answers,
        delivery: Delivery,
        connections: Connections,
        formations: "Formations | None",
        bounds: Bounds,
        asking: Asking,
        *,
        suspecting: bool,
    ) -> None:
        self._table = table
        self._groups = table.by_id  # these two are looked up for each frame
        self._stirred = table.stirred
        self._order = order
        self._ordinary = table.turns is None and not order.stamps  # a message has nothing but a number and payloads
        self._answers = answers
        self._bounds = bounds
        self._asking = asking
        self._delivery = delivery
        self._suspecting = suspecting
        self._connections = connections
        self._formations = formations  # frames of formations, and of groups that we are not in, go there

    def restore(self, frame: Frame, now: int) -> None:
        """On datagrams: a frame that may be anywhere in its stream."""
        if isinstance(frame, ToSequencer | AskingFrame):
            self.take(frame, now)  # it has no place in any stream
            return
        group = self._groups.get(frame.group)
        if group is None or isinstance(frame, FormationFrame):
            self._take_strange(frame, now)
            return
        recovery = group.voice.recovery
        if recovery is None or not isinstance(frame, NewtopFrame):
            return
        self._bounds.require_frame(frame, now)  # before it has a place in a stream
        self._stirred[frame.group] = group
        ready = recovery.receive(frame, now)
        known = group.suspector.remember()
        refused = [
            violation
            for each in ready
            if (violation := self.take_or_sever(each, now)) is not None and not recovery.has_skipped(each.sender)
        ]
        group.suspector.recall(known)  # a copy proves only that the process that sent the copy is alive
        group.sign_of_life(frame.sender, now)
        if refused:
            raise refused[0]

    def take_or_sever(self, frame: Frame, now: int) -> ProtocolViolation | None:
        """Take a frame whose place in its stream is passed. If it is refused, the rest of the stream is useless.

        Its sender counts as silent from then on, as if a connection had lost frames (E-47).
        """
        try:
            self.take(frame, now)
        except ProtocolViolation as violation:
            self._table.sever(frame.sender, now, (frame.group,))
            return violation
        return None

    def take(self, frame: Frame, now: int) -> None:
        """Take the next frame of a channel; frames of other families are ignored."""
        group = self._groups.get(frame.group)
        if group is None:
            self._take_strange(frame, now)
        elif group.agreement.wary:
            self._take_warily(group, frame, now)
        elif isinstance(frame, BlockFrame) and not frame.excluded:
            self.record(group, frame, now)  # the usual case
        else:
            self._accept(group, frame, now)

    def relayed(self, frame: BlockFrame, now: int) -> bool:
        """Take a message from a refutation. It is no sign of life of its sender."""
        group = self._groups[frame.group]
        known = group.suspector.remember()
        taken = self.record(group, frame, now)
        group.suspector.recall(known)
        if group.voice.recovery is not None:
            group.voice.recovery.refuted(frame)
        return taken

    def record(self, group: NewtopGroup, frame: BlockFrame, now: int) -> bool:
        """Record a numbered frame; False if it is not the next one of its sender, or not for us."""
        if frame.block > self._bounds.limit:
            self._bounds.require(frame.block, now)
        if frame.notice is not None:
            return self._record_notice(group, frame, frame.notice, now)
        payloads = frame.payloads
        ordinary = self._ordinary and frame.stamp is None and frame.ordering is None
        if payloads and not ordinary and not self._fits(group, frame, now):
            return False
        follows = group.discipline.receive(frame, now)
        if follows is None:
            return False
        if payloads:
            for name in self._order.received(group, frame, now):
                self._stirred[name] = self._groups[name]
            if frame.more or frame.ask is not None:
                self._delivery.look_closely()
            if self._table.stirs:
                self._answers.want(frame.block)
                follows = True
        if follows:
            self._stirred[frame.group] = group
        return True

    def _record_notice(self, group: NewtopGroup, frame: BlockFrame, notice: Notice, now: int) -> bool:
        """Record a notice; False likewise, or if its sender and we disagree about how views change."""
        self._bounds.require_frame(frame, now)
        known = all(process in group.roster.columns for process, _ in notice.failed)
        if notice.kind != group.change.kind or not known:
            return False
        follows = group.discipline.receive(frame, now)
        if follows is None:
            return False
        self._delivery.look_closely()
        if notice.kind == "flush":
            group.change.flushed(frame)
            follows = True
        else:
            for name in self._order.received(group, frame, now):
                self._stirred[name] = self._groups[name]
        if self._table.stirs:
            self._answers.want(frame.block)
            follows = True
        if follows:
            self._stirred[frame.group] = group
        return True

    def _fits(self, group: NewtopGroup, frame: BlockFrame, now: int) -> bool:
        """Whether its sender and we agree on the order, and on whether there is a sequencer."""
        self._bounds.require_frame(frame, now)
        if (frame.ordering is not None) is not group.discipline.sequenced:
            return False
        return self._order.fits(group, frame) if self._order.stamps else frame.stamp is None

    def _take_warily(self, group: NewtopGroup, frame: Frame, now: int) -> None:
        """Take a frame while a member is suspected, accused or failed: its sender and its evidence matter (9.3)."""
        if isinstance(frame, FormationFrame | AskingFrame):
            self._take_strange(frame, now)
            return
        self._bounds.require_frame(frame, now)  # before it is kept
        self._stirred[frame.group] = group
        if not group.agreement.admits(frame, now):
            group.sign_of_life(frame.sender, now)
            return
        self._accept(group, frame, now)
        if isinstance(frame, BlockFrame):
            group.agreement.noticed(frame.sender, now)
            group.agreement.evaluate(now)

    def _accept(self, group: NewtopGroup, frame: Frame, now: int) -> None:
        """Take in the next frame of its stream."""
        handler = self._HANDLERS.get(type(frame))
        if handler is None:
            self._take_strange(frame, now)
        else:
            self._bounds.require_frame(frame, now)
            handler(self, group, frame, now)

    def _on_block(self, group: NewtopGroup, frame: BlockFrame, now: int) -> None:
        if group.agreement.excludes_me(frame):
            self._stirred[frame.group] = group
            group.agreement.parted(frame.sender, now)
        else:
            self.record(group, frame, now)

    def _on_alive(self, group: NewtopGroup, frame: AliveFrame, now: int) -> None:
        if group.heard(frame, now):
            self._stirred[frame.group] = group

    def _on_agreement(self, group: NewtopGroup, frame: MembershipFrame, now: int) -> None:
        if self._suspecting and group.sign_of_life(frame.sender, now):
            self._stirred[frame.group] = group
            group.agreement.receive(frame, now)

    def _on_want(self, group: NewtopGroup, frame: WantFrame, now: int) -> None:
        if self._suspecting and group.sign_of_life(frame.sender, now):
            self._stirred[frame.group] = group
            group.request_completion(frame.wanted, now)

    def _on_submission(self, group: NewtopGroup, frame: ToSequencer, now: int) -> None:
        if group.discipline.submitted(frame):
            group.sign_of_life(frame.sender, now)
            self._stirred[frame.group] = group
        else:
            self._take_strange(frame, now)

    def _take_strange(self, frame: Frame, now: int) -> None:
        """A frame of a formation or a request, of a group that we have left or not yet entered, of another family."""
        if isinstance(frame, AskingFrame):
            self._asking.receive(frame, now)
            return
        if self._formations is None:
            return
        if isinstance(frame, FormationFrame):
            self._formations.receive(frame, now)
            self._table.stir_all()
            if isinstance(frame, InstallFrame) and self._connections.came_too_late(frame):
                self._table.sever(frame.sender, now, (frame.group,))
        else:
            self._formations.stranger(frame.group, frame.sender)

    _HANDLERS: ClassVar[Mapping[type[Frame], _Handler]] = {
        BlockFrame: _on_block,
        AliveFrame: _on_alive,
        SuspectFrame: _on_agreement,
        RefuteFrame: _on_agreement,
        ConfirmedFrame: _on_agreement,
        LeavingFrame: _on_agreement,
        WantFrame: _on_want,
        SubmitFrame: _on_submission,
        NeedFrame: _on_submission,
    }
