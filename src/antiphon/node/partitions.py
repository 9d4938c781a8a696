"""Partitions between real processes: each learns which peers to disconnect. Implements `sim.faults.Disturbed`."""

from antiphon.node.remote import Remote
from antiphon.scenario.model import Cut, Delay, Loss, Partition, cut_links
from antiphon.types import ProcessId, split_process_id


class Partitions:
    """The connections between the processes: partitions keep them closed."""

    def __init__(self, remotes: dict[ProcessId, Remote], *, merges: bool, renews: bool) -> None:
        self._remotes = remotes
        self._merges, self._renews = merges, renews
        self._faults: list[Partition] = []
        self._broken: set[tuple[str, str]] = set()

    def disturb(self, fault: Delay | Loss | Partition | Cut) -> None:
        assert isinstance(fault, Partition)
        self._faults.append(fault)
        self._act()

    def calm(self, fault: Delay | Loss | Partition | Cut | None = None) -> None:
        self._faults = [other for other in self._faults if fault is not None and other is not fault]
        self._act()

    def crash(self, node: Remote) -> None:
        """Its connections end with it."""

    def works(self, sender: ProcessId, receiver: ProcessId) -> bool:
        pair = _names(sender, receiver)
        return pair not in self._cut and (self._merges or pair not in self._broken)

    def passes(self, sender: ProcessId, receiver: ProcessId) -> bool:
        pair = _names(sender, receiver)
        return pair not in self._cut and (self._renews or pair not in self._broken)

    @property
    def _cut(self) -> set[tuple[str, str]]:
        return {link for fault in self._faults for link in cut_links(fault)}

    def _act(self) -> None:
        self._broken |= self._cut
        for remote in self._remotes.values():
            self.inform(remote)

    def inform(self, remote: Remote) -> None:
        """Tell a process from which others it is cut off now."""
        name = split_process_id(remote.id)[0]
        remote.order(do="forbid", names=sorted(other for one, other in self._cut if one == name))


def _names(one: ProcessId, other: ProcessId) -> tuple[str, str]:
    return split_process_id(one)[0], split_process_id(other)[0]
