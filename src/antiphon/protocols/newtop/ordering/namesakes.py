"""Groups of one name: which of them entries of stamps may name (docs/spec/newtop.md 11.6).

A group that changes becomes a new group of the same name. Stamps name the groups that their sender is in, and of every
other name the newest group that it knows. So stamps do not grow with each formation.
"""

from collections.abc import Iterable

from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.types import GroupId, epoch_of, name_of


def age(group: GroupId) -> tuple[int, GroupId]:
    """Sorts the groups of one name: by epoch, then by identity, because two sides may reach one epoch."""
    return epoch_of(group), group


class Namesakes:
    """Invariant: `kept` has our own groups, and of every other known name the newest group."""

    __slots__ = ("_bases", "_newest", "_own", "kept", "on")

    def __init__(self, groups: dict[GroupId, int]) -> None:
        self.on = False
        """True if a formed group is known: before that, every name has one group."""
        self.kept: set[GroupId] = set(groups)
        self._bases = groups
        self._own: dict[GroupId, GroupId] = {name_of(group): group for group in groups}  # by name
        self._newest: dict[GroupId, GroupId] = dict(self._own)  # by name

    def opened(self, group: NewtopGroup) -> bool:
        """We are in this group now; true if entries of others are out of date."""
        identity = group.view.group
        self._bases[identity] = group.numbers.sent
        self._own[name_of(identity)] = identity
        self.on = True
        return self.note(identity)

    def closed(self, group: NewtopGroup) -> bool:
        """We are not in this group any more; likewise."""
        identity, name = group.view.group, name_of(group.view.group)
        del self._bases[identity], self._own[name]
        return self._sort(name)

    def look(self, groups: Iterable[GroupId]) -> None:
        """A received stamp names these groups: it may be the first that names a formed one."""
        self.on = self.on or any(name_of(group) != group for group in groups if group not in self.kept)

    def note(self, group: GroupId) -> bool:
        """A stamp names this group; true if entries of others are out of date."""
        name = name_of(group)
        self.on = self.on or name != group
        newest = self._newest.get(name)
        if newest is None or age(newest) < age(group):
            self._newest[name] = group
        return self._sort(name)

    def own(self, group: GroupId) -> GroupId | None:
        """Our group with the name of that other group."""
        return self._own.get(name_of(group))

    def base(self, own: GroupId) -> int:
        """The numbers of our group begin after this one."""
        return self._bases[own]

    def _sort(self, name: GroupId) -> bool:
        valid = {each for each in (self._own.get(name), self._newest.get(name)) if each is not None}
        stale = {each for each in self.kept if name_of(each) == name} - valid
        self.kept = (self.kept - stale) | valid
        return bool(stale)
