"""The columns of `gold/runs`: what a run is, how it went, and every parameter of its scenario.

A parameter is read from the scenario as a table, never through the families: judges do not know them. Scenarios of
runs are complete, so a missing value is unset. The options are those of the families of this package; a test compares
them. Durations such as "500ms" become nanoseconds, bandwidths bits per second. Groups, workloads and faults differ from
run to run, so they are counted and added up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from antiphon.pipeline.tables.columns import COUNT, RATIO, TEXT, TEXTS, TRUTH, Table, column
from antiphon.scenario.units import Bandwidth, Duration

Scenario = Mapping[str, Any]
"""The table of a scenario file."""

_INT_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value of a scenario as a column."""

    path: str
    """As sweeps address it."""
    field: pa.Field
    read: Callable[[Any], Any]
    """From the value in the file to that of the column; None if it has another type."""

    def of(self, scenario: Scenario) -> Any:
        """The value in a scenario; None if it is unset."""
        value: Any = scenario
        for key in self.path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        return None if value is None else self.read(value)


def nanoseconds(value: Any) -> int | None:
    """A duration."""
    try:
        return int(Duration.parse(value))
    except ValueError:
        return None


def _bits(value: Any) -> int | None:
    try:
        return int(Bandwidth.parse(value))
    except ValueError:
        return None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _INT_MAX else None


def _real(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _words(value: Any) -> list[str] | None:
    return [str(each) for each in value] if isinstance(value, list) else None


def column_name(path: str) -> str:
    """The name of the column of a value: words of letters and digits, so that SQL needs no quotes."""
    words = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in path)
    return f"option_{words.removeprefix('options_')}" if path.startswith("options.") else words


def _parameter(
    path: str, kind: pa.DataType, read: Callable[[Any], Any], meaning: str, *, name: str = "", unit: str = ""
) -> Parameter:
    field = column(f"{name or column_name(path)}{unit}", kind, f"`{path}`: {meaning}")
    return Parameter(path, field, read)


def _duration(path: str, meaning: str) -> Parameter:
    return _parameter(path, COUNT, nanoseconds, meaning, unit="_ns")


def _bandwidth(path: str, meaning: str) -> Parameter:
    return _parameter(path, COUNT, _bits, meaning, unit="_bits_per_second")


def _number(path: str, meaning: str) -> Parameter:
    return _parameter(path, COUNT, _whole, meaning)


def _ratio(path: str, meaning: str) -> Parameter:
    return _parameter(path, RATIO, _real, meaning)


def _flag(path: str, meaning: str) -> Parameter:
    return _parameter(path, TRUTH, _truth, meaning)


def _word(path: str, meaning: str) -> Parameter:
    return _parameter(path, TEXT, str, meaning)


def _within(path: str, *keys: str) -> tuple[Parameter, ...]:
    """The bounds of a time that may be fixed or drawn between two bounds."""

    def bound(key: str) -> Callable[[Any], int | None]:
        return lambda value: nanoseconds(value.get(key, value.get("value"))) if isinstance(value, Mapping) else None

    return tuple(
        _parameter(path, COUNT, bound(key), f"the {meaning} time", name=f"{column_name(path)}_{key}", unit="_ns")
        for key, meaning in zip(keys, ("shortest", "longest"), strict=True)
    )


def _middle(latency: Any) -> int | None:
    """The median of a latency."""
    if not isinstance(latency, Mapping):
        return None
    low, high = nanoseconds(latency.get("low")), nanoseconds(latency.get("high"))
    if low is not None and high is not None:
        return (low + high) // 2
    return nanoseconds(latency.get("value", latency.get("median")))


PARAMETERS: Final = (
    _word("protocol", "the protocol family"),
    _duration("duration", "when the run is stopped"),
    _duration("quiet", "how long the last fault and request are ago when a stopped run is judged for liveness"),
    _word("network.transport", "`stream` or `datagram`"),
    _word("network.latency.kind", "`fixed`, `uniform` or `lognormal`"),
    _parameter("network.latency", COUNT, _middle, "the median", name="network_latency_median", unit="_ns"),
    *_within("network.latency", "low", "high"),
    _ratio("network.latency.sigma", "standard deviation of the logarithm"),
    _ratio("network.loss", "share of datagrams that are lost"),
    _ratio("network.duplicate", "share of datagrams that arrive twice"),
    _ratio("network.reorder", "share of datagrams that are held back"),
    _bandwidth("network.bandwidth", "outgoing, of each process; null: no limit"),
    _number("hosts.count", "hosts; null: one per process"),
    _duration("hosts.service", "CPU time per frame"),
    _duration("hosts.tick", "granularity of timers"),
    _duration("hosts.wake", "from the arrival of a frame until its process reads it"),
    _duration("hosts.consume", "time of the application for the messages of one frame"),
    _duration("options.time_silence", "silence before a null message"),
    _flag("options.packing", "whether a frame takes several messages"),
    _number("options.frame_bytes", "maximum payload bytes of a frame"),
    _number("options.flow_control", "algorithm 1, 2 or 3; 0: off"),
    _number("options.window", "blocks or own frames that may be unstable"),
    _number("options.window_bytes", "unstable payload bytes of a member's own messages"),
    _flag("options.compression", "whether a stamp says only what changed"),
    _duration("options.suspect_after", "silence after which a member is suspected; 0: never"),
    _duration("options.idle_probe", "how often an idle group looks for crashed members; 0: never"),
    _word("options.view_change", "how a view is installed when a member fails"),
    _duration("options.merge_every", "how often a member searches for others, to merge; 0: never"),
    _word("options.primary", "`dynamic`, or a number of members; null: no votes on primary views"),
    _flag("options.excluded_count", "whether views tell how many processes were excluded"),
    _duration("options.form_within", "timeout for forming or leaving a group; 0: four times suspect_after"),
    _duration("options.round", "length of a round; null: the default of its service"),
    _word("options.acks", "how receivers acknowledge"),
    _word("options.clock", "`physical` or `logical` stamps"),
    _duration("options.send_every", "an idle sender sends a null after this time"),
    _duration("options.ack_every", "time between the acknowledgments of a receiver"),
    _word("options.stability", "whether members learn which of their `own` messages are stable, or of `all`"),
    *_within("options.keep_alive", "low", "high"),
    _duration("options.report_every", "mean time between the reports of all receivers together"),
    _word("options.repair_timers", "how the timers of requests and repairs adapt"),
    _bandwidth("options.rate", "first rate of all senders of a group together; null: no limit"),
    _duration("options.idle_after", "an idle sender becomes a receiver after this time; 0: never"),
    _duration("options.wait", "how long a message waits for earlier ones"),
    _parameter("options.literal", TEXTS, _words, "errata that are followed as printed"),
)
"""Options that a family does not have are at their defaults, as in the scenario file."""

