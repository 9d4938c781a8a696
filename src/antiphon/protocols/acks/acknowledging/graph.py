"""The causal graph of transitive acknowledgments: which process has acknowledged which message, directly or not.

The messages of one sender form a chain. A message has edges to those that its list names, and to the message of its
sender before it. A message of x acknowledges, for x, everything that can be reached through its list, up to what x has
acknowledged before. A node is removed when all processes that must acknowledge it have done so: it is not listed again.
"""

from antiphon.protocols.acks.acknowledging.minimum import Minimum
from antiphon.protocols.acks.frames import MessageFrame, MessageId
from antiphon.types import ProcessId


class _Node:
    __slots__ = ("acked_by", "leads_to")

    def __init__(self, sender: ProcessId, leads_to: tuple[MessageId, ...]) -> None:
        self.leads_to = leads_to
        self.acked_by = {sender}


class Chain:
    """The messages of one sender that some process has not acknowledged."""

    __slots__ = ("acked_by", "last", "nodes")

    def __init__(self, acked_by: Minimum | None = None) -> None:
        self.nodes: dict[int, _Node] = {}
        """By stamp, in the order of stamps."""
        self.acked_by = Minimum() if acked_by is None else acked_by
        """The processes that must acknowledge these messages, each with the last stamp that it has acknowledged.
        Streams are in order: a process that has one of the messages has all earlier ones that were sent to it."""
        self.last = 0


class Graph:
    """The chains of all senders, and our own."""

    def __init__(self) -> None:
        self.chains: dict[ProcessId, Chain] = {}
        self._work = 0

    @property
    def work(self) -> int:
        """Edges walked and entries written so far."""
        return self._work + sum(chain.acked_by.steps for chain in self.chains.values())

    def last_of(self, sender: ProcessId) -> int:
        """The stamp of the last message of a sender that was added, even if it was removed since."""
        return self.chains[sender].last

    def add(self, frame: MessageFrame, previous: int) -> None:
        """Add a message; all its predecessors are here, except those that will never arrive."""
        sender, chain = frame.sender, self.chains[frame.sender]
        chain.nodes[frame.stamp] = _Node(sender, ((sender, previous), *frame.past))
        chain.last = frame.stamp
        touched = {sender: chain}
        for message in frame.alone:
            self._acknowledge(sender, message, touched)
        self._walk(sender, [*frame.past], touched)
        for each in touched.values():
            _prune(each)

    def forget(self, process: ProcessId) -> None:
        """Remove a process, its messages, and its duty to acknowledge."""
        self._work += self.chains.pop(process).acked_by.steps
        for chain in self.chains.values():
            if process in chain.acked_by:
                chain.acked_by.remove(process)
            _prune(chain)

    def _walk(self, by: ProcessId, messages: list[MessageId], touched: dict[ProcessId, Chain]) -> None:
        while messages:
            self._work += 1
            node = self._acknowledge(by, messages.pop(), touched)
            if node is not None:
                messages += node.leads_to

    def _acknowledge(self, by: ProcessId, message: MessageId, touched: dict[ProcessId, Chain]) -> _Node | None:
        """Acknowledge one message; returns its node, unless it was acknowledged before or is not there."""
        sender, stamp = message
        chain = self.chains.get(sender)
        node = None if chain is None else chain.nodes.get(stamp)
        if chain is None or node is None or by in node.acked_by:
            return None
        node.acked_by.add(by)
        if by in chain.acked_by:
            chain.acked_by.raise_to(by, stamp)
            touched[sender] = chain
        return node


def _prune(chain: Chain) -> None:
    """Remove what all processes have acknowledged."""
    reached, nodes = chain.acked_by.smallest, chain.nodes
    while nodes:
        stamp = next(iter(nodes))
        if reached is not None and stamp > reached:
            return
        del nodes[stamp]
