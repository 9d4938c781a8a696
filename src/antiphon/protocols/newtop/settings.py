"""The settings of Newtop's cores: field, unit, default, one sentence."""

from dataclasses import dataclass
from typing import Literal

from antiphon.core.services import GroupService, ViewMode
from antiphon.types import GroupId

Service = Literal[
    "total", "total-safe", "causal-slow", "causal-fast", "causal-relative", "causal-vector", "fifo", "reliable"
]

Values = tuple[tuple[str, str], ...]
"""Settings in the form that is sent to other processes: name and text, sorted by name."""


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
    """True: messages that wait together leave in one frame; False: one message per frame, as in the papers."""
    frame_bytes_max: int = 65_536
    """Maximum bytes of payloads and their lengths in a frame; a larger message is sent as fragments."""
    message_bytes_max: int = 16_777_216
    """Maximum size of a message; a larger one is never delivered."""
    flow_control: int = 0
    """0 off, or algorithm 1, 2 or 3 of Macedo95."""
    window: int = 64
    """N of the algorithm."""
    window_bytes: int = 1_048_576
    """Maximum unstable payload bytes of a member's own messages in a group."""
    block_numbered: frozenset[GroupId] = frozenset()
    """Groups in which flow control counts blocks, nulls too, as the papers do; their members are in no other group."""
    asymmetric: frozenset[GroupId] = frozenset()
    """Groups in which one member numbers the messages of all (newtop.md 11.3); service total, views by cuts."""
    compression: bool = False
    """Fast order: stamps say only what changed since the sender's previous message in the group."""
    datagrams: bool = False
    """True if the transport may lose, duplicate and reorder: then frames are sequenced and repaired."""
    repair_ns: int = 20_000_000
    """First wait before a request or status is repeated; doubled at each repetition."""
    repair_max_ns: int = 125_000_000
    """The longest such wait; also the period of signs of life while flow control blocks a member."""
    suspect_after_ns: int = 0
    """ω: silence after which a member is suspected; 0: never (docs/spec/newtop.md 9.2)."""
    idle_probe_ns: int = 0
    """After how long without a message an idle group is probed for crashed members; 0: never."""
    stuck_after_ns: int = 0
    """A member that is heard, but does not advance for this time, is suspected all the same; 0: never (newtop.md 9.9).

    Off in the simulator: it would end a standstill that campaigns must see."""
    exclude_stalled_after_ns: int = 0
    """After this time without reading, a process leaves the group for its application; 0: never (newtop.md 9.9)."""
    view_change: ViewMode = "cut"
    """How a view without failed members is installed (newtop.md 9.6); orders other than total use `cut`."""
    merge_every_ns: int = 0
    """τ_probe: how often a member searches for members of its group outside its view; 0: never (newtop.md 11.2)."""
    form_within_ns: int = 2_000_000_000
    """τ_form: timeout of a formation or a leave (docs/spec/newtop.md 11.1, 11.2)."""
    compares_histories: bool = False
    """Whether sides that have delivered the same merge without a state (newtop.md 11.2 rule 7)."""
    doubts_restarts: bool = False
    """Whether another process may have the name of a member. Then an earlier incarnation in the view must vote."""
    agreed: Values = ()
    """What group formation compares, beside the service of the group. Empty: no comparison."""
    invitations: bool = True
    """Whether others may put this process into a new group that its application did not ask for (11.1 step 1)."""
    primary: Literal["dynamic"] | int | None = None
    """How a view becomes primary (newtop.md 15): by dynamic voting, or with most of this many; None: by its members."""
    entitled: bool = False
    """Whether a process that forms a group may found its first primary view, as in scenarios."""
    tracing: bool = False
    """True if effects that only a trace needs are built."""

    def service_of(self, name: GroupId) -> GroupService:
        """The service of a group for which the application has chosen none: scenarios choose here."""
        sequencer = name in self.asymmetric
        service = "total" if name in self.merely_total else self.service
        return GroupService(service, sequencer, "cut" if sequencer else self.view_change)
