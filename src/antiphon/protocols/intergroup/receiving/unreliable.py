"""A receiver of an unreliable service: it takes what arrives, and no other process knows of it (Berket00 §4.6)."""

from typing import ClassVar

from antiphon.protocols.intergroup.role import Role


class UnreliableReceiver(Role):
    drops_when_full: ClassVar[bool] = True  # no sender waits for it

    def begin(self, now: int) -> None:  # noqa: ARG002
        self._views.install_private(self._context.plan.view.members)
