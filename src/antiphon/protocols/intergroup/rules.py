"""The classes that implement the rules: the adopted ones, unless `as_printed.py` replaces some by printed ones."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from antiphon.core.clocks import TimestampClock
from antiphon.protocols.intergroup.delivery.stream import Stream
from antiphon.protocols.intergroup.membership.claims import Ends, Survivor, ends
from antiphon.protocols.intergroup.membership.consensus import Consensus
from antiphon.protocols.intergroup.membership.receivers import ReceiverSide
from antiphon.protocols.intergroup.membership.repair import Repair
from antiphon.protocols.intergroup.membership.seat import Seat
from antiphon.protocols.intergroup.membership.senders import SenderSide
from antiphon.protocols.intergroup.membership.view_ids import joined_id
from antiphon.protocols.intergroup.participant import Participant
from antiphon.protocols.intergroup.repair.buffer import Buffer
from antiphon.protocols.intergroup.repair.requests import Requests
from antiphon.protocols.intergroup.stability.log import OrderedLog
from antiphon.protocols.intergroup.stability.stability import Stability
from antiphon.types import ProcessId, ViewId


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a process; the defaults are the adopted ones."""

    clock: type[TimestampClock] = TimestampClock
    requests: type[Requests] = Requests
    stream: type[Stream[Any]] = Stream
    stability: type[Stability] = Stability
    buffer: type[Buffer] = Buffer
    log: type[OrderedLog] = OrderedLog
    relevant: Callable[[list[int]], int] = min
    """Of the horizons of its sources, the stamp that a receiver in source order acknowledges (T3)."""
    participant: type[Participant] = Participant
    seat: type[Seat] = Seat
    senders: type[SenderSide] = SenderSide
    receivers: type[ReceiverSide] = ReceiverSide
    repair: type[Repair] = Repair
    consensus: type[Consensus] = Consensus
    ends: Callable[[Iterable[Survivor]], Ends] = ends
    """Which messages of an old epoch its survivors deliver (M15)."""
    joined_id: Callable[[int, ViewId, ProcessId], ViewId] = joined_id
    """The id that a process shows for a view that it joined (M27, J22)."""


ADOPTED: Final = Rules()
