"""The bodies of Newtop's frequent frames: their own layouts, small, fast and simple.

    kind 1, numbered:  flags, block, previous and complete block,
                       [further], [sequence], [flow], [mark], [notice], [stamp], [payloads]
    kind 2, alive:     flags, block, complete block, [sequence], [flow]
    kind 3, status:    last and settled sequence number
    kind 4, ack:       a sequence number
    kind 5, request:   origin, count, sequence numbers
    kind 6, repair:    count, each with a kind byte and a length: bodies of kinds 1, 2, 7, 8, 9, 11, 14, 15 and 48
    kind 7, suspect:   block, last block of the suspect, sequence, suspect
    kind 8, refute:    as kind 7, then, as in a repair, bodies of kinds 1, 11, 48
    kind 9, confirmed: block, sequence, suspicions
    kinds 11, 12, 13, 61: requests and answers, see `asking.py`
    kind 14, leaving:  block, sequence, [passes its vote on]
    kind 15, want:     block, number wanted, sequence
    kinds 24 to 31:    formation of groups, see `formation.py`
    kind 48, ordered:  numbered by a sequencer; kind 49, submit: a message for it to number (`sequencer.py`)
    kind 50, need:     a number

Every body begins with the identity of its frame (`names.py`); flags tell which of the parts in brackets are present.
"""

import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final, TypeVar

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import (
    AliveFrame,
    BlockFrame,
    ConfirmedFrame,
    Flow,
    RefuteFrame,
    RepairFrame,
    SequencedFrame,
    SubmitFrame,
    SuspectFrame,
)
from antiphon.protocols.newtop.wire import asking, control, formation
from antiphon.protocols.newtop.wire.failures import (
    encode_mark,
    encode_notice,
    encode_suspicions,
    read_mark,
    read_notice,
    read_suspicions,
)
from antiphon.protocols.newtop.wire.payloads import (
    CLASS_BYTES,
    encode_class,
    encode_table,
    read_class,
    read_only_payload,
    read_payloads,
    require_one,
    table_bytes,
)
from antiphon.protocols.newtop.wire.sequencer import (
    encode_ordered,
    encode_submission,
    ordering_bytes,
    read_ordered,
    read_submission,
)
from antiphon.protocols.newtop.wire.stamps import encode_stamp, read_stamp
from antiphon.types import GroupId
from antiphon.wire.frame import Sealed
from antiphon.wire.names import IDENTITY_BYTES, decode_identity, encode_identity, encode_name
from antiphon.wire.reader import NUMBER_MAX, Reader

NUMBERED: Final = 1
_ALIVE: Final = 2
_REPAIR: Final = 6
_SUSPECT: Final = 7
_REFUTE: Final = 8
_CONFIRMED: Final = 9
_ORDERED: Final = 48
_SUBMIT: Final = 49

_PAYLOADS: Final = 1
_FLOW: Final = 2
_SEQUENCE: Final = 4
_STAMP: Final = 8
_MORE: Final = 16
_MARK: Final = 32
_NOTICE: Final = 64
_STATE: Final = 128
_STALLED: Final = 1  # of an alive, which has no payloads
_BLOCKED: Final = 8  # of an alive, which has no stamp
_NUMBERED_FLAGS: Final = _PAYLOADS | _FLOW | _SEQUENCE | _STAMP | _MORE | _MARK | _NOTICE | _STATE
_RESTRICTED: Final = _NOTICE | (255 & ~_NUMBERED_FLAGS)
"""A frame without any of these flags may have all others together; most frames have none of these."""
_ALIVE_FLAGS: Final = _STALLED | _FLOW | _SEQUENCE | _BLOCKED

