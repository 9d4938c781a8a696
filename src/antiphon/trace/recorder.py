"""The recorder turns what crosses the boundary of a core into rows of the trace, in call order.

It stands outside the core and numbers the application's messages itself: a core that loses, duplicates or invents a
message cannot make its trace agree. Rows are dicts of the columns that apply (`trace/schema.py`); `trace/table.py`
converts them to Arrow. The simulator records directly. Real processes write a journal first (`trace/journal.py`), and
its reader repeats the calls here (`trace/replay.py`).

Rows name a group without the number of its formation. Messages are numbered on over all formations of a group.
"""

import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from antiphon.core.effects import (
    Answered,
    Blocked,
    Confirmed,
    Departure,
    Discard,
    Frame,
    Gauge,
    InstallState,
    Left,
    Primary,
    Refuted,
    Stable,
    Suspected,
    Transitional,
    Unanswered,
    Unblocked,
)
from antiphon.core.services import GroupService
from antiphon.trace.frames import CARRIES, Mark, Traced, own_class
from antiphon.types import GroupId, ProcessId, View, epoch_of, name_of, signature, split_process_id

Row = dict[str, Any]
_NUMBERED = frozenset({"data", "fragment", "state", "word", "null", "remove", "flush", "view"})
"""Kinds that share one count of serial numbers."""
_RIDDEN = _NUMBERED | {"keep-alive"}
"""Kinds that carry acknowledgments, where these have no frames of their own."""
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def digest(payload: bytes) -> int:
    """64-bit hash of a payload, as traces show it."""
    return int.from_bytes(hashlib.blake2b(payload, digest_size=8).digest(), "big", signed=True)


def compact_json(value: object) -> str:
    """The one text of a value: sorted keys, no spaces."""
    return _encode(value)


