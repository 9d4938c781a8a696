"""Which groups a simulated process is in: join, form, leave, return."""

from antiphon.core.contract import Core, is_changing, is_joining
from antiphon.sim.network import Endpoint, SimulatedNetwork
from antiphon.sim.world import EventQueue
from antiphon.trace.recorder import Recorder
from antiphon.types import GroupId, ProcessId, View, ViewId, name_of


class Presence:
    """The groups of one process, by name."""

    __slots__ = (
        "_changing",
        "_core",
        "_endpoint",
        "_joining",
        "_joins",
        "_leaving",
        "_network",
        "_queue",
        "_recorder",
        "_returns",
        "outside",
        "viewed_at",
        "views",
    )

    def __init__(
        self,
        core: Core,
        endpoint: Endpoint,
        network: SimulatedNetwork,
        queue: EventQueue,
        recorder: Recorder | None,
        outside: frozenset[GroupId],
    ) -> None:
        """`outside`: groups that the process is not in from the start, but may join."""
        self.views: dict[GroupId, ViewId] = {}
        """The view that the application has read last."""
        self.viewed_at = 0
        """The time at which the application last read a view."""
        self._core = core
        self._changing = core if is_changing(core) else None
        self._joins = core if is_joining(core) else None
        self._endpoint = endpoint
        self._network = network
        self._queue = queue
        self._recorder = recorder
        self.outside = {*outside}
        """Groups that it is not in and has not asked to join."""
        self._joining: set[GroupId] = set()
        """Groups that it has asked to join, and whose first view the application has not read."""
        self._leaving: set[GroupId] = set()
        self._returns: dict[GroupId, tuple[ProcessId, ...]] = {}
        """Groups that it joins again after it has left, each with its contacts."""

    @property
    def moving(self) -> bool:
        """True if the process is about to join or leave a group, or has unfinished work there."""
        unfinished = self._joins is not None and self._joins.unfinished
        return bool(self._joining or self._leaving or unfinished)

    def open_moves(self) -> dict[str, list[GroupId]]:
        """Unfinished joins and leaves, for the `stop` row of the trace."""
        return {"joining": sorted(self._joining), "leaving": sorted(self._leaving)}

    def join(self, group: GroupId, contacts: tuple[ProcessId, ...], now: int) -> None:
        """Join a group; if members agree on views, by asking one of these contacts."""
        if group in self._leaving:
            self._returns[group] = contacts
            return
        self.outside.discard(group)
        if self._recorder is not None:
            self._recorder.moved("join", group, self._queue.now, contacts)
        if self._changing is not None:
            self._joining.add(group)
            self._changing.join(group, contacts, now)
        else:
            assert self._joins is not None
            self._network.listen(self._endpoint, group)
            self._joins.join(group, now)

    def form(self, group: GroupId, members: tuple[ProcessId, ...], now: int) -> None:
        assert self._changing is not None
        self.outside.discard(group)
        self._joining.add(group)
        self._changing.form(group, members, now)

    def leave(self, group: GroupId, now: int) -> None:
        """Begin to leave. If leaving has a place in the order, the application is out when it reads `Left`."""
        if group in self._leaving:
            self._returns.pop(group, None)  # it is leaving already, and now does not return
            return
        if self._changing is not None:
            self.outside.add(group)
            self._joining.discard(group)
            self._leaving.add(group)
            self._changing.leave(group, now)
            return
        assert self._joins is not None
        if self._core.capabilities.leaves_in_order:
            self.outside.add(group)
            self._leaving.add(group)
        elif self._recorder is not None:
            self._recorder.moved("leave", group, self._queue.now)
        self._joins.leave(group, now)
        if not self._core.capabilities.leaves_in_order:
            self._network.unlisten(self._endpoint, group)

    def entered(self, view: View) -> None:
        """The application has read a view; others may have formed the group with this process."""
        group = name_of(view.group)
        self.views[group] = view.id
        self.viewed_at = self._queue.now
        self._joining.discard(group)
        if group not in self._leaving:
            self.outside.discard(group)

    def left(self, group: GroupId, now: int) -> None:
        """The application has left a group; if it is to return, it joins now."""
        self.outside.add(group)
        self.views.pop(group, None)
        self._leaving.discard(group)
        if self._changing is None:
            self._network.unlisten(self._endpoint, group)
        if group in self._returns:
            self.join(group, self._returns.pop(group), now)
