"""The groups of one process: by identity, by name, and those with possible consequences to compute."""

from collections.abc import Container

from antiphon.protocols.newtop.chosen import ChosenServices
from antiphon.protocols.newtop.frames import Ask
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.outbox import Unsent
from antiphon.protocols.newtop.sequencing.turns import Turns
from antiphon.types import GroupId, ProcessId, name_of


class Groups:
    """Invariant: `names` has the same groups as `by_id`; a process is in one group of a name at a time."""

    __slots__ = (
        "_crosses",
        "_early_sends",
        "_new_turns",
        "by_id",
        "crossing",
        "formed",
        "names",
        "safe",
        "services",
        "stirred",
        "stirs",
        "turns",
    )

    def __init__(
        self,
        groups: dict[GroupId, NewtopGroup],
        services: ChosenServices,
        *,
        crosses: bool,
        turns: type[Turns],
        in_turn: bool,
    ) -> None:
        """`in_turn`: a group of this process has a sequencer, now or later."""
        self.by_id = groups
        """Shared with the ordering part, which reads it."""
        self.names = {name_of(group): own for group, own in groups.items()}
        """By the name that applications know."""
        self.stirred = dict(groups)
        """Groups that inputs since the last drain may have changed; the caller that feeds an input adds them."""
        self.services = services
        """What each group asks for; a successor of a group asks for the same."""
        self.turns = turns(groups) if in_turn else None
        """Decides in which group we may send, from the first asymmetric group on."""
        self.safe: list[NewtopGroup] = []
        """Groups with safe delivery."""
        self.formed = False
        """True if a group was ever formed here: then states may be under way."""
        self.crossing = False
        """Whether numbers of one group are answered in others."""
        self.stirs = False
        """Whether every data frame may have consequences: nulls in other groups, or its own delivery at once."""
        self._crosses = crosses
        self._new_turns = turns
        self._early_sends: dict[GroupId, list[Unsent]] = {}  # to groups that we are about to be in
        self._weigh()

    def stir(self, group: NewtopGroup) -> None:
        """That group may have changed."""
        self.stirred[group.roster.view.group] = group

    def stir_all(self) -> None:
        """Any group may have changed."""
        self.stirred.update(self.by_id)

    def enter(self, group: NewtopGroup) -> None:
        """We are in this group from now on."""
        identity = group.view.group
        self.by_id[identity] = self.stirred[identity] = self.names[name_of(identity)] = group
        self.formed = True
        self._weigh()

    def close(self, group: NewtopGroup) -> None:
        """We have left this group; its name is free, or used by its successor."""
        identity = group.view.group
        self.stirred.pop(identity, None)
        del self.by_id[identity], self.names[name_of(identity)]
        self._weigh()

    def sever(self, peer: ProcessId, now: int, among: Container[GroupId] | None = None) -> None:
        """Frames of that peer are lost: it counts as silent, even if some still arrive (E-47). None: in all groups."""
        for identity, group in self.by_id.items():
            if peer in group.roster.ranks and (among is None or identity in among):
                group.suspector.severed(group.roster.ranks[peer], now)
                if group.suspector.cut_off(group):
                    self.stirred[identity] = group

    def expect(self, name: GroupId) -> None:
        """We are joining a group of that name: applications may already send."""
        self._early_sends.setdefault(name, [])

    def send_early(self, name: GroupId, payload: bytes, label: int, ask: Ask | None = None) -> None:
        """Keep a message until we are in the group."""
        self._early_sends[name].append((payload, label, ask))

    def early_sends(self, name: GroupId) -> int:
        """Number of waiting messages."""
        return len(self._early_sends.get(name, ()))

    def take_early(self, name: GroupId) -> list[Unsent]:
        """We are in the group, or never will be."""
        return self._early_sends.pop(name, [])

    def _weigh(self) -> None:
        """Groups have come or gone."""
        self.safe = [group for group in self.by_id.values() if group.progress.safe]
        if self.turns is not None:
            self.turns.weigh(self.by_id)
        elif any(group.discipline.sequenced for group in self.by_id.values()):
            self.turns = self._new_turns(self.by_id)
        self.crossing = self._crosses and len(self.by_id) > 1
        self.stirs = self.crossing or not self._crosses
