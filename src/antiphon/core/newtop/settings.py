"""The settings of Newtop's cores: field, unit, default, one sentence."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NewtopSettings:
    """The same for every member of a group."""

    silence_timeout_ns: int = 0
    """How long a member may stay silent after a block appeared before it sends a null; 0 answers at once."""
    packing: bool = True
    """Whether messages that wait together leave in one frame; False is one message a frame, as in the papers."""
    frame_bytes_max: int = 65_536
    """How many bytes of payloads and their lengths are packed together; a larger message travels alone."""
    tracing: bool = False
    """Whether effects that only a trace wants are built."""
