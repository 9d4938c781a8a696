"""Received numbers of each member in an asymmetric group: the orders of sequencers, and evidence of life."""

from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.types import ProcessId


class Chains:
    """Invariant: `_chained` is the last received number of each sequencer, and nothing is missing before it.

    A member that does not order has numbers too: a null shows that it lives when it is suspected (rule 6.1). Only the
    last such null matters. It belongs to no chain, and refers to the base.
    """

    __slots__ = ("_base", "_chained", "_evidence")

    def __init__(self, base: int) -> None:
        self._base = base
        self._chained: dict[ProcessId, int] = {}
        self._evidence: dict[ProcessId, BlockFrame] = {}

    @property
    def base(self) -> int:
        """The number at which the group begins."""
        return self._base

    def before(self, sender: ProcessId, *, ordered: bool) -> int:
        """The number that the next frame of that member must refer to."""
        return self._chained.get(sender, self._base) if ordered else self._base

    def link(self, sequencer: ProcessId, block: int) -> None:
        """The sequencer has used this number."""
        self._chained[sequencer] = block

    def show(self, frame: BlockFrame) -> None:
        """A member has shown that it lives."""
        self._evidence[frame.sender] = frame

    def evidence(self, process: ProcessId, above: int) -> tuple[BlockFrame, ...]:
        """Its last evidence, if it has a larger number."""
        evidence = self._evidence.get(process)
        return () if evidence is None or evidence.block <= above else (evidence,)
