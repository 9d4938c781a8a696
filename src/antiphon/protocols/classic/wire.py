"""The frames of the classic family as bytes: kinds 16 to 23."""

from typing import Final

import msgspec

from antiphon.core.effects import Frame
from antiphon.protocols.classic.frames import (
    AnswerFrame,
    CommitFrame,
    DataFrame,
    InquiryFrame,
    ProposalFrame,
    QueryFrame,
    RelayFrame,
    ReportFrame,
)
from antiphon.wire.layout import Wire
from antiphon.wire.tuples import NUMBER_BYTES, tuple_wire


def _stamp_bytes(frame: Frame) -> int:
    """The number of a proposal or a commit; the round, the floor or the context of a message."""
    if isinstance(frame, DataFrame):
        number = 0 if frame.stamp is None else NUMBER_BYTES
        return number + sum(len(msgspec.msgpack.encode(each)) for each in frame.copies)
    return NUMBER_BYTES if isinstance(frame, ProposalFrame | CommitFrame) else 0


def _is_complete(frame: DataFrame) -> bool:
    """A stamp that travels is of the sender: its round, or a floor. A final stamp is set at delivery."""
    return frame.stamp is None or frame.stamp.site == frame.sender


WIRE: Final[Wire] = tuple_wire(
    {
        16: DataFrame,
        17: RelayFrame,
        18: ProposalFrame,
        19: CommitFrame,
        20: InquiryFrame,
        21: ReportFrame,
        22: QueryFrame,
        23: AnswerFrame,
    },
    stamp_bytes=_stamp_bytes,
    message=DataFrame,
    is_complete=_is_complete,
)
