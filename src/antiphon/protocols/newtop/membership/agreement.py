"""Agreement on failed members, in one group at one member (docs/spec/newtop.md 9.3-9.5; Macedo94 §6.3.2, corrected).

A member that suspects another announces that, with the last number it has from it. A member that has more refutes the
suspicion, and sends what it has. When all unsuspected members have the same suspicions with the same numbers, the
suspected members have failed: all together, with one last number after which their messages do not count. Roman
numerals are the conditions of the specification.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from antiphon.core.effects import Confirmed, Departure, Frame, Refuted, Suspected
from antiphon.protocols.newtop.frames import (
    AliveFrame,
    BlockFrame,
    ConfirmedFrame,
    LeavingFrame,
    MembershipFrame,
    RefuteFrame,
    SuspectFrame,
    Suspicion,
)
from antiphon.protocols.newtop.gate import Reason
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import ProcessId

if TYPE_CHECKING:
    from antiphon.protocols.newtop.group import NewtopGroup


_CONTRADICTIONS: Final = 3
"""How often others may vouch for a member that we are cut off from, before one of the two must leave."""


class Detection(NamedTuple):
    """Members whose failure was confirmed together."""

    failed: tuple[Suspicion, ...]
    """Sorted."""
    left: tuple[Departure, ...]
    at: int

    @property
    def last(self) -> int:
        """lbn_mn: in total order, no message of these members above this number counts.

        Such a message may depend on a message of another failed member that no survivor has.
        """
        return min(last for _, last in self.failed)


class AgreementCallbacks(NamedTuple):
    """Callbacks of the process that the agreement needs."""

    take: Callable[[Frame, int], None]
    """Handle a frame as if it had just arrived."""
    accept: Callable[[BlockFrame, int], bool]
    """Accept a message from a refutation, even if its sender is suspected; False if it is not the next one."""
    confirmed: Callable[["NewtopGroup", Detection, int], None]
    """Reports confirmed failures."""


class _Suspected(NamedTuple):
    """When and why we suspected a member."""

    at: int
    reason: str
    silent_ns: int


class Agreement:
    """Invariant: frames of the members in `suspicions` are not accepted: they wait in `_pending` (9.3)."""

    __slots__ = (
        "_callbacks",
        "_contradicted",
        "_examined",
        "_gone",
        "_grace_ns",
        "_group",
        "_handlers",
        "_me",
        "_pending",
        "_recorded",
        "_secedes",
        "_sure",
        "_suspected",
        "_vanished",
        "_votes",
        "failed",
        "suspicions",
        "wary",
    )

    def __init__(
        self, me: ProcessId, group: "NewtopGroup", settings: NewtopSettings, callbacks: AgreementCallbacks
    ) -> None:
        self.suspicions: dict[ProcessId, int] = {}
        """The members that we suspect, each with the last number that we have from it."""
        self.failed: dict[ProcessId, int] = {}
        """Members with a confirmed failure that are still in the view; likewise."""
        self.wary = False
        """Whether frames must pass the filter: a member is suspected, accused, failed, or said to be dead."""
        self._votes: dict[Suspicion, set[ProcessId]] = {}  # T: the suspicions received, our own included
        self._recorded: dict[Suspicion, int] = {}  # when the first vote for each arrived
        self._pending: dict[ProcessId, list[Frame]] = {}  # what suspected members sent
        self._examined: set[tuple[ProcessId, Suspicion]] = set()  # pending accusations that we have refuted
        self._suspected: dict[ProcessId, _Suspected] = {}
        self._sure: set[ProcessId] = set()  # suspected because of their own frames (E-52)
        self._gone: dict[ProcessId, str] = {}  # members that have announced that they leave, with the reason
        self._vanished: set[ProcessId] = set()  # the transport has evidence that they are dead
        self._contradicted: dict[ProcessId, int] = {}  # cut off from us: how often others vouched for it
        self._secedes = settings.merge_every_ns > 0  # a member that secedes is found again and merged
        self._me = me
        self._group = group
        self._grace_ns = settings.suspect_after_ns
        self._callbacks = callbacks
        self._handlers: Mapping[type[MembershipFrame], Callable[[Any, int], None]] = {
            SuspectFrame: self._on_suspect,
            RefuteFrame: self._on_refute,
            ConfirmedFrame: self._on_confirmed,
            LeavingFrame: self._on_leaving,
        }

    @property
    def active(self) -> bool:
        """Whether votes or refutations are awaited."""
        return bool(self.suspicions or self._votes)

    # Input

    def admits(self, frame: Frame, now: int) -> bool:
        """The filter for direct frames (9.3): those of suspected members wait, those of failed members are dropped."""
        sender = frame.sender
        self._vanished.discard(sender)  # it sends, so the evidence was wrong
        if sender in self.failed:
            return False
        if sender not in self.suspicions:
            return True
        if self.excludes_me(frame) or isinstance(frame, LeavingFrame):
            self._sure.add(sender)
        elif sender not in self._sure and self._alone_with(sender):
            self._trust(sender, now)  # no other member can have used our vote (E-25)
            if sender not in self.suspicions:
                return True
        self._hold(frame)
        if isinstance(frame, SuspectFrame):
            self._examine(frame, now)
        self.evaluate(now)
        return False

    def receive(self, frame: MembershipFrame, now: int) -> None:
        """A frame of the agreement, from a member that we do not suspect."""
        self._handlers[type(frame)](frame, now)
        self.evaluate(now)

    def suspect(self, process: ProcessId, reason: str, now: int) -> None:
        """(i) Suspect a member: tell all members, also the suspect, and hold back its frames from now on."""
        group = self._group
        if process in self.suspicions or process in self.failed:
            return
        if process not in group.roster.ranks or process == self._me:
            return
        last = group.reached(process)
        self.suspicions[process] = last
        self._suspected[process] = _Suspected(now, reason, group.suspector.silent_ns(group.roster.ranks[process], now))
        self._halt()
        self._vote(self._me, (process, last), now)
        group.numbers.counter.witness(last)  # so that our remove is numbered above it (E-26j)
        self._tell(SuspectFrame(group.view.group, self._me, group.numbers.sent, process, last), now)
        group.voice.early.append(Suspected(group.view.group, process, last, reason))
        self.evaluate(now)

    def parted(self, process: ProcessId, now: int) -> None:
        """(viii) A frame of a member says that it has excluded us: drop the frame, and suspect the member for good."""
        if process in self._group.roster.ranks and process not in self.failed:
            self._sure.add(process)
            self.suspect(process, "parted", now)

    def renounced(self, process: ProcessId, now: int, reason: str = "left") -> None:
        """A member has announced that it leaves: suspect it at once, and do not wait for its vote (11.2)."""
        if process in self._group.roster.ranks and process not in self.failed:
            self._sure.add(process)
            self._gone[process] = reason
            self.suspect(process, reason, now)
            self.evaluate(now)

    def vanished(self, process: ProcessId, now: int) -> None:
        """(f) The transport has evidence that it is dead: suspect it at once; others may still refute that.

        A new number of ours makes others answer, and the process too if it lives. So a member that still hears it
        can refute soon, also in an idle group.
        """
        if process in self._group.roster.ranks and process not in self.failed and process != self._me:
            self._vanished.add(process)
            self.suspect(process, "gone", now)
            if process in self.suspicions:
                self._group.discipline.show_life(now)
            self.evaluate(now)

    def stuck(self, process: ProcessId, now: int) -> None:
        """A member is heard but never advances: in a view of two, a sign of life must not clear it (9.9)."""
        if process not in self.suspicions and process not in self.failed:
            self._sure.add(process)
            self.suspect(process, "stuck", now)

    def excludes_me(self, frame: Frame) -> bool:
        """Whether its sender has excluded us, according to the mark on a message (E-45) or to a confirmation."""
        if isinstance(frame, BlockFrame):
            return self._me in frame.excluded
        return isinstance(frame, ConfirmedFrame) and any(process == self._me for process, _ in frame.failed)

    def noticed(self, process: ProcessId, now: int) -> None:
        """A message of that member was accepted: it may refute recorded suspicions (iii)."""
        if process in self.failed or process not in self._group.roster.ranks:
            return
        reached = self._group.reached(process)
        for pair in sorted(pair for pair in self._votes if pair[0] == process and pair[1] < reached):
            self._refute(pair, now)
        for frame in self._pending_accusations(process):
            self._examine(frame, now)

    def installed(self, now: int) -> None:
        """The view has changed: forget removed members."""
        ranks = self._group.roster.ranks
        self.failed = {process: last for process, last in self.failed.items() if process in ranks}
        self._vanished &= ranks.keys()
        self.evaluate(now)

    # Timeouts, as in 9.2

    def mute(self, process: ProcessId) -> int | None:
        """(b) Since when its vote on one of our suspicions is missing; None if it owes none."""
        missing = [
            self._suspected[suspect].at
            for suspect, last in self.suspicions.items()
            if process not in self._votes[suspect, last]
        ]
        return min(missing, default=None)

    def accused(self, before: int) -> list[ProcessId]:
        """(c) Members that others have suspected since `before` or longer, without a refutation."""
        suspects = {pair[0] for pair, at in self._recorded.items() if at <= before and self._stands(pair)}
        return sorted(suspects - self.suspicions.keys())

    def evaluate(self, now: int) -> None:
        """(v) If all unsuspected members share all our suspicions, confirm them together."""
        group = self._group
        if self._vanished:
            self._follow_evidence(now)
        if self.suspicions and not self._in_grace(now):
            trusted = {*group.view.members} - self.suspicions.keys() - self.failed.keys()
            if all(trusted <= self._votes[pair] for pair in self.suspicions.items()):
                self._confirm(tuple(sorted(self.suspicions.items())), now)
        self.wary = self.active or bool(self.failed) or bool(self._vanished)

    def _follow_evidence(self, now: int) -> None:
        """After a refutation of a suspicion with evidence, adopt the same suspicion of another member at once.

        Without another accuser, wait for the ordinary timeouts: a member that still hears the process would refute each
        of our suspicions, without end.
        """
        accused = {pair[0] for pair in self._votes if self._stands(pair)}
        for process in sorted(self._vanished & accused - self.suspicions.keys()):
            self.suspect(process, "gone", now)

    # Conditions

    def _on_suspect(self, frame: SuspectFrame, now: int) -> None:
        """(ii) Record a vote, answer a suspicion of ourselves, or refute one that we know to be wrong."""
        pair = frame.suspect, frame.last_block
        if frame.suspect == self._me:
            self._group.concerns.accused_by(frame.sender, now)
            self._show_life(frame.last_block, now)
        elif frame.suspect in self.failed or frame.suspect not in self._group.roster.ranks:
            return
        elif self._group.reached(frame.suspect) > frame.last_block:
            self._refute(pair, now)
        else:
            self._vote(frame.sender, pair, now)

    def _on_refute(self, frame: RefuteFrame, now: int) -> None:
        """(iv) Withdraw its sender's vote, and accept the messages in it that follow ours (E-22)."""
        suspect, group = frame.suspect, self._group
        self._withdraw(frame.sender, suspect, frame.last_block)
        if suspect == self._me or suspect in self.failed or suspect not in group.roster.ranks:
            return
        following = [message for message in frame.messages if message.sender == suspect]
        news = False
        for message in following:
            if not self.excludes_me(message) and group.discipline.follows(message):
                news = self._callbacks.accept(message, now) or news
        if news:
            if suspect in self.suspicions:
                self._clear(suspect, now)
            self.noticed(suspect, now)
        if any(self.excludes_me(message) and message.block > group.reached(suspect) for message in following):
            self.parted(suspect, now)

    def _on_confirmed(self, frame: ConfirmedFrame, now: int) -> None:
        """(vi), (viii) Others have confirmed failures: those that we suspect, or our own."""
        if self.excludes_me(frame):
            self.parted(frame.sender, now)
        elif all(self.suspicions.get(process) == last for process, last in frame.failed):
            self._confirm(frame.failed, now)

    def _on_leaving(self, frame: LeavingFrame, now: int) -> None:
        if frame.passes_vote:
            self._group.leaving.passed_on.add(frame.sender)
        self.renounced(frame.sender, now, "stalled" if frame.stalled else "left")

    def _clear(self, process: ProcessId, now: int) -> None:
        """A refutation brought new messages: withdraw the suspicion, forward them, then handle held frames."""
        self._group.concerns.vouched(process, now)
        last = self.suspicions[process]
        cut_off = self._secedes and self._is_cut_off_from(process)
        self._acquit(process, now)
        self._refute((process, last), now)
        self._replay(process, now)
        if cut_off:
            self._weigh_secession(process, now)
        if process in self._gone:
            self.renounced(process, now, self._gone[process])  # others had more messages of it, but it has left

    def _is_cut_off_from(self, process: ProcessId) -> bool:
        severed = self._group.suspector.is_severed(self._group.roster.ranks[process])
        return severed or self._suspected[process].reason == "deaf"

    def _weigh_secession(self, process: ProcessId, now: int) -> None:
        """Others hear a member that we do not hear: one of the two must leave, or all wait for ever (E-56).

        The higher one leaves sooner. Alone in its view, it is found again and merged over the next connection.
        """
        self._contradicted[process] = times = self._contradicted.get(process, 0) + 1
        if times < (_CONTRADICTIONS if self._me > process else 2 * _CONTRADICTIONS):
            return
        others = [member for member in self._group.roster.ranks if member != self._me]
        self._sure |= {*others}
        for member in others:
            self.suspect(member, "secession", now)

    def _trust(self, process: ProcessId, now: int) -> None:
        """In a view of two, a direct message outweighs any vote."""
        self._acquit(process, now)
        self._replay(process, now)

    def _acquit(self, process: ProcessId, now: int) -> None:
        group = self._group
        last = self.suspicions.pop(process)
        del self._suspected[process]
        self._halt()
        self._sure.discard(process)
        self._withdraw(self._me, process, last)
        group.suspector.pardon(group.roster.ranks[process], now)
        group.voice.early.append(Refuted(group.view.group, process))

    def _replay(self, process: ProcessId, now: int) -> None:
        """Handle held frames as new: each one passes the filter again, because the first may raise a new suspicion."""
        self._examined = {each for each in self._examined if each[0] != process}
        for frame in self._pending.pop(process, ()):
            self._callbacks.take(frame, now)

    def _confirm(self, failed: tuple[Suspicion, ...], now: int) -> None:
        """(vii) Confirm these failures, and tell the whole view. The failed members are told too, because of (viii)."""
        group = self._group
        left = tuple(self._departure(pair, now) for pair in failed)
        for process, last in failed:
            del self.suspicions[process], self._suspected[process]
            self._sure.discard(process)
            self._pending.pop(process, None)
            self.failed[process] = last
            self._vanished.discard(process)
        self._examined = {each for each in self._examined if each[0] not in self.failed}
        for pair in [pair for pair in self._votes if pair[0] in self.failed]:
            self._forget(pair)
        for process, _ in failed:  # their votes no longer count: they cannot be asked for evidence (E-81)
            for pair in [*self._votes]:
                self._withdraw(process, *pair)
        members = tuple(member for member in group.view.members if member not in self.failed)
        self._tell(ConfirmedFrame(group.view.group, self._me, group.numbers.sent, failed), now)
        group.voice.early.append(Confirmed(group.view.group, failed, members))
        self._callbacks.confirmed(group, Detection(failed, left, now), now)
        self._halt()  # from now on senders wait for the view

    # Parts

    def _refute(self, pair: Suspicion, now: int) -> None:
        """(iii) Send all its messages that we hold above that number, nulls too; then forget the suspicion."""
        group = self._group
        process, last = pair
        messages = group.discipline.stored(process, last)
        self._tell(RefuteFrame(group.view.group, self._me, group.numbers.sent, process, last, messages), now)
        self._forget(pair)

    def _halt(self) -> None:
        """In halted mode senders wait while a member is suspected."""
        self._group.gate.hold(Reason.MEMBER_SUSPECTED, closed=self._group.change.halts and bool(self.suspicions))

    def _hold(self, frame: Frame) -> None:
        """Hold a frame of a suspected member. Of consecutive announcements only the last matters."""
        pending = self._pending.setdefault(frame.sender, [])
        while isinstance(frame, AliveFrame) and pending:
            last = pending[-1]
            if not isinstance(last, AliveFrame) or (last.announces and not frame.announces):
                break
            pending.pop()
        pending.append(frame)

    def _examine(self, frame: SuspectFrame, now: int) -> None:
        """Look at an accusation although we suspect the accuser: to refute it (E-23), or to show that we are alive."""
        pair = frame.suspect, frame.last_block
        if frame.suspect == self._me:
            self._show_life(frame.last_block, now)  # E-67
        elif frame.suspect in self.failed or frame.suspect not in self._group.roster.ranks:
            return
        elif self._group.reached(frame.suspect) > frame.last_block and (frame.sender, pair) not in self._examined:
            self._examined.add((frame.sender, pair))
            self._refute(pair, now)

    def _pending_accusations(self, process: ProcessId) -> list[SuspectFrame]:
        """Held accusations against this member; examined again whenever it sends something (E-75)."""
        return [
            frame
            for frames in self._pending.values()
            for frame in frames
            if isinstance(frame, SuspectFrame) and frame.suspect == process
        ]

    def _show_life(self, last: int, now: int) -> None:
        """A member suspects us although it has all our messages: send one that lets others refute it (E-50, E-67)."""
        numbers = self._group.numbers
        if last > numbers.sent:
            numbers.counter.witness(last + 1)  # no member has this number from us: only a larger one refutes it
        if last >= numbers.sent:
            self._group.discipline.show_life(now)

    def _tell(self, frame: MembershipFrame, now: int) -> None:
        """Send to the whole view, independent of flow control (E-20)."""
        self._group.multicast(frame, now)

    def _vote(self, voter: ProcessId, pair: Suspicion, now: int) -> None:
        """Record a vote; it replaces an older vote about the same member."""
        for other in [other for other in self._votes if other[0] == pair[0] and other != pair]:
            self._withdraw(voter, *other)
        self._votes.setdefault(pair, set()).add(voter)
        self._recorded.setdefault(pair, now)

    def _withdraw(self, voter: ProcessId, suspect: ProcessId, last: int) -> None:
        """Withdraw the votes of a member against a suspect, up to that number."""
        for pair in [pair for pair in self._votes if pair[0] == suspect and pair[1] <= last]:
            self._votes[pair].discard(voter)
            if not self._votes[pair]:
                self._forget(pair)

    def _forget(self, pair: Suspicion) -> None:
        self._votes.pop(pair, None)
        self._recorded.pop(pair, None)

    def _stands(self, pair: Suspicion) -> bool:
        """Whether a recorded suspicion comes from a member that we trust, and we cannot refute it (E-81)."""
        trusted = self._votes[pair] - self.suspicions.keys() - self.failed.keys()
        return bool(trusted) and pair[1] >= self._group.reached(pair[0])

    def _alone_with(self, process: ProcessId) -> bool:
        return {*self._group.view.members} == {self._me, process}

    def _in_grace(self, now: int) -> bool:
        """In a view of two, (v) holds at once, so a suspicion by timeout gets a grace period (E-25).

        With evidence of a death it is shorter, but not zero, because no third member can refute it.
        """
        (process, *others) = self.suspicions
        if others or process in self._sure or not self._alone_with(process):
            return False
        grace_ns = self._grace_ns // 4 if process in self._vanished else self._grace_ns
        return now < self._suspected[process].at + grace_ns

    def _departure(self, pair: Suspicion, now: int) -> Departure:
        suspected = self._suspected[pair[0]]
        accusers = tuple(sorted(self._votes.get(pair, ())))
        return Departure(*pair, suspected.reason, accusers, suspected.silent_ns, now - suspected.at)
