"""Which process promises which property (docs/spec/properties.md 8), from the `start` rows; and what is required.

A property is judged among the processes whose service in a group offers it. This is O9, mixed
services, which therefore has no verdict of its own.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from antiphon.errors import ConfigurationError, TraceError
from antiphon.properties.families import BUILT_IN, CLOSED, PROMISES, SENDING, Promised, promised_by
from antiphon.properties.tables.columns import KIND, BoolArray, IntArray
from antiphon.properties.tables.history import Deliveries, History
from antiphon.properties.tables.roles import Roles
from antiphon.properties.tables.suspectors import Suspectors
from antiphon.types import split_process_id

JUDGED: Final = tuple(
    "W M1 M2 M3 M4 M5 M6 M6e M7 M8 M9 M10 M11 M12 M13 D1 D2 D3 D4 D5 D5w D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 "
    "O1 O2 O3 O4 O5 O5x O6 O7 O8 S1 S2 S3 S4 S5 S6 F1 F2 F3 L1 L2 L3 L4 L5 L6 L7 L8 L9 L10 L11 R2".split()
)
"""The properties that have a checker, in the order of their verdicts."""

_ACTIVE: Final = [KIND[kind] for kind in ("send", "deliver", "view")]
"""Kinds of rows that a process writes only with a `start` row."""

_UNSEQUENCED: Final = frozenset(["F2"])
"""Not promised by an asymmetric group (docs/spec/newtop.md 11.3): its windows count an origin's own messages only."""

_SEQUENCED_UNCHANGED: Final = frozenset("O6 O8".split())
"""Promised by an asymmetric group only while no member leaves it.

The two sides of a split may give one message two different numbers (E-70).
"""

VOTED: Final = frozenset("M12 M13 L11".split())
"""Promised where primary views are voted on (docs/spec/newtop.md 15). M11 is promised where they are not."""

_OF_SENDERS: Final = frozenset("M1 S5 F1 L4".split())
"""Not promised by receive-only processes."""

COMING: Final = frozenset("D12 R2".split())
"""Promised only for groups that a process enters: groups that were formed, or in which a process recovered."""

_OFFERED: Final = frozenset[str]().union(
    *PROMISES.values(),
    *(codes for each in BUILT_IN.values() for table in (each.closed, each.halted) for codes in table.values()),
)
NOT_JUDGED: Final = tuple(sorted(_OFFERED - frozenset(JUDGED)))
"""Promised properties without a checker in this version; a verdict lists them as not judged."""


def known(property_ids: Iterable[str]) -> frozenset[str]:
    """Return these properties; ConfigurationError if one of them has no checker."""
    properties = frozenset(property_ids)
    for property_id in sorted(properties - frozenset(JUDGED)):
        raise ConfigurationError(f"there is no checker for a property {property_id!r} (there are {', '.join(JUDGED)})")
    return properties


