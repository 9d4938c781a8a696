"""Messages of recipes begin with a mark, so that several recipes and an application share one group."""

from antiphon.api.events import Event, Message


def body_of(event: Event, mark: bytes) -> bytes | None:
    """What follows the mark; None if the event is not a message with this mark."""
    if isinstance(event, Message) and event.payload.startswith(mark):
        return event.payload[len(mark) :]
    return None
