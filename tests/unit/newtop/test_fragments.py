from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.protocols.newtop.fragments import Fragments, Pieces
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.types import GroupId, ProcessId


def frame(sender: str, block: int, *payloads: bytes, more: bool = False, label: int = 0) -> BlockFrame:
    return BlockFrame(GroupId("g"), ProcessId(sender), block, 0, 0, payloads, label, more=more)


def test_a_frame_of_whole_messages_passes_unchanged() -> None:
    fragments = Fragments(1_000)
    packed = frame("p1", 1, b"a", b"b", label=4)
    assert fragments.join(packed) is packed


def test_a_message_is_whole_with_its_last_piece_and_has_its_place_and_label() -> None:
    fragments = Fragments(1_000)
    assert fragments.join(frame("p1", 1, b"ab", more=True, label=9)) is None
    assert fragments.join(frame("p1", 2, b"cd", more=True, label=9)) is None
    assert fragments.join(frame("p1", 5, b"e", label=9)) == frame("p1", 5, b"abcde", label=9)
    assert fragments.join(frame("p1", 6, b"f", label=10)) == frame("p1", 6, b"f", label=10)


def test_others_pass_between_the_pieces_of_a_message() -> None:
    fragments = Fragments(1_000)
    assert fragments.join(frame("p1", 1, b"a", more=True)) is None
    assert fragments.join(frame("p2", 1, b"x", b"y")) == frame("p2", 1, b"x", b"y")
    assert fragments.join(frame("p2", 2, b"u", more=True)) is None
    assert fragments.join(frame("p1", 3, b"b")) == frame("p1", 3, b"ab")
    assert fragments.join(frame("p2", 4, b"v")) == frame("p2", 4, b"uv")


def test_a_state_passes_between_the_pieces_of_a_message_of_its_sender() -> None:
    fragments = Fragments(1_000)
    assert fragments.join(frame("p1", 1, b"a", more=True)) is None
    assert fragments.join(frame("p1", 2, b"st", more=True)._replace(state=0)) is None
    state = frame("p1", 3, b"ate")._replace(state=0)
    assert fragments.join(state) == state._replace(payloads=(b"state",))
    assert fragments.join(frame("p1", 4, b"b")) == frame("p1", 4, b"ab")
    fragments.join(frame("p1", 5, b"x", more=True))
    fragments.forget(ProcessId("p1"))
    assert not fragments.open


def test_an_empty_last_piece_ends_a_message_too() -> None:
    fragments = Fragments(1_000)
    fragments.join(frame("p1", 1, b"a", more=True))
    assert fragments.join(frame("p1", 2, b"")) == frame("p1", 2, b"a")


@given(st.lists(st.tuples(st.sampled_from(["p1", "p2", "p3"]), st.binary(max_size=3), st.booleans()), max_size=40))
def test_pieces_of_several_senders_never_mix(steps: list[tuple[str, bytes, bool]]) -> None:
    fragments = Fragments(1_000)
    open_pieces = {"p1": b"", "p2": b"", "p3": b""}
    for block, (sender, piece, more) in enumerate(steps, start=1):
        open_pieces[sender] += piece
        whole = fragments.join(frame(sender, block, piece, more=more))
        if more:
            assert whole is None
        else:
            assert whole == frame(sender, block, open_pieces[sender])
            open_pieces[sender] = b""


def test_a_message_larger_than_any_may_be_is_neither_kept_nor_delivered() -> None:
    fragments = Fragments(10)
    for block in range(1, 51):
        assert fragments.join(frame("p1", block, b"12345", more=True)) is None
    assert sum(map(len, fragments.open[ProcessId("p1"), None])) <= 10
    assert fragments.join(frame("p1", 51, b"end")) is None
    assert not fragments.open
    assert fragments.join(frame("p1", 52, b"next")) == frame("p1", 52, b"next")


@pytest.mark.parametrize("sink", [Pieces, BytesIO])
def test_pieces_of_a_known_state_are_not_kept_and_progress_of_other_states_is_known(sink: Any) -> None:
    fragments = Fragments(1_000, sink)
    fragments.own = 0
    for block, state in ((1, 0), (2, 1)):
        fragments.join(frame(f"p{block}", block, b"piece", more=True, label=9)._replace(state=state))
    assert fragments.come[ProcessId("p2"), 1] == (5, 9)
    ends = [frame("p1", 3, b"last", label=9)._replace(state=0), frame("p2", 4, b"last", label=9)._replace(state=1)]
    assert [fragments.join(end) for end in ends] == [
        ends[0]._replace(payloads=(b"",)),
        ends[1]._replace(payloads=(b"piecelast",)),
    ]
    assert not fragments.come


def test_pieces_of_a_lost_donor_are_dropped_when_another_donor_starts_over() -> None:
    fragments = Fragments(1_000)
    fragments.join(frame("p1", 1, b"half", more=True)._replace(state=0))
    fragments.forget(ProcessId("p1"))
    assert not fragments.come
    fragments.join(frame("p1", 2, b"st", more=True)._replace(state=0))
    end = frame("p1", 3, b"ate")._replace(state=0)
    assert fragments.join(end) == end._replace(payloads=(b"state",))
