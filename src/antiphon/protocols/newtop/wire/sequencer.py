"""The bodies of asymmetric groups: frames that a sequencer has numbered, and submissions (newtop.md 11.3).

    ordered: flags, block, previous and complete block, place, stable,
             [sequence], [class], [mark], [origin], [notice], [payloads]
    submit:  flags, block, place, stable, [class], [mark], payloads

The flags are those of a numbered frame; an origin replaces the stamp, and is left out if it is the sender.
"""

import struct
from typing import Final

from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import BlockFrame, Ordering, SubmitFrame
from antiphon.protocols.newtop.wire.failures import encode_mark, encode_notice, read_mark, read_notice
from antiphon.protocols.newtop.wire.payloads import encode_class, encode_table, read_class, read_payloads, require_one
from antiphon.types import ProcessId
from antiphon.wire.names import encode_identity, encode_name
from antiphon.wire.reader import NUMBER_MAX, Reader

_PAYLOADS: Final = 1
_SEQUENCE: Final = 4
_ORIGIN: Final = 8
_MORE: Final = 16
_MARK: Final = 32
_NOTICE: Final = 64
_STATE: Final = 128
_ORDERED_FLAGS: Final = _PAYLOADS | _SEQUENCE | _ORIGIN | _MORE | _MARK | _NOTICE | _STATE
_SUBMIT_FLAGS: Final = _MORE | _MARK | _STATE

_ORDERED_NUMBERS: Final = struct.Struct(">Bqqqqq")
_SUBMIT_NUMBERS: Final = struct.Struct(">Bqqq")
_NUMBER: Final = struct.Struct(">q")
_ORDERING_BYTES: Final = 2 * _NUMBER.size


def ordering_bytes(frame: BlockFrame) -> int:
    """Additional bytes of the body, compared with the same frame without an ordering."""
    assert frame.ordering is not None
    origin = frame.ordering.origin
    return _ORDERING_BYTES + (len(encode_name(origin)) if origin != frame.sender else 0)


def encode_ordered(frame: BlockFrame) -> bytes:
    """The body of a frame that a sequencer has numbered."""
    ordering = frame.ordering
    assert ordering is not None
    flags, parts = 0, []
    if frame.sequence:
        flags |= _SEQUENCE
        parts.append(_NUMBER.pack(frame.sequence))
    if frame.state is not None:
        flags |= _STATE
        parts.append(encode_class(frame.state))
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


def _require_numbers(block: int, previous_block: int, complete_block: int, stable: int, place: int) -> None:
    if not 0 <= max(previous_block, complete_block, stable) < block <= NUMBER_MAX:
        raise ProtocolViolation("body", f"block {block} must be above {previous_block}, {complete_block} and {stable}")
    if min(previous_block, complete_block, stable) < 0 or not 0 <= place <= NUMBER_MAX:
        raise ProtocolViolation("body", "a negative number or an invalid position")


def _require_place(flags: int, place: int) -> None:
    if bool(place) is not bool(flags & _PAYLOADS) or (flags & _ORIGIN and not place):
        raise ProtocolViolation("body", "a frame has messages without a position, or a position without messages")
    if flags & _NOTICE and flags & _PAYLOADS:
        raise ProtocolViolation("body", "a notice also carries payloads")


def read_ordered(reader: Reader) -> BlockFrame:
    """A frame that a sequencer has numbered."""
    group, sender = reader.identity()
    flags, block, previous_block, complete_block, place, stable = reader.unpack(_ORDERED_NUMBERS)
    _require_known(flags, _ORDERED_FLAGS)
    _require_numbers(block, previous_block, complete_block, stable, place)
    _require_place(flags, place)
    sequence = _read_sequence(reader) if flags & _SEQUENCE else 0
    state = read_class(reader) if flags & _STATE else None
    excluded = read_mark(reader, sender) if flags & _MARK else ()
    origin = _read_origin(reader, sender) if flags & _ORIGIN else sender
    notice = read_notice(reader, sender) if flags & _NOTICE else None
    if notice is not None and notice.kind != "view":
        raise ProtocolViolation("body", f"a sequencer sends no {notice.kind}")
    label, payloads = read_payloads(reader) if flags & _PAYLOADS else (0, ())
    require_one(payloads, more=bool(flags & _MORE), state=state)
    return BlockFrame(
        group,
        sender,
        block,
        previous_block,
        complete_block,
        payloads,
        label,
        more=bool(flags & _MORE),
        sequence=sequence,
        excluded=excluded,
        notice=notice,
        state=state,
        ordering=Ordering(origin, place, stable),
    )


def encode_submission(frame: SubmitFrame) -> bytes:
    """The body of a submission."""
    flags = (_MORE if frame.more else 0) | (_MARK if frame.excluded else 0)
    flags |= 0 if frame.state is None else _STATE
    numbers = _SUBMIT_NUMBERS.pack(flags, frame.block, frame.place, frame.stable)
    state = b"" if frame.state is None else encode_class(frame.state)
    mark = encode_mark(frame.excluded) if frame.excluded else b""
    table = encode_table(frame.label, frame.payloads)
    return b"".join((encode_identity(frame.group, frame.sender), numbers, state, mark, table, *frame.payloads))


def read_submission(reader: Reader) -> SubmitFrame:
    """A submission."""
    group, sender = reader.identity()
    flags, block, place, stable = reader.unpack(_SUBMIT_NUMBERS)
    _require_known(flags, _SUBMIT_FLAGS)
    if not 0 <= stable <= NUMBER_MAX or not 1 <= block <= NUMBER_MAX or not 1 <= place <= NUMBER_MAX:
        raise ProtocolViolation("body", f"numbers {block}, {place}, {stable} are invalid")
    state = read_class(reader) if flags & _STATE else None
    excluded = read_mark(reader, sender) if flags & _MARK else ()
    label, payloads = read_payloads(reader)
    more = bool(flags & _MORE)
    require_one(payloads, more=more, state=state)
    return SubmitFrame(group, sender, block, place, stable, payloads, label, more, excluded, state)


def _read_sequence(reader: Reader) -> int:
    sequence = reader.number()
    if not sequence:
        raise ProtocolViolation("body", "positions in a stream count from 1")
    return sequence


def _read_origin(reader: Reader, sender: ProcessId) -> ProcessId:
    origin = reader.process()
    if origin == sender:
        raise ProtocolViolation("body", f"{sender} names itself as another origin")
    return origin


def _require_known(flags: int, known: int) -> None:
    if flags & ~known:
        raise ProtocolViolation("body", f"flags {flags:#x} contain bits that this version does not know")
