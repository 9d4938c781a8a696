"""A scenario as the product sees it: frozen, complete, every default filled in.

The fields have the names of the keys in the TOML file; a sentence beside each tells its meaning. `validate.py` checks
what types cannot express.
"""

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field

from antiphon.scenario.units import Bandwidth, Duration


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=lambda name: name.rstrip("_")):
    """A TOML table that refuses unknown keys. A trailing underscore avoids Python keywords."""


class Fixed(Table, frozen=True, kw_only=True, tag_field="kind", tag="fixed"):
    """Every frame takes the same time."""

    value: Duration


class Uniform(Table, frozen=True, kw_only=True, tag_field="kind", tag="uniform"):
    """A uniform distribution between two bounds."""

    low: Duration
    high: Duration


class Lognormal(Table, frozen=True, kw_only=True, tag_field="kind", tag="lognormal"):
    """Half of the frames below the median, with a tail to the right, as on real networks."""

    median: Duration
    sigma: float = 0.5
    """Standard deviation of the logarithm."""


Latency = Fixed | Uniform | Lognormal


class Options(Table, frozen=True, kw_only=True):
    """Settings of the protocol, the same for all members; each family adds its own."""

    literal: tuple[str, ...] = ()
    """Errata to follow as printed, e.g. ["E-15"]: evidence that the printed rule is wrong. Simulator only."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Which other options there are depends on the family."""


STATE_BYTES_MIN: Final = 24
"""Size of the state of simulated applications: a hash and a count of messages."""


class Group(Table, frozen=True, kw_only=True):
    """A group of processes and its service."""

    name: str
    members: tuple[str, ...] | int
    """Names, or a number n for p1 … pn."""
    service: str = ""
    """The delivery service; each protocol has its own. Default: the strongest one of the protocol."""
    mode: Literal["symmetric", "asymmetric"] = "symmetric"
    """newtop: whether each sender numbers its own messages, or one member, the sequencer, numbers all."""
    numbering: Literal["separate", "block"] = "separate"
    """What flow control counts: data messages with their own numbers, or blocks, as in the papers."""
    formed: bool = False
    """The group has no members at first; a fault of kind `form` forms it."""
    state_bytes: int = 32
    """Size of the state that applications of this group transfer to joiners, and when groups merge."""


class Member(Table, frozen=True, kw_only=True):
    """The differences of one member from its group."""

    process: str
    group: str
    role: Literal["both", "sender", "receiver"] = "both"
    """A sender delivers nothing: in the classic family it is outside the group. A receiver never sends.

    intergroup: the role at the start. Receivers are not in views; all other members are in the sender group and also
    deliver. A receiver that sends becomes a sender.
    """
    service: str = ""
    """intergroup: the service of this member; default: that of its group."""
    sources: tuple[str, ...] | None = None
    """The senders that a receiver receives from; default: all."""


class Network(Table, frozen=True, kw_only=True):
    """The network between the processes."""

    transport: Literal["stream", "datagram"] = "stream"
    latency: Latency = Lognormal(median=Duration(2_000_000))
    loss: float = 0.0
    """Share of datagrams that are lost."""
    duplicate: float = 0.0
    """Share of datagrams that arrive twice."""
    reorder: float = 0.0
    """Share of datagrams held back by up to ten latencies more."""
    bandwidth: Bandwidth | None = None
    """Outgoing bandwidth of each process; a stream transmits one copy per receiver, a datagram one for all."""


class Site(Table, frozen=True, kw_only=True):
    """Processes that are near each other (intergroup)."""

    name: str
    processes: tuple[str, ...]


class Path(Table, frozen=True, kw_only=True):
    """The path between two sites: its latency replaces that of the network, its loss is added."""

    between: tuple[str, str]
    latency: Latency
    loss: float = 0.0


class Workload(Table, frozen=True, kw_only=True):
    """Messages that applications send."""

    name: str = ""
    """Default w1, w2, …"""
    group: str
    senders: Literal["all"] | tuple[str, ...] = "all"
    messages: int = 1
    """For each sender."""
    interval: Duration = Duration(0)
    """Time between the requests of one sender; "0s": all at once, as fast as flow control allows."""
    start: Duration = Duration(0)
    """The beginning of the first interval; without an interval, the time of all requests."""
    jitter: float = 0.0
    """Share of the interval by which each request may be early or late."""
    payload: int = 32
    """Bytes."""
    replies: bool = False
    """Every member except the first sender sends one message when it has delivered all of these."""
    answers: Literal["none", "any", "first", "majority", "all"] = "none"
    """Messages are requests: which members must answer before the request is answered."""


