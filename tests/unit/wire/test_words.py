"""Words about primary views as bytes (docs/spec/newtop.md 15)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.protocols.newtop.primary.lineage import AttemptWord, Claim, ClaimWord, PrimaryView
from antiphon.protocols.newtop.wire.words import decode, encode
from antiphon.types import ProcessId, ViewId

V1, V2 = ViewId("0001.000000.0123456789abcdef"), ViewId("0003.000002.fedcba9876543210")
A, B, C = ProcessId("a"), ProcessId("b#7"), ProcessId("c")
FIRST = PrimaryView(1, V1, frozenset({A, B, C}), frozenset({C}))
CLAIM = ClaimWord(V2, Claim(FIRST, (PrimaryView(4, V2, frozenset({A, B})),), frozenset({"a", "b", "d"}), True))
EPOCH = 3
NUMBER_MAX = (EPOCH + 2) * (1 << 16)


@pytest.mark.parametrize(
    "word",
    [
        CLAIM,
        ClaimWord(V1, Claim()),
        ClaimWord(V1, Claim(lapsed=True)),
        AttemptWord(V2, 5),
        AttemptWord(V2, NUMBER_MAX - 1),
    ],
)
def test_words_come_back(word: ClaimWord | AttemptWord) -> None:
    assert decode(encode(word), EPOCH) == word


def test_every_torn_or_lengthened_word_says_nothing() -> None:
    for word in (CLAIM, AttemptWord(V2, 5)):
        whole = encode(word)
        assert {decode(whole[:size], EPOCH) for size in range(len(whole))} == {None}
        assert decode(whole + b"\0", EPOCH) is None


@pytest.mark.parametrize("number", [0, NUMBER_MAX, 1 << 61])
def test_numbers_that_no_group_of_this_epoch_can_have_say_nothing(number: int) -> None:
    assert decode(encode(AttemptWord(V2, number)), EPOCH) is None
    assert decode(encode(ClaimWord(V2, Claim(FIRST._replace(number=number)))), EPOCH) is None
    assert decode(encode(ClaimWord(V2, Claim(None, (FIRST._replace(number=number),)))), EPOCH) is None


def test_a_claim_that_lists_a_leaver_outside_the_voters_is_refused() -> None:
    assert decode(encode(ClaimWord(V2, Claim(FIRST._replace(left=frozenset({ProcessId("x")}))))), EPOCH) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_word_or_nothing(payload: bytes) -> None:
    word = decode(payload, EPOCH)
    assert word is None or decode(encode(word), EPOCH) == word
