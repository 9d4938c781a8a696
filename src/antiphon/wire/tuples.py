"""The bodies of frames whose speed does not matter: the values of their fields, in order, as one MessagePack array.

A frame class says it all: its fields, their order and their types. msgspec checks the types on the way in; what it lets
pass and no correct peer sends, a number below 0 or too large, is refused here. Newtop's frames, of which millions
travel, have layouts of their own (`codec.py`).

    kind 16-23: data, relay, proposal, commit, inquiry, report, query, answer (classic)
    kind 32-36: message, acknowledgment, vector of acknowledgments, open, close (acks)
"""

from dataclasses import fields, is_dataclass
from typing import Any, Final, get_type_hints

import msgspec

from antiphon.core.acks import frames as acks_frames
from antiphon.core.classic import frames as classic_frames
from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.wire.reader import NUMBER_MAX

_NUMBER_BYTES: Final = 8

_KINDS: Final[dict[int, type[Any]]] = {
    16: classic_frames.DataFrame,
    17: classic_frames.RelayFrame,
    18: classic_frames.ProposalFrame,
    19: classic_frames.CommitFrame,
    20: classic_frames.InquiryFrame,
    21: classic_frames.ReportFrame,
    22: classic_frames.QueryFrame,
    23: classic_frames.AnswerFrame,
    32: acks_frames.MessageFrame,
    33: acks_frames.AckFrame,
    34: acks_frames.VectorAckFrame,
    35: acks_frames.OpenFrame,
    36: acks_frames.CloseFrame,
}
_KIND_OF: Final = {frame: kind for kind, frame in _KINDS.items()}
_FIELDS: Final = {
    frame: tuple(field.name for field in fields(frame)) if is_dataclass(frame) else frame._fields
    for frame in _KINDS.values()
}


def _decoder(frame: type[Any]) -> msgspec.msgpack.Decoder[Any]:
    hints = get_type_hints(frame)
    return msgspec.msgpack.Decoder(tuple[tuple(hints[name] for name in _FIELDS[frame])])  # type: ignore[misc]


_DECODERS: Final = {kind: _decoder(frame) for kind, frame in _KINDS.items()}


def write(frame: Frame) -> tuple[int, bytes]:
    """The kind and the body of a frame."""
    values = [getattr(frame, name) for name in _FIELDS[type(frame)]]
    return _KIND_OF[type(frame)], msgspec.msgpack.encode(values)


def knows(kind: int) -> bool:
    """Whether frames of this kind are written here."""
    return kind in _KINDS


def read(kind: int, body: bytes) -> Frame:
    """The frame in a body; `ProtocolViolation` if a correct peer cannot have sent it."""
    try:
        values = _DECODERS[kind].decode(body)
    except (ValueError, RecursionError) as error:  # DecodeError, and names that are not UTF-8
        raise ProtocolViolation("body", f"a body of kind {kind} cannot be read: {error}") from error
    _require_numbers(values)
    frame: Frame = _KINDS[kind](*values)
    _require_one_message(frame, frame)
    return frame


def _require_one_message(frame: Frame, carrier: Frame) -> None:
    """A classic message travels alone, in frames of its own group, and gets its stamp where it is delivered."""
    for copy in frame.copies:
        _require_one_message(copy, carrier)
    if not isinstance(frame, classic_frames.DataFrame):
        return
    if len(frame.payloads) != 1 or frame.stamp is not None:
        raise ProtocolViolation("body", f"a message with {len(frame.payloads)} payloads or a stamp cannot be")
    if frame.group != carrier.group:
        raise ProtocolViolation("body", f"a frame of group {carrier.group} holds a message of group {frame.group}")


def _require_numbers(value: object) -> None:
    if isinstance(value, tuple):
        for item in value:
            _require_numbers(item)
    elif isinstance(value, int) and not 0 <= value <= NUMBER_MAX:
        raise ProtocolViolation("body", f"{value} stands where a number from 0 to 2**62 is due")


def stamp_bytes(frame: Frame) -> int:
    """What order or stability itself needs of a frame: its numbers at 8 bytes, names left out.

    Of algorithm C it is the context that travels along; of an acknowledgment, the numbers that acknowledge.
    """
    match frame:
        case classic_frames.DataFrame(copies=context):
            return sum(len(write(each)[1]) for each in context)
        case classic_frames.ProposalFrame() | classic_frames.CommitFrame():
            return _NUMBER_BYTES
        case acks_frames.MessageFrame(past=past, alone=alone):
            return _NUMBER_BYTES * (1 + len(past) + len(alone))
        case acks_frames.AckFrame(time=time):
            return _NUMBER_BYTES * (2 if time else 1)
        case acks_frames.VectorAckFrame(entries=entries):
            return _NUMBER_BYTES * len(entries)
    return 0