class Hosts(Table, frozen=True, kw_only=True):
    """The hosts; without a count, every process has its own."""

    count: int | None = None
    """Process i runs on host i mod count."""
    service: Duration = Duration(0)
    """CPU time per frame sent (once for any fan-out) or received, first come first served."""
    tick: Duration = Duration(0)
    """Granularity of timers (CLOCKPERIOD of Macedo94)."""
    wake: Duration = Duration(0)
    """Time from the arrival of a frame until its process reads its inbox, as one batch."""
    consume: Duration = Duration(0)
    """Time that an application needs for the messages of one frame."""


class _Timed(Table, frozen=True, kw_only=True):
    at: Duration
    until: Duration | None = None
    """Without it: until the end."""


class _OnProcess(_Timed, frozen=True, kw_only=True):
    process: str


class _OnLinks(_Timed, frozen=True, kw_only=True):
    """Without further keys all links; with `process` those to and from it; with `from` and `to` one direction."""

    process: str | None = None
    from_: str | None = None
    to: str | None = None


class Pause(_OnProcess, frozen=True, kw_only=True, tag_field="kind", tag="pause"):
    """The whole process stops; what is sent to it waits."""


class Stall(_OnProcess, frozen=True, kw_only=True, tag_field="kind", tag="stall"):
    """The application stops consuming deliveries; its process continues."""


class Slow(_OnProcess, frozen=True, kw_only=True, tag_field="kind", tag="slow"):
    """The process needs `factor` times its CPU time."""

    factor: float


class Skew(_OnProcess, frozen=True, kw_only=True, tag_field="kind", tag="skew"):
    """The clock of the process is set ahead by `offset` and runs at `rate`; from `until` on the rate is 1 again."""

    offset: Duration = Duration(0)
    rate: float = 1.0


class Delay(_OnLinks, frozen=True, kw_only=True, tag_field="kind", tag="delay"):
    """Frames take `extra` longer."""

    extra: Duration


class Loss(_OnLinks, frozen=True, kw_only=True, tag_field="kind", tag="loss"):
    """Datagrams are lost at this rate, in addition to the loss of the network."""

    rate: float


class Partition(_Timed, frozen=True, kw_only=True, tag_field="kind", tag="partition"):
    """Nothing passes between processes on different sides; those on no side keep all their links."""

    sides: tuple[tuple[str, ...], ...]


class Cut(_Timed, frozen=True, kw_only=True, tag_field="kind", tag="cut"):
    """Nothing passes in one direction."""

    from_: str
    to: str


class Suspect(Table, frozen=True, kw_only=True, tag_field="kind", tag="suspect"):
    """A live process is suspected."""

    at: Duration
    process: str
    by: str | tuple[str, ...]


class Gone(Table, frozen=True, kw_only=True, tag_field="kind", tag="gone"):
    """Processes get evidence that another is dead, rightly or not: as from a reset connection and a refused new one."""

    at: Duration
    process: str
    by: str | tuple[str, ...]
    """The processes that get it."""


class Crash(Table, frozen=True, kw_only=True, tag_field="kind", tag="crash"):
    """The process crashes; a part of its frames in transit is lost."""

    at: Duration
    process: str


class Leave(Table, frozen=True, kw_only=True, tag_field="kind", tag="leave"):
    """The process leaves a group."""

    at: Duration
    process: str
    group: str


class Join(Table, frozen=True, kw_only=True, tag_field="kind", tag="join"):
    """The process joins a group; if this is its first change there, it is not a member before."""

    at: Duration
    process: str
    group: str
    via: tuple[str, ...] | None = None
    """newtop: the contacts that it asks; default: all other processes that the group names."""


class Form(Table, frozen=True, kw_only=True, tag_field="kind", tag="form"):
    """The process forms a group that says `formed = true`."""

    at: Duration
    process: str
    group: str
    members: tuple[str, ...] | None = None
    """The members, including itself; default: all processes that the group names."""


class Merge(Table, frozen=True, kw_only=True, tag_field="kind", tag="merge"):
    """The process looks at once for other groups of the same name, to merge with them."""

    at: Duration
    process: str
    group: str
    with_: tuple[str, ...] | None = None
    """The processes to look for; default: all others that the group names."""


class Recover(Table, frozen=True, kw_only=True, tag_field="kind", tag="recover"):
    """A crashed process starts again as a new incarnation, which is in no group, and joins."""

    at: Duration
    process: str
    joins: tuple[str, ...] | None = None
    """The groups to join, with all others that they name as contacts; default: its groups at the crash."""