FAULT_KINDS: Final = (
    "crash recover pause stall slow skew partition cut heal loss delay suspect gone "
    "join leave form merge promote demote"
).split()

_OUTCOME: Final = (
    column("run", TEXT, "the run", nullable=False),
    column("scenario", TEXT, "name of the scenario; null: the directory does not tell, nor any parameter"),
    column("seed", COUNT, "seed of the run"),
    column("antiphon_version", TEXT, "version of antiphon that made it"),
    column("clock", TEXT, "`virtual` or `wall`"),
    column("finished", TRUTH, "whether it was played to its end"),
    column("settled", TRUTH, "whether it was quiet at its end; null: unknown"),
    column("error", TEXT, "why it could not be played or judged, for runs of campaigns and sweeps"),
    column("events", COUNT, "rows of its trace; null: unknown"),
)
_TOTALS: Final = (
    column("groups", COUNT, "number of groups"),
    column("processes", COUNT, "number of processes"),
    column("members", COUNT, "memberships: members of all groups, added up"),
    column("service", TEXT, "the service of all groups; `mixed` if they differ"),
    column("mode", TEXT, "`symmetric` or `asymmetric`; `mixed` if groups differ"),
    column("numbering", TEXT, "`separate` or `block`; `mixed` if groups differ"),
    column("sites", COUNT, "number of sites"),
    column("workloads", COUNT, "number of workloads"),
    column("messages", COUNT, "messages of all senders of all workloads, without replies"),
    column("message_bytes", COUNT, "payload bytes of these"),
    column("faults", COUNT, "number of faults, of all kinds"),
    *(column(f"fault_{kind}", COUNT, f"number of faults of kind `{kind}`") for kind in FAULT_KINDS),
    column("faults_begun", COUNT, "faults that began, according to the trace; null: no trace"),
)
_OTHERS: Final = column(
    "option_others", pa.map_(TEXT, TEXT), "options of families of other packages, by name, as they are in the scenario"
)

RUNS: Final = Table(
    "gold", "runs", "run", pa.schema([*_OUTCOME, *_TOTALS, *(each.field for each in PARAMETERS), _OTHERS])
)

_OPTIONS: Final = frozenset(
    each.path.removeprefix("options.") for each in PARAMETERS if each.path.startswith("options.")
)


def values(scenario: Scenario) -> dict[str, Any]:
    """The columns that a scenario decides."""
    return {
        **_totals(scenario),
        **fault_counts([str(each.get("kind")) for each in _tables(scenario, "fault")]),
        **{each.field.name: each.of(scenario) for each in PARAMETERS},
        _OTHERS.name: sorted(_other_options(scenario).items()),
    }


def fault_counts(kinds: Sequence[str]) -> dict[str, int]:
    """The numbers of faults by kind."""
    return {"faults": len(kinds)} | {f"fault_{kind}": kinds.count(kind) for kind in FAULT_KINDS}


def _totals(scenario: Scenario) -> dict[str, Any]:
    groups = {str(group.get("name")): _names(group.get("members")) for group in _tables(scenario, "group")}
    workloads = _tables(scenario, "workload")
    sent = [_whole(each.get("messages", 1)) or 0 for each in workloads]
    counts = [
        number * len(groups.get(str(each.get("group")), []) if each.get("senders", "all") == "all" else each["senders"])
        for number, each in zip(sent, workloads, strict=True)
    ]
    sizes = [_whole(each.get("payload", 0)) or 0 for each in workloads]
    return {
        "groups": len(groups),
        "processes": len({name for members in groups.values() for name in members}),
        "members": sum(map(len, groups.values())),
        **{key: _common(scenario, key) for key in ("service", "mode", "numbering")},
        "sites": len(_tables(scenario, "site")),
        "workloads": len(workloads),
        "messages": sum(counts),
        "message_bytes": sum(count * size for count, size in zip(counts, sizes, strict=True)),
    }


def _common(scenario: Scenario, key: str) -> str | None:
    """The value that all groups have for a key."""
    found = {group.get(key) for group in _tables(scenario, "group")}
    return "mixed" if len(found) > 1 else next((str(value) for value in found if value is not None), None)


def _tables(scenario: Scenario, key: str) -> list[Mapping[str, Any]]:
    found = scenario.get(key)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _names(members: Any) -> list[str]:
    if isinstance(members, int):
        return [f"p{number}" for number in range(1, members + 1)]
    return _words(members) or []


def _other_options(scenario: Scenario) -> dict[str, str]:
    options = scenario.get("options")
    named = options.items() if isinstance(options, Mapping) else ()
    return {name: str(value) for name, value in named if name not in _OPTIONS}
