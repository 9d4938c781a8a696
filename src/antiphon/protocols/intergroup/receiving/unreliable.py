"""A receiver of an unreliable service: it takes what arrives, and no other process knows of it (Berket00 §4.6)."""

from collections.abc import Iterable
from typing import ClassVar

from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.handoff import Handoff
from antiphon.protocols.intergroup.frames import DataFrame, KeepAliveFrame
from antiphon.protocols.intergroup.outlet import Outlet, Views
from antiphon.protocols.intergroup.receiving.heard import HeardSenders
from antiphon.protocols.intergroup.role import Role


class UnreliableReceiver(Role):
    drops_when_full: ClassVar[bool] = True  # no sender waits for it

    def __init__(self, context: MemberContext, outlet: Outlet, views: Views, handoff: Handoff) -> None:
        super().__init__(context, outlet, views, handoff)
        self._senders = HeardSenders(context, views)

    def begin(self, now: int) -> None:
        self._senders.begin(now)

    def data(self, message: DataFrame, now: int) -> None:
        self._senders.heard(message.sender, now)
        super().data(message, now)

    def keep_alive(self, frame: KeepAliveFrame, now: int) -> None:
        self._senders.heard(frame.sender, now)

    def conclude(self, now: int) -> None:
        self._senders.forget_silent(now)

    def deadlines(self) -> Iterable[int]:
        return self._senders.deadlines()
