"""The measures of a dataset: latency, traffic, flow control, costs; `dataclasses.asdict` gives the JSON."""

from dataclasses import dataclass
from typing import Any, Literal

Percentiles = Literal["exact", "approximate"]


@dataclass(frozen=True, slots=True)
class Latency:
    """How long after the application's request something happened, over `count` occurrences."""

    count: int
    mean_ns: float
    p50_ns: float
    p90_ns: float
    p99_ns: float
    max_ns: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """What was sent, delivered and transmitted; a ratio is None if its divisor is zero."""

    sent: int
    """Application messages sent."""
    delivered: int
    """Deliveries, added up over the members."""
    frames: dict[str, int]
    """Frames transmitted by type, each counted once for any number of receivers."""
    null_share: float | None
    """Null frames in all frames."""
    nulls_per_message: float | None
    header_bytes_per_message: float | None
    """Protocol bytes of all frames, nulls included, per application message."""
    header_ratio: float | None
    """Protocol bytes in all bytes transmitted."""
    stamp_bytes_per_message: float | None
    """Ordering information of all frames, nulls included, per application message."""
    stamp_bytes_per_data_frame: float | None
    """Ordering information of the frames that carry messages or fragments, without nulls."""
    announcements_per_message: float | None
    """Frames that only announce what their sender has completed (`alive`)."""
    repairs_per_message: float | None
    """Frames that recover from losses of the transport: `status`, `ack`, `request`, `repair`."""
    messages_per_data_frame: float | None
    """How well packing worked."""
    copies_per_message: float | None
    """Point-to-point messages: every frame counted once per receiver; None if a trace does not tell."""
    wire_bytes_per_message: float | None
    """Protocol and payload bytes of all those copies; None if a trace does not tell."""
    acknowledgments_per_message: float | None
    """Frames that only acknowledge (`acknowledgment`)."""


@dataclass(frozen=True, slots=True)
class Flow:
    """How often flow control blocked senders, and the highest readings of what it limits."""

    blocked_times: int
    """How often a member was blocked, added up over members and groups."""
    blocked_ns: int
    """The total duration; a member that was never released waits until its trace ends."""
    unstable_blocks_max: int | None
    """The most blocks that a member held as unstable at once; None if the trace has no such gauge."""
    buffers_max: int | None
    """The most frames that a member held in its pool at once; None if the trace has no such gauge."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Elementary operations of the protocol's own bookkeeping, in the processes that did not crash."""

    sender_work: int
    receiver_work: int


@dataclass(frozen=True, slots=True)
class Experiment:
    """What the experiments of the papers measure (Macedo94 §7.3, §8.2); see docs/reference/stats.md."""

    delay_overhead_ns: float | None
    """From the receipt of a message (for an own message, its transmission) to its delivery.

    The mean over the messages at each member, then over the members.
    """
    nulls: int
    """Null frames of all members, each counted once for any number of receivers."""
    nulls_per_inactive_member: float | None
    """The mean over the members that sent at most a reply while another sent more; None if there is no such member."""
    first_sender_per_second: float | None
    """Messages that the first sender sent, from its first request to its last delivery; groups are added up."""


@dataclass(frozen=True, slots=True)
class MemberStatistics:
    """One process in one group, all its incarnations together."""

    process: str
    sent: int
    delivered: int
    per_second: float | None
    """Messages delivered per second, from the group's first request to this member's last delivery."""
    latency: Latency | None
    delay_overhead_ns: float | None
    """From the receipt of a message (for an own message, its transmission) to its delivery: the mean."""
    unstable_max: int | None
    """The most frames it held as unstable at once."""
    nulls: int
    flow: Flow


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """One group of one run, or of all runs; then `members` is empty."""

    group: str
    per_second: float | None
    """The rate of the slowest member that was there all the time: it neither crashed, left nor joined.

    Over all runs, the mean of the runs.
    """
    latency: Latency | None
    """Until each delivery."""
    stability_latency: Latency | None
    """Until the sender itself first calls its message stable."""
    sent_to_nobody: int
    """Messages left out of it: their sender had no receivers, and called them stable at once."""
    request_latency: Latency | None
    """Until a request to the group is answered."""
    traffic: Traffic
    busy_traffic: Traffic
    """The traffic up to the run's last send, delivery, stability report or answer.

    A periodic protocol goes on transmitting until the run ends. This shows its cost per message without that.
    """
    unstable_max: int | None
    flow: Flow
    experiment: Experiment
    """Over all runs, the mean of the runs; nulls are added up."""
    members: tuple[MemberStatistics, ...]


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """One run, or several together."""

    run: str | None
    """None for several runs."""
    seconds: float
    """From the first row of a process to the last; for several runs, added up."""
    view_changes: int
    """Views that replaced another, each counted once."""
    latency: Latency | None
    stability_latency: Latency | None
    sent_to_nobody: int
    request_latency: Latency | None
    traffic: Traffic
    busy_traffic: Traffic
    idle_copies_per_second: float | None
    """Point-to-point messages of all members after the run's last send, delivery, stability report or answer.

    None if a run ends as soon as it falls silent, or was cut off before it was quiet.
    """
    unstable_max: int | None
    """The most frames that a member held as unstable in one group at once."""
    flow: Flow
    costs: Costs | None
    """None if the protocol does not count them."""
    experiment: Experiment
    """Over all runs, the mean of the runs; nulls are added up."""
    groups: tuple[GroupStatistics, ...]


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure over several runs."""

    count: int
    """How many runs have it."""
    mean: float
    half_width: float | None
    """Half the 95 % confidence interval of the mean (Student's t); None for a single run."""
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Configuration:
    """Runs that differ in their seed alone."""

    scenario: str
    settings: dict[str, Any]
    """The settings in which it differs from the other configurations of the directory, as sweeps address them."""
    runs: tuple[str, ...]
    figures: dict[str, Interval]
    """By the names of `schemas.FIGURES`; without figures that no run has."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures of a dataset; `dataclasses.asdict` gives its JSON."""

    percentiles: Percentiles
    overall: RunStatistics
    runs: tuple[RunStatistics, ...]
    """Empty if there are too many."""
    number_of_runs: int
    configurations: tuple[Configuration, ...] = ()
    """Empty if the directory does not record the scenarios of its runs."""
