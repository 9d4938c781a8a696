from hypothesis import given
from hypothesis import strategies as st

from antiphon.protocols.newtop.flow.retained import Retained
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.types import GroupId, ProcessId


def frame(sender: int, block: int) -> BlockFrame:
    return BlockFrame(GroupId("g"), ProcessId(f"p{sender}"), block, 0, 0)


def held(*cells: tuple[int, int]) -> Retained:
    retained = Retained()
    for sender, block in cells:
        retained.hold(block, frame(sender, block))
    return retained


def test_only_stable_rows_are_freed_and_counted_out() -> None:
    retained = held((0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3))
    assert (retained.frames, retained.rows, retained.smallest) == (6, 3, 1)
    assert [cell.block for cell in retained.free(2)] == [1, 1, 2, 2]
    assert (retained.frames, retained.rows, retained.smallest) == (2, 1, 3)
    assert retained.free(2) == []


def test_rows_leave_in_the_order_of_their_numbers_with_gaps_between_them() -> None:
    retained = held((0, 7), (1, 3), (1, 900))
    assert retained.free(2) == []
    assert [cell.block for cell in retained.free(8)] == [3, 7]
    assert retained.rows == 1


def test_a_row_keeps_the_order_in_which_its_frames_came() -> None:
    assert [cell.sender for cell in held((2, 4), (0, 4), (1, 4)).free(4)] == ["p2", "p0", "p1"]


def test_the_first_that_came_of_the_smallest_number_is_evicted() -> None:
    retained = held((0, 5), (2, 3), (1, 3))
    assert [retained.evict() for _ in range(3)] == [frame(2, 3), frame(1, 3), frame(0, 5)]
    assert (retained.frames, retained.rows) == (0, 0)


def test_a_number_may_come_back_after_its_row_was_evicted() -> None:
    retained = held((0, 3))
    retained.evict()
    retained.hold(3, frame(1, 3))
    assert retained.free(3) == [frame(1, 3)]
    assert retained.free(9) == []


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("hold"), st.integers(1, 12)),
            st.tuples(st.just("free"), st.integers(0, 12)),
            st.tuples(st.just("evict"), st.just(0)),
        ),
        max_size=50,
    )
)
def test_behaves_like_a_list_sorted_by_number(steps: list[tuple[str, int]]) -> None:
    retained, model = Retained(), list[tuple[int, int]]()
    for place, (verb, number) in enumerate(steps):
        if verb == "hold":
            retained.hold(number, frame(place, number))
            model = sorted([*model, (number, place)])
        elif verb == "free":
            assert retained.free(number) == [frame(sender, block) for block, sender in model if block <= number]
            model = [cell for cell in model if cell[0] > number]
        elif model:
            block, sender = model.pop(0)
            assert retained.evict() == frame(sender, block)
        assert (retained.frames, retained.rows) == (len(model), len({block for block, _ in model}))
        assert not model or retained.smallest == model[0][0]
