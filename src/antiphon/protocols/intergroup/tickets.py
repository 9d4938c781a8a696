"""Tickets: how a request names the message that is missing."""

from typing import Final, NamedTuple

from antiphon.types import ProcessId

UNNAMED: Final = b"."
"""The container of messages without a name."""


class Ticket(NamedTuple):
    """One message of one sender, by its number on the stream or in a container."""

    sender: ProcessId
    seq: int
    container: bytes = b""
    """The container that `seq` counts in; empty: `seq` counts on the sender's stream."""


def container_of(name: bytes) -> bytes:
    """The path of a message's name without its last part: `bids` for `bids/7`."""
    return name.rpartition(b"/")[0] or UNNAMED
