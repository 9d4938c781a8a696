"""The frames of asymmetric groups: encoded as described, and all other bytes are refused."""

import pytest
from hypothesis import given

from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.wire.codec import decode, encode, header_bytes, payload_bytes, stamp_bytes
from antiphon.wire.frame import seal
from tests.support.wire_bodies import (
    FLOW,
    MARK,
    MORE,
    NAMES,
    NOTICE,
    NUMBERED,
    PAYLOADS,
    REMOVE,
    REPAIR,
    SEQUENCE,
    copy,
    count,
    mark,
    numbered,
    numbers,
    suspicions,
    text,
)
from tests.support.wire_frames import ordered_frames

ORDERED, SUBMIT, NEED = 48, 49, 50
ORIGIN = 8
VIEW = b"\x03"
ONE_PAYLOAD = numbers(0) + count(1) + count(4) + b"four"
TWO_PAYLOADS = numbers(0) + count(2) + count(2) + count(2) + b"four"
FAILED = suspicions(("p2", 5))


def ordered(
    rest: bytes = b"", *, flags: int = 0, at: tuple[int, int, int] = (9, 4, 5), place: int = 0, stable: int = 3
) -> bytes:
    return NAMES + bytes([flags]) + numbers(*at, place, stable) + rest


def submit(rest: bytes = ONE_PAYLOAD, *, flags: int = 0, block: int = 4, place: int = 2, stable: int = 3) -> bytes:
    return NAMES + bytes([flags]) + numbers(block, place, stable) + rest


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (ORDERED, ordered()),
        (ORDERED, ordered(numbers(7), flags=SEQUENCE)),
        (ORDERED, ordered(ONE_PAYLOAD, flags=PAYLOADS, place=1)),
        (ORDERED, ordered(text("p2") + ONE_PAYLOAD, flags=PAYLOADS | ORIGIN | MORE, place=1)),
        (ORDERED, ordered(mark("p2") + VIEW + FAILED, flags=MARK | NOTICE)),
        (ORDERED, ordered(at=(9, 0, 8))),
        (SUBMIT, submit()),
        (SUBMIT, submit(TWO_PAYLOADS)),
        (SUBMIT, submit(mark("p2") + ONE_PAYLOAD, flags=MARK | MORE)),
        (SUBMIT, submit(block=1, stable=40)),
        (NEED, NAMES + numbers(4)),
        (REPAIR, NAMES + count(1) + copy(ORDERED, ordered())),
    ],
)
def test_the_bodies_are_as_the_codec_describes_them(kind: int, body: bytes) -> None:
    assert encode(decode(seal(kind, body))) == seal(kind, body)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        # numbers that no correct peer has
        (ORDERED, ordered(at=(9, 9, 5))),
        (ORDERED, ordered(at=(9, 4, 9))),
        (ORDERED, ordered(at=(9, -1, 5))),
        (ORDERED, ordered(at=(9, 4, -1))),
        (ORDERED, ordered(at=(2**62 + 1, 4, 5))),
        (ORDERED, ordered(stable=9)),
        (ORDERED, ordered(stable=-1)),
        (ORDERED, ordered(numbers(0), flags=SEQUENCE)),
        (SUBMIT, submit(block=0)),
        (SUBMIT, submit(place=0)),
        (SUBMIT, submit(place=2**62 + 1)),
        (SUBMIT, submit(stable=-1)),
        (NEED, NAMES + numbers(-1)),
        # places and origins
        (ORDERED, ordered(place=1)),
        (ORDERED, ordered(ONE_PAYLOAD, flags=PAYLOADS)),
        (ORDERED, ordered(ONE_PAYLOAD, flags=PAYLOADS, place=-1)),
        (ORDERED, ordered(text("p2"), flags=ORIGIN)),
        (ORDERED, ordered(text("p1") + ONE_PAYLOAD, flags=PAYLOADS | ORIGIN, place=1)),
        # views are told by sequencers, and nothing else is
        (ORDERED, ordered(REMOVE + FAILED, flags=NOTICE)),
        (ORDERED, ordered(VIEW + FAILED + ONE_PAYLOAD, flags=NOTICE | PAYLOADS, place=1)),
        (NUMBERED, numbered(VIEW + FAILED, flags=NOTICE)),
        # payloads
        (ORDERED, ordered(flags=MORE)),
        (ORDERED, ordered(TWO_PAYLOADS, flags=PAYLOADS | MORE, place=1)),
        (SUBMIT, submit(TWO_PAYLOADS, flags=MORE)),
        (SUBMIT, submit(b"")),
        (SUBMIT, submit(numbers(0) + count(0))),
        # flags that say nothing
        (ORDERED, ordered(flags=FLOW)),
        (ORDERED, ordered(flags=128)),
        (SUBMIT, submit(flags=SEQUENCE)),
        # ends
        (ORDERED, ordered(b"left over")),
        (NEED, NAMES + numbers(4) + b"!"),
        (REPAIR, NAMES + count(1) + copy(SUBMIT, submit())),
    ],
)
def test_bodies_that_no_correct_peer_sends_are_refused_by_name(kind: int, body: bytes) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        decode(seal(kind, body))
    assert caught.value.code == "body"


@given(ordered_frames())
def test_sizes_are_known_without_encoding(frame: BlockFrame) -> None:
    assert header_bytes(frame) + payload_bytes(frame) == len(encode(frame))
    assert stamp_bytes(frame) == 8
