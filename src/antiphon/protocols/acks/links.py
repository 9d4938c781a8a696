"""Who is in the group, as far as this process has heard, and in which session (Berket98 §6; docs/spec/stability.md 4).

The paper's channels are opened and closed; ours are there all the time, so *open* and *close* frames on the streams say
which of what travels belongs together. A process that joins opens towards everybody it may have to do with; whoever
is in the group answers, and the answer is answered: each side then knows that the other knows its present session.

The answer also says from which number on acknowledgments of its sender speak of this connection (T13). Acknowledgments
are datagrams for all senders at once: one that was late from an earlier connection would look like the first of the new
one, and claim messages that were never received in it.
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
    """From which number on its acknowledgments speak of this connection; None: it has not answered us."""

    @property
    def sends(self) -> bool:
        """Whether it has messages of its own."""
        return sends(self.role)

    def takes(self, sender: ProcessId) -> bool:
        """Whether it receives the messages of `sender`, if that one sends."""
        return receives(self.role) and (self.sources is None or sender in self.sources)


class Links:
    """A process and its peers in one group."""

    def __init__(self, me: ProcessId, plan: AcksGroupPlan) -> None:
        assert me in plan.roles
        self.me = me
        self.plan = plan
        self.itself = self._planned(me)
        self.session = 1 if me in plan.present else 0
        """The how many-th stay in the group; the last one, if it is over."""
        self.joined = me in plan.present
        self.peers: dict[ProcessId, Peer] = {}
        """Those in the group whose sessions we have answered, by name."""

    def takes(self, peer: Peer) -> bool:
        """Whether we receive its messages."""
        return peer.sends and self.itself.takes(peer.process)

    def feeds(self, peer: Peer) -> bool:
        """Whether it receives ours."""
        return self.itself.sends and peer.takes(self.me)

    def concerns(self, peer: Peer) -> bool:
        """Whether we have to do with each other."""
        return peer.process != self.me and (self.takes(peer) or self.feeds(peer))

    def expected(self) -> list[ProcessId]:
        """Those in the plan with whom we have to do, in the group or not."""
        return [process for process in sorted(self.plan.roles) if self.concerns(self._planned(process))]

    def start(self) -> None:
        """Who is there from the start is connected from the start, by configuration."""
        for process in self.expected():
            if process in self.plan.present:
                self.peers[process] = self._planned(process)

    def stale(self, frame: OpenFrame) -> bool:
        """Whether it is meant for an earlier session of ours, or comes from an earlier one of its sender."""
        known = self.peers.get(frame.sender)
        return frame.answers not in {0, self.session} or (known is not None and frame.session < known.session)

    def _planned(self, process: ProcessId) -> Peer:
        plan = self.plan
        return Peer(process, 1, plan.roles[process], plan.sources.get(process), acks_from=1)
