"""The two frames of the protocol, and how they travel."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from antiphon.core.effects import Frame
from antiphon.core.frames import FrameDefaults
from antiphon.types import GroupId, ProcessId
from antiphon.wire.tuples import NUMBER_BYTES, tuple_wire


class _DataFields(NamedTuple):
    group: GroupId
    sender: ProcessId
    payloads: tuple[bytes, ...]
    label: int = 0
    """Opaque: which message it is, for the trace."""
    number: int = 0
    """Its place in the order, known at delivery; 0 while the frame travels."""


class DataFrame(_DataFields, FrameDefaults):
    """A message of the application, from its sender to all."""

    __slots__ = ()

    @property
    def clock(self) -> int:
        return self.number


@dataclass(frozen=True, slots=True)
class OrderFrame(FrameDefaults):
    """The sequencer gives a number to the next message of `origin`."""

    group: GroupId
    sender: ProcessId
    origin: ProcessId
    number: int


def _stamp_bytes(frame: Frame) -> int:
    return NUMBER_BYTES if isinstance(frame, OrderFrame) else 0


WIRE: Final = tuple_wire(
    {128: DataFrame, 129: OrderFrame},
    stamp_bytes=_stamp_bytes,
    message=DataFrame,
    is_complete=lambda frame: frame.number == 0,
)
