"""Transfers of application states between members of formed groups, over all groups of one process."""

from antiphon.core.contract import StateSource
from antiphon.core.effects import Effect
from antiphon.protocols.newtop.formation.held_back import HeldBack
from antiphon.protocols.newtop.formation.histories import Histories
from antiphon.protocols.newtop.formation.transfer import release
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.outbox import Outbox, Stream
from antiphon.protocols.newtop.primary.rounds import Primaries
from antiphon.types import View, name_of


class States:
    """Invariant: held effects are handed over as soon as the last state that they wait for has arrived."""

    __slots__ = ("_frame_bytes_max", "_held_back", "_histories", "_primaries")

    def __init__(self, held_back: HeldBack, histories: Histories, primaries: Primaries, frame_bytes_max: int) -> None:
        self._histories = histories
        self._held_back = held_back
        self._primaries = primaries
        self._frame_bytes_max = frame_bytes_max

    def snapshot(self, group: NewtopGroup | None, state: bytes | StateSource) -> None:
        """Our application has given its state at the first view of the group."""
        if group is None or group.transfer is None:
            release(state)
        else:
            group.transfer.snapshot(state)
            self._donate(group)

    def told(self, group: NewtopGroup, place: int, state: bytes, effects: list[Effect]) -> None:
        """A state is delivered."""
        transfer = group.transfer
        self._histories.told(group.view.group, place)
        if transfer is not None:
            waited = transfer.waits
            transfer.told(place, state)
            self._complete(group, waited, effects)

    def installed(self, group: NewtopGroup, view: View, waited: bool, effects: list[Effect]) -> None:
        """Members are gone: perhaps we must send a state now, or no member is left to send it."""
        if group.transfer is not None:
            group.transfer.installed(view)
            self._complete(group, waited, effects)
            self._donate(group)

    def _complete(self, group: NewtopGroup, waited: bool, effects: list[Effect]) -> None:
        """The last state may have arrived, or no member is left to send it: release held effects."""
        transfer = group.transfer
        assert transfer is not None
        if waited and not transfer.waits:
            self._held_back.place(transfer.complete())
            self._primaries.merged(name_of(group.view.group), transfer.held)  # not of states that never came
            self._held_back.release(effects)
        if transfer.over:
            group.end_transfer()
        else:
            group.weigh_state()

    def _donate(self, group: NewtopGroup) -> None:
        """Send the state of our class, if that is our duty and our application has given it."""
        found = None if group.transfer is None else group.transfer.donate()
        if found is not None:
            place, state = found
            group.donate(place, self._source(state))

    def _source(self, state: bytes | StateSource) -> Outbox | Stream:
        if not isinstance(state, bytes):
            return Stream(state, self._frame_bytes_max)
        outbox = Outbox(packing=False, frame_bytes_max=self._frame_bytes_max)
        outbox.put(state, 0)
        return outbox
