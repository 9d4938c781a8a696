"""A scenario as the product sees it: frozen, complete, every default filled in.

The fields are the keys of the TOML file, with its names; a sentence beside each says what it means. What a file may
say beyond its types is in `validate.py`.
"""

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field

from antiphon.scenario.units import Bandwidth, Duration


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=lambda name: name.rstrip("_")):
    """A TOML table that refuses keys it does not know. A trailing underscore avoids Python's own words."""


class Fixed(Table, frozen=True, kw_only=True, tag_field="kind", tag="fixed"):
    """Every frame takes the same time."""

    value: Duration


class Uniform(Table, frozen=True, kw_only=True, tag_field="kind", tag="uniform"):
    """Any time between two bounds, all alike."""

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
"""What the simulated applications need for their state: a hash, and a count of messages."""


class Group(Table, frozen=True, kw_only=True):
    """A group of processes and the service it gets."""

    name: str
    members: tuple[str, ...] | int
    """Names, or a number n for p1 … pn."""
    service: str = ""
    """What is promised about deliveries; which there are depends on the protocol. Default: its strongest."""
    mode: Literal["symmetric", "asymmetric"] = "symmetric"
    """newtop: who numbers messages: each sender its own, or one member, the sequencer, those of all."""
    numbering: Literal["separate", "block"] = "separate"
    """What flow control counts: data messages, by numbers of their own, or blocks, as the papers do."""
    formed: bool = False
    """Nobody is in it at first; a fault of kind `form` forms it."""
    state_bytes: int = 32
    """How large the state is that applications of this group hand over to those who join or merge."""


class Member(Table, frozen=True, kw_only=True):
    """What one member does differently from its group."""

    process: str
    group: str
    role: Literal["both", "sender", "receiver"] = "both"
    """A sender gets nothing delivered: in the classic family it stands outside the group. A receiver never sends.

    intergroup: receivers are not in views, everybody else is in the sender group, and delivers too.
    """
    service: str = ""
    """intergroup: what this member asks for; default: what its group does."""
    sources: tuple[str, ...] | None = None
    """Whose messages a receiver takes; without it, everybody's."""


class Network(Table, frozen=True, kw_only=True):
    """What lies between the processes."""

    transport: Literal["stream", "datagram"] = "stream"
    latency: Latency = Lognormal(median=Duration(2_000_000))
    loss: float = 0.0
    """Share of datagrams that vanish."""
    duplicate: float = 0.0
    """Share of datagrams that arrive twice."""
    reorder: float = 0.0
    """Share of datagrams held back by up to ten latencies more."""
    bandwidth: Bandwidth | None = None
    """Of each process's line out; a stream sends one copy a receiver over it, a datagram one for all."""


class Site(Table, frozen=True, kw_only=True):
    """Processes that are near each other (intergroup)."""

    name: str
    processes: tuple[str, ...]


class Path(Table, frozen=True, kw_only=True):
    """What lies between two sites: in place of the network's own latency, and in addition to its loss."""

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
    """Between the requests of one sender; "0s": all as fast as flow control lets them."""
    start: Duration = Duration(0)
    """When the first interval begins; without one, when all are requested."""
    jitter: float = 0.0
    """Share of the interval by which each request may come early or late."""
    payload: int = 32
    """Bytes."""
    replies: bool = False
    """Every member but the first sender sends one message when it has delivered all of these."""
    answers: Literal["none", "any", "first", "majority", "all"] = "none"
    """Messages are requests: how many members must answer before the sender's application has its answer."""


class Hosts(Table, frozen=True, kw_only=True):
    """The machines: without a count every process has one of its own."""

    count: int | None = None
    """Process i runs on host i mod count."""
    service: Duration = Duration(0)
    """CPU time per frame sent (once, whatever the fan-out) or received, first come first served."""
    tick: Duration = Duration(0)
    """Granularity of timers (CLOCKPERIOD of Macedo94)."""
    wake: Duration = Duration(0)
    """How long after a frame its process looks at its inbox, taking all that has come by then in one batch."""
    consume: Duration = Duration(0)
    """How long an application deals with the messages of one frame before it takes the next."""


class _Timed(Table, frozen=True, kw_only=True):
    at: Duration
    until: Duration | None = None
    """Without it: for ever."""


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
    """The application stops taking deliveries; its process goes on."""


class Slow(_OnProcess, frozen=True, kw_only=True, tag_field="kind", tag="slow"):
    """The process needs `factor` times its CPU time."""

    factor: float


class Skew(_OnProcess, frozen=True, kw_only=True, tag_field="kind", tag="skew"):
    """The process's clock is set ahead by `offset` and runs at `rate`; at `until` the rate is right again."""

    offset: Duration = Duration(0)
    rate: float = 1.0


class Delay(_OnLinks, frozen=True, kw_only=True, tag_field="kind", tag="delay"):
    """Frames take `extra` longer."""

    extra: Duration


