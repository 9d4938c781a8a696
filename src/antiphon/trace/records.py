"""The records of a journal: the actions of one process, in their order (docs/reference/trace.md).

A record is one call of the recorder in a compact form: `repeat` makes the call, and so the rows. A frame is one
record, with any number of messages; each message has its size and its digest. `now` is the clock of
the process; the head of the journal relates it to the time of the run. Identities are written in their short form.
"""

from array import array
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import xxhash

from antiphon.core.effects import (
    Answered,
    Blocked,
    Confirmed,
    Departure,
    Discard,
    Frame,
    Gauge,
    Left,
    Primary,
    Refuted,
    Stable,
    Suspected,
    Transitional,
    Unanswered,
    Unblocked,
)
from antiphon.core.services import GroupService, ViewMode
from antiphon.trace.frames import Mark
from antiphon.trace.recorder import Recorder
from antiphon.types import GroupId, ProcessId, View, ViewId, process_id, short_id, signature

VERSION: Final = 1
"""The version of the records. A journal of another version is not read."""


class Head(msgspec.Struct, kw_only=True):
    """The first entry of a journal."""

    version: int
    process: ProcessId
    run: str
    epoch_ns: int
    """The value of the clock of the process at time 0 of the run."""
    rides: bool = False
    signed: bool = msgspec.field(name="agreed", default=True)
    """As for `Recorder`."""
    service: str = ""
    """The service of all groups that `services` does not name."""
    services: dict[GroupId, str] = {}

    @classmethod
    def of(cls, recorder: Recorder, run: str) -> "Head":
        """For the journal of a process whose clock shows the time of the run."""
        return cls(
            version=VERSION,
            process=process_id(recorder.process, recorder.incarnation),
            run=run,
            epoch_ns=0,
            rides=recorder.rides,
            signed=recorder.signed,
            services={**recorder.services},
        )


class _Record(msgspec.Struct, array_like=True, gc=False): ...


class FrameNote(_Record):
    """A frame without its payloads. Satisfies `Traced`."""

    group: GroupId
    sender: ProcessId
    author: ProcessId
    kind: str
    label: int
    count: int
    """Payloads in it."""
    clock: int
    orderer: ProcessId | None
    serial: int | None

    @property
    def payloads(self) -> Sequence[object]:
        return range(self.count)


class ViewNote(_Record):
    """The fields of a view that rows record."""

    group: GroupId
    id: ViewId
    members: tuple[ProcessId, ...]
    previous: ViewId | None
    transitional: tuple[ProcessId, ...]
    receivers: tuple[ProcessId, ...] | None
    senders: tuple[ProcessId, ...] | None
    primary: bool
    classes: tuple[tuple[ProcessId, ...], ...]
    alike: tuple[tuple[int, ...], ...] = ()
    receives: bool = False

    @property
    def view(self) -> View:
        return View(
            self.group,
            self.id,
            self.members,
            previous=self.previous,
            transitional=self.transitional,
            receivers=self.receivers,
            senders=self.senders,
            primary=self.primary,
            classes=self.classes,
            alike=self.alike,
            receives=self.receives,
        )


class Digests(_Record):
    """The sizes and digests of some payloads."""

    count: int
    size_bytes: int
    """The size of each payload, if all have the same size."""
    sizes: bytes
    """Otherwise four bytes for each."""
    digests: bytes
    """Eight bytes for each."""

    def marks(self) -> list[Mark]:
        sizes = array("I", self.sizes).tolist() if self.sizes else [self.size_bytes] * self.count
        return [*map(Mark, sizes, array("q", self.digests).tolist())]


class Requested(_Record, tag=1):
    now: int
    group: GroupId
    messages: Digests

    def repeat(self, history: Recorder, now: int) -> None:
        history.requested_all(self.group, self.messages.marks(), now)


class Transmitted(_Record, tag=2):
    now: int
    frame: FrameNote
    payload_bytes: int
    header_bytes: int
    stamp_bytes: int
    unstable: int
    copies: int
    flow: tuple[int, ...] | None

    def repeat(self, history: Recorder, now: int) -> None:
        history.transmitted(
            self.frame,
            now,
            payload_bytes=self.payload_bytes,
            header_bytes=self.header_bytes,
            stamp_bytes=self.stamp_bytes,
            unstable=self.unstable,
            copies=self.copies,
            flow=self.flow,
        )


