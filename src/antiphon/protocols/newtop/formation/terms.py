"""The settings that must be equal at all members of a group, and what happens if they differ.

A process sends its values in the frames with which processes find each other and form groups (`probe`, `propose`). The
receiver compares them with its own. If they differ, it takes no part and answers with its own values (`refuse`), so
both ends learn the names of the settings and both values (docs/spec/newtop.md 11.5).
"""

from itertools import chain

from antiphon.core.effects import Difference, Refused
from antiphon.protocols.newtop.formation.acquaintances import Acquaintances
from antiphon.protocols.newtop.formation.host import FormationHost
from antiphon.protocols.newtop.formation.intentions import Intentions
from antiphon.protocols.newtop.frames import ProbeFrame, ProposeFrame, RefuseFrame
from antiphon.protocols.newtop.settings import NewtopSettings, Values
from antiphon.types import GroupId, ProcessId, name_of


class Terms:
    """The settings of one process. Invariant: without values, none are sent and none differ."""

    __slots__ = ("_acquaintances", "_host", "_intentions", "_me", "_values")

    def __init__(
        self,
        me: ProcessId,
        settings: NewtopSettings,
        host: FormationHost,
        intentions: Intentions,
        acquaintances: Acquaintances,
    ) -> None:
        self._me = me
        self._values = settings.agreed
        self._host = host
        self._intentions = intentions
        self._acquaintances = acquaintances

    def of(self, name: GroupId) -> Values:
        """The values for frames about that group; each group has a service of its own."""
        return tuple(sorted((*self._values, *self._host.service(name).values))) if self._values else ()

    def refuses(self, frame: ProbeFrame | ProposeFrame) -> bool:
        """Compare the settings of the sender with ours. If they differ, both ends are told."""
        name = name_of(frame.group)
        differences = self._differences(name, frame.settings)
        if not differences:
            return False
        self._host.tell(Refused(name, frame.sender, differences))
        self._host.transmit(RefuseFrame(name, self._me, self.of(name)), frame.sender)
        return True

    def on_refuse(self, frame: RefuseFrame, now: int) -> None:  # noqa: ARG002
        """A process that we asked has other settings. A refusal from a process that we did not ask is ignored."""
        name = name_of(frame.group)
        wish = self._intentions.wishes.get(name)
        asked = chain(() if wish is None else wish.processes, self._acquaintances.known.get(name, ()))
        differences = self._differences(name, frame.settings)
        if differences and frame.sender in asked:
            self._host.tell(Refused(name, frame.sender, differences))

    def _differences(self, name: GroupId, told: Values) -> tuple[Difference, ...]:
        ours, theirs = dict(self.of(name)), dict(told)
        return tuple(
            Difference(setting, ours.get(setting), theirs.get(setting))
            for setting in sorted(ours.keys() | theirs.keys())
            if ours.get(setting) != theirs.get(setting)
        )
