"""The bodies of frames whose speed does not matter: the values of their fields, in order, as one MessagePack array.

A frame class says it all: its fields, their order and their types. Group and sender are not in the array, for every
body begins with them (`names.py`). msgspec checks the types on the way in; what it lets pass and no correct peer
sends, a number below 0 or too large, a text that names no process, is refused here. Newtop's frames, of which
millions travel, have layouts of their own (`newtop.py`).

    kind 16-23: data, relay, proposal, commit, inquiry, report, query, answer (classic)
    kind 32-36: message, acknowledgment, vector of acknowledgments, open, close (acks)
    kind 51-60: data, keep-alive, request, repair, gone, report, join request and info, source request and accept
                (intergroup)
"""

from dataclasses import fields, is_dataclass
from typing import Any, Final, get_type_hints

import msgspec

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.protocols.acks import frames as acks_frames
from antiphon.protocols.classic import frames as classic_frames
from antiphon.protocols.intergroup import frames as intergroup_frames
from antiphon.types import GroupId
from antiphon.wire.names import encode_identity, require_process
from antiphon.wire.reader import NUMBER_MAX, Reader

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
    51: intergroup_frames.DataFrame,
    52: intergroup_frames.KeepAliveFrame,
    53: intergroup_frames.RequestFrame,
    54: intergroup_frames.RepairFrame,
    55: intergroup_frames.GoneFrame,
    56: intergroup_frames.ReportFrame,
    57: intergroup_frames.JoinRequestFrame,
    58: intergroup_frames.JoinInfoFrame,
    59: intergroup_frames.SourceRequestFrame,
    60: intergroup_frames.SourceAcceptFrame,
}
_MESSAGES: Final = (classic_frames.DataFrame, intergroup_frames.DataFrame)
_KIND_OF: Final = {frame: kind for kind, frame in _KINDS.items()}


def _fields(frame: type[Any]) -> tuple[str, ...]:
    names = tuple(field.name for field in fields(frame)) if is_dataclass(frame) else frame._fields
    assert names[:2] == ("group", "sender")
    return tuple(names[2:])


_FIELDS: Final = {frame: _fields(frame) for frame in _KINDS.values()}


def _decoder(frame: type[Any]) -> msgspec.msgpack.Decoder[Any]:
    hints = get_type_hints(frame)
    return msgspec.msgpack.Decoder(tuple[tuple(hints[name] for name in _FIELDS[frame])])  # type: ignore[misc]


_DECODERS: Final = {kind: _decoder(frame) for kind, frame in _KINDS.items()}


def write(frame: Frame) -> tuple[int, bytes]:
    """The kind and the body of a frame."""
    values = [getattr(frame, name) for name in _FIELDS[type(frame)]]
    return _KIND_OF[type(frame)], encode_identity(frame.group, frame.sender) + msgspec.msgpack.encode(values)


def knows(kind: int) -> bool:
    """Whether frames of this kind are written here."""
    return kind in _KINDS


def read(kind: int, reader: Reader) -> Frame:
    """The frame in a body; `ProtocolViolation` if a correct peer cannot have sent it."""
    group, sender = reader.identity()
    try:
        values = _DECODERS[kind].decode(reader.rest())
    except (ValueError, RecursionError) as error:  # DecodeError, and names that are not UTF-8
        raise ProtocolViolation("body", f"a body of kind {kind} cannot be read: {error}") from error
    frame: Frame = _KINDS[kind](group, sender, *values)
    if isinstance(frame, _MESSAGES):
        _require_message(frame, group)
    for copy in frame.copies:
        _require_message(copy, group)
    _require_values(values)
    return frame


def _require_message(frame: Frame, group: GroupId) -> None:
    """A message travels in frames of its own group; a classic one alone, and gets its stamp where it is delivered."""
    assert isinstance(frame, _MESSAGES)
    given = isinstance(frame, classic_frames.DataFrame) and frame.stamp is not None
    if len(frame.payloads) != 1 or given:
        raise ProtocolViolation("body", f"a message with {len(frame.payloads)} payloads or a stamp cannot be")
    if frame.group != group:
        raise ProtocolViolation("body", f"a frame of group {group} holds a message of group {frame.group}")
    for copy in frame.copies:
        if copy.copies:
            raise ProtocolViolation("body", "a message in the context of another one has a context of its own")
        _require_message(copy, group)


def _require_values(values: tuple[object, ...]) -> None:
    """Numbers that a peer can have, and texts that name processes: besides, there is but the role of a process."""
    for value in values:
        if isinstance(value, int):
            if not 0 <= value <= NUMBER_MAX:
                raise ProtocolViolation("body", f"{value} stands where a number from 0 to 2**62 is due")
        elif isinstance(value, str):
            require_process(value)
        elif isinstance(value, _MESSAGES):
            _require_values(value[1:])  # its group has been compared already
        elif isinstance(value, tuple):
            _require_values(value)


def stamp_bytes(frame: Frame) -> int:
    """What order or stability itself needs of a frame: its numbers at 8 bytes, names left out.

    Of algorithm C it is the context that travels along; of an acknowledgment, the numbers that acknowledge.
    """
    match frame:
        case classic_frames.DataFrame(copies=context):
            return sum(len(msgspec.msgpack.encode(each)) for each in context)
        case acks_frames.MessageFrame(past=past, alone=alone):
            numbers = 1 + len(past) + len(alone)
        case acks_frames.AckFrame(time=time):
            numbers = 2 if time else 1
        case acks_frames.VectorAckFrame(entries=entries):
            numbers = len(entries)
        case classic_frames.ProposalFrame() | classic_frames.CommitFrame() | intergroup_frames.ReportFrame():
            numbers = 1
        case intergroup_frames.DataFrame() | intergroup_frames.KeepAliveFrame():
            numbers = 3  # on the stream, the timestamp, the acknowledgment
        case _:
            numbers = 0
    return _NUMBER_BYTES * numbers
