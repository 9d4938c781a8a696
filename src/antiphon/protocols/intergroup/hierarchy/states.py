"""The states of a control process, and every allowed change of them.

Berket00 §2.6, Fig. 2.4; docs/spec/intergroup.md 3.8. TO_CHILD has two halves here: `TO_CHILD` until the process has
joined another group, `LEAVING` until its children have left it (H7). A child that searches is `MOVING`.
"""

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Final


class State(Enum):
    """What a control process is in the hierarchy."""

    LISTENING = "listening"
    SEARCHING = "searching"
    TO_COORDINATOR = "to coordinator"
    COORDINATOR = "coordinator"
    TO_CHILD = "to child"
    LEAVING = "leaving"
    CHILD = "child"
    MOVING = "moving"
    STOPPED = "stopped"


_COORDINATORS: Final = (State.TO_COORDINATOR, State.COORDINATOR, State.TO_CHILD, State.LEAVING)
_ADMITTING: Final = (State.TO_COORDINATOR, State.COORDINATOR)


class Input(Enum):
    """What may change the state."""

    FEW = "there are few coordinators, or none"
    ENOUGH = "there are enough coordinators"
    FOUND = "the ring search has found a coordinator"
    NOT_FOUND = "the ring search has found none"
    ANNOUNCED = "our first GCon has left"
    STEP_DOWN = "self-determination: become a child"
    STEP_UP = "self-determination: become a coordinator"
    FAR = "self-determination: become a coordinator, because ours is far"
    ABANDONED = "our coordinator steps down"
    LOST = "our coordinator is silent, or does not hear us"
    EMPTIED = "our last child has left us"


class Action(Enum):
    """What the change of the state consists of."""

    SEARCH = "begin a ring search"
    SEARCH_NEAR = "begin a ring search nearby (H16)"
    JOIN = "join the group that was found"
    COORDINATE = "begin to coordinate"
    SETTLE = "leave the group that we had joined"
    RETIRE = "admit no children, tell all, and begin a ring search"
    RESUME = "admit children again, and leave the group that we had joined"
    STEP_BACK = "stop to coordinate"
    FORGET = "forget the coordinator, and begin a ring search"


TABLE: Final[Mapping[tuple[State, Input], tuple[Action, State]]] = {
    (State.LISTENING, Input.FEW): (Action.COORDINATE, State.TO_COORDINATOR),
    (State.LISTENING, Input.ENOUGH): (Action.SEARCH, State.SEARCHING),
    (State.SEARCHING, Input.FOUND): (Action.JOIN, State.CHILD),
    (State.SEARCHING, Input.NOT_FOUND): (Action.COORDINATE, State.TO_COORDINATOR),
    (State.TO_COORDINATOR, Input.ANNOUNCED): (Action.SETTLE, State.COORDINATOR),
    (State.COORDINATOR, Input.STEP_DOWN): (Action.RETIRE, State.TO_CHILD),
    (State.TO_CHILD, Input.FOUND): (Action.JOIN, State.LEAVING),
    (State.TO_CHILD, Input.NOT_FOUND): (Action.RESUME, State.COORDINATOR),
    (State.LEAVING, Input.LOST): (Action.RESUME, State.COORDINATOR),
    (State.LEAVING, Input.ABANDONED): (Action.RESUME, State.COORDINATOR),
    (State.LEAVING, Input.EMPTIED): (Action.STEP_BACK, State.CHILD),
    (State.CHILD, Input.STEP_UP): (Action.COORDINATE, State.TO_COORDINATOR),
    (State.CHILD, Input.FAR): (Action.SEARCH_NEAR, State.MOVING),
    (State.CHILD, Input.ABANDONED): (Action.SEARCH, State.MOVING),
    (State.CHILD, Input.LOST): (Action.FORGET, State.MOVING),
    (State.MOVING, Input.FOUND): (Action.JOIN, State.CHILD),
    (State.MOVING, Input.NOT_FOUND): (Action.COORDINATE, State.TO_COORDINATOR),
}
"""Inputs that are not listed for a state change nothing in it."""


class StateMachine:
    """The state of one process, and how often each change was made."""

    def __init__(self) -> None:
        self.state = State.LISTENING
        self.coordinates = False
        """True in the states in which it sends CCon and GCon."""
        self.admits = False
        """True in the states in which new children are accepted."""
        self.taken: Counter[tuple[State, Input]] = Counter()

    def take(self, what: Input) -> Action | None:
        """Change the state; None: the input changes nothing now."""
        step = TABLE.get((self.state, what))
        if step is None:
            return None
        self.taken[self.state, what] += 1
        action, state = step
        self._become(state)
        return action

    def stop(self) -> None:
        self._become(State.STOPPED)

    def _become(self, state: State) -> None:
        self.state = state
        self.coordinates, self.admits = state in _COORDINATORS, state in _ADMITTING
