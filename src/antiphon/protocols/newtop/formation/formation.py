"""How groups are formed and replaced by others: formation, join, merge, leave (docs/spec/newtop.md 11.1, 11.2).

One procedure serves all of them (`steps.py`). Delivery stays one order over all groups, and members that come from one
view have delivered the same. A group that a process is in has one name, and one identity for each time it was formed.

    Stage          what we take part in            Steps     the steps of a formation
    Attempts       epochs, refusals, no votes      Leaves    leaving a group
    Intentions     requests of the application     Search    joining; groups that search for each other
    Acquaintances  processes to search for         Terms     settings that must agree
    Inquiries      which processes are in a group, or want to be
"""

from collections.abc import Callable, Mapping
from typing import Any

from antiphon.protocols.newtop.formation.acquaintances import Acquaintances
from antiphon.protocols.newtop.formation.attempts import Attempts
from antiphon.protocols.newtop.formation.freezes import Freezes
from antiphon.protocols.newtop.formation.host import FormationHost
from antiphon.protocols.newtop.formation.inquiries import Inquiries
from antiphon.protocols.newtop.formation.intentions import Intentions, Wish
from antiphon.protocols.newtop.formation.leaves import Leaves
from antiphon.protocols.newtop.formation.procedure import Formation, Leave, Stage
from antiphon.protocols.newtop.formation.search import Search
from antiphon.protocols.newtop.formation.steps import Steps
from antiphon.protocols.newtop.formation.terms import Terms
from antiphon.protocols.newtop.frames import (
    AbortFrame,
    BaseFrame,
    FormationFrame,
    FoundFrame,
    InquireFrame,
    InstallFrame,
    PresenceFrame,
    ProbeFrame,
    ProposeFrame,
    ReadyFrame,
    RefuseFrame,
    VoteFrame,
)
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId


class Formations:
    """Invariant: after each input, `at` and `busy` say when to call again; only failures change groups otherwise."""

    __slots__ = (
        "_handlers",
        "_me",
        "_patience_ns",
        "acquaintances",
        "at",
        "attempts",
        "busy",
        "inquiries",
        "intentions",
        "leaves",
        "search",
        "stage",
        "steps",
    )

    def __init__(self, me: ProcessId, settings: NewtopSettings, host: FormationHost) -> None:
        self.busy = False
        """True if `advance` may have work; a plain attribute like `at`, because both are read at every drain."""
        self.at: int | None = None
        """When something must be repeated, given up or tried again."""
        self._me = me
        self._patience_ns = settings.form_within_ns
        pause_ns = settings.suspect_after_ns
        self.stage = stage = Stage()
        self.attempts = attempts = Attempts(pause_ns)
        self.intentions = intentions = Intentions(settings.invitations)
        freezes = Freezes(settings.form_within_ns)
        self.acquaintances = known = Acquaintances(me, pause_ns, settings.merge_every_ns)
        terms = Terms(me, settings, host, intentions, known)
        self.steps = steps = Steps(me, settings, host, stage, attempts, intentions, known, terms, freezes)
        self.leaves = Leaves(me, host, stage, steps, intentions, known)
        self.search = search = Search(
            me, pause_ns, host, stage, steps, attempts, intentions, known, terms,
            doubts_restarts=settings.doubts_restarts,
        )  # fmt: skip
        self.inquiries = inquiries = Inquiries(me, host, stage, intentions)
        self._handlers: Mapping[type[FormationFrame], Callable[[Any, int], None]] = {
            ProposeFrame: steps.on_propose,
            VoteFrame: steps.on_vote,
            BaseFrame: steps.on_base,
            ReadyFrame: steps.on_ready,
            InstallFrame: steps.on_install,
            AbortFrame: steps.on_abort,
            ProbeFrame: search.on_probe,
            FoundFrame: search.on_found,
            RefuseFrame: terms.on_refuse,
            InquireFrame: inquiries.on_inquire,
            PresenceFrame: inquiries.on_presence,
        }

    # What the application asks for

    def form(self, name: GroupId, members: tuple[ProcessId, ...], now: int) -> None:
        """A new group; step 0."""
        self._want(name, Wish(members, now, forms=True), now)

    def join(self, name: GroupId, contacts: tuple[ProcessId, ...], now: int) -> None:
        """Join the group that a contact is in (11.2 rule 3)."""
        others = tuple(each for each in contacts if each != self._me)
        self._want(name, Wish(others, now, forms=False), now)

    def merge(self, name: GroupId, others: tuple[ProcessId, ...]) -> None:
        """Look for these at once."""
        self.search.merge(name, others)

    def leave(self, name: GroupId, now: int) -> None:
        """Leave, when everything is stable or after the timeout."""
        self.inquiries.forget(name)
        self.intentions.leave(name, now + self._patience_ns)
        self._look_ahead()

    # Input

    def entered(self, group: NewtopGroup, now: int) -> None:
        """We are in this group from the start."""
        self.steps.entered(group, now)
        self._look_ahead()

    def receive(self, frame: FormationFrame, now: int) -> None:
        """A frame that belongs to no stream."""
        self._handlers[type(frame)](frame, now)
        self._look_ahead()

    def stranger(self, group: GroupId, sender: ProcessId) -> None:
        """A frame of a group that we are not in."""
        self.steps.stranger(group, sender)

    @property
    def settled_group(self) -> GroupId | None:
        """The group whose views must not change now."""
        return self.steps.settled_group

    # Timers

    def tick(self, now: int) -> None:
        """Repeat, abort and retry what is due."""
        self._look_at_formation(now)
        for name, until in [*self.intentions.leaves.items()]:
            if until <= now:
                self.leaves.go(name, now, graceful=False)
        for group, (frame, at) in [*self.steps.introduced.items()]:
            if at <= now:
                self.steps.introduce(group, frame, now)
        for name, wish in [*self.intentions.wishes.items()]:
            if wish.at <= now:
                self.search.attempt(name, wish, now)
        for name, at in [*self.acquaintances.probes.items()]:
            if at <= now:
                self.search.look_around(name, now)
        self._look_ahead()

    def advance(self, now: int) -> bool:
        """Continue after deliveries or new stability; True if there was something to do."""
        moved = self._go_on(now)
        if moved:
            self._look_ahead()
        return moved

    def _go_on(self, now: int) -> bool:
        procedure = self.stage.procedure
        if procedure is None:
            return self.leaves.begin(now)
        if isinstance(procedure, Leave):
            return self.leaves.go_on(procedure, now)
        return self.steps.go_on(procedure, now)

    def _want(self, name: GroupId, wish: Wish, now: int) -> None:
        self.intentions.want(name, wish)
        self.search.attempt(name, wish, now)
        self._look_ahead()

    def _look_at_formation(self, now: int) -> None:
        formation = self.stage.formation
        if formation is None:
            return
        if formation.until <= now:
            self.steps.note_mute(formation, now)
            self.steps.abandon(formation, now)
        elif formation.initiator == self._me and formation.repeat_at <= now:
            self.steps.ask(formation, now)

    def _look_ahead(self) -> None:
        """Compute when to call again, after a possible change."""
        procedure, intentions = self.stage.procedure, self.intentions
        times = [wish.at for wish in intentions.wishes.values()]
        times += self.acquaintances.probes.values()
        times += intentions.leaves.values()
        times += [at for _, at in self.steps.introduced.values()]
        if procedure is not None:
            times.append(procedure.until)
            if isinstance(procedure, Formation) and procedure.initiator == self._me:
                times.append(procedure.repeat_at)
        self.at = min(times, default=None)
        self.busy = procedure is not None or bool(intentions.leaves)
