"""The frames of the acks family as bytes: kinds 32 to 36."""

from typing import Final

from antiphon.core.effects import Frame
from antiphon.protocols.acks.frames import AckFrame, CloseFrame, MessageFrame, OpenFrame, VectorAckFrame
from antiphon.wire.layout import Wire
from antiphon.wire.tuples import NUMBER_BYTES, tuple_wire


def _stamp_bytes(frame: Frame) -> int:
    """The numbers that stamp or acknowledge messages, without names."""
    match frame:
        case MessageFrame(past=past, alone=alone):
            numbers = 1 + len(past) + len(alone)
        case AckFrame(time=time):
            numbers = 2 if time else 1
        case VectorAckFrame(entries=entries):
            numbers = len(entries)
        case _:
            numbers = 0
    return NUMBER_BYTES * numbers


WIRE: Final[Wire] = tuple_wire(
    {32: MessageFrame, 33: AckFrame, 34: VectorAckFrame, 35: OpenFrame, 36: CloseFrame}, stamp_bytes=_stamp_bytes
)