_NUMBERS: Final = struct.Struct(">Bqqq")
_ALIVE_NUMBERS: Final = struct.Struct(">Bqq")
_NUMBER: Final = struct.Struct(">q")
_TWO_NUMBERS: Final = struct.Struct(">qq")
_THREE_NUMBERS: Final = struct.Struct(">qqq")
_FLOW_NUMBERS: Final = struct.Struct(">qqqq")
_FREQUENT: Final = struct.Struct(">Bqqqqqqq")  # flags, numbers and flow at once
_WITH_PAYLOADS: Final = _FLOW | _PAYLOADS
_COUNT: Final = struct.Struct(">I")
_COPY: Final = struct.Struct(">BI")
_NOTHING: Final[tuple[bytes, ...]] = ()
_Copy = TypeVar("_Copy", bound=SequencedFrame)
_new: Final = tuple.__new__


def write(frame: Frame) -> tuple[int, bytes]:
    """The kind and the body of a frame."""
    kind, body = WRITERS[type(frame)]
    if kind == NUMBERED and isinstance(frame, BlockFrame):
        if frame.ask is not None:
            return asking.ASKED, asking.encode_asked(frame, frame.ask, *write(frame._replace(ask=None)))
        if frame.ordering is not None:
            return _ORDERED, encode_ordered(frame)
    elif kind == _SUBMIT and isinstance(frame, SubmitFrame) and frame.ask is not None:
        return asking.ASKED, asking.encode_asked(frame, frame.ask, *write(frame._replace(ask=None)))
    return kind, body(frame)


def numbered_bytes(frame: BlockFrame) -> int:
    """The length of the body of a numbered frame without the payload bytes."""
    size = len(_identity(frame)) + _NUMBERS.size
    if frame.ordering is not None:
        size += ordering_bytes(frame)
    if frame.payloads:
        size += table_bytes(frame.payloads)
    if frame.flow is not None:
        size += _FLOW_NUMBERS.size
    if frame.sequence:
        size += _NUMBER.size
    if frame.excluded:
        size += len(encode_mark(frame.excluded))
    if frame.notice is not None:
        size += len(encode_notice(frame.notice))
    if frame.state is not None:
        size += CLASS_BYTES
    if frame.ask is not None:
        size += asking.ask_bytes(frame.ask)
    return size if frame.stamp is None else size + len(encode_stamp(frame.stamp))


def stamp_bytes(frame: BlockFrame) -> int:
    """The bytes of a frame that the order of delivery needs: its block number, and a causal stamp."""
    return _NUMBER.size + (len(encode_stamp(frame.stamp)) if frame.stamp is not None else 0)


def _identity(frame: Frame) -> bytes:
    return encode_identity(frame.group, frame.sender)


# Frames that a member multicasts


def _numbered(frame: BlockFrame) -> bytes:
    # Fast path: nearly every frame has flow control, perhaps payloads, and nothing else. It takes few steps, because
    # each step is expensive in a process that has just woken up.
    group, sender, block, previous, complete, payloads, label, flow, stamp, more, sequence, excluded, notice, state = (
        frame[:14]
    )
    if flow is None or sequence or stamp is not None or notice is not None or state is not None or more or excluded:
        return _numbered_with(frame)
    identity = encode_identity(group, sender)
    if not payloads:
        return identity + _FREQUENT.pack(_FLOW, block, previous, complete, *flow)
    numbers = _FREQUENT.pack(_WITH_PAYLOADS, block, previous, complete, *flow)
    return b"".join((identity, numbers, encode_table(label, payloads), *payloads))


def _numbered_with(frame: BlockFrame) -> bytes:
    """The general form, with all parts."""
    flags, parts = _place_and_flow(frame)
    if frame.state is not None:
        flags |= _STATE
        parts.insert(0, encode_class(frame.state))
    if frame.excluded:
        flags |= _MARK
        parts.append(encode_mark(frame.excluded))
    if frame.notice is not None:
        flags |= _NOTICE
        parts.append(encode_notice(frame.notice))
    if frame.stamp is not None:
        flags |= _STAMP
        parts.append(encode_stamp(frame.stamp))
    if frame.payloads:
        flags |= _PAYLOADS | (_MORE if frame.more else 0)
        parts.append(encode_table(frame.label, frame.payloads))
        parts += frame.payloads
    numbers = _NUMBERS.pack(flags, frame.block, frame.previous_block, frame.complete_block)
    return b"".join((_identity(frame), numbers, *parts))


def read_frequent(sealed: Sealed, at: int) -> BlockFrame | None:
    """A numbered frame with flow control, perhaps payloads, and nothing else.

    None for others. For invalid ones None or `ProtocolViolation`: the general reader then reports the error.
    """
    names = at + IDENTITY_BYTES
    size = len(sealed)
    numbers = names + sealed[names - 2] + sealed[names - 1] if size >= names else size
    end = numbers + _FREQUENT.size
    if end > size:
        return None
    flags, block, previous, complete, number, taken, stable, super_stable = _FREQUENT.unpack_from(sealed, numbers)
    if not (0 <= complete <= previous <= block <= NUMBER_MAX and 0 <= taken <= number <= NUMBER_MAX):
        return None
    if not 0 <= super_stable <= stable <= NUMBER_MAX:
        return None
    if flags == _FLOW and end == size:
        label, payloads = 0, _NOTHING
    elif flags == _WITH_PAYLOADS:
        label, payloads = read_only_payload(sealed, end) or read_payloads(Reader(sealed, end))
    else:
        return None
    group, sender = decode_identity(bytes(sealed[at:numbers]))
    flow = _new(Flow, (number, taken, stable, super_stable))
    return _new(
        BlockFrame,
        (group, sender, block, previous, complete, payloads, label, flow, None, False, 0, (), None, None, None, None),
    )


def _require_permitted(flags: int) -> None:
    """Refuse flags that a numbered frame cannot have, or cannot have together."""
    if flags & ~_NUMBERED_FLAGS:
        raise _unknown_flags(flags)
    if flags & _NOTICE and flags & (_PAYLOADS | _MORE | _STAMP):
        raise ProtocolViolation("body", "a notice also carries payloads, a state or a stamp")


def _read_numbered(reader: Reader) -> BlockFrame:
    group, sender = reader.identity()
    flags, block, previous_block, complete_block = reader.unpack(_NUMBERS)
    if (
        not 0 <= complete_block <= previous_block <= block <= NUMBER_MAX
    ):  # a block is complete only after its sender sent into it
        raise ProtocolViolation("body", f"block numbers {block}, {previous_block}, {complete_block} are invalid")
    if flags & _RESTRICTED:
        _require_permitted(flags)
    state = read_class(reader) if flags & _STATE else None
    sequence = _read_place(reader) if flags & _SEQUENCE else 0
    flow = _read_flow(reader) if flags & _FLOW else None
    excluded = read_mark(reader, sender) if flags & _MARK else ()
    notice = read_notice(reader, sender) if flags & _NOTICE else None
    if notice is not None and notice.kind == "view":
        raise ProtocolViolation("body", "a mark of a view change, which only a sequencer may send")
    stamp = read_stamp(reader) if flags & _STAMP else None
    label, payloads = read_payloads(reader) if flags & _PAYLOADS else (0, ())
    more = bool(flags & _MORE)
    require_one(payloads, more=more, state=state)
    return BlockFrame(
        group, sender, block, previous_block, complete_block, payloads, label,
        flow, stamp, more, sequence, excluded, notice, state,
    )  # fmt: skip


def _alive(frame: AliveFrame) -> bytes:
    flags, parts = _place_and_flow(frame)
    flags |= (_STALLED if frame.stalled else 0) | (_BLOCKED if frame.blocked else 0)
    return b"".join((_identity(frame), _ALIVE_NUMBERS.pack(flags, frame.block, frame.complete_block), *parts))


def _read_alive(reader: Reader) -> AliveFrame:
    group, sender = reader.identity()
    flags, block, complete_block = reader.unpack(_ALIVE_NUMBERS)
    if not 0 <= complete_block <= block <= NUMBER_MAX:
        raise ProtocolViolation("body", f"block numbers {block}, {complete_block} are invalid")
    if flags & ~_ALIVE_FLAGS:
        raise _unknown_flags(flags)
    sequence = _read_place(reader) if flags & _SEQUENCE else 0
    flow = _read_flow(reader) if flags & _FLOW else None
    stalled, blocked = bool(flags & _STALLED), bool(flags & _BLOCKED)
    return AliveFrame(group, sender, block, complete_block, flow, stalled, blocked, sequence=sequence)


def _place_and_flow(frame: BlockFrame | AliveFrame) -> tuple[int, list[bytes]]:
    """The parts of both frequent frames after their numbers: place in the stream, flow-control header."""
    flags = 0
    parts: list[bytes] = []
    if frame.sequence:
        flags |= _SEQUENCE
        parts.append(_NUMBER.pack(frame.sequence))
    if frame.flow is not None:
        flags |= _FLOW
        parts.append(_FLOW_NUMBERS.pack(*frame.flow))
    return flags, parts


def _read_place(reader: Reader) -> int:
    sequence = reader.number()
    if not sequence:
        raise ProtocolViolation("body", "positions in a stream count from 1")
    return sequence


def _read_flow(reader: Reader) -> Flow:
    flow = Flow(*reader.unpack(_FLOW_NUMBERS))
    # A correct peer also has stable <= complete; but one that follows E-18 as printed is to be seen breaking S1.
    if not 0 <= flow.super_stable <= flow.stable <= NUMBER_MAX or not 0 <= flow.complete <= flow.number <= NUMBER_MAX:
        raise ProtocolViolation("body", f"flow-control numbers {', '.join(map(str, flow))} are invalid")
    return flow


def _unknown_flags(flags: int) -> ProtocolViolation:
    return ProtocolViolation("body", f"flags {flags:#x} contain bits that this version does not know")


# Agreement on failures


def _suspect(frame: SuspectFrame | RefuteFrame) -> bytes:
    numbers = _THREE_NUMBERS.pack(frame.block, frame.last_block, frame.sequence)
    return b"".join((_identity(frame), numbers, encode_name(frame.suspect)))


def _read_suspect(reader: Reader) -> SuspectFrame:
    group, sender = reader.identity()
    block, last_block, sequence = reader.numbers(3)
    suspect = reader.process()
    if suspect == sender:
        raise ProtocolViolation("body", f"{sender} suspects itself, or refutes that it has failed")
    return SuspectFrame(group, sender, block, suspect, last_block, sequence=sequence)


def _refute(frame: RefuteFrame) -> bytes:
    return _suspect(frame) + _copies(frame.messages)


def _read_refute(reader: Reader) -> RefuteFrame:
    refuted = _read_suspect(reader)
    messages = tuple(_read_numbered_copies(reader, refuted.group))
    if messages and messages[0].block <= refuted.last_block:  # none: all members have them, and a vote is withdrawn
        raise ProtocolViolation("body", f"a refutation contains no message after number {refuted.last_block}")
    if any(message.sender != refuted.suspect for message in messages):
        raise ProtocolViolation("body", f"a refutation about {refuted.suspect} contains a message of another sender")
    if any(
        later.previous_block != message.block or later.block <= message.block for message, later in pairwise(messages)
    ):
        raise ProtocolViolation("body", f"the messages of {refuted.suspect} in a refutation have gaps")
    group, sender, suspect = refuted.group, refuted.sender, refuted.suspect
    return RefuteFrame(group, sender, refuted.block, suspect, refuted.last_block, messages, sequence=refuted.sequence)


def _confirmed(frame: ConfirmedFrame) -> bytes:
    numbers = _TWO_NUMBERS.pack(frame.block, frame.sequence)
    return b"".join((_identity(frame), numbers, encode_suspicions(frame.failed)))


def _read_confirmed(reader: Reader) -> ConfirmedFrame:
    group, sender = reader.identity()
    block, sequence = reader.numbers(2)
    return ConfirmedFrame(group, sender, block, read_suspicions(reader, sender), sequence=sequence)


