"""Whether a control process should change its role (Berket00 §2.5, Tables 2.2 to 2.4; errata H6, H11).

A purely local decision: two tables say whether it should, a random timer whether it does so before others do.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from antiphon.protocols.intergroup.hierarchy.settings import Thresholds
from antiphon.protocols.intergroup.repair.adaptation import SECOND
from antiphon.protocols.intergroup.repair.requests import Draw

REACTION_NS: Final = SECOND
"""How long it takes until coordinators know of a change among them."""


class Value(Enum):
    """How appropriate a change of the role is."""

    NO_CHANGE = "no change"
    APPROPRIATE = "appropriate"
    NEUTRAL = "neutral"
    INAPPROPRIATE = "inappropriate"


class Position(NamedTuple):
    """What the decision depends on."""

    coordinator: bool
    """True for a coordinator, False for a child."""
    coordinators: int
    locals: int
    population: int
    near: bool
    """For a coordinator, whether another one is close. For a child, whether its coordinator is within BOUNDARY_TTL."""
    reaction_ns: int = REACTION_NS


Test = Callable[[Position, Thresholds], bool]


class Row(NamedTuple):
    """One cell of Table 2.2, with its cells of Tables 2.3 and 2.4."""

    value: Value
    applies: Test
    may_continue: Test
    needed: Callable[[Position, Thresholds], float]
    """How many changes lead to the bound in `may_continue` (H11)."""
    candidates: Callable[[Position], int]


# `ruff` sees unused arguments of lambdas: `_` stands for them
_ALWAYS: Final[Test] = lambda _p, _t: True  # noqa: E731
_NEVER: Final[Test] = lambda _p, _t: False  # noqa: E731

COORDINATOR: Final = (
    Row(Value.NO_CHANGE, lambda p, t: p.coordinators <= t.low, _NEVER, lambda _p, _t: 1, lambda _p: 1),
    Row(
        Value.APPROPRIATE,
        lambda p, _t: p.locals == 0 and p.near,
        _ALWAYS,
        lambda p, t: p.coordinators - t.low,
        lambda p: p.coordinators,
    ),
    Row(
        Value.NEUTRAL,
        lambda p, t: p.locals < t.local_target and p.near,
        lambda p, t: p.coordinators > t.upper,
        lambda p, t: p.coordinators - t.upper,
        lambda p: p.coordinators,
    ),
    Row(
        Value.INAPPROPRIATE,
        _ALWAYS,
        lambda p, t: p.coordinators > t.high,
        lambda p, t: p.coordinators - t.high,
        lambda p: p.coordinators,
    ),
)
CHILD: Final = (
    Row(
        Value.APPROPRIATE,
        lambda p, t: p.locals > t.local_target and not p.near,
        _ALWAYS,
        lambda _p, _t: 1,
        lambda p: p.locals,
    ),
    Row(
        Value.NEUTRAL,
        lambda p, t: p.locals <= t.local_target and not p.near,
        lambda p, t: p.coordinators < t.lower,
        lambda p, t: t.lower - p.coordinators,
        lambda p: p.population - p.coordinators,
    ),
    Row(
        Value.INAPPROPRIATE,
        _ALWAYS,
        lambda p, t: p.coordinators < t.low,
        lambda p, t: t.low - p.coordinators,
        lambda p: p.population - p.coordinators,
    ),
)
TIMERS: Final[Mapping[Value, tuple[tuple[int, int], tuple[int, int]]]] = {
    Value.APPROPRIATE: ((1, 0), (0, 1)),
    Value.NEUTRAL: ((1, 1), (1, 2)),
    Value.INAPPROPRIATE: ((1, 2), (1, 3)),
}
"""Table 2.4: lower and upper bound of the timer, each as multiples of S1 and S2."""


def row_for(position: Position, thresholds: Thresholds) -> Row:
    """Table 2.2: the first row that applies."""
    rows = COORDINATOR if position.coordinator else CHILD
    return next(row for row in rows if row.applies(position, thresholds))


def timer_bounds(row: Row, position: Position, thresholds: Thresholds, state_change_ns: tuple[int, int]) -> list[int]:
    """Table 2.4, with an interval that is wide enough for all that may change (H11)."""
    s1, s2 = state_change_ns
    low, high = (first * s1 + second * s2 for first, second in TIMERS[row.value])
    spread = row.candidates(position) * position.reaction_ns / max(row.needed(position, thresholds), 1)
    return [low, low + max(high - low, int(spread))]


class SelfDetermination:
    """The pending change of one process. Invariant: a timer begins only if the tables allow the change."""

    def __init__(self, state_change_ns: tuple[int, int], draw: Draw) -> None:
        self._state_change_ns, self._draw = state_change_ns, draw
        self.due_at: int | None = None
        self._contacted = False

    def reset(self) -> None:
        """The role changes, or a change has begun."""
        self.due_at, self._contacted = None, False

    def contacted(self) -> None:
        """A child asked to join us, was answered, or was added."""
        self._contacted = True

    def review(self, position: Position, thresholds: Thresholds, now: int) -> bool:
        """Look at the present numbers, each second; True if the role must change now."""
        row = row_for(position, thresholds)
        allowed = row.may_continue(position, thresholds)
        if self.due_at is not None:
            if now < self.due_at:
                return False
            aborted = position.coordinator and self._contacted
            self.reset()
            if allowed and not aborted:
                return True
        if allowed:
            low, high = timer_bounds(row, position, thresholds, self._state_change_ns)
            self.due_at, self._contacted = now + low + int(self._draw() * (high - low)), False
        return False
