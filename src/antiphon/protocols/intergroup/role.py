"""What a process is in a group: the operations that differ between senders and the kinds of receivers.

The defaults are those of a process that takes what arrives and asks for nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

from antiphon.protocols.intergroup.context import MemberContext
from antiphon.protocols.intergroup.delivery.handoff import Handoff
from antiphon.protocols.intergroup.frames import DataFrame, KeepAliveFrame, RepairFrame, RequestFrame
from antiphon.protocols.intergroup.outlet import Outlet, Views
from antiphon.protocols.intergroup.tickets import Ticket

Handlers = Mapping[type[Any], Callable[[Any, int], None]]
"""By class of frame, what receives it; frames of other classes are ignored."""

_NO_HANDLERS: Final[Handlers] = {}


class Role:
    """Receives the frames of one group, and decides at each `conclude` what follows from them and from the time."""

    drops_when_full: ClassVar[bool] = False
    """True if messages are dropped while the application has a whole window of messages to consume."""

    def __init__(self, context: MemberContext, outlet: Outlet, views: Views, handoff: Handoff) -> None:
        self._context = context
        self._outlet = outlet
        self._views = views
        self._handoff = handoff

    # Requests of the application

    def begin(self, now: int) -> None:
        """The process joins the group."""
        raise NotImplementedError

    def end(self) -> None:
        """The process leaves the group."""

    def send(self, payload: bytes, label: int, name: bytes) -> None:  # noqa: ARG002
        raise AssertionError("a receiver cannot send")

    def request(self, ticket: Ticket, now: int) -> None:  # noqa: ARG002
        raise AssertionError("only an application of the framed service requests messages")

    def consumed(self) -> None:
        """The application has consumed something."""

    def set_writable(self, ready: bool) -> None:
        """The transport accepts more, or no more."""

    # Frames

    def data(self, message: DataFrame, now: int) -> None:  # noqa: ARG002
        self._handoff.arrived(message, repair=False)

    def repair(self, frame: RepairFrame, now: int) -> None:  # noqa: ARG002
        self._handoff.arrived(frame.message, repair=True)

    def keep_alive(self, frame: KeepAliveFrame, now: int) -> None: ...

    def requested(self, frame: RequestFrame, now: int) -> None:
        """Another process requests a message."""

    @property
    def handlers(self) -> Handlers:
        """The handlers of all other frames."""
        return _NO_HANDLERS

    # Consequences

    def conclude(self, now: int) -> None: ...

    def deadlines(self) -> Iterable[int]:
        """The times at which `conclude` is needed even if nothing arrives."""
        return ()

    @property
    def unstable(self) -> int:
        """Number of messages held because some process may lack them."""
        return 0

    @property
    def has_unsent(self) -> bool:
        """True if messages of the application wait to be transmitted."""
        return False

    @property
    def unfinished(self) -> bool:
        """True if the process still joins or lacks messages, and time alone may change that."""
        return False
