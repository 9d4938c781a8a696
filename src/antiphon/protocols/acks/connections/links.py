"""The processes in the group that this process knows of, and their sessions (Berket98 §6; docs/spec/stability.md 4).

The paper opens and closes channels. Our channels exist all the time, so *open* and *close* frames on the streams tell
which frames belong to one connection. A joiner opens towards every process that it may be connected with. Processes in
the group answer, and the joiner answers the answer: then each side knows that the other knows its present session.

The answer also tells the first acknowledgment of its sender that belongs to this connection (T13). Acknowledgments are
datagrams for all senders at once. A late one from an earlier connection would look like the first of the new one, and
would claim messages that were never received in it.
"""

from collections.abc import Collection
from dataclasses import dataclass

from antiphon.protocols.acks.frames import OpenFrame
from antiphon.protocols.acks.settings import AcksGroupPlan, Role, receives, sends
from antiphon.types import ProcessId


@dataclass(slots=True)
class Peer:
    """Another process that is in the group."""

    process: ProcessId
    session: int
    role: Role
    sources: Collection[ProcessId] | None
    acks_from: int | None = None
    """Number of its first acknowledgment that belongs to this connection; None: it has not answered us."""

    @property
    def sends(self) -> bool:
        return sends(self.role)

    def takes(self, sender: ProcessId) -> bool:
        """True if it receives the messages of `sender`, provided that `sender` sends."""
        return receives(self.role) and (self.sources is None or sender in self.sources)


class Links:
    """A process and its peers in one group."""

    def __init__(self, me: ProcessId, plan: AcksGroupPlan) -> None:
        assert me in plan.roles
        self.me = me
        self.plan = plan
        self.itself = self._planned(me)
        self.session = 1 if me in plan.present else 0
        """Sessions in the group are counted from 1; after a session, its number stays."""
        self.joined = me in plan.present
        self.peers: dict[ProcessId, Peer] = {}
        """The processes in the group whose sessions we have answered, by name."""

    def takes(self, peer: Peer) -> bool:
        """True if we receive its messages."""
        return peer.sends and self.itself.takes(peer.process)

    def feeds(self, peer: Peer) -> bool:
        """True if it receives our messages."""
        return self.itself.sends and peer.takes(self.me)

    def concerns(self, peer: Peer) -> bool:
        """True if messages flow between us, in either direction."""
        return peer.process != self.me and (self.takes(peer) or self.feeds(peer))

    def expected(self) -> list[ProcessId]:
        """The processes in the plan that concern us, whether they are in the group or not."""
        return [process for process in sorted(self.plan.roles) if self.concerns(self._planned(process))]

    def connect_present(self) -> None:
        """The processes that are present from the start are connected from the start, by configuration."""
        for process in self.expected():
            if process in self.plan.present:
                self.peers[process] = self._planned(process)

    def begin_session(self) -> None:
        self.joined = True
        self.session += 1

    def end_session(self) -> None:
        self.joined = False

    def add(self, peer: Peer) -> None:
        self.peers[peer.process] = peer

    def remove(self, process: ProcessId) -> None:
        del self.peers[process]

    def stale(self, frame: OpenFrame) -> bool:
        """True if it is meant for an earlier session of ours, or comes from an earlier session of its sender."""
        known = self.peers.get(frame.sender)
        return frame.answers not in {0, self.session} or (known is not None and frame.session < known.session)

    def _planned(self, process: ProcessId) -> Peer:
        plan = self.plan
        return Peer(process, 1, plan.roles[process], plan.sources.get(process), acks_from=1)