class Loss(_OnLinks, frozen=True, kw_only=True, tag_field="kind", tag="loss"):
    """Datagrams vanish at this rate in addition to the network's own loss."""

    rate: float


class Partition(_Timed, frozen=True, kw_only=True, tag_field="kind", tag="partition"):
    """Nothing passes between processes on different sides; those on no side keep all their links."""

    sides: tuple[tuple[str, ...], ...]


class Cut(_Timed, frozen=True, kw_only=True, tag_field="kind", tag="cut"):
    """Nothing passes in one direction."""

    from_: str
    to: str


class Suspect(Table, frozen=True, kw_only=True, tag_field="kind", tag="suspect"):
    """Somebody is wrongly suspected."""

    at: Duration
    process: str
    by: str | tuple[str, ...]


class Crash(Table, frozen=True, kw_only=True, tag_field="kind", tag="crash"):
    """The process is gone for good; of what it had under way, some gets through and some does not."""

    at: Duration
    process: str


class Leave(Table, frozen=True, kw_only=True, tag_field="kind", tag="leave"):
    """The process takes leave of a group."""

    at: Duration
    process: str
    group: str


class Join(Table, frozen=True, kw_only=True, tag_field="kind", tag="join"):
    """The process joins a group; if that is the first thing it does there, it is not in it before."""

    at: Duration
    process: str
    group: str
    via: tuple[str, ...] | None = None
    """newtop: whom it asks to be taken in; default: all others that the group names."""


class Form(Table, frozen=True, kw_only=True, tag_field="kind", tag="form"):
    """The process forms a group that says `formed = true`."""

    at: Duration
    process: str
    group: str
    members: tuple[str, ...] | None = None
    """With whom, itself among them; default: all that the group names."""


class Merge(Table, frozen=True, kw_only=True, tag_field="kind", tag="merge"):
    """The process looks at once for others of its group, to merge with what they are in."""

    at: Duration
    process: str
    group: str
    with_: tuple[str, ...] | None = None
    """For whom; default: all others that the group names."""


class Recover(Table, frozen=True, kw_only=True, tag_field="kind", tag="recover"):
    """A process that has crashed starts again, as a new incarnation that is in no group, and joins."""

    at: Duration
    process: str
    joins: tuple[str, ...] | None = None
    """Which groups, by way of all others that they name; default: those it was in when it crashed."""


class Heal(Table, frozen=True, kw_only=True, tag_field="kind", tag="heal"):
    """Undoes every fault of the network that is in force."""

    at: Duration


Change = Join | Leave | Form | Merge | Recover
"""What changes who is in a group otherwise than by failures; with newtop it takes groups that are formed anew."""
Moment = Suspect | Crash | Join | Leave | Form | Merge | Recover | Heal
"""What happens once, and does not end."""
Fault = Pause | Stall | Slow | Skew | Delay | Loss | Partition | Cut | Moment


class Scenario(Table, frozen=True, kw_only=True):
    """One run, but for the code that runs it: the same scenario and seed give the same trace, byte for byte."""

    name: str
    seed: int = 1
    protocol: str = "newtop"
    """The protocol family; `protocols/registry.py` lists them."""
    duration: Duration = Duration(60_000_000_000)
    """Stop at this time at the latest; earlier when all is quiet."""
    quiet: Duration = Duration(5_000_000_000)
    """A run cut off at `duration` is judged for liveness if the last fault and request are this long ago."""
    trace: Literal["full", "off"] = "full"
    options: Options = Options()
    """An instance of the options struct of its family, once the scenario is complete."""
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
        """Every process, in the order in which the groups name them first."""
        return tuple(dict.fromkeys(name for group in self.group for name in members_of(group)))


def accusers(fault: Suspect) -> tuple[str, ...]:
    """Who suspects."""
    return (fault.by,) if isinstance(fault.by, str) else fault.by


def cut_links(fault: Partition | Cut) -> tuple[tuple[str, str], ...]:
    """The directions, each from one process to another, that the fault cuts."""
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
    """What a member asks for, or its group."""
    return role_of(scenario, group.name, process).service or group.service


def senders_of(scenario: Scenario, group: Group) -> tuple[str, ...]:
    """Its members but for those who only receive."""
    return tuple(name for name in members_of(group) if role_of(scenario, group.name, name).role != "receiver")


def typical(latency: Latency) -> int:
    """A travel time that half of the frames stay below, in nanoseconds."""
    match latency:
        case Fixed(value=value):
            return int(value)
        case Uniform(low=low, high=high):
            return (low + high) // 2
        case Lognormal(median=median):
            return int(median)


def absent_at_first(scenario: Scenario, group: str) -> frozenset[str]:
    """The members that are not in the group from the start: it is formed later, or the first they do is to join."""
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
