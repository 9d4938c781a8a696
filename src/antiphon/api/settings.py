"""The settings of a member, with a preset for each distance: keyword, unit, default, one sentence."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, Final, Literal, cast

from antiphon.api.services import TOTAL, Service, require_same_kind, require_service
from antiphon.core.contract import Changing
from antiphon.errors import ConfigurationError
from antiphon.protocols.newtop.options import WINDOW_MIN
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.protocols.newtop.rules import Rules
from antiphon.protocols.newtop.settings import NewtopSettings, Values
from antiphon.protocols.newtop.settings import Service as CoreService
from antiphon.scenario.limits import PAYLOAD_BYTES_MAX
from antiphon.sockets.transports.datagrams import DATAGRAM_BYTES_MAX
from antiphon.types import ProcessId

_MS: Final = 1_000_000
_FOREVER_S: Final = 1e9
_HEADERS_BYTES: Final = 320
"""Bytes of a data frame, or of a repair with one, beside its payloads. With long names it is sent in pieces."""

_WINDOW_BYTES_MAX: Final = 262_144
"""On datagrams only the window slows a sender down. What a receiver's socket cannot hold is lost."""

_STUCK: Final = 8
"""A member that is heard, but does not advance for this number of suspicion times, is excluded."""

_RULES: Final = Rules(states=BytesIO)
"""Pieces of a state go to a buffer as they arrive: joining a gigabyte at the end takes too much time and memory."""

AGREED: Final = ("flow_control", "window", "suspect_after", "time_silence", "primary")
"""Settings that must be equal at all members of a group, beside its service; group formation compares them.

docs/guide/api.md says what happens otherwise.
"""

