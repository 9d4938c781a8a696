"""The rounds in each view of a group: claims, then attempts (docs/spec/newtop.md 15).

Each member that is in the view and has the group's state claims what it knows about primary views. When the claims of
all members are delivered, all decide the same. If the view may try, each member records its attempt and announces it.
When the attempts of all members are delivered, the view is primary from this place in the order on. A member that
fails leads to another view, where the rounds start again.
"""

from typing import Final

from antiphon.core.effects import Effect, Primary
from antiphon.protocols.newtop.formation.held_back import HeldBack
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.outbox import Outbox
from antiphon.protocols.newtop.primary.lineage import (
    AttemptWord,
    Claim,
    ClaimWord,
    Lineage,
    Outcome,
    PrimaryView,
    Word,
    decide,
)
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.protocols.newtop.wire.words import decode, encode
from antiphon.types import GroupId, ProcessId, View, ViewId, epoch_of, name_of

_CONFIGURED: Final = ViewId(f"0000.000000.{0:016x}")
"""The primary view that a configured group begins with; no view in force has this id."""


class Round:
    """The claims and attempts of one view."""

    __slots__ = ("attempted", "claimed", "claims", "outcome", "tried", "view")

    def __init__(self, view: View) -> None:
        self.view = view
        self.claimed = False
        """Whether we have sent our claim."""
        self.claims: dict[ProcessId, Claim] = {}
        self.outcome: Outcome | None = None
        """Once all claims are here."""
        self.tried: PrimaryView | None = None
        """The view that we have attempted."""
        self.attempted: set[ProcessId] = set()


class Primaries:
    """The rounds of one process in all its groups. Invariant: an attempt is in the lineage before its word leaves."""

    __slots__ = ("_founds", "_frame_bytes_max", "_held_back", "_lineages", "_me", "_rounds", "_size", "_spoke", "on")

    def __init__(self, me: ProcessId, settings: NewtopSettings, held_back: HeldBack) -> None:
        self.on = settings.primary is not None
        """Whether views are voted on."""
        self._me = me
        self._size = settings.primary if isinstance(settings.primary, int) else None
        self._founds = settings.entitled
        self._frame_bytes_max = settings.frame_bytes_max
        self._held_back = held_back
        self._lineages: dict[GroupId, Lineage] = {}  # by name
        self._rounds: dict[GroupId, Round] = {}
        self._spoke = False

    def entitle(self, name: GroupId, group: NewtopGroup | None) -> None:
        """We may found a lineage; `group`: the one of that name that we are in, where we claim again."""
        lineage = self._lineage(name)
        if lineage.entitled:
            return
        lineage.entitled = True
        if group is not None and (current := self._rounds.get(group.view.group)) is not None and current.claimed:
            self._claim(group, current)

    def configured(self, view: View) -> None:
        """A group that all its members are configured in: its first view counts as formed."""
        if self.on:
            first = PrimaryView(1, _CONFIGURED, frozenset(view.members))
            self._lineage(name_of(view.group)).form(first)

    def forms(self, name: GroupId) -> None:
        """Our application forms a group; in scenarios this founds a lineage."""
        if self._founds:
            self._lineage(name).entitled = True

    def entered(self, group: NewtopGroup) -> None:
        """A view is in force: the rounds start again."""
        if self.on:
            self._rounds[group.view.group] = Round(group.view)
            self._lineage(name_of(group.view.group)).meet(group.view.members)
            self.look(group)

    def look(self, group: NewtopGroup) -> None:
        """Claim as soon as the group's state is here."""
        current = self._rounds.get(group.view.group)
        if current is None or current.claimed or (group.transfer is not None and group.transfer.waits):
            return
        self._claim(group, current)

    def told(self, group: NewtopGroup, author: ProcessId, payload: bytes, effects: list[Effect]) -> None:
        """A word is delivered; one of an earlier view is ignored."""
        current = self._rounds.get(group.view.group)
        if current is None or author not in current.view.ranks:
            return
        word = _read(payload, current.view)
        if isinstance(word, ClaimWord) and current.tried is None:
            current.claims[author] = word.claim  # a member that was entitled meanwhile claims again
            if len(current.claims) == len(current.view.members):
                self._decide(group, current)
        elif isinstance(word, AttemptWord) and current.tried is not None and word.number == current.tried.number:
            current.attempted.add(author)
            if len(current.attempted) == len(current.view.members):
                self._form(group, current, effects)

    def votes(self, group: NewtopGroup) -> bool:
        """Whether a vote on the view in force is under way: claims or attempts are awaited."""
        current = self._rounds.get(group.view.group)
        if current is None:
            return False
        return len(current.attempted if current.tried is not None else current.claims) < len(current.view.members)

    def held(self, name: GroupId) -> int:
        """The number of the last primary view of that name that our state comes from; 0: none."""
        lineage = self._lineages.get(name)
        return 0 if lineage is None else lineage.held

    def merged(self, name: GroupId, number: int) -> None:
        """Of the states that we have got, of several sides or of the group that we join, one comes from this view."""
        if self.on:
            self._lineage(name).held = number

    def left(self, name: GroupId, process: ProcessId) -> None:
        """A member, possibly this one, has left gracefully: it passes its vote on."""
        if self.on:
            self._lineage(name).pass_on(process)

    def spoke(self) -> bool:
        """Whether a word was queued since the last call."""
        spoke, self._spoke = self._spoke, False
        return spoke

    def closed(self, group: GroupId, *, lapses: bool) -> None:
        """We are not in that group any more; what we know about primary views stays.

        `lapses`: our application has left, so its state is gone. Otherwise we go over to another group of that name.
        """
        self._rounds.pop(group, None)
        if lapses and self.on:
            self._lineage(name_of(group)).lapse()

    def _lineage(self, name: GroupId) -> Lineage:
        return self._lineages.setdefault(name, Lineage())

    def _claim(self, group: NewtopGroup, current: Round) -> None:
        current.claimed = True
        self._tell(group, ClaimWord(current.view.id, self._lineage(name_of(group.view.group)).claim))

    def _decide(self, group: NewtopGroup, current: Round) -> None:
        """All claims are here."""
        lineage = self._lineage(name_of(group.view.group))
        current.outcome = outcome = decide(dict(sorted(current.claims.items())), self._size)
        lineage.learn(outcome)
        if outcome.rule is None:
            return
        current.tried = PrimaryView(outcome.number, current.view.id, frozenset(current.view.members))
        lineage.attempt(current.tried)
        self._tell(group, AttemptWord(current.view.id, outcome.number))

    def _form(self, group: NewtopGroup, current: Round, effects: list[Effect]) -> None:
        """All members have attempted it.

        If a member is known to have failed, deliveries hold only for the others: the view is not primary here.
        """
        assert current.tried is not None
        assert current.outcome is not None
        identity, outcome = group.view.group, current.outcome
        self._lineage(name_of(identity)).form(current.tried)
        assert outcome.rule is not None
        holds = not group.agreement.failed
        effect = Primary(identity, current.view.id, outcome.number, outcome.rule, outcome.after, holds)
        self._held_back.put(effect, effects)

    def _tell(self, group: NewtopGroup, word: Word) -> None:
        source = Outbox(packing=False, frame_bytes_max=self._frame_bytes_max)
        source.put(encode(word), 0)
        group.tell_word(source)
        self._spoke = True


def _read(payload: bytes, view: View) -> Word | None:
    """The word, if it can be read and belongs to that view."""
    word = decode(payload, epoch_of(view.group))
    return word if word is not None and word.view == view.id else None
