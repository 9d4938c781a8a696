"""Who promises what (docs/spec/properties.md 8), read from the `start` rows; and what somebody requires beyond that.

A property is judged among the processes whose service in a group offers it, whatever others chose: that is O9, mixed
services, which so has no verdict of its own.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from antiphon.errors import ConfigurationError, TraceError
from antiphon.properties.families import BUILT_IN, PROMISES, SENDING, Codes, Promised, promised_by
from antiphon.properties.tables.columns import KIND, BoolArray, IntArray
from antiphon.properties.tables.history import Deliveries, History
from antiphon.properties.tables.suspectors import Suspectors
from antiphon.types import split_process_id

JUDGED: Final = tuple(
    "W M1 M2 M3 M4 M5 M6 M6e M7 M8 M9 M10 M11 D1 D2 D3 D4 D5 D5w D6 D7 D8 D9 D10 D11 D12 D13 D14 "
    "O1 O2 O3 O4 O5 O5x O6 O7 O8 S1 S2 S3 S4 S5 S6 F1 F2 F3 L1 L2 L3 L4 L5 L6 L7 L8 L9 L10 R2".split()
)
"""The properties that have a checker, in the order of their verdicts."""

_ACTIVE: Final = [KIND[kind] for kind in ("send", "deliver", "view")]
"""What a process does in a group."""

_UNSEQUENCED: Final = frozenset(["F2"])
"""What an asymmetric group does not promise (newtop.md 11.3): its windows go by an origin's own messages, untold."""

_SEQUENCED_UNCHANGED: Final = frozenset("O6 O8".split())
"""What an asymmetric group promises only while nobody leaves it.

The two sides of a split may number one message twice, by different numbers (E-70).
"""

_OF_SENDERS: Final = frozenset("M1 S5 F1 L4".split())
"""What processes that only receive do not promise."""

COMING: Final = frozenset("D12 R2".split())
"""What is promised only of groups that a process comes to: that were formed, or in which one recovered."""

_OFFERED: Final = frozenset[str]().union(
    *PROMISES.values(), *(codes for each in BUILT_IN.values() for codes in each.closed.values())
)
NOT_JUDGED: Final = tuple(sorted(_OFFERED - frozenset(JUDGED)))
"""Promised somewhere, and without a checker in this version: a verdict is silent about them, and says so."""


def known(property_ids: Iterable[str]) -> frozenset[str]:
    """These properties, if all of them have a checker; ConfigurationError names one that has not."""
    wanted = frozenset(property_ids)
    for property_id in sorted(wanted - frozenset(JUDGED)):
        raise ConfigurationError(f"there is no checker of a property {property_id!r} (there are {', '.join(JUDGED)})")
    return wanted