class Received(_Record, tag=3):
    now: int
    frame: FrameNote
    unstable: int
    relay: ProcessId | None

    def repeat(self, history: Recorder, now: int) -> None:
        history.received(self.frame, now, unstable=self.unstable, relay=self.relay)


class Delivered(_Record, tag=4):
    now: int
    frame: FrameNote
    messages: Digests

    def repeat(self, history: Recorder, now: int) -> None:
        history.delivered_all(self.frame, self.messages.marks(), now)


class Prefix(_Record, tag=5):
    """A prefix of each sender's messages became stable, or was freed."""

    now: int
    group: GroupId
    upto: tuple[tuple[ProcessId, int], ...]
    unstable: int
    stable: bool
    evicted: bool

    def repeat(self, history: Recorder, now: int) -> None:
        effect = Stable(self.group, self.upto) if self.stable else Discard(self.group, self.upto, self.evicted)
        history.prefix(effect, now, unstable=self.unstable)


class Gauged(_Record, tag=6):
    now: int
    group: GroupId
    name: str
    value: int
    of: ProcessId | None

    def repeat(self, history: Recorder, now: int) -> None:
        history.gauged(Gauge(self.group, self.name, self.value, self.of), now)


class HeldBack(_Record, tag=7):
    now: int
    group: GroupId
    by: ProcessId | None
    """None: flow control has released the sender."""

    def repeat(self, history: Recorder, now: int) -> None:
        history.held_back(Unblocked(self.group) if self.by is None else Blocked(self.group, self.by), now)


class Installed(_Record, tag=8):
    now: int
    view: ViewNote
    left: tuple[Departure, ...]
    signature: str

    def repeat(self, history: Recorder, now: int) -> None:
        history.installed(self.view.view, now, self.left, self.signature)


class Doubted(_Record, tag=9):
    """A suspicion; without a reason, its refutation."""

    now: int
    group: GroupId
    process: ProcessId
    last_block: int
    reason: str | None

    def repeat(self, history: Recorder, now: int) -> None:
        if self.reason is None:
            history.suspected(Refuted(self.group, self.process), now)
        else:
            history.suspected(Suspected(self.group, self.process, self.last_block, self.reason), now)


class Confirmation(_Record, tag=10):
    now: int
    group: GroupId
    failed: tuple[tuple[ProcessId, int], ...]
    members: tuple[ProcessId, ...]

    def repeat(self, history: Recorder, now: int) -> None:
        history.confirmed(Confirmed(self.group, self.failed, self.members), now)


class Notice(_Record, tag=11):
    now: int
    group: GroupId
    members: tuple[ProcessId, ...]

    def repeat(self, history: Recorder, now: int) -> None:
        history.noticed(Transitional(self.group, self.members), now)


class Moved(_Record, tag=12):
    now: int
    kind: str
    group: GroupId
    contacts: tuple[ProcessId, ...]
    apart: bool
    service: str | None
    sequencer: bool = False
    views: ViewMode = "cut"

    def repeat(self, history: Recorder, now: int) -> None:
        service = None if self.service is None else GroupService(self.service, self.sequencer, self.views)
        history.moved(self.kind, self.group, now, self.contacts, apart=self.apart, service=service)


class Parted(_Record, tag=13):
    now: int
    effect: Left

    def repeat(self, history: Recorder, now: int) -> None:
        history.parted(self.effect, now)


class Departed(_Record, tag=14):
    now: int
    effect: Left
    unread: bool

    def repeat(self, history: Recorder, now: int) -> None:
        history.left(self.effect, now, unread=self.unread)


class Snapshot(_Record, tag=15):
    """The application hands over its state, as it was at that view."""

    now: int
    view: ViewNote
    place: int
    """The place of its class."""
    digest: int
    streamed: bool

    def repeat(self, history: Recorder, now: int) -> None:
        history.state_told(self.view.view, "snapshot", self.place, self.digest, now, streamed=self.streamed)


