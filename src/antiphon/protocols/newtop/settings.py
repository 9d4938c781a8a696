"""The settings of Newtop's cores: field, unit, default, one sentence."""

from dataclasses import dataclass
from typing import Literal

from antiphon.types import GroupId

Service = Literal["total", "total-safe", "causal-slow", "causal-fast", "causal-relative", "causal-vector"]


@dataclass(frozen=True, slots=True)
class NewtopSettings:
    """The same for every member of a group."""

    service: Service = "total"
    """The order of delivery, the same in all groups of a process; in `total-safe` some may wait for less."""
    merely_total: frozenset[str] = frozenset()
    """Under `total-safe`: names of groups whose messages do not wait until they are stable, as under `total`."""
    silence_timeout_ns: int = 0
    """How long a member may stay silent after a block appeared before it sends a null; 0 answers at once."""
    announce_pause_ns: int = 10_000_000
    """How long a member whose silence timeout is 0 waits for a message to carry its news before it announces them."""
    packing: bool = True
    """Whether messages that wait together leave in one frame; False is one message a frame, as in the papers."""
    frame_bytes_max: int = 65_536
    """How many bytes of payloads and their lengths a frame carries; a larger message travels as fragments."""
    message_bytes_max: int = 16_777_216
    """How large a message may be; a peer that sends a larger one is not waited for."""
    flow_control: int = 0
    """0 off, or algorithm 1, 2 or 3 of Macedo95."""
    window: int = 64
    """N of the algorithm."""
    window_bytes: int = 1_048_576
    """How many payload bytes of its own a member may have unstable in a group."""
    block_numbered: frozenset[GroupId] = frozenset()
    """Groups in which flow control counts blocks, nulls too, as the papers do; their members are in no other group."""
    asymmetric: frozenset[GroupId] = frozenset()
    """Groups in which one member numbers the messages of all (newtop.md 11.3); service total, views by cuts."""
    compression: bool = False
    """Fast order: stamps say only what changed since the sender's previous message in the group."""
    datagrams: bool = False
    """Whether the transport may lose, double and reorder: then frames are sequenced and repaired."""
    repair_ns: int = 20_000_000
    """How long to wait before asking or telling again, at first; doubled at each repetition."""
    repair_max_ns: int = 125_000_000
    """The longest such wait; also how often a member that flow control holds back says that it is alive."""
    suspect_after_ns: int = 0
    """ω: silence after which a member is suspected; 0: nobody ever is (docs/spec/newtop.md 9.2)."""
    idle_probe_ns: int = 0
    """After how long without a message an idle group is probed for crashed members; 0: never."""
    view_change: Literal["cut", "remove", "closed"] = "cut"
    """How a view without those who failed is installed (newtop.md 9.6); others than total order take `cut`."""
    merge_every_ns: int = 0
    """τ_probe: how often a member looks for others of its group that are out of its view; 0: never (newtop.md 11.2)."""
    form_within_ns: int = 2_000_000_000
    """τ_form: how long a formation, or a leave, may take before it is given up (docs/spec/newtop.md 11.1, 11.2)."""
    tracing: bool = False
    """Whether effects that only a trace wants are built."""