MAY_DIFFER: Final = (
    "idle_probe",
    "merge_every",
    "exclude_stalled_after",
    "state_from",
    "window_bytes",
    "frame_bytes",
    "datagram_bytes",
)
"""Settings that each member may choose by itself."""


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """The settings of a member for all its groups."""

    service: Service = TOTAL
    """What groups promise about deliveries, unless `join` says otherwise: `Total()`, `Causal("fast")`, …"""
    suspect_after: float = 0.5
    """Seconds of silence after which a member is suspected."""
    idle_probe: float = 1.0
    """After this many seconds without a message, a group checks whether its members are alive; 0: never."""
    merge_every: float = 2.0
    """Seconds between searches for lost members, to merge after a partition; 0: never merge."""
    flow_control: int = 3
    """Algorithm 1, 2 or 3 of Macedo95; 0: only the sockets hold senders back."""
    window: int = 64
    """Own frames of a member that may be unstable in a group."""
    window_bytes: int = 4_194_304
    """Own bytes that may be unstable there; on UDP never more than sockets hold (262,144)."""
    frame_bytes: int = 262_144
    """Messages that wait together are packed up to this size."""
    datagram_bytes: int = 8_192
    """On UDP, the largest datagram; messages are packed so that they fit into one."""
    time_silence: float = 0.0
    """Seconds that a member may stay silent before it answers; 0: it answers at once."""
    exclude_stalled_after: float = 0.0
    """A process whose application reads nothing for this number of seconds leaves the group; 0: never."""
    state_from: Literal["events", "messages"] = "events"
    """With `messages`, the state follows from messages alone, not from views: sides that have delivered the same then
    merge without a state transfer."""
    primary: Literal["dynamic"] | int = "dynamic"
    """How a view becomes primary: by dynamic voting; or, with a number, if it has most of this many members."""

    def core(self, *, datagrams: bool, tracing: bool) -> NewtopSettings:
        """The same settings for the core."""
        return NewtopSettings(
            service=self._order,
            silence_timeout_ns=_ns(self.time_silence),
            announce_pause_ns=max(_MS, _ns(self.suspect_after) // 50),
            frame_bytes_max=min(self.frame_bytes, self.datagram_bytes - _HEADERS_BYTES)
            if datagrams
            else self.frame_bytes,
            flow_control=self.flow_control,
            window=self.window,
            window_bytes=min(self.window_bytes, _WINDOW_BYTES_MAX) if datagrams else self.window_bytes,
            datagrams=datagrams,
            repair_max_ns=_ns(self.suspect_after) // 4,
            suspect_after_ns=_ns(self.suspect_after),
            idle_probe_ns=_ns(self.idle_probe),
            stuck_after_ns=_STUCK * _ns(self.suspect_after),
            exclude_stalled_after_ns=_ns(self.exclude_stalled_after),
            merge_every_ns=_ns(self.merge_every),
            form_within_ns=4 * _ns(self.suspect_after),
            compares_histories=self.state_from == "messages",
            doubts_restarts=True,
            agreed=self.agreed(datagrams=datagrams),
            invitations=False,
            primary=self.primary if self.service.kind == "total" else None,  # a vote has its place in one order
            tracing=tracing,
        )

    @property
    def _order(self) -> CoreService:
        """The order over all groups. Safe delivery is total order in which each group says whether it waits."""
        kind = self.service.kind
        return "total-safe" if kind == "total" else cast("CoreService", kind)

    def service_of(self, group: str, chosen: Service | None, others: Iterable[Service]) -> Service:
        """The service of a group, checked; `others`: those of the other groups of this member."""
        default = self.service
        service = default if chosen is None else require_same_kind(chosen, default, group)
        _require_fitting(service, self.flow_control)
        for other in others:
            _require_together(group, service, other)
        return service

    def agreed(self, *, datagrams: bool) -> Values:
        """What group formation compares beside the service of the group, sorted by name."""
        values = {name: _text(getattr(self, name)) for name in AGREED}
        return tuple(sorted({**values, "transport": "datagrams" if datagrams else "streams"}.items()))

    def new_core(self, me: ProcessId, *, datagrams: bool, tracing: bool) -> Changing:
        """The core of a process that is in no group yet. Nothing else in the API knows the protocol."""
        return NewtopProcess(me, {}, self.core(datagrams=datagrams, tracing=tracing), _RULES)


PRESETS: Final = {
    "local": MemberSettings(suspect_after=0.3, idle_probe=0.6, merge_every=1.0, datagram_bytes=32_000),
    "lan": MemberSettings(),
    "wan": MemberSettings(
        suspect_after=3.0, idle_probe=6.0, merge_every=15.0, window=256, window_bytes=8_388_608, datagram_bytes=1_400
    ),
}
"""For members on one machine, in one building, further apart."""


def settings(preset: str, chosen: dict[str, Any]) -> MemberSettings:
    """A preset with the values that the user chose."""
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ConfigurationError(f"there is no preset {preset!r}; take one of {', '.join(PRESETS)}")
    unknown = [name for name in chosen if name not in MemberSettings.__dataclass_fields__]
    if unknown:
        raise ConfigurationError(f"a member has no setting {unknown[0]!r}")
    for name, value in chosen.items():
        if name == "primary":
            _require_primary(value)
        elif name == "service":
            require_service(value)
        else:
            _require_kind(name, value)
    found = replace(PRESETS[preset], **chosen)
    _require_times(found)
    _require_windows(found)
    _require_fitting(found.service, found.flow_control)
    if "primary" in chosen and found.service.kind != "total":
        raise ConfigurationError(f"primary needs Total(): with {found.service!r} views are not voted on")
    if found.state_from not in ("events", "messages"):
        raise ConfigurationError(f"state_from {found.state_from!r} is not one of events, messages")
    return found


def _require_fitting(service: Service, flow_control: int) -> None:
    if service.core.sequencer and flow_control in (1, 2):
        raise ConfigurationError(f"{service!r} needs flow_control 3 or 0, not {flow_control}")


def _require_together(group: str, service: Service, other: Service) -> None:
    """With a sequencer, a member sends in turn; notices of view changes cannot wait for a turn (newtop.md 11.3)."""
    for one, two in ((service.core, other.core), (other.core, service.core)):
        if one.sequencer and two.views != "cut":
            raise ConfigurationError(
                f"{group} cannot have {service!r}: another group of this member has {other!r}, and with a sequencer "
                "all groups of a member have views='cut'; join it with another Member"
            )


def _require_times(found: MemberSettings) -> None:
    for name in ("idle_probe", "merge_every", "time_silence", "exclude_stalled_after"):
        if not 0 <= getattr(found, name) < _FOREVER_S:
            raise ConfigurationError(f"{name} must be a number of seconds that is not negative, and below a billion")
    if not 0.08 <= found.suspect_after < _FOREVER_S:
        raise ConfigurationError(
            "suspect_after must be at least 0.08 seconds, and below a billion: "
            "four tries to repair a loss must fit in it"
        )
    if found.time_silence >= found.suspect_after:
        raise ConfigurationError("time_silence must be below suspect_after: a silent member would be suspected")
    if found.exclude_stalled_after:
        _require_exclusion(found)
    if 0 < found.merge_every < found.suspect_after:
        raise ConfigurationError("merge_every must be 0, or at least suspect_after")


def _require_exclusion(found: MemberSettings) -> None:
    if found.exclude_stalled_after < found.suspect_after:
        raise ConfigurationError("exclude_stalled_after must be 0, or at least suspect_after")
    if not found.idle_probe or not found.flow_control:
        raise ConfigurationError("exclude_stalled_after needs idle_probe and flow_control to detect stalls")


def _require_windows(found: MemberSettings) -> None:
    if not 576 <= found.datagram_bytes <= DATAGRAM_BYTES_MAX:
        raise ConfigurationError(
            f"datagram_bytes must lie between 576 and {DATAGRAM_BYTES_MAX:,}, not be {found.datagram_bytes:,}"
        )
    if found.flow_control not in range(4):
        raise ConfigurationError(f"flow_control must be 0, 1, 2 or 3, not {found.flow_control}")
    if found.window < (least := WINDOW_MIN.get(found.flow_control, 1)):
        raise ConfigurationError(f"window must be at least {least}: with less, nothing could ever be sent")
    if not 1 <= found.frame_bytes <= min(found.window_bytes, PAYLOAD_BYTES_MAX):
        raise ConfigurationError(f"frame_bytes must be between 1 and window_bytes, {found.window_bytes:,}")


def _require_kind(name: str, value: Any) -> None:
    default = getattr(PRESETS["lan"], name)
    kinds, wanted = next(
        each
        for each in ((str, "a text"), (int, "a whole number"), ((int, float), "a number"))
        if isinstance(default, each[0])
    )
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise ConfigurationError(f"{name} must be {wanted}, not {value!r}")


def _text(value: str | float) -> str:
    """The same text for equal values, so 1 is written as 1.0."""
    return value if isinstance(value, str) else f"{value:.15g}"


def _require_primary(value: Any) -> None:
    if value != "dynamic" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ConfigurationError(f"primary must be 'dynamic', or the size of the group, not {value!r}")


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