class Promises:
    """The services of one run, by process and group.

    What is required counts as promised by everybody to whom something is delivered, whatever its service.
    """

    def __init__(self, history: History, required: frozenset[str] = frozenset()) -> None:
        self._history, self._required = history, required
        self._protocols: list[str] = []
        self._protocol = np.full(len(history.processes), -1, np.int64)
        self._services = [*history.services]
        self._service = np.full((len(history.processes), len(history.groups)), -1, np.int64)
        self.learns_all: BoolArray = np.zeros(len(history.processes), np.bool_)
        """By process: it finds out about the stability of everybody's messages, not of its own only."""
        self.asymmetric: BoolArray = np.zeros_like(self._service, np.bool_)
        """By process and group: a sequencer numbers the messages there."""
        self.onlooking: BoolArray = np.zeros_like(self._service, np.bool_)
        """By process and group: it only receives there, and is in no view (InterGroup)."""
        self._sources: dict[tuple[int, int], frozenset[str]] = {}
        self.view_change: list[str] = [""] * len(history.processes)
        """By process how it installs views (docs/spec/newtop.md 9.6), empty where its `start` row does not say."""
        self.suspectors = Suspectors(history)
        """How failure detection was configured."""
        self._pairs: dict[str, BoolArray] = {}
        self._read_starts()
        self._fill_from_rows()
        self.sends_only: BoolArray = self._has_service(lambda service: service == SENDING)
        """By process and group: nothing is delivered to it there."""
        self.delivers: BoolArray = self._has_service(lambda service: service not in ("", SENDING))
        # Codes of -1 fall on the empty names at the ends, which promise nothing.
        self._kinds = [(protocol, service) for protocol in (*self._protocols, "") for service in (*self._services, "")]
        protocol, width = self._protocol % (len(self._protocols) + 1), len(self._services) + 1
        self._kind: IntArray = protocol[:, None] * width + self._service % width
        self._changed = _changed(history)

    def pairs(self, property_id: str) -> BoolArray:
        """By process and group: the property is promised there, or required. Not to be written to."""
        known = self._pairs.get(property_id)
        if known is None:
            offered = self.offered(property_id)
            known = self._pairs[property_id] = offered | self.delivers if property_id in self._required else offered
        return known

    def offered(self, property_id: str) -> BoolArray:
        """By process and group: the property is promised there, whatever is required."""
        offered = self._named_in(property_id, lambda promised: promised.services)
        closed = np.array([how == "closed" for how in self.view_change], np.bool_)
        offered |= self._named_in(property_id, lambda promised: promised.closed) & closed[:, None]
        if property_id in _UNSEQUENCED:
            offered &= ~self.asymmetric
        if property_id in _SEQUENCED_UNCHANGED:
            offered &= ~(self.asymmetric & self._changed)
        off = self.suspectors.off | (self.suspectors.unprobed & (property_id == "L10"))
        offered &= ~(self.of_family(lambda promised: property_id in promised.moving) & off)[:, None]
        if property_id == "L9":
            offered &= self.onlooking | self._undisturbed()
        if property_id in _OF_SENDERS:
            offered &= ~self.onlooking
        if property_id in COMING:
            offered &= _formed(self._history) if property_id == "D12" else _recovered(self._history)
        offered &= ~(self._named_in(property_id, lambda promised: promised.unchanged) & self._changed)
        crashed = self._history.logs.crashed[:, None]
        return offered & ~(self._named_in(property_id, lambda promised: promised.alive) & crashed)

    def _undisturbed(self) -> BoolArray:
        """By process, where nobody only receives: nothing breaks in the run, and nobody comes or goes."""
        quiet = not len(self._history.of_kind("fault", "crash", "join", "leave"))
        return ~self.of_family(lambda promised: promised.onlookers)[:, None] & quiet

    def scoped(self, property_id: str) -> BoolArray:
        """By process and group: the property is promised there, in the scope of the promise.

        One that is required is meant as it is worded, without any.
        """
        offered = self.offered(property_id)
        return np.zeros_like(offered) if property_id in self._required else offered

    def of_family(self, holds: Callable[[Promised], bool]) -> BoolArray:
        """By process: what is so of the family of its protocol."""
        return np.array([holds(promised_by(protocol)) for protocol in (*self._protocols, "")], np.bool_)[self._protocol]

    def frees(self, what: str) -> BoolArray:
        """By process and group: this is what it holds until it is stable (`Promised.frees`)."""
        of_family = self.of_family(lambda promised: promised.frees == what)[:, None] & np.ones_like(self.onlooking)
        idle = self.onlooking & ~self._has_service(lambda service: service == "total")
        return np.where(idle, what == "nothing", of_family)

    def wanted(self, process: int, group: int, senders: Iterable[int]) -> list[int]:
        """Those of the senders whom a process that only receives wants to hear: all, unless its `start` row tells."""
        chosen = self._sources.get((process, group))
        names = self._history.processes
        return [sender for sender in senders if chosen is None or names[sender] in chosen]

    def realms(self, property_id: str) -> IntArray:
        """By group a number: messages of groups with one number are held to one order.

        A property that is required is meant as it is worded: over all groups.
        """
        if property_id in self._required:
            return np.zeros(len(self._history.groups), np.int64)
        apart = self.of_family(lambda promised: promised.apart)[:, None] & (self._service >= 0)
        alone: BoolArray = np.logical_or.reduce(apart | _read_apart(self._history), axis=0)
        return np.where(alone, 1 + np.arange(len(alone)), 0)

    def groups(self, property_id: str) -> BoolArray:
        """By group: somebody promises the property there."""
        promised: BoolArray = np.logical_or.reduce(self.pairs(property_id), axis=0)
        return promised

    def deliveries(self, property_id: str) -> BoolArray:
        """Which of the first deliveries fall under the promise."""
        first = self._history.first
        return self.pairs(property_id)[first.process, first.group]

    def asked(self, property_id: str) -> Deliveries:
        """Those of them that were sent; of what nobody sent, D1 speaks alone."""
        first, known = self._history.first, self._history.messages.known
        return first.where(self.deliveries(property_id) & known[first.message])

    def service(self, process: int | np.int64, group: int | np.int64) -> str:
        """The name of the service that a process has chosen in a group, empty if it has none."""
        code = self._service[process, group]
        return self._services[code] if code >= 0 else ""

    def _named_in(self, property_id: str, table: Callable[[Promised], Codes]) -> BoolArray:
        """By process and group: the property is in that table of its family, under its service."""
        named = [property_id in table(promised_by(protocol)).get(service, ()) for protocol, service in self._kinds]
        found: BoolArray = np.array(named, np.bool_)[self._kind]
        return found

    def _has_service(self, holds: Callable[[str], bool]) -> BoolArray:
        return np.array([holds(service) for service in (*self._services, "")], np.bool_)[self._service]

    def _read_starts(self) -> None:
        history = self._history
        code_of = {group: code for code, group in enumerate(history.groups)}
        for row in history.of_kind("start").tolist():
            process = history.rows.process[row]
            protocol, services = _start(history.process_name(process), history.details[row])
            self._protocol[process] = _code(self._protocols, protocol)
            options = history.details[row].get("options")
            options = options if isinstance(options, dict) else {}
            holds_all = promised_by(protocol).frees == "everything"  # and so has to find out when all of it may go
            self.learns_all[process] = holds_all or options.get("stability") == "all"
            self.view_change[process] = str(options.get("view_change", ""))
            for group, service in services.items():
                if group in code_of:  # otherwise nothing ever happened in it
                    self._service[process, code_of[group]] = _code(self._services, service)
                    told = history.details[row]["groups"][group]
                    self.asymmetric[process, code_of[group]] = told.get("mode") == "asymmetric"
                    onlooking = promised_by(protocol).onlookers and told.get("role") == "receiver"
                    self.onlooking[process, code_of[group]] = onlooking
                    if onlooking and isinstance(told.get("sources"), list):
                        self._sources[int(process), code_of[group]] = frozenset(map(str, told["sources"]))
        self._require_starts()

    def _require_starts(self) -> None:
        history = self._history
        active = history.rows.process[np.isin(history.rows.kind, _ACTIVE)]
        silent = active[self._protocol[active] < 0]
        if len(silent):
            who = history.process_name(silent[0])
            raise TraceError(f"{who} has no start row, so what it promises is unknown")

    def _fill_from_rows(self) -> None:
        """A group joined after the start is in no `start` row; its own rows name the service.

        Who joined and neither sends nor delivers is asked as others there are: it must be noticed that it does not.
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


def _changed(history: History) -> BoolArray:
    """By group: somebody there installed a second view, or crashed."""
    stays, changed = history.stays, np.zeros(len(history.groups), np.bool_)
    changed[stays.group[stays.preceding >= 0]] = True
    crashed = {*np.flatnonzero(history.logs.crashed).tolist()}
    if crashed:
        for group, members in set(zip(stays.group.tolist(), stays.members, strict=True)):
            changed[group] |= not crashed.isdisjoint(members)
    return changed


def _formed(history: History) -> BoolArray:
    """By group: somebody installed the first view of a formed group."""
    formed = np.zeros(len(history.groups), np.bool_)
    formed[history.stays.group[history.stays.formed]] = True
    return formed


def _read_apart(history: History) -> BoolArray:
    """By process and group: its application reads the group by itself, in no order with its other groups."""
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
