"""Consensus from atomic multicast (Notes): propose a value by multicasting it, decide the first value delivered.

All live processes deliver in one order, so they decide the same value. The notes conclude from this reduction that
asynchronous systems with crashes have no deterministic atomic multicast. More exactly (N4): none that always
terminates. Ours does not either: it terminates only if losses are reported, which takes bounds on delays.
"""

from typing import NamedTuple

from antiphon.core.effects import Deliver, Effect
from antiphon.protocols.classic.process import ClassicProcess
from antiphon.types import GroupId, ProcessId


class Decide(NamedTuple):
    """The value that this process decides; it decides once."""

    group: GroupId
    value: bytes
    proposer: ProcessId


class Consensus:
    """One decision of one group with service `total`. The messages of the group are proposals."""

    def __init__(self, core: ClassicProcess, group: GroupId) -> None:
        self.core = core
        """Feed it directly, but drain it only here."""
        self.decision: Decide | None = None
        self._group = group

    def propose(self, value: bytes, now: int) -> None:
        self.core.send(self._group, value, now)

    def drain(self, now: int) -> list[Effect | Decide]:
        """As `Core.drain`; the decision follows the delivery that causes it."""
        effects: list[Effect | Decide] = []
        for effect in self.core.drain(now):
            effects.append(effect)
            if isinstance(effect, Deliver) and effect.frame.group == self._group and self.decision is None:
                self.decision = Decide(self._group, effect.frame.payloads[0], effect.frame.sender)
                effects.append(self.decision)
        return effects
