"""Newtop's frame: one numbered message (Macedo94 §3.2, §6.3.1; field names as in our glossary)."""

from typing import NamedTuple

from antiphon.types import GroupId, ProcessId


class BlockFrame(NamedTuple):
    """A data message with all the payloads packed in it or, without payloads, a null message.

    One frame is one protocol message: it takes one block number, and the papers' rules apply to it unchanged. The
    order key of an application message is (block, sender, position in the frame).
    """

    group: GroupId
    sender: ProcessId
    block: int
    """m.b: logical time of the message."""
    previous_block: int
    """m.pb: number of the sender's previous message in this group; reveals a gap or a copy."""
    complete_block: int
    """m.lcb: the sender's largest complete block when this left; what stability is computed from."""
    payloads: tuple[bytes, ...] = ()
    label: int = 0
    """Opaque: number of the first payload, for the recorder."""

    @property
    def clock(self) -> int:
        """The stamp that orders it."""
        return self.block

    @property
    def kind(self) -> str:
        """`data`, or `null` where there is nothing for the application."""
        return "data" if self.payloads else "null"