class Merged(_Record, tag=16):
    now: int
    group: GroupId
    installed: tuple[tuple[int, int], ...]
    """By class, the digest of its state."""
    digest: int

    def repeat(self, history: Recorder, now: int) -> None:
        history.states_merged(self.group, self.installed, self.digest, now)


class Noted(_Record, tag=17):
    """A row without a message; `detail` is JSON."""

    now: int
    kind: str
    detail: str | None

    def repeat(self, history: Recorder, now: int) -> None:
        history.note(self.kind, now, self.detail)


class Stopped(_Record, tag=18):
    now: int
    held: dict[GroupId, int]
    costs: dict[str, int]
    moving: dict[str, list[GroupId]]

    def repeat(self, history: Recorder, now: int) -> None:
        history.stopped(now, self.held, self.costs, self.moving)


class Prevailed(_Record, tag=19):
    now: int
    effect: Primary

    def repeat(self, history: Recorder, now: int) -> None:
        history.prevailed(self.effect, now)


class Asked(_Record, tag=20):
    """The application asks its group."""

    now: int
    group: GroupId
    request: int
    mode: str

    def repeat(self, history: Recorder, now: int) -> None:
        history.asked(self.group, self.request, self.mode, now)


class RequestEnded(_Record, tag=21):
    now: int
    group: GroupId
    request: int
    by: tuple[ProcessId, ...]
    number: int | None
    """Of the message that was the request."""
    reason: str | None
    """None: it has its answers."""
    view: ViewId | None

    def repeat(self, history: Recorder, now: int) -> None:
        answers = tuple((process, b"") for process in self.by)
        if self.reason is None:
            history.answered(Answered(self.group, self.request, answers, self.number, self.view), now)
        else:
            effect = Unanswered(self.group, self.request, self.reason, answers, self.number, self.view)
            history.unanswered(effect, now)


Record = (
    Requested | Transmitted | Received | Delivered | Prefix | Gauged | HeldBack | Installed | Doubted | Confirmation
    | Notice | Prevailed | Moved | Parted | Departed | Snapshot | Merged | Noted | Stopped | Asked | RequestEnded
)  # fmt: skip

RECORDS: Final[Any] = list[Record]
"""The type of one entry."""


def note_frame(frame: Frame) -> FrameNote:
    return FrameNote(
        frame.group,
        short_id(frame.sender),
        short_id(frame.author),
        frame.kind,
        frame.label,
        len(frame.payloads),
        frame.clock,
        short_or_none(frame.orderer),
        frame.serial,
    )


def note_view(view: View) -> ViewNote:
    return ViewNote(
        view.group,
        view.id,
        short_ids(view.members),
        view.previous,
        short_ids(view.transitional),
        None if view.receivers is None else short_ids(view.receivers),
        None if view.senders is None else short_ids(view.senders),
        view.primary,
        tuple(map(short_ids, view.classes)),
        view.alike,
        view.receives,
    )


def note_install(view: View, left: tuple[Departure, ...], signed: str | None, now: int) -> Installed:
    departures = tuple(
        each._replace(process=short_id(each.process), accusers=short_ids(each.accusers)) for each in left
    )
    return Installed(now, note_view(view), departures, signed or signature(view))


def short_ids(processes: Sequence[ProcessId]) -> tuple[ProcessId, ...]:
    return tuple(map(short_id, processes))


def short_or_none(process: ProcessId | None) -> ProcessId | None:
    return None if process is None else short_id(process)


def short_numbers(numbers: Sequence[tuple[ProcessId, int]]) -> tuple[tuple[ProcessId, int], ...]:
    return tuple((short_id(process), number) for process, number in numbers)


def digests(payloads: Sequence[bytes]) -> Digests:
    """Computed without a Python step for each payload: there may be a million per second."""
    sizes = {*map(len, payloads)}
    return Digests(
        len(payloads),
        sizes.pop() if len(sizes) == 1 else 0,
        array("I", map(len, payloads)).tobytes() if sizes else b"",
        array("Q", map(xxhash.xxh3_64_intdigest, payloads)).tobytes(),
    )


def digest(payload: bytes) -> int:
    """64-bit XXH3, signed as in the rows: several times as fast as the digest of the simulator."""
    return signed(xxhash.xxh3_64_intdigest(payload))


def signed(unsigned: int) -> int:
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned
