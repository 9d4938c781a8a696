"""The bodies of asymmetric groups: what a sequencer has numbered, and what it is asked to number (newtop.md 11.3).

    ordered: flags, block, previous and complete block, place, stable,
             [sequence], [mark], [origin], [notice], [payloads]
    submit:  flags, block, place, stable, [mark], payloads

The flags are those of a numbered frame; an origin takes the place of the stamp, and is left out where it is the sender.
"""

import struct
from typing import Final

from antiphon.core.newtop.frames import BlockFrame, Ordering, SubmitFrame
from antiphon.errors import ProtocolViolation
from antiphon.types import ProcessId
from antiphon.wire.failures import encode_mark, encode_notice, read_mark, read_notice
from antiphon.wire.names import encode_identity, encode_name
from antiphon.wire.payloads import encode_table, read_payloads
from antiphon.wire.reader import NUMBER_MAX, Reader

_PAYLOADS: Final = 1
_SEQUENCE: Final = 4
_ORIGIN: Final = 8
_MORE: Final = 16
_MARK: Final = 32
_NOTICE: Final = 64
_ORDERED_FLAGS: Final = _PAYLOADS | _SEQUENCE | _ORIGIN | _MORE | _MARK | _NOTICE
_SUBMIT_FLAGS: Final = _MORE | _MARK

_ORDERED_NUMBERS: Final = struct.Struct(">Bqqqqq")
_SUBMIT_NUMBERS: Final = struct.Struct(">Bqqq")
_NUMBER: Final = struct.Struct(">q")
_ORDERING_BYTES: Final = 2 * _NUMBER.size


def ordering_bytes(frame: BlockFrame) -> int:
    """How much longer the body is than that of the same frame without an ordering."""
    assert frame.ordering is not None
    origin = frame.ordering.origin
    return _ORDERING_BYTES + (len(encode_name(origin)) if origin != frame.sender else 0)


def encode_ordered(frame: BlockFrame) -> bytes:
    """The body of what a sequencer has numbered."""
    ordering = frame.ordering
    assert ordering is not None
    flags, parts = 0, []
    if frame.sequence:
        flags |= _SEQUENCE
        parts.append(_NUMBER.pack(frame.sequence))
    if frame.excluded:
        flags |= _MARK
        parts.append(encode_mark(frame.excluded))
    if ordering.origin != frame.sender:
        flags |= _ORIGIN
        parts.append(encode_name(ordering.origin))
    if frame.notice is not None:
        flags |= _NOTICE
        parts.append(encode_notice(frame.notice))
    if frame.payloads:
        flags |= _PAYLOADS | (_MORE if frame.more else 0)
        parts += [encode_table(frame.label, frame.payloads), *frame.payloads]
    numbers = _ORDERED_NUMBERS.pack(
        flags, frame.block, frame.previous_block, frame.complete_block, ordering.place, ordering.stable
    )
    return b"".join((encode_identity(frame.group, frame.sender), numbers, *parts))


def read_ordered(reader: Reader) -> BlockFrame:
    """What a sequencer has numbered."""
    group, sender = reader.identity()
    flags, block, previous_block, complete_block, place, stable = reader.unpack(_ORDERED_NUMBERS)
    _require_known(flags, _ORDERED_FLAGS)
    if not 0 <= max(previous_block, complete_block, stable) < block <= NUMBER_MAX:
        raise ProtocolViolation("body", f"nothing of {previous_block}, {complete_block}, {stable} is below {block}")
    if min(previous_block, complete_block, stable) < 0 or not 0 <= place <= NUMBER_MAX:
        raise ProtocolViolation("body", "a number below 0, or a place that cannot be")
    if bool(place) is not bool(flags & _PAYLOADS) or (flags & _ORIGIN and not place):
        raise ProtocolViolation("body", "messages have a place among those of their origin, and nothing else has")
    if flags & _NOTICE and flags & _PAYLOADS:
        raise ProtocolViolation("body", "a notice comes with something for the application")
    sequence = _read_sequence(reader) if flags & _SEQUENCE else 0
    excluded = read_mark(reader, sender) if flags & _MARK else ()
    origin = _read_origin(reader, sender) if flags & _ORIGIN else sender
    notice = read_notice(reader, sender) if flags & _NOTICE else None
    if notice is not None and notice.kind != "view":
        raise ProtocolViolation("body", f"a sequencer sends no {notice.kind}")
    label, payloads = read_payloads(reader) if flags & _PAYLOADS else (0, ())
    more = _read_more(flags, payloads)
    return BlockFrame(
        group,
        sender,
        block,
        previous_block,
        complete_block,
        payloads,
        label,
        more=more,
        sequence=sequence,
        excluded=excluded,
        notice=notice,
        ordering=Ordering(origin, place, stable),
    )


def encode_submission(frame: SubmitFrame) -> bytes:
    """The body of what a sequencer is asked to number."""
    flags = (_MORE if frame.more else 0) | (_MARK if frame.excluded else 0)
    numbers = _SUBMIT_NUMBERS.pack(flags, frame.block, frame.place, frame.stable)
    mark = encode_mark(frame.excluded) if frame.excluded else b""
    table = encode_table(frame.label, frame.payloads)
    return b"".join((encode_identity(frame.group, frame.sender), numbers, mark, table, *frame.payloads))


def read_submission(reader: Reader) -> SubmitFrame:
    """What a sequencer is asked to number."""
    group, sender = reader.identity()
    flags, block, place, stable = reader.unpack(_SUBMIT_NUMBERS)
    _require_known(flags, _SUBMIT_FLAGS)
    if not 0 <= stable <= NUMBER_MAX or not 1 <= block <= NUMBER_MAX or not 1 <= place <= NUMBER_MAX:
        raise ProtocolViolation("body", f"numbers {block}, {place}, {stable} cannot be")
    excluded = read_mark(reader, sender) if flags & _MARK else ()
    label, payloads = read_payloads(reader)
    return SubmitFrame(group, sender, block, place, stable, payloads, label, _read_more(flags, payloads), excluded)


def _read_sequence(reader: Reader) -> int:
    sequence = reader.number()
    if not sequence:
        raise ProtocolViolation("body", "places in a stream count from 1")
    return sequence


def _read_origin(reader: Reader, sender: ProcessId) -> ProcessId:
    origin = reader.process()
    if origin == sender:
        raise ProtocolViolation("body", f"{sender} names itself as somebody else")
    return origin


def _read_more(flags: int, payloads: tuple[bytes, ...]) -> bool:
    more = bool(flags & _MORE)
    if more and len(payloads) != 1:
        raise ProtocolViolation("body", f"a piece of a message comes with {len(payloads)} payloads instead of one")
    return more


def _require_known(flags: int, known: int) -> None:
    if flags & ~known:
        raise ProtocolViolation("body", f"flags {flags:#x} say what this version does not know")
