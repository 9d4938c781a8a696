from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.timers import Timers

Key = tuple[str]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 20))),
        st.tuples(st.just("due"), st.just("a"), st.integers(0, 20)),
    ),
    max_size=40,
)


@given(steps)
def test_behaves_like_a_dict_of_deadlines(plan: list[tuple[str, str, int | None]]) -> None:
    timers: Timers[Key] = Timers()
    model: dict[Key, int] = {}
    for verb, name, when in plan:
        if verb == "set":
            timers.set((name,), when)
            model.pop((name,), None)
            if when is not None:
                model[name,] = when
        else:
            assert when is not None
            expected = sorted((time, key) for key, time in model.items() if time <= when)
            assert timers.due(when) == [key for _, key in expected]
            model = {key: time for key, time in model.items() if time > when}
        assert timers.deadline == min(model.values(), default=None)


def test_cancelling_what_is_not_set_changes_nothing() -> None:
    timers: Timers[Key] = Timers()
    timers.set(("a",), None)
    assert timers.deadline is None