class Promises:
    """The services of one run, by process and group.

    A required property counts as promised by every process that delivers anything, whatever its service.
    """

    def __init__(self, history: History, required: frozenset[str] = frozenset()) -> None:
        self._history, self._required = history, required
        self._protocols: list[str] = []
        self._protocol = np.full(len(history.processes), -1, np.int64)
        self._services = [*history.services]
        self._service = np.full((len(history.processes), len(history.groups)), -1, np.int64)
        self.learns_all: BoolArray = np.zeros(len(history.processes), np.bool_)
        """By process: it learns about the stability of all messages, not only of its own."""
        self.asymmetric: BoolArray = np.zeros_like(self._service, np.bool_)
        """By process and group: a sequencer numbers the messages there."""
        self._sources: dict[tuple[int, int], frozenset[str]] = {}
        self.view_change = np.full(self._service.shape, "", "U6")
        """By process and group how views are installed (docs/spec/newtop.md 9.6); empty if no row says it."""
        self.votes: BoolArray = np.zeros(len(history.processes), np.bool_)
        """By process: it votes on primary views."""
        self.primary_size: IntArray = np.zeros(len(history.processes), np.int64)
        """By process: the size that most members of a primary view are counted by; 0: there is none."""
        self.suspectors = Suspectors(history)
        """The settings of failure detection."""
        self._pairs: dict[str, BoolArray] = {}
        self._groups: dict[str, BoolArray] = {}
        receivers = self._read_starts()
        self._read_joins()
        self._fill_from_rows()
        has_roles = self.of_family(lambda promised: promised.onlookers)
        self.roles = Roles(history, receivers, ~receivers & (self._service >= 0), has_roles)
        self.sends_only: BoolArray = self._has_service(lambda service: service == SENDING)
        """By process and group: nothing is delivered to it there."""
        self.delivers: BoolArray = self._has_service(lambda service: service not in ("", SENDING))
        # The code -1 selects the empty name at the end, which promises nothing.
        kinds = [(protocol, service) for protocol in (*self._protocols, "") for service in (*self._services, "")]
        protocol, width = self._protocol % (len(self._protocols) + 1), len(self._services) + 1
        self._named = _Named(kinds, protocol[:, None] * width + self._service % width)
        self._changed = _changed(history)

    def pairs(self, property_id: str) -> BoolArray:
        """By process and group: the property is promised there, or required. Do not modify the result."""
        known = self._pairs.get(property_id)
        if known is None:
            offered = self.offered(property_id)
            known = self._pairs[property_id] = offered | self.delivers if property_id in self._required else offered
        return known

    def offered(self, property_id: str) -> BoolArray:
        """By process and group: the property is promised there, regardless of what is required."""
        offered = self._named.within(property_id, "services")
        closed, halted = self._ways
        offered |= self._named.within(property_id, "closed") & closed
        offered |= self._named.within(property_id, "halted") & halted
        if not offered.any():  # nothing below adds to it
            return offered
        if property_id in _UNSEQUENCED:
            offered &= ~self.asymmetric
        if property_id in _SEQUENCED_UNCHANGED:
            offered &= ~(self.asymmetric & self._changed)
        off = self.suspectors.off | (self.suspectors.unprobed & (property_id == "L10"))
        offered &= ~(self.of_family(lambda promised: property_id in promised.moving) & off)[:, None]
        if property_id == "L9":
            offered &= self.roles.onlooking | self._undisturbed()
        if property_id in VOTED or property_id == "M11":
            offered &= (self.votes == (property_id in VOTED))[:, None]
        if property_id in _OF_SENDERS:
            offered &= ~self.roles.onlooking
        if property_id == "D14":
            agreed = self.of_family(lambda promised: promised.cuts)[:, None]
            offered &= ~agreed | _asked(self._history)
        if property_id in COMING:
            offered &= _formed(self._history) if property_id == "D12" else _recovered(self._history)
        offered &= ~(self._named.within(property_id, "unchanged") & self._changed)
        crashed = self._history.logs.crashed[:, None]
        return offered & ~(self._named.within(property_id, "alive") & crashed)

    @cached_property
    def _ways(self) -> tuple[BoolArray, BoolArray]:
        """By process and group: views are installed in a closed way; senders halt."""
        return np.isin(self.view_change, CLOSED), self.view_change == "halted"

    def _undisturbed(self) -> BoolArray:
        """By process of a family without receive-only processes: the run has no fault, crash, join or leave."""
        quiet = not len(self._history.of_kind("fault", "crash", "join", "leave"))
        return ~self.of_family(lambda promised: promised.onlookers)[:, None] & quiet

    def scoped(self, property_id: str) -> BoolArray:
        """By process and group: the property is promised there, within the scope of the promise.

        A required property is meant as stated, without such a scope.
        """
        offered = self.offered(property_id)
        return np.zeros_like(offered) if property_id in self._required else offered

    def of_family(self, holds: Callable[[Promised], bool]) -> BoolArray:
        """By process: whether this holds for the family of its protocol."""
        return np.array([holds(family) for family in self._families], np.bool_)[self._protocol]

    @cached_property
    def _families(self) -> tuple[Promised, ...]:
        """By code of the protocol; the last one is for processes without a `start` row."""
        return tuple(promised_by(protocol) for protocol in (*self._protocols, ""))

    @property
    def hurries(self) -> BoolArray:
        """By process and group: it chose a service that delivers earlier than the order of the whole group."""
        return self.of_family(lambda promised: promised.onlookers)[:, None] & ~self._named.within("O4", "services")

    def frees(self, what: str) -> BoolArray:
        """By process and group: this is what it holds until it is stable (`Promised.frees`)."""
        of_family = self.of_family(lambda promised: promised.frees == what)[:, None] & np.ones_like(
            self.roles.onlooking
        )
        idle = self.roles.receives_last & ~self._has_service(lambda service: service == "total")
        return np.where(idle, what == "nothing", of_family)

    def chosen_senders(self, process: int, group: int, senders: Iterable[int]) -> list[int]:
        """The senders that a receive-only process chose: all, unless its `start` row names some."""
        chosen = self._sources.get((process, group))
        names = self._history.processes
        return [sender for sender in senders if chosen is None or split_process_id(names[sender])[0] in chosen]

    def realms(self, property_id: str) -> IntArray:
        """For each group a number: groups with the same number are held to one order.

        A required property is meant as stated: over all groups.
        """
        if property_id in self._required:
            return np.zeros(len(self._history.groups), np.int64)
        apart = self.of_family(lambda promised: promised.apart)[:, None] & (self._service >= 0)
        alone: BoolArray = np.logical_or.reduce(apart | _read_apart(self._history), axis=0)
        return np.where(alone, 1 + np.arange(len(alone)), 0)

    def groups(self, property_id: str) -> BoolArray:
        """By group: some process promises the property there. Do not modify the result."""
        known = self._groups.get(property_id)
        if known is None:
            known = self._groups[property_id] = np.logical_or.reduce(self.pairs(property_id), axis=0)
        return known

    def deliveries(self, property_id: str) -> BoolArray:
        """Which of the first deliveries the promise covers."""
        first = self._history.first
        return self.pairs(property_id)[first.process, first.group]

    def judged_deliveries(self, property_id: str) -> Deliveries:
        """The covered first deliveries of sent messages; D1 alone reports unsent ones."""
        first, known = self._history.first, self._history.messages.known
        return first.where(self.deliveries(property_id) & known[first.message])

    def service(self, process: int | np.int64, group: int | np.int64) -> str:
        """The name of the service that a process chose in a group, empty if it has none."""
        code = self._service[process, group]
        return self._services[code] if code >= 0 else ""

    def _has_service(self, holds: Callable[[str], bool]) -> BoolArray:
        return np.array([holds(service) for service in (*self._services, "")], np.bool_)[self._service]

    def _read_starts(self) -> BoolArray:
        """By process and group: it only receives there at first."""
        history, receivers = self._history, np.zeros_like(self._service, np.bool_)
        code_of = {group: code for code, group in enumerate(history.groups)}
        for row in history.of_kind("start").tolist():
            process = history.rows.process[row]
            protocol, services = _start(history.process_name(process), history.details[row])
            self._protocol[process] = _code(self._protocols, protocol)
            options = history.details[row].get("options")
            options = options if isinstance(options, dict) else {}
            holds_all = promised_by(protocol).frees == "everything"  # so it has to learn when all of it may be freed
            self.learns_all[process] = holds_all or options.get("stability") == "all"
            self.view_change[process] = str(options.get("view_change", ""))  # of all groups that no `join` row names
            primary = options.get("primary")
            self.votes[process] = primary is not None
            self.primary_size[process] = primary if isinstance(primary, int) else 0
            for group, service in services.items():
                if group in code_of:  # otherwise nothing ever happened in it
                    self._service[process, code_of[group]] = _code(self._services, service)
                    settings = history.details[row]["groups"][group]
                    self.asymmetric[process, code_of[group]] = settings.get("mode") == "asymmetric"
                    onlooking = promised_by(protocol).onlookers and settings.get("role") == "receiver"
                    receivers[process, code_of[group]] = onlooking
                    if onlooking and isinstance(settings.get("sources"), list):
                        self._sources[int(process), code_of[group]] = frozenset(map(str, settings["sources"]))
        self._require_starts()
        return receivers

    def _read_joins(self) -> None:
        """The service of a group that a member joins after its start; by the last `join` row, if there are several."""
        history = self._history
        for row in history.of_kind("join").tolist():
            detail, place = history.details.get(row, {}), (history.rows.process[row], history.rows.group[row])
            if "mode" in detail or "view_change" in detail:
                self.asymmetric[place] = detail.get("mode") == "asymmetric"
                self.view_change[place] = str(detail.get("view_change", "cut"))

    def _require_starts(self) -> None:
        history = self._history
        active = history.rows.process[np.isin(history.rows.kind, _ACTIVE)]
        silent = active[self._protocol[active] < 0]
        if len(silent):
            who = history.process_name(silent[0])
            raise TraceError(f"{who} has no start row, so what it promises is unknown")

    def _fill_from_rows(self) -> None:
        """A group joined after the start is in no `start` row; its own rows name the service.

        A joiner that neither sends nor delivers is judged like the others, so that its silence is noticed.
        """
        rows = self._history.rows
        at = np.flatnonzero((rows.service >= 0) & (rows.group >= 0))
        seen: IntArray = np.full_like(self._service, -1)
        seen[rows.process[at], rows.group[at]] = rows.service[at]
        self._service = np.where(self._service < 0, seen, self._service)
        stays = self._history.stays
        for process, group in zip(
            stays.process[stays.formed].tolist(), stays.group[stays.formed].tolist(), strict=True
        ):
            if self._service[process, group] < 0:
                self._service[process, group] = self._service[:, group].max()


