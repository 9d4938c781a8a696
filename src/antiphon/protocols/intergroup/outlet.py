"""The effects of one process in one group, collected until `drain` takes them."""

from collections.abc import Iterable

from antiphon.core.effects import Channel, Deliver, Effect, InstallView, Scope, Transmit
from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.frames import DataFrame, InterGroupFrame
from antiphon.protocols.intergroup.membership.view_ids import Kind, view_id
from antiphon.types import ProcessId, View, receiver_view


class Outlet:
    """The only list of effects that the parts of a group member write to."""

    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self.delivered = 0
        """The largest stamp of a message that was delivered."""

    def deliver(self, message: DataFrame) -> None:
        self.delivered = max(self.delivered, message.stamp)
        self._effects.append(Deliver(message))

    def add(self, effect: Effect) -> None:
        self._effects.append(effect)

    def transmit(self, frame: InterGroupFrame, to: ProcessId | Scope = Scope.GROUP) -> None:
        self._effects.append(Transmit(frame, to, Channel.DATAGRAM))

    def move_to(self, effects: list[Effect]) -> None:
        """Append everything collected to `effects`, and begin again with nothing."""
        effects += self._effects
        self._effects.clear()


class Views:
    """The views that one process installs in one group."""

    def __init__(self, context: MemberContext, outlet: Outlet) -> None:
        self._context, self._outlet = context, outlet
        self._installed = 0
        self.current: View | None = None
        self.began = 0
        """The stamp at which the last private view began: nothing delivered before has a larger one."""

    def install(self, view: View) -> None:
        self.current = view
        self._installed += 1
        self._outlet.add(InstallView(view))

    def install_private(self, senders: Iterable[ProcessId]) -> None:
        """Install a view that only this receiver has: the senders that it receives from."""
        context = self._context
        self.began = max(self.began, self._outlet.delivered)
        name = view_id(self.began, Kind.PRIVATE, context.me, self._installed)
        self.install(receiver_view(context.me, context.group, name, senders, self.current))

    def begin_above(self, stamp: int) -> None:
        """The application has seen everything up to this stamp: later private views begin there or later."""
        self.began = max(self.began, stamp)

    def clear(self) -> None:
        """The process has left: the next view has no predecessor."""
        self.current = None
