"""The recorder: writes down what crosses the boundary of a core, in call order.

It stands outside, in the driver of simulator or runtime, and numbers the application's messages itself: a core that
loses, doubles or invents a message cannot make its trace agree. Rows are dicts of the columns that apply
(`trace/schema.py`); `trace/table.py` makes Arrow of them.
"""

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from antiphon.core.effects import (
    Answered,
    Blocked,
    Confirmed,
    Departure,
    Discard,
    Frame,
    Gauge,
    Refuted,
    Stable,
    Suspected,
    Unblocked,
)
from antiphon.types import GroupId, ProcessId, View, signature, split_process_id

Row = dict[str, Any]
_NUMBERED = frozenset({"data", "fragment", "state", "null", "remove", "flush", "view"})
"""Kinds that share one count of serial numbers."""
_CARRIES = frozenset({"data", "submit"})
"""Kinds that bring whole messages of the application: to all, or to the sequencer who numbers them for all."""
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
        services: Mapping[GroupId, str] | None = None,
        *,
        rides: bool = False,
        agreed: bool = False,
    ) -> None:
        """`rides`: messages carry acknowledgments. `agreed`: members agree on views."""
        self._me = process
        self.process, self.incarnation = split_process_id(process)
        self.rows: list[Row] = []
        self._services = services or {}
        self._agreed = agreed
        self._acknowledge = _NUMBERED if rides else frozenset({"acknowledgment"})  # what kinds of frames do
        self._views: dict[GroupId, str] = {}
        self._senders: dict[GroupId, tuple[ProcessId, ...]] = {}
        self._numbers = dict.fromkeys(self._services, 0)
        self._waiting: dict[GroupId, deque[tuple[int, int, bytes]]] = {group: deque() for group in self._services}
        self._blocked: set[GroupId] = set()
        self._asked: dict[GroupId, list[tuple[int, str]]] = {}  # when, and for how many answers
        self._unanswered: dict[GroupId, int] = {}
        self._names: dict[ProcessId, tuple[str, int]] = {}

    def note(self, kind: str, now: int, detail: str | None = None) -> None:
        """A row without a message: `start`, `stop`, and the world's own; `detail` is JSON."""
        self.rows.append({"time": now, "kind": kind, "detail": detail})

    @property
    def groups(self) -> Iterable[GroupId]:
        """The groups of this process."""
        return self._services

    def moved(self, kind: str, group: GroupId, now: int) -> None:
        """The process joins or leaves a group."""
        self.rows.append({"time": now, "kind": kind, "group": group, "view": self._views.get(group)})

    def stopped(self, now: int, held: Mapping[GroupId, int], costs: Mapping[str, int]) -> None:
        """The process ends. What its application asked for and no frame ever took is told: it must not vanish.

        So is how many frames its core still holds, how many requests have no answer, and what it cost, where it counts.
        """
        waiting = {group: len(requests) for group, requests in self._waiting.items() if requests}
        held = {group: count for group, count in held.items() if count}
        unanswered = {group: count for group, count in self._unanswered.items() if count}
        told = {"waiting": waiting, "held": held, "unanswered": unanswered, "costs": dict(costs)}
        detail = {key: value for key, value in told.items() if value}
        self.note("stop", now, compact_json(detail) if detail else None)

    def requested(self, group: GroupId, payload: bytes, now: int) -> int:
        """The application asks to send; gives the number that the message will have, the label of its frame."""
        number = self._numbers[group]
        self._numbers[group] = number + 1
        self._waiting[group].append((number, now, payload))
        return number

    def transmitted(
        self,
        frame: Frame,
        now: int,
        *,
        payload_bytes: int,
        header_bytes: int,
        stamp_bytes: int,
        unstable: int,
        copies: int,
        flow: tuple[int, ...] | None = None,
    ) -> None:
        """A frame leaves; those of our messages that leave for the first time are sent now.

        A large message is sent with the last of its fragments: there is its place in the order. `copies` tells how
        many receivers it goes to.
        """
        kind = frame.kind
        if kind in _CARRIES and frame.author == self._me:
            self._sent(frame, now)
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
            detail["senders"] = self._senders.get(frame.group, ())
        self.rows.append(
            {
                "time": now,
                "kind": "transmit",
                "group": frame.group,
                "view": self._views.get(frame.group),
                "orderer": frame.orderer,
                "clock": frame.clock,
                "payload_bytes": payload_bytes,
                "header_bytes": header_bytes,
                "unstable": unstable,
                "detail": compact_json(detail),
            }
        )

    def received(self, frame: Frame, now: int, *, unstable: int, relay: ProcessId | None = None) -> None:
        """A frame reaches the protocol: one row a message, and one without number where it ends none."""
        sender, incarnation = self._name(frame.author)
        kind = frame.kind
        numbers: list[int | None] = []
        if kind in _CARRIES:
            numbers += range(frame.label, frame.label + len(frame.payloads))
        detail = compact_json({"frame": _frame_name(frame, kind), "type": kind})
        for number in numbers or [None]:
            self.rows.append(
                {
                    "time": now,
                    "kind": "receive",
                    "group": frame.group,
                    "sender": sender,
                    "sender_incarnation": incarnation,
                    "number": number,
                    "view": self._views.get(frame.group),
                    "peer": relay or frame.sender,
                    "clock": frame.clock,
                    "unstable": unstable,
                    "detail": detail,
                }
            )

    def delivered(self, frame: Frame, now: int) -> None:
        """The application takes the messages of a frame."""
        sender, incarnation = self._name(frame.author)
        service, view = self._services[frame.group], self._views.get(frame.group)
        for position, payload in enumerate(frame.payloads):
            self.rows.append(
                {
                    "time": now,
                    "kind": "deliver",
                    "group": frame.group,
                    "sender": sender,
                    "sender_incarnation": incarnation,
                    "number": frame.label + position,
                    "service": service,
                    "view": view,
                    "orderer": frame.orderer,
                    "clock": frame.clock,
                    "payload_bytes": len(payload),
                    "digest": digest(payload),
                }
            )

    def installed(self, view: View, now: int, left: tuple[Departure, ...] = (), signed: str | None = None) -> None:
        """A view is in force from here on; `left` tells who is out of it, and why; `signed` is another signature."""
        self._views[view.group] = view.id
        self.rows.append(
            {
                "time": now,
                "kind": "view",
                "group": view.group,
                "view": view.id,
                "members": list(view.members),
                "previous": view.previous,
                "transitional": list(view.transitional),
                "detail": self._told(view, left, signed or signature(view)),
            }
        )

    def suspected(self, effect: Suspected | Refuted, now: int) -> None:
        """We suspect a member, or do so no longer."""
        row: Row = {"time": now, "kind": "refute", "group": effect.group, "view": self._views.get(effect.group)}
        row["peer"] = effect.process
        if isinstance(effect, Suspected):
            detail = compact_json({"reason": effect.reason})
            row |= {"kind": "suspect", "clock": effect.last_block, "detail": detail}
        self.rows.append(row)

    def confirmed(self, effect: Confirmed, now: int) -> None:
        """The protocol knows that some have failed, together: one row each."""
        detail = compact_json({"failed": effect.failed})
        for process, last_block in effect.failed:
            self.rows.append(
                {
                    "time": now,
                    "kind": "confirm",
                    "group": effect.group,
                    "view": self._views.get(effect.group),
                    "members": list(effect.members),
                    "peer": process,
                    "clock": last_block,
                    "detail": detail,
                }
            )

    def noticed(self, effect: Confirmed, now: int) -> None:
        """The application is told whom deliveries speak for from here on."""
        self.rows.append(
            {
                "time": now,
                "kind": "transitional",
                "group": effect.group,
                "view": self._views.get(effect.group),
                "members": list(effect.members),
            }
        )

    def asked(self, group: GroupId, mode: str, now: int) -> None:
        """The application asks its group; requests to one group count from 0."""
        self._asked.setdefault(group, []).append((now, mode))
        self._unanswered[group] = self._unanswered.get(group, 0) + 1

    def answered(self, effect: Answered, now: int) -> None:
        """A request to the group has its answers."""
        requested, mode = self._asked[effect.group][effect.request]
        self._unanswered[effect.group] -= 1
        by = [process for process, _ in effect.answers]
        detail = compact_json({"by": by, "mode": mode, "request": effect.request})
        row = {"time": now, "requested": requested, "kind": "answer", "group": effect.group, "detail": detail}
        self.rows.append(row)

    def _told(self, view: View, left: tuple[Departure, ...], signed: str) -> str | None:
        """Of a private view, to whom and from whom its messages go; of one agreed on, who left and why."""
        if self._agreed:
            departures = [departure._asdict() for departure in left]
            return compact_json({"left": departures, "primary": view.primary, "signature": signed})
        if view.receivers is None or view.senders is None:
            return None
        self._senders[view.group] = view.senders
        return compact_json({"receivers": view.receivers, "senders": view.senders})

    def prefix(self, effect: Stable | Discard, now: int, *, unstable: int) -> None:
        """A prefix of each sender's messages became stable, or was freed."""
        self.rows.append(
            {
                "time": now,
                "kind": "stable" if isinstance(effect, Stable) else "discard",
                "group": effect.group,
                "view": self._views.get(effect.group),
                "unstable": unstable,
                "upto": list(effect.upto),
                "detail": '{"evicted":true}' if isinstance(effect, Discard) and effect.evicted else None,
            }
        )

    def gauged(self, effect: Gauge, now: int) -> None:
        """A bounded quantity has a new high."""
        detail = compact_json({"name": effect.name, "value": effect.value})
        self.rows.append({"time": now, "kind": "gauge", "group": effect.group, "peer": effect.of, "detail": detail})

    def held_back(self, effect: Blocked | Unblocked, now: int) -> None:
        """Flow control stops our sender, or releases it."""
        kind, peer = ("block", effect.by) if isinstance(effect, Blocked) else ("unblock", None)
        if (kind == "block") != (effect.group in self._blocked):  # that it waits for somebody else now is no new stop
            self._blocked ^= {effect.group}
            self.rows.append({"time": now, "kind": kind, "group": effect.group, "peer": peer})

    def _sent(self, frame: Frame, now: int) -> None:
        """The `send` rows tell what the application handed over, not what the core made of it.

        Requests below the frame's first label that no frame took were passed over by the core. They count as sent:
        nobody will deliver them, and liveness will tell. A frame that leaves again has nothing left to tell.
        """
        waiting, last = self._waiting[frame.group], frame.label + len(frame.payloads) - 1
        while waiting and waiting[0][0] <= last:
            number, requested, payload = waiting.popleft()
            self.rows.append(
                {
                    "time": now,
                    "requested": requested,
                    "kind": "send",
                    "group": frame.group,
                    "sender": self.process,
                    "sender_incarnation": self.incarnation,
                    "number": number,
                    "service": self._services[frame.group],
                    "view": self._views.get(frame.group),
                    "clock": frame.clock,
                    "payload_bytes": len(payload),
                    "digest": digest(payload),
                }
            )

    def _name(self, process: ProcessId) -> tuple[str, int]:
        name = self._names.get(process)
        if name is None:
            name = self._names[process] = split_process_id(process)
        return name


def _frame_name(frame: Frame, kind: str) -> str | None:
    """One name a frame in a run, for those that have a serial number."""
    if frame.serial is None:
        return None
    return f"{frame.group}/{frame.sender}/{'' if kind in _NUMBERED else f'{kind}/'}{frame.serial}"
