"""Algorithm C, causal multicast over F (Notes): a message carries its past, so no receiver ever waits for it.

Each message travels with the messages that its sender delivered since its previous one: prevReceives, the *context*.
A receiver delivers those of them that are new to it, then the message itself. Two departures from the text:

- Our own messages are not listed, although we deliver them too. A member that F-delivers our next packet has
  F-delivered all our earlier ones, each with its own context.
- What every live member is known to have is removed from the list. R tells us at no cost: a member that relays a packet
  has it. A member that has relayed all packets of a sender up to some packet has F-delivered that packet, and so has
  delivered everything in it, before anything that we send from now on can reach it. So the context of a member that
  never sends does not grow without bound, and in a quiet group it is empty.
"""

from antiphon.protocols.classic.frames import DataFrame, MessageName
from antiphon.protocols.classic.relaying.fifo import Fifo
from antiphon.protocols.classic.seen import Seen
from antiphon.protocols.classic.site import Site
from antiphon.types import ProcessId


class Causal(Fifo):
    """One process under algorithm C."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._delivered: dict[ProcessId, int] = {}
        """By sender, its last message delivered. There are no gaps, because a context holds everything before."""
        self._previous: dict[MessageName, DataFrame] = {}  # prevReceives, in order
        self._brought: dict[MessageName, list[MessageName]] = {}
        """By packet, the messages first delivered here because of it; kept until all members have the packet."""
        self._relayed: dict[ProcessId, dict[ProcessId, Seen]] = {}
        """By sender and member, the packets of the sender that the member has relayed."""
        self._everywhere: dict[ProcessId, int] = {}
        """By sender, the number up to which every live member is known to have its packets."""

    @property
    def held(self) -> int:
        """Number of messages in the bag and in the context of our next message."""
        return super().held + len(self._previous)

    def lost(self) -> None:
        """As in F; and the lost process need not have packets any more."""
        super().lost()
        for sender in self._relayed:
            self._prune(sender)

    def _context(self) -> tuple[DataFrame, ...]:
        context = tuple(self._previous.values())
        self._previous.clear()
        return context

    def _arrived(self, frame: DataFrame, by: ProcessId) -> None:
        super()._arrived(frame, by)
        sender = frame.sender
        if sender == self._site.me:
            return
        relayed = self._relayed.setdefault(sender, {})
        if by == sender:
            self._prune(sender)
        else:
            seen = relayed.setdefault(by, Seen())
            hinders = seen.mark == self._everywhere.get(sender, 0)
            if seen.add(frame.sequence) and hinders:
                self._prune(sender)

    def _fifo(self, frame: DataFrame) -> None:
        """receive(F, ⟨m1 … mk⟩): deliver those that are new; only they belong to the context (N2)."""
        new = [
            copy for copy in (*frame.copies, frame._replace(copies=())) if self._causal(copy)
        ]  # contexts do not nest
        if frame.sender != self._site.me and frame.sequence > self._everywhere.get(frame.sender, 0):
            self._previous.update((copy.name, copy) for copy in new)
            self._brought[frame.name] = [copy.name for copy in new]

    def _causal(self, frame: DataFrame) -> bool:
        """receive(C, m), unless it was delivered before."""
        sender = frame.sender
        new = frame.sequence == self._delivered.get(sender, 0) + 1
        if new:
            self._delivered[sender] = frame.sequence
            self._site.deliver(frame)
        return new

    def _prune(self, sender: ProcessId) -> None:
        """Remove from the list what all members have. The sender has what it sent; we have it if we saw it."""
        relayed, seen = self._relayed[sender], self._seen.get(sender)
        marks = [relayed[peer].mark if peer in relayed else 0 for peer in self._site.peers if peer != sender]
        everywhere = min(marks, default=seen.mark if seen is not None else 0)
        for sequence in range(self._everywhere.get(sender, 0) + 1, everywhere + 1):
            self._everywhere[sender] = sequence
            for message in self._brought.pop(MessageName(sender, sequence), ()):
                self._previous.pop(message, None)
