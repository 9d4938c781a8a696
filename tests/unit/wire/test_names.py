"""Identities on the wire: each has one spelling, and names contain no separator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import ProtocolViolation
from antiphon.protocols.acks.frames import CloseFrame
from antiphon.protocols.newtop.frames import AckFrame
from antiphon.types import GroupId, ProcessId, group_id, process_id, split_group_id, split_process_id
from antiphon.wire.codec import decode, encode
from antiphon.wire.frame import seal
from antiphon.wire.names import (
    FORMATION_MAX,
    INCARNATION_MAX,
    decode_group,
    decode_identity,
    decode_process,
    encode_identity,
    encode_name,
)
from tests.support.wire_bodies import ACK, NAMES, REQUEST, count, identity, numbers, text
from tests.support.wire_frames import groups, names, processes

CLOSE = 36


@given(names, st.integers(0, INCARNATION_MAX), st.integers(0, FORMATION_MAX))
def test_identities_split_into_what_they_were_made_of(name: str, incarnation: int, epoch: int) -> None:
    assert split_process_id(process_id(name, incarnation)) == (name, incarnation)
    assert split_group_id(group_id(name, epoch)) == (name, epoch)


def test_the_first_of_a_name_bears_it_alone() -> None:
    assert (process_id("p3"), process_id("p3", 2)) == ("p3", "p3#2")
    assert (group_id("orders"), group_id("orders", 7)) == ("orders", "orders@7")


@given(groups, processes)
def test_an_identity_comes_out_as_it_went_in(group: GroupId, sender: ProcessId) -> None:
    assert decode_identity(encode_identity(group, sender)) == (group, sender)
    assert decode_group(encode_name(group)[1:]) == group
    assert decode_process(encode_name(sender)[1:]) == sender


def test_names_epoch_and_incarnation_are_fields_of_their_own() -> None:
    encoded = encode_identity(GroupId("orders@7"), ProcessId("p3#2"))
    assert encoded == bytes([0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 6, 2]) + b"ordersp3"


def test_they_go_up_to_64_and_32_bits() -> None:
    frame = AckFrame(group_id("g", 2**64 - 1), process_id("p", 2**32 - 1), 5)
    assert decode(encode(frame)) == frame
    assert encode(frame)[10:22] == b"\xff" * 12


def test_an_incarnation_of_more_than_32_bits_continues_behind_the_name() -> None:
    encoded = encode_identity(GroupId("orders"), process_id("p3", 5 << 32 | 2))
    assert encoded == bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 6, 4]) + b"ordersp3#5"
    assert decode_identity(encoded) == ("orders", process_id("p3", 5 << 32 | 2))


@pytest.mark.parametrize("upper", ["", "0", "01", "-1", "b", "1#1", "2147483648"])
def test_the_upper_bits_of_an_incarnation_have_one_spelling(upper: str) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        decode_identity(identity("g", f"p3#{upper}"))
    assert caught.value.code == "body"


def test_a_name_takes_255_bytes() -> None:
    long = "é" * 127 + "e"
    assert decode_identity(identity(long, long)) == (long, long)
    assert decode_process(encode_name(long)[1:]) == long


BAD_NAMES = ["", "a b", "a\n", "a#b", "a#1", "a@b", "a@1", "a/b", "a:b", "\u2003", b"\xff", b"a\xc3", b"\xed\xa0\x80"]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize(("kind", "rest"), [(ACK, numbers(4)), (CLOSE, b"\x91\x04")])
def test_an_invalid_name_is_refused_as_group_and_as_sender(name: str | bytes, kind: int, rest: bytes) -> None:
    senders = [] if name in ("a#b", "a#1") else [identity("g", name)]
    for names_of_frame in (identity(name, "p1"), *senders):
        with pytest.raises(ProtocolViolation, match="name") as caught:
            decode(seal(kind, names_of_frame + rest))
        assert caught.value.code == "body"


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in BAD_NAMES if name != "a#1"),
        "#1",
        "a#",
        "a#0",
        "a#01",
        "a#-1",
        "a#+1",
        "a#1_0",
        "a#1#1",
        "a#\u0661",
        "a#\u00b2",
        "a#9223372036854775808",
        "a#" + "9" * 200,
        "world",
        "world#1",
    ],
)
def test_an_invalid_name_is_refused_as_another_process(name: str | bytes) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        decode(seal(REQUEST, NAMES + text(name) + count(0)))
    assert caught.value.code == "body"


@pytest.mark.parametrize("name", ["", "g@", "@1", "g@0", "g@01", "g@1@1", "g#1", "g@18446744073709551616", "g@\u0661"])
def test_an_invalid_name_is_refused_as_another_group(name: str) -> None:
    with pytest.raises(ProtocolViolation):
        decode_group(name.encode())


def test_the_largest_there_can_be_are_names() -> None:
    assert decode_process(b"a#9223372036854775807") == "a#9223372036854775807"
    assert decode_group(b"g@18446744073709551615") == "g@18446744073709551615"


def test_no_process_has_the_name_of_the_world_but_a_group_may() -> None:
    with pytest.raises(ProtocolViolation, match="world"):
        decode(encode(CloseFrame(GroupId("g"), ProcessId("world"), 1)))
    assert decode(encode(CloseFrame(GroupId("world"), ProcessId("p"), 1))).group == "world"


@pytest.mark.parametrize("kept", range(len(NAMES)))
@pytest.mark.parametrize("kind", [ACK, CLOSE])
def test_an_identity_that_is_cut_is_noticed(kept: int, kind: int) -> None:
    with pytest.raises(ProtocolViolation, match="ends inside the names"):
        decode(seal(kind, NAMES[:kept]))


@pytest.mark.parametrize("lengths", [b"\xff\xff", b"\x01\xff", b"\xff\x00"])
def test_lengths_of_names_are_not_believed(lengths: bytes) -> None:
    with pytest.raises(ProtocolViolation, match="ends inside the names"):
        decode(seal(ACK, bytes(12) + lengths + b"gp1" + numbers(4)))
