"""A receiver of the application framed service: it is told what it lacks, and asks for what it wants (6.4, ours).

What comes is delivered at once, each message once; a request is one like any other, that many share. It takes no part
in stability: what everybody who does has got may be gone when it asks.
"""

from antiphon.core.effects import Missing
from antiphon.protocols.intergroup.frames import (
    Answer,
    DataFrame,
    GoneFrame,
    KeepAliveFrame,
    RepairFrame,
)
from antiphon.protocols.intergroup.names import Collected
from antiphon.protocols.intergroup.party import Asking, Part
from antiphon.protocols.intergroup.requests import Ticket
from antiphon.types import ProcessId


class Framer(Asking):
    """Nobody waits for it."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._collected = Collected()

    def request(self, ticket: Ticket, now: int) -> None:
        """The application wants a message that it lacks."""
        self._requests.missing(ticket, self._settings.distance(ticket.sender), now)

    def _begin(self, now: int) -> None:  # noqa: ARG002
        self._follow_these(self._plan.view.members)

    def _end(self) -> None:
        """What it has it does not want again, should it come back."""
        self._requests = self._no_requests()

    # What comes in

    def _data(self, message: DataFrame, now: int) -> None:  # noqa: ARG002
        self._take(message)

    def _repair(self, frame: RepairFrame, now: int) -> None:  # noqa: ARG002
        self._take(frame.message)

    def _take(self, message: DataFrame) -> None:
        self._clock.merge(message.stamp)
        ticket = message.ticket
        if len(self._untaken) >= self._settings.window:
            return  # no room; it stays missing, and whoever still asks for it gets it later
        self._tell(ticket.sender, ticket.container, ticket.seq - 1)
        self._requests.done(ticket)
        if self._collected.take(ticket):
            self._deliver([message])

    def _keep_alive(self, frame: KeepAliveFrame, now: int) -> None:  # noqa: ARG002
        for container, count in frame.known:
            self._tell(frame.sender, container, count)

    def _answer(self, frame: Answer, now: int) -> None:  # noqa: ARG002
        if isinstance(frame, GoneFrame) and frame.ticket in self._requests:
            self._requests.done(frame.ticket)
            ticket = frame.ticket
            self._collected.take(ticket)  # as good as had: nothing more is to be waited for
            self._effects.append(Missing(self._name, ticket.sender, ticket.container, (ticket.seq,), gone=True))

    # What follows

    def _tell(self, sender: ProcessId, container: bytes, upto: int) -> None:
        places = self._collected.lacking(sender, container, upto)
        if places:
            self._effects.append(Missing(self._name, sender, container, places))
