"""Consensus from atomic multicast (Notes): propose a value by multicasting it, decide the first value delivered.

All who live deliver in one order, so they decide alike. The notes conclude from this reduction that asynchronous
systems with crashes have no deterministic atomic multicast. More exactly (N4): none that also always terminates. Ours
does not either: that decisions are reached rests on being told who is lost, which takes bounds on delays.
"""

from typing import NamedTuple

from antiphon.core.effects import Deliver, Effect
from antiphon.protocols.classic.process import ClassicProcess
from antiphon.types import GroupId, ProcessId


class Decide(NamedTuple):
    """The value that this process decides, once and for ever."""

    group: GroupId
    value: bytes
    proposer: ProcessId


class Consensus:
    """One decision of one group, whose service is `total` and whose messages are proposals."""

    def __init__(self, core: ClassicProcess, group: GroupId) -> None:
        self.core = core
        """Feed it as ever; only drain it here."""
        self.decision: Decide | None = None
        self._group = group

    def propose(self, value: bytes, now: int) -> None:
        """Put a value forward."""
        self.core.send(self._group, value, now)

    def drain(self, now: int) -> list[Effect | Decide]:
        """As `Core.drain`, with the decision behind the delivery that makes it."""
        effects: list[Effect | Decide] = []
        for effect in self.core.drain(now):
            effects.append(effect)
            if isinstance(effect, Deliver) and effect.frame.group == self._group and self.decision is None:
                self.decision = Decide(self._group, effect.frame.payloads[0], effect.frame.sender)
                effects.append(self.decision)
        return effects
