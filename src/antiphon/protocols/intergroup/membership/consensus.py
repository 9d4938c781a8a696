"""Agreement of senders on the members of the next view (Berket00 §5.4.1, Fig. 5.5; errata M1, M4, M5, M25, M26).

Each process proposes the processes that it knows of, and which of them have failed. Both sets only grow within one
repair. They agree when all that are not failed propose the same.
"""

import hashlib

from antiphon.protocols.intergroup.membership.frames import ProposalFrame
from antiphon.types import GroupId, ProcessId, ViewId


class Consensus:
    """The sets of one process in one repair, and what the others have proposed last."""

    def __init__(self, me: ProcessId, epoch: ViewId, run: int, members: frozenset[ProcessId]) -> None:
        self._me, self._epoch, self._run = me, epoch, run
        self.processes = {*members, me}
        self.failed: set[ProcessId] = set()
        self._last: dict[ProcessId, ProposalFrame] = {}

    @property
    def proposed(self) -> list[ProcessId]:
        """The members of the next view, if all agree; the first one is the leader."""
        return sorted(self.processes - self.failed)

    def frame(self, group: GroupId, number: int, stamp: int) -> ProposalFrame:
        """Our proposal."""
        processes, failed = tuple(sorted(self.processes)), tuple(sorted(self.failed))
        return ProposalFrame(group, self._me, number, self._run, self._epoch, stamp, processes, failed)

    def add(self, process: ProcessId) -> bool:
        """True if the process is new."""
        is_new = process not in self.processes
        self.processes.add(process)
        return is_new

    def fail(self, process: ProcessId) -> bool:
        """Take the process for failed; True if it was not before."""
        is_new = process not in self.failed
        self.processes.add(process)
        self.failed.add(process)
        return is_new

    def hear(self, frame: ProposalFrame) -> None:
        """What its sender proposes now."""
        self._last[frame.sender] = frame

    def is_larger(self, frame: ProposalFrame) -> bool:
        """True if the sets of the frame have members that ours lack."""
        return not (self.processes.issuperset(frame.processes) and self.failed.issuperset(frame.failed))

    def has_begun_anew(self, frame: ProposalFrame) -> bool:
        """True if the repair in which its sender proposed what we know of has ended (J23)."""
        last = self._last.get(frame.sender)
        return last is not None and frame.run > last.run

    def incorporate(self, frame: ProposalFrame) -> None:
        """Add its sets to ours. We are never in our own failed set: whoever says so is failed for us (M26)."""
        self.processes.update(frame.processes)
        self.failed.update(process for process in frame.failed if process != self._me)

    def matches(self, process: ProcessId) -> bool:
        """True if the process proposes what we propose."""
        last = self._last.get(process)
        return last is not None and self.processes == {*last.processes} and self.failed == {*last.failed}

    @property
    def unmatched(self) -> list[ProcessId]:
        """The proposed members that do not propose what we propose."""
        return [process for process in self.proposed if process != self._me and not self.matches(process)]

    @property
    def proposal(self) -> str:
        """The id of the agreed proposal: the sets alone may repeat in a later repair, so runs count too (M5)."""
        runs = [
            f"{process} {self._epoch} {self._run}"
            if process == self._me
            else f"{process} {self._last[process].epoch} {self._last[process].run}"
            for process in self.proposed
        ]
        text = "\n".join([*runs, "", *sorted(self.failed)])
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
