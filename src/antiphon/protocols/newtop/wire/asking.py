"""The bodies of requests and answers (docs/spec/newtop.md 16).

    kind 11, asked:    number, asker or nothing, a kind (1 byte: 1, 48 or 49), then a body of that kind without identity
    kind 12, answer:   number, length, the payload
    kind 13, answered: number
    kind 61, query:    number, length, the payload

Messages that are neither requests nor answers keep their own kinds, so they are no longer than without requests.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import AnsweredFrame, AnswerFrame, Ask, BlockFrame, QueryFrame, SubmitFrame
from antiphon.wire.names import encode_identity, encode_name
from antiphon.wire.reader import Reader

ASKED: Final = 11
_ANSWER: Final = 12
_ANSWERED: Final = 13
_QUERY: Final = 61

_NUMBER: Final = struct.Struct(">q")
_HEAD: Final = struct.Struct(">qI")
_KIND_BYTES: Final = 1
Readers = Mapping[int, Callable[[Reader], Any]]


def ask_bytes(ask: Ask) -> int:
    """Additional bytes of a frame with this mark."""
    return len(_mark(ask)) + _KIND_BYTES


def encode_asked(frame: BlockFrame | SubmitFrame, ask: Ask, kind: int, body: bytes) -> bytes:
    """The body of a marked frame; `kind` and `body`: those of the frame without its mark."""
    identity = encode_identity(frame.group, frame.sender)
    return b"".join((identity, _mark(ask), bytes((kind,)), body[len(identity) :]))


def read_asked(reader: Reader, readers: Readers) -> BlockFrame | SubmitFrame:
    """A marked frame; `readers`: by kind, the frames that may have a mark."""
    group, sender = reader.identity()
    number, asker = reader.number(), reader.process_or_none()
    (kind,) = reader.part(_KIND_BYTES)
    if kind not in readers:
        raise ProtocolViolation("body", f"a frame of kind {kind} is marked as a request or an answer")
    inner = Reader(encode_identity(group, sender) + reader.rest())
    frame: BlockFrame | SubmitFrame = readers[kind](inner)
    inner.end()
    return _marked(frame, Ask(number, asker))


def _marked(frame: BlockFrame | SubmitFrame, ask: Ask) -> BlockFrame | SubmitFrame:
    if len(frame.payloads) != 1 or frame.state is not None:
        raise ProtocolViolation("body", "a request or an answer is not a single message")
    return frame._replace(ask=ask)


def _mark(ask: Ask) -> bytes:
    return _NUMBER.pack(ask.number) + encode_name(ask.asker or "")


def _identity(frame: Frame) -> bytes:
    return encode_identity(frame.group, frame.sender)


def _with_payload(frame: QueryFrame | AnswerFrame) -> bytes:
    return b"".join((_identity(frame), _HEAD.pack(frame.request, len(frame.payload)), frame.payload))


def _answered(frame: AnsweredFrame) -> bytes:
    return _identity(frame) + _NUMBER.pack(frame.request)


WRITERS: Final[dict[type[Any], tuple[int, Callable[[Any], bytes]]]] = {
    AnswerFrame: (_ANSWER, _with_payload),
    AnsweredFrame: (_ANSWERED, _answered),
    QueryFrame: (_QUERY, _with_payload),
}
"""By class: the kind of a frame, and the function that writes its body."""

READERS: Final[dict[int, Callable[[Reader], Any]]] = {
    _ANSWER: lambda reader: AnswerFrame(*reader.identity(), reader.number(), reader.piece()),
    _ANSWERED: lambda reader: AnsweredFrame(*reader.identity(), reader.number()),
    _QUERY: lambda reader: QueryFrame(*reader.identity(), reader.number(), reader.piece()),
}
"""By kind: the function that reads a body, except for the check of its end."""