# Repair of a lossy transport


def _repair(frame: RepairFrame) -> bytes:
    return _identity(frame) + _copies(frame.repaired)


def _read_repair(reader: Reader) -> RepairFrame:
    group, sender = reader.identity()
    copies: list[SequencedFrame] = []
    for kind, inner in _copied(reader):
        if kind not in _MULTICAST:
            raise ProtocolViolation("body", f"a repair contains a copy of kind {kind}")
        copies.append(_read_copy(_read_asked_copy if kind == asking.ASKED else READERS[kind], inner, group))
    return RepairFrame(group, sender, tuple(copies))


def _read_numbered_copies(reader: Reader, group: GroupId) -> Iterator[BlockFrame]:
    for kind, inner in _copied(reader):
        if kind not in (NUMBERED, _ORDERED, asking.ASKED):
            raise ProtocolViolation("body", f"a refutation contains a copy of kind {kind}")
        yield _read_copy(_read_asked_copy if kind == asking.ASKED else READERS[kind], inner, group)


def _read_asked(reader: Reader) -> BlockFrame | SubmitFrame:
    return asking.read_asked(reader, _ASKABLE)


def _read_asked_copy(reader: Reader) -> BlockFrame:
    """A marked frame of a stream; submissions are in no stream."""
    frame = _read_asked(reader)
    if not isinstance(frame, BlockFrame):
        raise ProtocolViolation("body", "a copy is a submission")
    return frame


def _copies(frames: tuple[SequencedFrame, ...]) -> bytes:
    copies = [write(frame) for frame in frames]
    parts = [part for kind, body in copies for part in (_COPY.pack(kind, len(body)), body)]
    return b"".join((_COUNT.pack(len(copies)), *parts))


def _copied(reader: Reader) -> Iterator[tuple[int, Reader]]:
    """The kind and the body of each frame that travels inside another one."""
    for _ in range(reader.count()):
        kind, length = reader.unpack(_COPY)
        yield kind, Reader(reader.part(length))


def _read_copy(read: Callable[[Reader], _Copy], inner: Reader, group: GroupId) -> _Copy:
    copy = read(inner)
    inner.end()
    if copy.group != group:
        raise ProtocolViolation("body", f"a frame of group {group} contains a frame of group {copy.group}")
    return copy


WRITERS: Final[dict[type[Any], tuple[int, Callable[[Any], bytes]]]] = {
    BlockFrame: (NUMBERED, _numbered),
    AliveFrame: (_ALIVE, _alive),
    **control.WRITERS,
    **asking.WRITERS,
    RepairFrame: (_REPAIR, _repair),
    SuspectFrame: (_SUSPECT, _suspect),
    RefuteFrame: (_REFUTE, _refute),
    ConfirmedFrame: (_CONFIRMED, _confirmed),
    **formation.WRITERS,
    SubmitFrame: (_SUBMIT, encode_submission),
}
"""By class: the kind of a frame, and the function that writes its body."""

READERS: Final[dict[int, Callable[[Reader], Any]]] = {
    NUMBERED: _read_numbered,
    _ALIVE: _read_alive,
    **control.READERS,
    asking.ASKED: _read_asked,
    **asking.READERS,
    _REPAIR: _read_repair,
    _SUSPECT: _read_suspect,
    _REFUTE: _read_refute,
    _CONFIRMED: _read_confirmed,
    _ORDERED: read_ordered,
    _SUBMIT: read_submission,
    **formation.READERS,
}
"""By kind: the function that reads a body, except for the check of its end."""

_ASKABLE: Final = {kind: READERS[kind] for kind in (NUMBERED, _ORDERED, _SUBMIT)}
"""Frames that may bring a request or an answer."""

_MULTICAST: Final = frozenset(
    (NUMBERED, _ORDERED, asking.ASKED, _ALIVE, _SUSPECT, _REFUTE, _CONFIRMED, control.LEAVING, control.WANT)
)
"""Frames with a place in a stream, which can be requested again."""
