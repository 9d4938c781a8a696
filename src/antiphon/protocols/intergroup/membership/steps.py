"""The steps of a repair at one sender, and the changes between them (Berket00 Figs 5.4 to 5.6)."""

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Step(Enum):
    NONE = "no repair"
    CONSENSUS = "consensus"
    INFO = "gather recovery info"
    RECOVERY = "recovery"
    READY = "gather ready to change"
    WAIT = "wait for membership change"


class Cause(Enum):
    PROPOSE = "own sets are new"
    AGREED = "all propose the same"
    ROUND = "round without receivers"
    INFORMED = "all RecInfo heard"
    LEADS = "nothing missing, as leader"
    FOLLOWS = "nothing missing"
    DECIDED = "MC"


STEPS: Final[Mapping[tuple[Step, Cause], Step]] = {
    (Step.NONE, Cause.PROPOSE): Step.CONSENSUS,
    (Step.CONSENSUS, Cause.AGREED): Step.INFO,
    (Step.INFO, Cause.INFORMED): Step.RECOVERY,
    (Step.RECOVERY, Cause.LEADS): Step.READY,
    (Step.RECOVERY, Cause.FOLLOWS): Step.WAIT,
    (Step.READY, Cause.DECIDED): Step.NONE,
    (Step.WAIT, Cause.DECIDED): Step.NONE,
    # Fig. 5.6: back to consensus
    **{(step, Cause.PROPOSE): Step.CONSENSUS for step in Step if step is not Step.NONE},
    # J5: the second round; from consensus, the round of an old proposal does not count
    **{(step, Cause.ROUND): Step.INFO for step in (Step.INFO, Step.RECOVERY, Step.READY, Step.WAIT)},
    # 7.6.6: a change that fits what we said last counts also after a restart
    **{(step, Cause.DECIDED): Step.NONE for step in (Step.CONSENSUS, Step.INFO, Step.RECOVERY)},
}


class RepairSteps:
    """The step of one sender, over all its repairs; every change is in the table."""

    def __init__(self) -> None:
        self.step = Step.NONE
        self.taken: dict[tuple[Step, Cause], int] = {}
        """How often each change was made."""

    def go(self, cause: Cause) -> None:
        change = self.step, cause
        self.taken[change] = self.taken.get(change, 0) + 1
        self.step = STEPS[change]