class _Named:
    """What the tables of families name, by process and group. Sixty properties ask, so each table is read once."""

    def __init__(self, kinds: Sequence[tuple[str, str]], kind: IntArray) -> None:
        """`kinds`: protocols with services; `kind`: by process and group, the position of its kind."""
        self._kinds, self._kind = kinds, kind
        self._tables: dict[str, list[Container[str]]] = {}

    def within(self, property_id: str, table: str) -> BoolArray:
        """By process and group: the property is in that table of its family, under its service."""
        known = self._tables.get(table)
        if known is None:
            families = [(promised_by(protocol), service) for protocol, service in self._kinds]
            known = self._tables[table] = [getattr(family, table).get(service, ()) for family, service in families]
        found: BoolArray = np.array([property_id in named for named in known], np.bool_)[self._kind]
        return found


def _changed(history: History) -> BoolArray:
    """By group: a process installed a second view there, or crashed."""
    stays, changed = history.stays, np.zeros(len(history.groups), np.bool_)
    changed[stays.group[stays.preceding >= 0]] = True
    crashed = {*np.flatnonzero(history.logs.crashed).tolist()}
    if crashed:
        for group, members in set(zip(stays.group.tolist(), stays.members, strict=True)):
            changed[group] |= not crashed.isdisjoint(members)
    return changed


