"""The printed rules of the membership that are wrong, each in a class of its own; `as_printed.py` selects them.

The numbers are those of docs/spec/errata-intergroup.md. docs/design/as-printed.md tells what each breaks, and which
errata have no class here.
"""

from collections.abc import Iterable
from typing import Final

from antiphon.protocols.intergroup.delivery.stream import Message, Stream
from antiphon.protocols.intergroup.frames import DataFrame, JoinRequestFrame, KeepAliveFrame, RepairFrame, ReportFrame
from antiphon.protocols.intergroup.membership.claims import NO_END, Claims, Ends, Survivor, ends
from antiphon.protocols.intergroup.membership.frames import EpochEnd, ProposalFrame
from antiphon.protocols.intergroup.membership.receivers import ReceiverSide
from antiphon.protocols.intergroup.membership.repair import Repair
from antiphon.protocols.intergroup.membership.seat import Seat
from antiphon.protocols.intergroup.membership.senders import SenderSide
from antiphon.protocols.intergroup.membership.states import State
from antiphon.protocols.intergroup.participant import Participant
from antiphon.protocols.intergroup.repair.buffer import Buffer
from antiphon.protocols.intergroup.stability.log import Changed, OrderedLog
from antiphon.protocols.intergroup.stability.stability import Stability
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import ProcessId, ViewId

_NEVER: Final = NO_END

# Agreement on the members


class AnnouncedOnce(Repair):
    """M4, §5.4: what a process announces is assumed to arrive, and a process that does not agree is waited for."""

    def _give_up(self, now: int) -> None:  # noqa: ARG002
        self._give_up_at = _NEVER

    def _announce(self, now: int) -> None:
        super()._announce(now)
        self._repeat_at = _NEVER


class NoBackOff(SenderSide):
    """M29, Figs 5.3 and 5.5: a proposal that lists us as failed starts a repair, and a merge begins at once."""

    def _renew(self, now: int) -> None:
        super()._renew(now)
        self._merge_at = now

    def proposed(self, frame: ProposalFrame, now: int) -> None:
        if self.repair is None and self._context.me in frame.failed:
            self.start_repair(now, failed=frame.sender, reason="parted")
        else:
            super().proposed(frame, now)


class Unprobed(SenderSide):
    """J12, Fig. 5.3: a foreign process is merged when it is heard, whether it hears us or not."""

    def is_foreign(self, process: ProcessId, now: int) -> bool:  # noqa: ARG002
        return True


class AllAreForeign(Participant):
    """M11, Fig. 5.3: every message of a sender outside of our view starts a repair, however old it is."""

    def _note_heard(self, frame: DataFrame | KeepAliveFrame, now: int) -> bool:
        is_ours = super()._note_heard(frame, now)
        self._meet_outsider(frame.sender, now)
        return is_ours

    def repair(self, frame: RepairFrame, now: int) -> None:
        super().repair(frame, now)
        self._meet_outsider(frame.message.sender, now)

    def _meet_outsider(self, sender: ProcessId, now: int) -> None:
        seat = self._seat
        if seat.standing.is_sending and sender not in seat.epoch.stints:
            self._meet(sender, now)


class AllFramesCount(Participant):
    """J4, §7.8: every frame is a sign of life, also one of another epoch or of a process that begins again."""

    def _note_heard(self, frame: DataFrame | KeepAliveFrame, now: int) -> bool:
        self._senders.heard(frame.sender, now)
        return super()._note_heard(frame, now)

    def _reported(self, frame: ReportFrame, now: int) -> None:
        self._senders.heard(frame.sender, now)
        super()._reported(frame, now)

    def _asked_to_admit(self, frame: JoinRequestFrame, now: int) -> None:
        self._senders.heard(frame.sender, now)
        super()._asked_to_admit(frame, now)


# The end of an epoch


class AnyEpoch(Participant):
    """M8, §4.2: messages do not say in which epoch they were sent, so a member delivers them in its own."""

    def _note_heard(self, frame: DataFrame | KeepAliveFrame, now: int) -> bool:
        super()._note_heard(frame, now)
        return frame.sender in self._seat.log.streams

    def repair(self, frame: RepairFrame, now: int) -> None:
        self._seat.log.repaired(frame, now)
        self._take(frame.message, now, repair=True)


class SendsMeanwhile(Participant):
    """M19, §5.4: nothing forbids the application to send during a repair."""

    def _conclude_in_state(self, now: int) -> None:
        super()._conclude_in_state(now)
        seat = self._seat
        if seat.state is State.REPAIR and seat.is_member:
            seat.outbox.transmit_waiting(seat.epoch.id, seat.log, now)


class CutAtStamp(Seat):
    """M14, §5.5: the end of an epoch is one message; receivers deliver all that they hold up to its stamp."""

    def _last_messages(self, end: EpochEnd) -> list[tuple[ProcessId, int]]:
        needed = super()._last_messages(end)
        if self.state is not State.RECOVER:
            return needed
        held = [message for message in (self.held(*each) for each in needed) if message is not None]
        cut = max((message.stamp for message in held), default=self.log.gate)
        for sender, last in end.final:
            seq = max(last, self.log.delivered.get(sender, 0)) + 1
            while (message := self.held(sender, seq)) is not None and message.stamp <= cut:
                needed.append((sender, seq))
                seq += 1
        return needed


def longest_prefixes(survivors: Iterable[Survivor]) -> Ends:
    """M15, §5.4.2: of a failed sender, everything counts that some survivor has."""
    return ends(survivors)._replace(last_stamp=NO_END)


class ChangesToTheEnd(Seat):
    """J1, M23: every PAdd and PLeave among the last messages of an epoch changes the view."""

    def _changed_at_end(self, gate: int, message: DataFrame) -> None:  # noqa: ARG002
        super()._changed_at_end(NO_END, message)

    def has_delivered_beyond(self, end: EpochEnd) -> bool:
        return super().has_delivered_beyond(end._replace(gate=NO_END))


class LeaversForgotten(Seat):
    """J2, §5.4.2: nothing is claimed of a sender that left."""

    def claims(self) -> Claims:
        return tuple((process, claim) for process, claim in super().claims() if process not in self.epoch.left)


class LeaverHoldsBack(Stream[Message]):
    """J2: the last message of a sender that leaves is the last that is known of it."""

    __slots__ = ()

    def _end(self) -> None:
        horizon = self.horizon
        super()._end()
        self.horizon = horizon


# Receivers, joiners and leavers


class SilentReset(Seat):
    """M16, §5.5: a receiver that cannot follow begins again, and does not tell its application."""

    def _tell_reset(self, reason: str) -> None: ...


def same_id(start: int, base: ViewId, joiner: ProcessId) -> ViewId:  # noqa: ARG001
    """M27, §5.3.1: a process that joined midway has the view of all others."""
    return base


def later_id(start: int, base: ViewId, joiner: ProcessId) -> ViewId:  # noqa: ARG001
    """J10: only the beginning differs from the id of the others, which is nothing if both begin with the same stamp."""
    return ViewId(f"{start:020d}{base[20:]}")


class OthersUntilDelivered(Buffer):
    """T4, §4.4: a process keeps its own messages until they are stable, those of others until it delivers them."""

    def delivered(self, message: DataFrame) -> None:
        super().delivered(message)
        if message.sender != self._me:
            self._drop(message)

    def _drop(self, message: DataFrame) -> None:
        self._held.pop(Ticket(message.sender, message.seq), None)
        self._named.pop(message.ticket, None)


class NoRepairsOfOthers(OrderedLog):
    """T4: what is delivered cannot be repaired any more."""

    def _deliver(self, message: DataFrame, changed: Changed) -> None:
        super()._deliver(message, changed)
        self._cancel_repair(message)

    def flush(self, messages: Iterable[DataFrame], changed: Changed) -> None:
        last = [*messages]
        super().flush(last, changed)
        for message in last:
            self._cancel_repair(message)

    def _cancel_repair(self, message: DataFrame) -> None:
        if message.sender != self._context.me:
            self._repairs.freed(Ticket(message.sender, message.seq))


class MuteLeaver(Participant):
    """D9, §5.3.3: a leaver stops to send, so nobody notices that its last message is lost."""

    def _conclude_in_state(self, now: int) -> None:
        if self._seat.state is State.TO_RECEIVER:
            self._seat.outbox.rearm(now)
        super()._conclude_in_state(now)


class LeftAtOnce(SenderSide):
    """J3, §5.3.3: a leaver is a receiver when it has delivered its own PLeave."""

    @property
    def has_left(self) -> bool:
        return self._leave_stamp is not None


class LeaversDoNotCount(Stability):
    """J3: a process that left is not waited for."""

    def remove(self, member: ProcessId, upto: int, now: int) -> None:  # noqa: ARG002
        self._members.pop(member, None)


class LeaversUntold(SenderSide):
    """J8, §5.3.1: a joiner is not told which senders left."""

    def _left(self) -> tuple[tuple[ProcessId, int, int], ...]:
        return ()


class WaitsForAll(ReceiverSide):
    """J13, §5.5: a receiver gives up only if it hears no sender at all."""

    def _may_stall(self) -> bool:
        return self.bootstrap.last_heard() <= self._progress.at


class PatientAsker(ReceiverSide):
    """J14, §5.3.1: a receiver that no member adds asks for ever."""

    def is_unsponsored(self, now: int) -> bool:  # noqa: ARG002
        return False


class CountsForEver(Stability):
    """J16, §3.5: a receiver that reports counts, although it receives nothing."""

    @property
    def _stall_ns(self) -> int:
        return _NEVER
