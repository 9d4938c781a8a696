"""The codec: decoding gives back every encoded frame, and all other bytes are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import (
    AliveFrame,
    BlockFrame,
    LeavingFrame,
    MapStamp,
    RefuteFrame,
    RepairFrame,
    Stamp,
)
from antiphon.protocols.newtop.wire.numbered import READERS, read_frequent
from antiphon.protocols.newtop.wire.stamps import encode_stamp, read_stamp
from antiphon.types import GroupId, ProcessId
from antiphon.wire.codec import decode, encode, header_bytes, payload_bytes, stamp_bytes
from antiphon.wire.frame import BODY_BYTES_MAX, ENVELOPE_BYTES, VERSION, open_envelope, seal
from antiphon.wire.reader import Reader
from tests.support.wire_bodies import (
    ACK,
    ALIVE,
    FLOW,
    MAP,
    MORE,
    NAMES,
    NUMBERED,
    PAYLOADS,
    RELATIVE,
    REPAIR,
    REQUEST,
    SEQUENCE,
    STAMP,
    STATUS,
    alive,
    copy,
    count,
    identity,
    numbered,
    numbers,
)
from tests.support.wire_frames import KINDS, block_frames, frames, stamps

each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
@given(data=st.data())
def test_decoding_gives_back_what_was_encoded(kind: str, data: st.DataObject) -> None:
    frame = data.draw(KINDS[kind])
    decoded = decode(encode(frame))
    assert decoded == frame
    assert type(decoded) is type(frame)


@given(frames)
def test_sizes_are_known_without_encoding(frame: Frame) -> None:
    assert header_bytes(frame) + payload_bytes(frame) == len(encode(frame))
    if isinstance(frame, RepairFrame | RefuteFrame):  # the payloads in the copies are the application's all the same
        assert payload_bytes(frame) == sum(map(payload_bytes, frame.copies))


@given(block_frames())
def test_the_cost_of_the_order_is_its_number_and_its_stamp(frame: BlockFrame) -> None:
    bare = frame._replace(stamp=None)
    assert stamp_bytes(bare) == 8
    assert stamp_bytes(frame) - 8 == len(encode(frame)) - len(encode(bare))


def test_control_frames_cost_the_order_nothing() -> None:
    assert stamp_bytes(AliveFrame(GroupId("g"), ProcessId("p"), 3, 1)) == 0


@given(stamps)
def test_a_stamp_comes_out_as_it_went_in(stamp: Stamp) -> None:
    reader = Reader(encode_stamp(stamp))
    assert read_stamp(reader) == stamp
    reader.end()


def test_a_map_names_each_group_once() -> None:
    one, two = GroupId("orders"), GroupId("stock")
    entries = [(group, ProcessId(f"p{number}"), 7) for group in (one, two) for number in range(5)]
    encoded = encode_stamp(MapStamp(tuple(entries)))
    assert (encoded.count(b"orders"), encoded.count(b"stock"), encoded.count(b"p0")) == (1, 1, 2)


@given(frames, st.data())
def test_any_flipped_bit_is_noticed(frame: Frame, data: st.DataObject) -> None:
    sealed = bytearray(encode(frame))
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ProtocolViolation):
        decode(bytes(sealed))


@given(frames, st.data())
def test_any_other_length_is_noticed(frame: Frame, data: st.DataObject) -> None:
    sealed = encode(frame)
    cut = data.draw(st.integers(0, len(sealed) - 1))
    with pytest.raises(ProtocolViolation):
        decode(sealed[:cut])
    with pytest.raises(ProtocolViolation, match="the envelope states a body of"):
        decode(sealed + b"\0")


@given(frames, st.data())
def test_a_body_cut_or_lengthened_under_a_good_checksum_is_noticed(frame: Frame, data: st.DataObject) -> None:
    kind, body = open_envelope(encode(frame))
    has_flags = isinstance(frame, LeavingFrame) and (
        frame.passes_vote or frame.stalled
    )  # in a last byte, if any is set
    cut = data.draw(st.integers(0, len(body) - 2 if has_flags else len(body) - 1))
    for wrong in (body[:cut], body + b"\0"):
        with pytest.raises(ProtocolViolation) as caught:
            decode(seal(kind, wrong))
        assert caught.value.code == "body"


@given(st.integers(0, 255), st.binary(max_size=120))
def test_a_hostile_body_with_a_good_checksum_never_gets_further_than_the_codec(kind: int, body: bytes) -> None:
    try:
        frame = decode(seal(kind, body))
    except ProtocolViolation:
        return
    assert decode(encode(frame)) == frame


@given(frames, st.data())
def test_a_good_body_with_some_bytes_changed_never_gets_further_either(frame: Frame, data: st.DataObject) -> None:
    kind, body = open_envelope(encode(frame))
    hostile = bytearray(body)
    for place, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(body) - 1), st.integers(0, 255)), min_size=1, max_size=4)
    ):
        hostile[place] = value
    sealed = seal(kind, bytes(hostile))
    try:
        changed = decode(sealed)
    except ProtocolViolation:
        return
    assert encode(changed) == sealed  # every frame has exactly one encoding


ENTRY = b"\x01h" + count(1) + b"\x02p1" + numbers(4)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (NUMBERED, numbered()),
        (NUMBERED, numbered(numbers(7), flags=SEQUENCE)),
        (NUMBERED, numbered(numbers(5, 4, 3, 2), flags=FLOW)),
        (NUMBERED, numbered(MAP + count(0), flags=STAMP)),
        (NUMBERED, numbered(MAP + count(2) + ENTRY.replace(b"h", b"g") + ENTRY, flags=STAMP)),
        (NUMBERED, numbered(RELATIVE + count(1) + numbers(2) + count(1) + b"\x01h" + numbers(4), flags=STAMP)),
        (NUMBERED, numbered(numbers(0) + count(1) + count(4) + b"four", flags=PAYLOADS)),
        (NUMBERED, numbered(numbers(0) + count(1) + count(4) + b"four", flags=PAYLOADS | MORE)),
        (ALIVE, alive()),
        (ALIVE, alive(flags=1)),
        (ALIVE, alive(flags=8)),
        (ALIVE, alive(numbers(7) + numbers(5, 4, 3, 2), flags=SEQUENCE | FLOW)),
        (STATUS, NAMES + numbers(4, 2)),
        (ACK, NAMES + numbers(4)),
        (REQUEST, NAMES + b"\x02p3" + count(2) + numbers(4, 6)),
        (REPAIR, NAMES + count(2) + copy(NUMBERED, numbered()) + copy(ALIVE, alive())),
    ],
)
def test_the_bodies_are_as_the_codec_describes_them(kind: int, body: bytes) -> None:
    assert encode(decode(seal(kind, body))) == seal(kind, body)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        # numbers that no correct peer has
        (NUMBERED, numbered(at=(3, 4, 0))),
        (NUMBERED, numbered(at=(3, 1, 2))),
        (NUMBERED, numbered(at=(3, -1, 0))),
        (NUMBERED, numbered(at=(3, 1, -1))),
        (NUMBERED, numbered(at=(-1, -1, -1))),
        (ALIVE, alive(at=(1, 2))),
        (ALIVE, alive(at=(1, -1))),
        (NUMBERED, numbered(numbers(-7), flags=SEQUENCE)),
        (ALIVE, alive(numbers(-7), flags=SEQUENCE)),
        (NUMBERED, numbered(numbers(0), flags=SEQUENCE)),
        (ALIVE, alive(numbers(0), flags=SEQUENCE)),
        (NUMBERED, numbered(numbers(5, 6, 0, 0), flags=FLOW)),
        (NUMBERED, numbered(numbers(5, 4, -1, 0), flags=FLOW)),
        (NUMBERED, numbered(numbers(-5, -5, 0, 0), flags=FLOW)),
        (ALIVE, alive(numbers(5, 6, 0, 0), flags=FLOW)),
        (STATUS, NAMES + numbers(4, -1)),
        (ACK, NAMES + numbers(2**62 + 1)),
        (ACK, NAMES + numbers(-1)),
        # bodies that end too late or too early
        (NUMBERED, numbered(b"left over")),
        (ALIVE, alive(b"left over")),
        (ALIVE, alive(numbers(5, 4, 3), flags=FLOW)),
        (NUMBERED, bytes(24)),
        (NUMBERED, numbered(numbers(7)[:-1], flags=SEQUENCE)),
        (NUMBERED, numbered(numbers(5, 4, 3), flags=FLOW)),
        (STATUS, NAMES + numbers(4, 2)[:-1]),
        (STATUS, NAMES + numbers(4, 2) + b"!"),
        (ACK, NAMES),
        (STATUS, b""),
        # names
        (REQUEST, NAMES + b"\x03p3"),
        # payloads
        (NUMBERED, numbered(flags=PAYLOADS)),
        (NUMBERED, numbered(numbers(0) + count(0), flags=PAYLOADS)),
        (NUMBERED, numbered(numbers(-1) + count(1) + count(4) + b"four", flags=PAYLOADS)),
        (NUMBERED, numbered(numbers(0) + count(2**32 - 1), flags=PAYLOADS)),
        (NUMBERED, numbered(numbers(0) + count(1) + count(5) + b"four", flags=PAYLOADS)),
        (NUMBERED, numbered(numbers(0) + count(1) + count(3) + b"four", flags=PAYLOADS)),
        (NUMBERED, numbered(numbers(0) + count(2) + count(2) + count(2) + b"four", flags=PAYLOADS | MORE)),
        (NUMBERED, numbered(flags=MORE)),
        # stamps
        (NUMBERED, numbered(flags=STAMP)),
        (NUMBERED, numbered(b"\x03", flags=STAMP)),
        (NUMBERED, numbered(MAP + count(2**32 - 1), flags=STAMP)),
        (NUMBERED, numbered(MAP + count(1) + b"\x01h" + count(2**32 - 1), flags=STAMP)),
        (NUMBERED, numbered(MAP + count(1) + b"\x01h" + count(1) + b"\x02p1" + numbers(-1), flags=STAMP)),
        (NUMBERED, numbered(MAP + count(1) + b"\x01h" + count(0), flags=STAMP)),
        (NUMBERED, numbered(MAP + count(2) + 2 * ENTRY, flags=STAMP)),
        (NUMBERED, numbered(MAP + count(2) + ENTRY + ENTRY.replace(b"h", b"g"), flags=STAMP)),
        (NUMBERED, numbered(RELATIVE + count(2**32 - 1), flags=STAMP)),
        (NUMBERED, numbered(RELATIVE + count(0) + count(1) + b"\x01h" + numbers(-1), flags=STAMP)),
        (NUMBERED, numbered(RELATIVE + count(2) + numbers(1), flags=STAMP)),
        # requests and repairs
        (REQUEST, NAMES + b"\x02p3" + count(2**32 - 1)),
        (REQUEST, NAMES + b"\x02p3" + count(2) + numbers(4)),
        (REPAIR, NAMES + count(1)),
        (REPAIR, NAMES + count(2**32 - 1)),
        (REPAIR, NAMES + count(1) + copy(NUMBERED, numbered(), 10)),
        (REPAIR, NAMES + count(1) + copy(NUMBERED, numbered(), 2**32 - 1)),
        (REPAIR, NAMES + count(1) + copy(NUMBERED, numbered(b"!"))),
        (REPAIR, NAMES + count(0) + copy(NUMBERED, numbered())),
        (REPAIR, NAMES + count(1) + copy(NUMBERED, numbered(names=identity("h", "p1")))),
        (REPAIR, NAMES + count(1) + copy(STATUS, NAMES + numbers(4, 2))),
        (REPAIR, NAMES + count(1) + copy(REPAIR, NAMES + count(0))),
        (REPAIR, NAMES + count(1) + copy(0, b"")),
    ],
)
def test_bodies_that_no_correct_peer_sends_are_refused_by_name(kind: int, body: bytes) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        decode(seal(kind, body))
    assert caught.value.code == "body"


@pytest.mark.parametrize(
    ("kind", "body"), [(NUMBERED, numbered(flags=128)), (ALIVE, alive(flags=16)), (ALIVE, alive(flags=128))]
)
def test_a_flag_that_says_nothing_in_this_version_is_refused(kind: int, body: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        decode(seal(kind, body))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (REQUEST, NAMES + b"\x02p3" + count(2) + numbers(4, -6)),
        (NUMBERED, numbered(RELATIVE + count(1) + numbers(-2) + count(0), flags=STAMP)),
    ],
)
def test_lists_hold_no_negative_numbers_either(kind: int, body: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        decode(seal(kind, body))


def test_a_repair_inside_a_repair_is_refused_in_words() -> None:
    with pytest.raises(ProtocolViolation, match="a repair contains a copy of kind 6"):
        decode(seal(REPAIR, NAMES + count(1) + copy(REPAIR, NAMES + count(0))))


@pytest.mark.parametrize("kind", [0, 127, 255])
def test_an_unknown_kind_is_named(kind: int) -> None:
    with pytest.raises(ProtocolViolation, match=f"kind {kind}") as caught:
        decode(seal(kind, numbered()))
    assert caught.value.code == "kind"


def test_this_is_version_3_and_others_are_named() -> None:
    assert VERSION == 3
    for version in (1, 2, VERSION + 1):
        sealed = bytearray(seal(2, b""))
        sealed[4] = version
        with pytest.raises(
            ProtocolViolation, match=f"wire version {version} is not supported; this version is 3"
        ) as caught:
            open_envelope(bytes(sealed))
        assert caught.value.code == "version"


def test_a_giant_length_is_refused_before_any_memory_is_taken() -> None:
    sealed = (BODY_BYTES_MAX + 1).to_bytes(4, "big") + bytes([VERSION, 1]) + bytes(4)
    assert len(sealed) == ENVELOPE_BYTES
    with pytest.raises(ProtocolViolation, match="the envelope states a body of"):
        open_envelope(sealed)


# The reader


def test_the_reader_goes_from_front_to_back() -> None:
    reader = Reader(
        b"\x02ab\x03c@1" + count(2) + numbers(5, 6) + numbers(7) + b"xyz" + count(1) + count(2) + b"1" + b"22"
    )
    assert reader.process() == "ab"
    assert reader.group() == "c@1"
    assert reader.numbers(reader.count()) == (5, 6)
    assert reader.number() == 7
    assert reader.part(3) == b"xyz"
    assert reader.left == 11
    assert reader.pieces(reader.lengths(2)) == (b"1", b"22")
    assert reader.rest() == b""
    reader.end()


@pytest.mark.parametrize("take", ["number", "count", "identity", "process", "group"])
def test_the_reader_never_goes_beyond_the_end(take: str) -> None:
    with pytest.raises(ProtocolViolation):
        getattr(Reader(b""), take)()


@pytest.mark.parametrize("take", ["numbers", "lengths", "part"])
def test_the_reader_believes_no_count(take: str) -> None:
    with pytest.raises(ProtocolViolation, match="bytes too early"):
        getattr(Reader(bytes(100)), take)(2**32 - 1)


def test_pieces_must_fill_the_rest_exactly() -> None:
    for lengths in ((2,), (2, 2), ()):
        with pytest.raises(ProtocolViolation, match="do not add up"):
            Reader(b"123").pieces(lengths)


@given(block_frames(), st.binary(max_size=6), st.integers(0, 400))
def test_the_short_way_reads_what_the_long_way_reads(frame: BlockFrame, noise: bytes, at: int) -> None:
    """`read_frequent` gives the same result as `READERS`, or leaves the body to them; also for damaged bodies."""
    body = encode(frame)[ENVELOPE_BYTES:]
    damaged = body[:at] + noise + body[at + len(noise) :]
    for each in (body, damaged, body[:at]):
        long_way = _read_at_length(each)
        try:
            short_way = read_frequent(each, 0)
        except ProtocolViolation:
            assert long_way is None
        else:
            assert short_way is None or short_way == long_way
    plain = frame.flow is not None and frame == BlockFrame(*frame[:8])
    assert (read_frequent(encode(frame), ENVELOPE_BYTES) is not None) is plain


def _read_at_length(body: bytes) -> BlockFrame | None:
    reader = Reader(body)
    try:
        frame: BlockFrame = READERS[NUMBERED](reader)
        reader.end()
    except ProtocolViolation:
        return None
    return frame
