"""The frames of InterGroup as bytes: kinds 51 to 60."""

from typing import Final

from antiphon.core.effects import Frame
from antiphon.protocols.intergroup.frames import (
    DataFrame,
    GoneFrame,
    JoinInfoFrame,
    JoinRequestFrame,
    KeepAliveFrame,
    RepairFrame,
    ReportFrame,
    RequestFrame,
    SourceAcceptFrame,
    SourceRequestFrame,
)
from antiphon.wire.layout import Wire
from antiphon.wire.tuples import NUMBER_BYTES, tuple_wire


def _stamp_bytes(frame: Frame) -> int:
    """The numbers in a frame of a sender: number on its stream, timestamp, acknowledgment."""
    if isinstance(frame, DataFrame | KeepAliveFrame):
        return 3 * NUMBER_BYTES
    return NUMBER_BYTES if isinstance(frame, ReportFrame) else 0


WIRE: Final[Wire] = tuple_wire(
    {
        51: DataFrame,
        52: KeepAliveFrame,
        53: RequestFrame,
        54: RepairFrame,
        55: GoneFrame,
        56: ReportFrame,
        57: JoinRequestFrame,
        58: JoinInfoFrame,
        59: SourceRequestFrame,
        60: SourceAcceptFrame,
    },
    stamp_bytes=_stamp_bytes,
    message=DataFrame,
)
