"""The codec: whatever goes in comes out, and nothing else gets in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.newtop.frames import BlockFrame
from antiphon.errors import ProtocolViolation
from antiphon.types import GroupId, ProcessId
from antiphon.wire.codec import decode, encode, header_bytes, payload_bytes
from antiphon.wire.frame import BODY_BYTES_MAX, ENVELOPE_BYTES, VERSION, open_envelope, seal

names = st.text(min_size=1, max_size=20)


@st.composite
def frames(draw: st.DrawFn) -> BlockFrame:
    block = draw(st.integers(1, 2**62))
    return BlockFrame(
        GroupId(draw(names)),
        ProcessId(draw(names)),
        block,
        previous := draw(st.integers(0, block - 1)),
        draw(st.integers(0, previous)),
        payloads := tuple(draw(st.lists(st.binary(max_size=40), max_size=5))),
        draw(st.integers(0, 2**62)) if payloads else 0,  # a null has nothing to label
    )


@given(frames())
def test_decoding_gives_back_what_was_encoded(frame: BlockFrame) -> None:
    assert decode(encode(frame)) == frame


@given(frames())
def test_sizes_are_known_without_encoding(frame: BlockFrame) -> None:
    assert header_bytes(frame) + payload_bytes(frame) == len(encode(frame))


@given(frames(), st.data())
def test_any_flipped_bit_is_noticed(frame: BlockFrame, data: st.DataObject) -> None:
    sealed = bytearray(encode(frame))
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ProtocolViolation):
        decode(bytes(sealed))


@given(frames(), st.data())
def test_any_other_length_is_noticed(frame: BlockFrame, data: st.DataObject) -> None:
    sealed = encode(frame)
    cut = data.draw(st.integers(0, len(sealed) - 1))
    with pytest.raises(ProtocolViolation):
        decode(sealed[:cut])
    with pytest.raises(ProtocolViolation, match="claims to have"):
        decode(sealed + b"\0")


@given(st.integers(0, 255), st.binary(max_size=120))
def test_a_hostile_body_with_a_good_checksum_never_gets_further_than_the_codec(kind: int, body: bytes) -> None:
    try:
        frame = decode(seal(kind, body))
    except ProtocolViolation:
        return
    assert decode(encode(frame)) == frame


def numbers(*values: int) -> bytes:
    return b"".join(value.to_bytes(8, "big", signed=True) for value in values)


NAMES = b"\x01g\x02p1"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (2, numbers(0, 0, 0) + NAMES),
        (2, numbers(3, 3, 0) + NAMES),
        (2, numbers(3, 1, 2) + NAMES),
        (2, numbers(3, -1, 0) + NAMES),
        (2, numbers(3, 1, 1) + NAMES + b"left over"),
        (2, numbers(3, 1, 1) + b"\xff" + NAMES),
        (2, numbers(3, 1, 1) + b"\x01\xff\x01p"),
        (2, numbers(3, 1, 1)[:-1]),
        (1, numbers(3, 1, 1) + NAMES),
        (1, numbers(3, 1, 1) + NAMES + numbers(0) + bytes(4)),
        (1, numbers(3, 1, 1) + NAMES + numbers(-1) + b"\0\0\0\1\0\0\0\4four"),
        (1, numbers(3, 1, 1) + NAMES + numbers(0) + b"\xff\xff\xff\xff"),
        (1, numbers(3, 1, 1) + NAMES + numbers(0) + b"\0\0\0\1\0\0\0\5four"),
    ],
)
def test_what_no_correct_peer_sends_is_named(kind: int, body: bytes) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        decode(seal(kind, body))
    assert caught.value.code == "body"


def test_another_version_is_named() -> None:
    sealed = bytearray(seal(2, b""))
    sealed[4] = VERSION + 1
    with pytest.raises(ProtocolViolation, match="wire version") as caught:
        open_envelope(bytes(sealed))
    assert caught.value.code == "version"


def test_a_giant_length_is_refused_before_any_memory_is_taken() -> None:
    sealed = (BODY_BYTES_MAX + 1).to_bytes(4, "big") + bytes([VERSION, 1]) + bytes(4)
    assert len(sealed) == ENVELOPE_BYTES
    with pytest.raises(ProtocolViolation, match="claims to have"):
        open_envelope(sealed)