def _formed(history: History) -> BoolArray:
    """By group: a process installed the first view of a formed group."""
    formed = np.zeros(len(history.groups), np.bool_)
    formed[history.stays.group[history.stays.formed]] = True
    return formed


def _asked(history: History) -> BoolArray:
    """By group: a process that stopped had sent requests there."""
    code_of = {group: code for code, group in enumerate(history.groups)}
    asked = np.zeros(len(history.groups), np.bool_)
    for row in history.of_kind("stop").tolist():
        counts = history.details[row].get("asked", {})
        for group in counts if isinstance(counts, dict) else ():
            if group in code_of:
                asked[code_of[group]] = True
    return asked


def _read_apart(history: History) -> BoolArray:
    """By process and group: its application reads the group separately, in no common order with its other groups."""
    apart = np.zeros((len(history.processes), len(history.groups)), np.bool_)
    for row in history.of_kind("join").tolist():
        if history.details.get(row, {}).get("apart") is True:
            apart[history.rows.process[row], history.rows.group[row]] = True
    return apart


def _recovered(history: History) -> BoolArray:
    """By group: a later incarnation of a process installed a view."""
    later = np.array([split_process_id(who)[1] > 0 for who in history.processes], np.bool_)
    recovered = np.zeros(len(history.groups), np.bool_)
    recovered[history.stays.group[later[history.stays.process]]] = True
    return recovered


def _start(who: str, detail: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The protocol and the service of each group, from the detail of a `start` row."""
    protocol, groups = detail.get("protocol"), detail.get("groups")
    if not isinstance(protocol, str) or not isinstance(groups, dict):
        raise TraceError(f"the start row of {who} does not name protocol and groups in its detail")
    services: dict[str, Any] = {
        group: entry.get("service") for group, entry in groups.items() if isinstance(entry, dict)
    }
    if len(services) < len(groups) or not all(isinstance(service, str) for service in services.values()):
        raise TraceError(f"the start row of {who} names a group without its service")
    return protocol, services


def _code(names: list[str], name: str) -> int:
    if name not in names:
        names.append(name)
    return names.index(name)
