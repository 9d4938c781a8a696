from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.pending import Pending


def test_the_smallest_number_that_has_not_gone_is_known() -> None:
    pending = Pending()
    assert pending.smallest is None
    smallest = list[int | None]()
    for number in (5, 3, 8):
        pending.add(number)
        smallest.append(pending.smallest)
    assert smallest == [5, 3, 3]


def test_a_number_removed_before_a_smaller_one_is_remembered() -> None:
    pending = Pending()
    for number in (1, 2, 3, 4):
        pending.add(number)
    smallest = list[int | None]()
    for number in (3, 2, 1, 4):
        pending.remove(number)
        smallest.append(pending.smallest)
    assert smallest == [1, 1, 4, None]


def test_a_number_that_came_twice_must_go_twice() -> None:
    pending = Pending()
    for number in (2, 2, 1):
        pending.add(number)
    pending.remove(2)
    pending.remove(1)
    assert pending.smallest == 2
    pending.remove(2)
    assert pending.smallest is None


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), max_size=60))
def test_behaves_like_a_sorted_list(steps: list[tuple[bool, int]]) -> None:
    pending, model = Pending(), list[int]()
    for comes, number in steps:
        if comes:
            pending.add(number)
            model.append(number)
        elif model:
            gone = model.pop(number % len(model))
            pending.remove(gone)
        assert pending.smallest == min(model, default=None)
