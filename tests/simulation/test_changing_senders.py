"""Random schedules of InterGroup sender groups that change, judged from outside; and the states that they reach.

The same runs, more of them: `python -m tests.support.intergroup_schedule --runs 10000`.
"""

from collections import Counter

import pytest

from antiphon.protocols.intergroup.membership.states import TABLE, Event, State
from tests.support.intergroup_oracle import faults
from tests.support.intergroup_schedule import Schedule, play

RUNS = 20
RARE = {
    (State.TO_RECEIVER, Event.ADDED),
    (State.TO_RECEIVER, Event.RESET),
    (State.TO_SENDER, Event.CHANGED),
    (State.TO_SENDER, Event.REPAIR),
    (State.WAIT, Event.REPAIR),
    (State.RECOVER, Event.REJOINED),
}
"""Changes of state that need more than these runs."""


@pytest.mark.parametrize("part", range(4))
def test_random_schedules_keep_every_property_and_settle(part: int) -> None:
    for seed in range(part * RUNS // 4, (part + 1) * RUNS // 4):
        assert play(seed) == [], f"seed {seed}"


def test_random_schedules_reach_the_states_of_the_figures() -> None:
    taken: Counter[tuple[State, Event]] = Counter()
    for seed in range(6):
        schedule = Schedule(seed)
        schedule.disturb(3_000, 12)
        assert faults(schedule.world) == []
        for process in schedule.world.cores:
            taken.update(schedule.world.standing(process).taken)
    assert {state for state, _ in taken} >= {*State} - {State.ABSENT}
    assert taken.keys() <= TABLE.keys()