class Promote(Table, frozen=True, kw_only=True, tag_field="kind", tag="promote"):
    """intergroup: the process becomes a sender of a group."""

    at: Duration
    process: str
    group: str


class Demote(Table, frozen=True, kw_only=True, tag_field="kind", tag="demote"):
    """intergroup: the process becomes a receiver of a group; it sends first what its application has sent."""

    at: Duration
    process: str
    group: str


class Heal(Table, frozen=True, kw_only=True, tag_field="kind", tag="heal"):
    """Ends every fault of the network."""

    at: Duration


Change = Join | Leave | Form | Merge | Recover
"""Changes of membership other than failures; newtop implements them by forming new groups."""
Moment = Suspect | Gone | Crash | Join | Leave | Form | Merge | Recover | Promote | Demote | Heal
"""Faults that happen once and do not end."""
Fault = Pause | Stall | Slow | Skew | Delay | Loss | Partition | Cut | Moment


class Scenario(Table, frozen=True, kw_only=True):
    """A complete description of one run: the same scenario and seed give the same trace, byte for byte."""

    name: str
    seed: int = 1
    protocol: str = "newtop"
    """The protocol family; `protocols/registry.py` lists them."""
    duration: Duration = Duration(60_000_000_000)
    """The run stops at this time, or earlier when it is quiet."""
    quiet: Duration = Duration(5_000_000_000)
    """A run stopped at `duration` is judged for liveness if the last fault and request are this long ago."""
    trace: Literal["full", "off"] = "full"
    options: Options = Options()
    """In a complete scenario, an instance of the options struct of its family."""
    group: tuple[Group, ...]
    member: tuple[Member, ...] = ()
    network: Network = Network()
    site: tuple[Site, ...] = ()
    path: tuple[Path, ...] = ()
    workload: tuple[Workload, ...] = ()
    hosts: Hosts = Hosts()
    fault: tuple[Fault, ...] = field(default=())

    @property
    def processes(self) -> tuple[str, ...]:
        """All processes, in the order in which the groups name them."""
        return tuple(dict.fromkeys(name for group in self.group for name in members_of(group)))


def accusers(fault: Suspect | Gone) -> tuple[str, ...]:
    """The processes that suspect, or get evidence."""
    return (fault.by,) if isinstance(fault.by, str) else fault.by


def cut_links(fault: Partition | Cut) -> tuple[tuple[str, str], ...]:
    """The (from, to) pairs that the fault cuts."""
    if isinstance(fault, Cut):
        return ((fault.from_, fault.to),)
    side_of = {name: number for number, side in enumerate(fault.sides) for name in side}
    return tuple((a, b) for a in side_of for b in side_of if side_of[a] != side_of[b])


def role_of(scenario: Scenario, group: str, process: str) -> Member:
    """What the scenario says about a member."""
    for member in scenario.member:
        if (member.group, member.process) == (group, process):
            return member
    return Member(process=process, group=group)


def service_of(scenario: Scenario, group: Group, process: str) -> str:
    """The service of a member, or that of its group."""
    return role_of(scenario, group.name, process).service or group.service


def senders_of(scenario: Scenario, group: Group) -> tuple[str, ...]:
    """The members that do not only receive."""
    return tuple(name for name in members_of(group) if role_of(scenario, group.name, name).role != "receiver")


def typical(latency: Latency) -> int:
    """The median latency in nanoseconds."""
    match latency:
        case Fixed(value=value):
            return int(value)
        case Uniform(low=low, high=high):
            return (low + high) // 2
        case Lognormal(median=median):
            return int(median)


def absent_at_first(scenario: Scenario, group: str) -> frozenset[str]:
    """The members that are not in the group at the start: it is formed later, or they join first."""
    if any(other.formed for other in scenario.group if other.name == group):
        return frozenset(name for other in scenario.group if other.name == group for name in members_of(other))
    first: dict[str, Join | Leave | Crash] = {}
    for fault in sorted(scenario.fault, key=lambda fault: fault.at):
        if isinstance(fault, Crash) or (isinstance(fault, Join | Leave) and fault.group == group):
            first.setdefault(fault.process, fault)
    return frozenset(process for process, fault in first.items() if isinstance(fault, Join))


def members_of(group: Group) -> tuple[str, ...]:
    """The members by name."""
    if isinstance(group.members, int):
        return tuple(f"p{number}" for number in range(1, group.members + 1))
    return group.members
