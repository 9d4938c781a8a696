"""Properties (a) to (d) of stability.md 2 and the invariant of its section 4, judged from outside as a cluster runs."""

from collections import defaultdict

from antiphon.core.effects import Deliver, Effect, InstallView, Stable, Transmit
from antiphon.protocols.acks.frames import AckFrame, MessageFrame, VectorAckFrame
from antiphon.types import ProcessId, View
from tools.lab.acks_cluster import AcksCluster


class Judge:
    """Attach it before the first event. It knows all deliveries, not the state of any core."""

    def __init__(self, cluster: AcksCluster, *, everybody: bool = False) -> None:
        self.claims = 0
        """Number of times that a process called a message stable."""
        self._cluster = cluster
        self._everybody = everybody  # claims may be about the messages of others, too (property d)
        self._owed: dict[str, dict[int, set[ProcessId]]] = {name: {} for name in cluster.names}
        """By sender and label, the processes that have been receivers ever since it was sent."""
        self._delivered: dict[tuple[str, str], int] = defaultdict(lambda: -1)
        self._stable: dict[tuple[str, str], int] = defaultdict(lambda: -1)
        self._acked: dict[tuple[str, str], int] = defaultdict(int)
        self._views: dict[str, View] = {name: views[-1] for name, views in cluster.views.items() if views}
        cluster.watch = self._see

    def _see(self, name: str, effect: Effect) -> None:
        if isinstance(effect, Transmit):
            self._transmitted(name, effect)
        elif isinstance(effect, Deliver):
            last, frame = self._delivered[name, effect.frame.sender], effect.frame
            assert frame.label > last, "a message is delivered once, and in the order of sending"
            self._delivered[name, frame.sender] = frame.label
        elif isinstance(effect, InstallView):
            self._installed(name, effect.view)
        elif isinstance(effect, Stable):
            for sender, label in effect.upto:
                self._called_stable(name, sender, label)

    def _transmitted(self, name: str, effect: Transmit) -> None:
        frame = effect.frame
        if isinstance(frame, MessageFrame) and frame.payloads:
            self._owed[name][frame.label] = set(self._views[name].receivers or ())
        elif isinstance(frame, AckFrame):
            to = effect.to if isinstance(effect.to, str) else "everybody"
            self._acknowledged(name, to, frame.value)
        elif isinstance(frame, VectorAckFrame):
            for sender, value in frame.entries:
                self._acknowledged(name, sender, value)

    def _acknowledged(self, name: str, of: str, value: int) -> None:
        assert value >= self._acked[name, of], f"(c): the acknowledgments of {name} fall"
        self._acked[name, of] = value

    def _installed(self, name: str, view: View) -> None:
        before = self._views.get(name)
        self._views[name] = view
        receivers, senders = {*(view.receivers or ())}, {*(view.senders or ())}
        old_receivers = {*((before and before.receivers) or ())}
        old_senders = {*((before and before.senders) or ())}
        if gone := old_receivers - receivers:
            for owed in self._owed[name].values():
                owed.difference_update(gone)
        for process in old_senders - senders:
            self._acked.pop((name, process), None)  # the next connection starts again, except with one number for all
        for process in receivers - old_receivers:
            self._admitted(ProcessId(name), process)

    def _admitted(self, sender: ProcessId, receiver: ProcessId) -> None:
        """Section 4: a sender that counts a receiver is counted by it, unless the receiver left or disconnected."""
        ours, theirs = self._cluster.group(sender), self._cluster.group(receiver)
        back = theirs.links.peers.get(sender)
        mutual = back is not None and back.session == ours.links.session and theirs.links.joined
        if mutual and theirs.links.session == ours.links.peers[receiver].session:
            assert sender in theirs.connections.senders, f"(6): {sender} counts {receiver}, which does not count it"

    def _called_stable(self, name: str, sender: str, label: int) -> None:
        assert self._everybody or name == sender
        for number in range(self._stable[name, sender] + 1, label + 1):
            self.claims += 1
            for process in self._owed[sender][number] - {ProcessId(name)}:
                assert (process, sender, number) in self._cluster.delivered_at, (
                    f"(a): {name} calls message {number} of {sender} stable, which {process} lacks"
                )
        self._stable[name, sender] = max(label, self._stable[name, sender])

    @property
    def settled(self) -> bool:
        """True if every message has reached all receivers that stayed and is stable (b), and all are connected."""
        cluster = self._cluster
        alive = [name for name in cluster.names if name not in cluster.crashed]
        return (
            not any(cluster.unstable(name) for name in alive)
            and all(
                (each, name, label) in cluster.delivered_at
                for name in alive
                for label, owed in self._owed[name].items()
                for each in owed
            )
            and all(self._connected(name, alive) for name in alive if cluster.group(name).links.joined)
            and (not self._everybody or self._all_know())
        )

    def _connected(self, name: str, alive: list[str]) -> bool:
        group, links = self._cluster.group(name), self._cluster.group(name).links
        present = {each for each in links.expected() if each in alive and self._cluster.group(each).links.joined}
        return (
            {*links.peers} == present
            and group.connections.receivers == {each for each in present if links.feeds(links.peers[each])}
            and group.connections.senders == {each for each in present if links.takes(links.peers[each])}
        )

    def _all_know(self) -> bool:
        """(d): all know of all messages."""
        return all(
            self._stable[name, sender] == max(self._owed[sender], default=-1)
            for name in self._cluster.names
            for sender in self._cluster.names
        )
