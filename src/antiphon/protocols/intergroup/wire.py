"""The frames of InterGroup as bytes: kinds 39 to 47, 51 to 60, and those of the control hierarchy, 62 to 71."""

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
from antiphon.protocols.intergroup.hierarchy.frames import (
    AckReportFrame,
    CoordinatorFrame,
    CoordinatorLeaveFrame,
    DistanceAnswerFrame,
    DistanceQueryFrame,
    GlobalFrame,
    LocalFrame,
    RingQueryFrame,
    SearchResponseFrame,
    SystemFrame,
)
from antiphon.protocols.intergroup.membership.frames import (
    ChangeFrame,
    ChangeRequestFrame,
    CutFrame,
    ProbeAnswerFrame,
    ProbeFrame,
    ProposalFrame,
    ReadyFrame,
    RecoveryInfoFrame,
    SponsorRequestFrame,
)
from antiphon.wire.layout import Wire
from antiphon.wire.tuples import NUMBER_BYTES, tuple_wire


def _stamp_bytes(frame: Frame) -> int:
    """The numbers in a frame of a sender: number on its stream, timestamp, acknowledgment.

    What the control hierarchy sends counts as control, not as order or stability of a message.
    """
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
        39: ProposalFrame,
        40: RecoveryInfoFrame,
        41: ReadyFrame,
        42: ChangeFrame,
        43: ChangeRequestFrame,
        44: CutFrame,
        45: ProbeFrame,
        46: ProbeAnswerFrame,
        47: SponsorRequestFrame,
        62: LocalFrame,
        63: CoordinatorFrame,
        64: GlobalFrame,
        65: RingQueryFrame,
        66: SearchResponseFrame,
        67: CoordinatorLeaveFrame,
        68: AckReportFrame,
        69: SystemFrame,
        70: DistanceQueryFrame,
        71: DistanceAnswerFrame,
    },
    stamp_bytes=_stamp_bytes,
    message=DataFrame,
    payloads=lambda frame: 1 if frame.change is None else 0,
)