class Recorder:
    """The history of one process incarnation. `world` has one too."""

    def __init__(
        self,
        process: ProcessId,
        services: dict[GroupId, str] | None = None,
        *,
        rides: bool = False,
        signed: bool = False,
        counted: bool = False,
    ) -> None:
        """`rides`: messages carry acknowledgments. `signed`: views tell who left, primacy and signatures.

        `counted`: such views also tell how many processes were excluded so far.
        """
        self._me = process
        self.process, self.incarnation = split_process_id(process)
        self.rows: list[Row] = []
        self.services = {} if services is None else services
        self.rides, self.signed = rides, signed
        self._counted = counted
        self._acknowledge = _RIDDEN if rides else frozenset({"acknowledgment"})  # kinds with acknowledgments
        self._views: dict[GroupId, str] = {}
        self._first_views: dict[GroupId, str] = {}  # by formation
        self._senders: dict[GroupId, tuple[ProcessId, ...]] = {}
        self._numbers: defaultdict[GroupId, int] = defaultdict(int)
        self._waiting: defaultdict[GroupId, deque[tuple[int, int, Mark]]] = defaultdict(deque)
        self._blocked: dict[GroupId, set[GroupId]] = {}  # by name, the formations in which it is blocked
        self._asked: dict[GroupId, dict[int, tuple[int, str]]] = {}  # open requests: when, for how many answers
        self._asks: dict[GroupId, int] = {}  # all requests, where views are agreed on
        self._names: dict[ProcessId, tuple[str, int]] = {}

    def note(self, kind: str, now: int, detail: str | None = None) -> None:
        """A row without a message: `start`, `stop`, and the world's own; `detail` is JSON."""
        self.rows.append({"time": now, "kind": kind, "detail": detail})

    @property
    def groups(self) -> Iterable[GroupId]:
        """The groups of this process."""
        return self.services

    def moved(
        self,
        kind: str,
        group: GroupId,
        now: int,
        contacts: tuple[ProcessId, ...] = (),
        *,
        apart: bool = False,
        service: GroupService | None = None,
    ) -> None:
        """The process joins or leaves a group, or asks to send or to receive; `contacts`: the processes that it asks.

        `apart`: its application reads the group by itself, in no order with its other groups. `service`: of the group,
        if the `start` row does not name it.
        """
        row: Row = {"time": now, "kind": kind, "group": group, "view": self._views.get(group)}
        detail: dict[str, object] = ({"contacts": contacts} if contacts else {}) | ({"apart": True} if apart else {})
        if service is not None:
            self.services[group] = row["service"] = service.name
            detail |= {"mode": "asymmetric"} if service.sequencer else {"view_change": service.views}
        self.rows.append(row | {"detail": compact_json(detail)} if detail else row)

    def parted(self, effect: Left, now: int) -> None:
        """The protocol is done with a formation of a group, or with the group.

        In the second case, requests that no frame took count as never made.
        """
        self._released(effect.group, now)
        if effect.successor is None:
            group = name_of(effect.group)
            self._numbers[group] -= len(self._waiting[group])
            self._waiting[group].clear()

    def left(self, effect: Left, now: int, *, unread: bool = False) -> None:
        """The application has left the group on its own decision; `unread`: it has not read all events before that."""
        group = name_of(effect.group)
        detail = compact_json({"graceful": effect.graceful} | ({"unread": True} if unread else {}))
        row = {"time": now, "kind": "leave", "group": group, "view": self._views.pop(group, None), "detail": detail}
        self.rows.append(row)

    def handed_over(self, view: View, state: bytes, now: int) -> None:
        """The application hands its state over, as it is at the first view of a formed group."""
        self.state_told(view, "snapshot", own_class(view, self._me), digest(state), now)

    def merged(self, effect: InstallState, parts: Sequence[bytes], now: int) -> None:
        """The application takes the states of other classes, and has these parts together from here on."""
        installed = [(place, digest(other)) for place, other in effect.states]
        self.states_merged(effect.group, installed, digest(b"".join(parts)), now)

    def state_told(
        self, view: View, role: str, place: int, state_digest: int, now: int, *, streamed: bool = False
    ) -> None:
        """The state of class `place` at the first view of a formation; `streamed`: it was still leaving after that."""
        detail = {"class": place, "role": role} | ({"streamed": True} if streamed else {})
        self._state(view.group, view.id, state_digest, detail, now)

    def states_merged(self, formation: GroupId, installed: Iterable[tuple[int, int]], merged: int, now: int) -> None:
        """The same by digests: by class what was installed, then the result."""
        first = self._first_views[formation]
        for place, state_digest in installed:
            self._state(formation, first, state_digest, {"class": place, "role": "installed"}, now)
        self._state(formation, first, merged, {"role": "merged"}, now)

    def _state(self, formation: GroupId, view: str, state_digest: int, detail: Mapping[str, object], now: int) -> None:
        """`view` is the first one of the formation, even if a later one is in force."""
        row: Row = {"time": now, "kind": "state", "group": name_of(formation), "view": view}
        self.rows.append(row | {"digest": state_digest, "detail": compact_json(detail)})

    def stopped(
        self,
        now: int,
        held: Mapping[GroupId, int],
        costs: Mapping[str, int],
        moving: Mapping[str, list[GroupId]] | None = None,
    ) -> None:
        """The process ends. Requests that no frame ever took are counted: they must not vanish.

        The row also tells the frames that the core still holds, the requests without an answer, the costs, and the
        groups that the process was still about to join or leave.
        """
        waiting = {group: len(requests) for group, requests in self._waiting.items() if requests}
        held = {group: count for group, count in held.items() if count}
        unanswered = {group: len(requests) for group, requests in self._asked.items() if requests}
        told = {"waiting": waiting, "held": held, "unanswered": unanswered, "costs": dict(costs), **(moving or {})}
        told |= {"asked": self._asks}
        detail = {key: value for key, value in told.items() if value}
        self.note("stop", now, compact_json(detail) if detail else None)

    def requested(self, group: GroupId, payload: bytes, now: int) -> int:
        """The application asks to send; returns the number of the message, for the label of its frame."""
        number = self._numbers[group]
        self._numbers[group] = number + 1
        self._waiting[group].append((number, now, Mark(len(payload), digest(payload))))
        return number

    def requested_all(self, group: GroupId, marks: Iterable[Mark], now: int) -> None:
        """The same for several messages, by their marks."""
        waiting, number = self._waiting[group], self._numbers[group]
        for mark in marks:
            waiting.append((number, now, mark))
            number += 1
        self._numbers[group] = number

    def transmitted(
        self,
        frame: Traced,
        now: int,
        *,
        payload_bytes: int,
        header_bytes: int,
        stamp_bytes: int,
        unstable: int,
        copies: int,
        flow: tuple[int, ...] | None = None,
    ) -> None:
        """A frame is transmitted; our messages that leave for the first time count as sent now.

        A large message is sent with the last of its fragments: there is its place in the order. `copies` is the
        number of receivers.
        """
        kind, group = frame.kind, name_of(frame.group)
        if kind in CARRIES and frame.author == self._me:
            self._sent(frame, group, now)
        detail: dict[str, object] = {
            "copies": copies,
            "count": len(frame.payloads) if kind == "data" else 0,
            "frame": _frame_name(frame, kind),
            "stamp_bytes": stamp_bytes,
            "type": kind,
        }
        if flow is not None:
            detail["flow"] = flow
        if kind in self._acknowledge:
            detail["senders"] = self._senders.get(group, ())
        self.rows.append(
            {
                "time": now,
                "kind": "transmit",
                "group": group,
                "view": self._views.get(group),
                "orderer": frame.orderer,
                "clock": frame.clock,
                "payload_bytes": payload_bytes,
                "header_bytes": header_bytes,
                "unstable": unstable,
                "detail": compact_json(detail),
            }
        )

    def received(self, frame: Traced, now: int, *, unstable: int, relay: ProcessId | None = None) -> None:
        """A frame reaches the protocol: one row for each message, or one without number if it ends no message."""
        sender, incarnation = self._name(frame.author)
        kind, group = frame.kind, name_of(frame.group)
        numbers: list[int | None] = []
        if kind in CARRIES:
            numbers += range(frame.label, frame.label + len(frame.payloads))
        detail = compact_json({"frame": _frame_name(frame, kind), "type": kind})
        for number in numbers or [None]:
            self.rows.append(
                {
                    "time": now,
                    "kind": "receive",
                    "group": group,
                    "sender": sender,
                    "sender_incarnation": incarnation,
                    "number": number,
                    "view": self._views.get(group),
                    "peer": relay or frame.sender,
                    "clock": frame.clock,
                    "unstable": unstable,
                    "detail": detail,
                }
            )

    def delivered(self, frame: Frame, now: int) -> None:
        """The application takes the messages of a frame."""
        self.delivered_all(frame, [Mark(len(payload), digest(payload)) for payload in frame.payloads], now)

    def delivered_all(self, frame: Traced, marks: Iterable[Mark], now: int) -> None:
        """The same, by the marks of the messages."""
        sender, incarnation = self._name(frame.author)
        group = name_of(frame.group)
        service, view = self.services[group], self._views.get(group)
        for number, mark in enumerate(marks, frame.label):
            self.rows.append(
                {
                    "time": now,
                    "kind": "deliver",
                    "group": group,
                    "sender": sender,
                    "sender_incarnation": incarnation,
                    "number": number,
                    "service": service,
                    "view": view,
                    "orderer": frame.orderer,
                    "clock": frame.clock,
                    "payload_bytes": mark.size_bytes,
                    "digest": mark.digest,
                }
            )

    def installed(self, view: View, now: int, left: tuple[Departure, ...] = (), signed: str | None = None) -> None:
        """A view is in force from here on; `left`: the departures that led to it; `signed`: another signature."""
        group = name_of(view.group)
        self._views[group] = view.id
        if view.classes:
            self._first_views[view.group] = view.id
        self.rows.append(
            {
                "time": now,
                "kind": "view",
                "group": group,
                "view": view.id,
                "members": list(view.members),
                "previous": view.previous,
                "transitional": list(view.transitional),
                "detail": self._told(view, left, signed or signature(view)),
            }
        )

    def suspected(self, effect: Suspected | Refuted, now: int) -> None:
        """We suspect a member, or do so no longer."""
        group = name_of(effect.group)
        row: Row = {"time": now, "kind": "refute", "group": group, "view": self._views.get(group)}
        row["peer"] = effect.process
        if isinstance(effect, Suspected):
            detail = compact_json({"reason": effect.reason})
            row |= {"kind": "suspect", "clock": effect.last_block, "detail": detail}
        self.rows.append(row)

    def confirmed(self, effect: Confirmed, now: int) -> None:
        """The protocol knows that members have failed together: one row each."""
        detail, group = compact_json({"failed": effect.failed}), name_of(effect.group)
        for process, last_block in effect.failed:
            self.rows.append(
                {
                    "time": now,
                    "kind": "confirm",
                    "group": group,
                    "view": self._views.get(group),
                    "members": list(effect.members),
                    "peer": process,
                    "clock": last_block,
                    "detail": detail,
                }
            )

    def noticed(self, effect: Transitional, now: int) -> None:
        """The application is told for which members deliveries are valid from here on."""
        group = name_of(effect.group)
        self.rows.append(
            {
                "time": now,
                "kind": "transitional",
                "group": group,
                "view": self._views.get(group),
                "members": list(effect.members),
            }
        )

    def prevailed(self, effect: Primary, now: int) -> None:
        """The application is told that its view is primary from here on."""
        detail = compact_json({"after": effect.after, "holds": effect.holds, "rule": effect.rule})
        row: Row = {"time": now, "kind": "primary", "group": name_of(effect.group), "view": effect.view}
        self.rows.append(row | {"number": effect.number, "detail": detail})

    def asked(self, group: GroupId, request: int, mode: str, now: int) -> None:
        """The application asks its group; requests to one group count from 0."""
        self._asked.setdefault(group, {})[request] = now, mode
        if self.signed:
            self._asks[group] = self._asks.get(group, 0) + 1

    def answered(self, effect: Answered, now: int) -> None:
        """A request to the group has its answers."""
        self._request_ended("answer", effect, {}, now)

    def unanswered(self, effect: Unanswered, now: int) -> None:
        """A request to the group ends without them."""
        self._request_ended("unanswered", effect, {"reason": effect.reason}, now)

    def _request_ended(self, kind: str, effect: Answered | Unanswered, more: Mapping[str, object], now: int) -> None:
        requested, mode = self._asked[effect.group].pop(effect.request)
        by = [process for process, _ in effect.answers]
        detail: dict[str, object] = {"by": by, "mode": mode, "request": effect.request, **more}
        if effect.label is not None:
            detail["number"] = effect.label
        if effect.view is not None:
            detail["view"] = effect.view
        row: Row = {"time": now, "requested": requested, "kind": kind, "group": effect.group}
        self.rows.append(row | {"detail": compact_json(detail)})

    def _told(self, view: View, left: tuple[Departure, ...], signed: str) -> str | None:
        """The detail of a view: of a private one its receivers and senders, of an agreed one the departures.

        The first view of a formed group also tells its epoch, its classes, and which of these have delivered the same.
        """
        if self.signed:
            departures = [departure._asdict() for departure in left]
            told: dict[str, object] = {"left": departures, "primary": view.primary, "signature": signed}
            if self._counted:
                told["excluded"] = len(view.excluded)
            if view.classes:
                told |= {"classes": view.classes, "epoch": epoch_of(view.group)}
            if view.alike:
                told["alike"] = view.alike
            return compact_json(told)
        if view.receivers is None or view.senders is None:
            self._senders[name_of(view.group)] = view.members
            role = {"role": "receiver"} if view.receives else {}
            shared = role | ({"classes": view.classes} if view.classes else {})
            return compact_json(shared) if shared else None
        self._senders[name_of(view.group)] = view.senders
        return compact_json({"receivers": view.receivers, "senders": view.senders})

    def prefix(self, effect: Stable | Discard, now: int, *, unstable: int) -> None:
        """A prefix of each sender's messages became stable, or was freed."""
        group = name_of(effect.group)
        self.rows.append(
            {
                "time": now,
                "kind": "stable" if isinstance(effect, Stable) else "discard",
                "group": group,
                "view": self._views.get(group),
                "unstable": unstable,
                "upto": list(effect.upto),
                "detail": '{"evicted":true}' if isinstance(effect, Discard) and effect.evicted else None,
            }
        )

    def gauged(self, effect: Gauge, now: int) -> None:
        """A bounded quantity has a new high."""
        detail = compact_json({"name": effect.name, "value": effect.value})
        group = name_of(effect.group)
        self.rows.append({"time": now, "kind": "gauge", "group": group, "peer": effect.of, "detail": detail})

    def held_back(self, effect: Blocked | Unblocked, now: int) -> None:
        """Flow control stops our sender, or releases it."""
        if isinstance(effect, Unblocked):
            self._released(effect.group, now)
            return
        group = name_of(effect.group)
        blocked = self._blocked.setdefault(group, set())
        if not blocked:  # if it only waits for another member now, it was blocked already
            self.rows.append({"time": now, "kind": "block", "group": group, "peer": effect.by})
        blocked.add(effect.group)

    def _released(self, formation: GroupId, now: int) -> None:
        """Flow control releases our sender in that formation; it may still block it in another one."""
        group = name_of(formation)
        blocked = self._blocked.get(group)
        if blocked and formation in blocked:
            blocked.remove(formation)
            if not blocked:
                self.rows.append({"time": now, "kind": "unblock", "group": group, "peer": None})

    def _sent(self, frame: Traced, group: GroupId, now: int) -> None:
        """The `send` rows record what the application sent, independent of the core.

        The core has skipped requests below the frame's first label that no frame took. They count as sent: no process
        will deliver them, and the liveness checks will report it. A frame that leaves again adds no rows.
        """
        waiting, last = self._waiting[group], frame.label + len(frame.payloads) - 1
        while waiting and waiting[0][0] <= last:
            number, requested, mark = waiting.popleft()
            self.rows.append(
                {
                    "time": now,
                    "requested": requested,
                    "kind": "send",
                    "group": group,
                    "sender": self.process,
                    "sender_incarnation": self.incarnation,
                    "number": number,
                    "service": self.services[group],
                    "view": self._views.get(group),
                    "clock": frame.clock,
                    "payload_bytes": mark.size_bytes,
                    "digest": mark.digest,
                }
            )

    def _name(self, process: ProcessId) -> tuple[str, int]:
        name = self._names.get(process)
        if name is None:
            name = self._names[process] = split_process_id(process)
        return name


def _frame_name(frame: Traced, kind: str) -> str | None:
    """A name that is unique in the run, for frames with a serial number."""
    if frame.serial is None:
        return None
    return f"{frame.group}/{frame.sender}/{'' if kind in _NUMBERED else f'{kind}/'}{frame.serial}"
