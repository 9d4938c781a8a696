"""The journal of one process: its actions, on disk before any peer can learn of them (docs/reference/trace.md).

`JournalRecorder` takes the calls of a driver and keeps them as records. `write` appends them to the file, as one entry:
a driver calls it once in each turn, before any frame leaves. The operating system has an entry when `write` returns,
so a killed process loses nothing that others depend on. The file stays locked until its process is gone.

A write that fails ends the trace, never the process: the error is logged at once, and kept for the owner.
"""

import fcntl
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

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
from antiphon.errors import TraceError
from antiphon.trace import records
from antiphon.trace.frames import own_class
from antiphon.trace.records import RECORDS, VERSION, Head, Record
from antiphon.types import GroupId, ProcessId, View, short_id

_log = logging.getLogger("antiphon")

_MAGIC: Final = b"antiphon journal\n"
_ENTRY: Final = 12
"""Before each entry: four bytes for its length, eight for its digest."""
_MESSAGES_MAX: Final = 16_384
"""Maximum messages in memory before they are written."""


class JournalFile:
    """A journal that grows. It is created new, and locked while it is open."""

    def __init__(self, path: Path, head: Head) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._write(_MAGIC + _entry(msgspec.msgpack.encode(head)))
        except BaseException:
            path.unlink()
            self.close()
            raise

    def append(self, packed: bytes) -> None:
        """Append an entry; `OSError` if it cannot be written completely."""
        self._write(_entry(packed))

    def _write(self, entry: bytes) -> None:
        written = os.write(self._file, entry)
        while written < len(entry):  # the next attempt raises the reason
            written += os.write(self._file, entry[written:])

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _entry(packed: bytes) -> bytes:
    return b"".join((len(packed).to_bytes(4), xxhash.xxh3_64_digest(packed), packed))


class JournalRecorder:
    """The recorder of a real process. Satisfies `Recording`."""

    def __init__(self, process: ProcessId, create: Callable[[], JournalFile]) -> None:
        self._me = process
        self._create = create
        self._file: JournalFile | None = None
        self._records: list[Record] = []
        self._messages = 0  # in these records
        self._encoder = msgspec.msgpack.Encoder()
        self.error: OSError | None = None
        """Why the trace is incomplete, if it is."""

    # The file

    def open(self) -> None:
        """Create the file; what was recorded before goes into it with the next entry."""
        self._file = self._create()

    def write(self) -> None:
        """Append all records; after an error, drop them."""
        if not self._records or self._file is None:
            return
        if self.error is None:
            try:
                self._file.append(self._encoder.encode(self._records))
            except OSError as error:
                self.error = error
                _log.error("the trace of %s in %s ends here: %s", self._me, self._file.path, error.strerror)
        self._records.clear()
        self._messages = 0

    def close(self) -> None:
        """Write the rest; nothing is recorded from here on."""
        self.write()
        self._records.clear()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _keep(self, record: Record, messages: int = 1) -> None:
        self._records.append(record)
        self._messages += messages
        if self._messages >= _MESSAGES_MAX:
            self.write()

    # What a driver calls

    def note(self, kind: str, now: int, detail: str | None = None) -> None:
        self._keep(records.Noted(now, kind, detail))

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
        asked = records.short_ids(contacts)
        if service is None:
            self._keep(records.Moved(now, kind, group, asked, apart, None))
        else:
            terms = records.Moved(now, kind, group, asked, apart, service.name, service.sequencer, service.views)
            self._keep(terms)

    def parted(self, effect: Left, now: int) -> None:
        self._keep(records.Parted(now, effect))

    def left(self, effect: Left, now: int, *, unread: bool = False) -> None:
        self._keep(records.Departed(now, effect, unread))

    def handed_over(self, view: View, state: bytes, now: int) -> None:
        self.state_streamed(view, records.digest(state), now, streamed=False)

    def state_streamed(self, view: View, digest: int, now: int, *, streamed: bool = True) -> None:
        """The application has handed over all of its state, with that digest."""
        self._keep(records.Snapshot(now, records.note_view(view), own_class(view, self._me), digest, streamed))

    def merged(self, effect: InstallState, parts: Sequence[bytes], now: int) -> None:
        """The application takes the states of other classes, and has these parts together from here on."""
        installed = tuple((place, records.digest(state)) for place, state in effect.states)
        self._keep(records.Merged(now, effect.group, installed, digest_of_parts(parts)))

    def stopped(
        self,
        now: int,
        held: Mapping[GroupId, int],
        costs: Mapping[str, int],
        moving: Mapping[str, list[GroupId]] | None = None,
    ) -> None:
        self._keep(records.Stopped(now, {**held}, {**costs}, {**(moving or {})}))

    def requested(self, group: GroupId, payloads: Sequence[bytes], now: int) -> None:
        """The application asks to send these."""
        self._keep(records.Requested(now, group, records.digests(payloads)), len(payloads))

    def asked(self, group: GroupId, request: int, mode: str, now: int) -> None:
        self._keep(records.Asked(now, group, request, mode))

    def request_ended(self, effect: Answered | Unanswered, now: int) -> None:
        by = records.short_ids([process for process, _ in effect.answers])
        reason = effect.reason if isinstance(effect, Unanswered) else None
        self._keep(records.RequestEnded(now, effect.group, effect.request, by, effect.label, reason, effect.view))

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
        note = records.note_frame(frame)
        self._keep(records.Transmitted(now, note, payload_bytes, header_bytes, stamp_bytes, unstable, copies, flow))

    def received(self, frame: Frame, now: int, *, unstable: int, relay: ProcessId | None = None) -> None:
        self._keep(records.Received(now, records.note_frame(frame), unstable, records.short_or_none(relay)))

    def delivered(self, frame: Frame, now: int) -> None:
        payloads = frame.payloads
        self._keep(records.Delivered(now, records.note_frame(frame), records.digests(payloads)), len(payloads))

    def installed(self, view: View, now: int, left: tuple[Departure, ...] = (), signed: str | None = None) -> None:
        self._keep(records.note_install(view, left, signed, now))

    def suspected(self, effect: Suspected | Refuted, now: int) -> None:
        block, reason = (effect.last_block, effect.reason) if isinstance(effect, Suspected) else (0, None)
        self._keep(records.Doubted(now, effect.group, short_id(effect.process), block, reason))

    def confirmed(self, effect: Confirmed, now: int) -> None:
        failed, members = records.short_numbers(effect.failed), records.short_ids(effect.members)
        self._keep(records.Confirmation(now, effect.group, failed, members))

    def noticed(self, effect: Transitional, now: int) -> None:
        self._keep(records.Notice(now, effect.group, records.short_ids(effect.members)))

    def prevailed(self, effect: Primary, now: int) -> None:
        self._keep(records.Prevailed(now, effect))

    def prefix(self, effect: Stable | Discard, now: int, *, unstable: int) -> None:
        stable = isinstance(effect, Stable)
        evicted = isinstance(effect, Discard) and effect.evicted
        self._keep(records.Prefix(now, effect.group, records.short_numbers(effect.upto), unstable, stable, evicted))

    def gauged(self, effect: Gauge, now: int) -> None:
        of = records.short_or_none(effect.of)
        self._keep(records.Gauged(now, effect.group, effect.name, effect.value, of))

    def held_back(self, effect: Blocked | Unblocked, now: int) -> None:
        by = short_id(effect.by) if isinstance(effect, Blocked) else None
        self._keep(records.HeldBack(now, effect.group, by))


def digest_of_parts(parts: Sequence[bytes]) -> int:
    """As if the parts were one text; they may be large, so they are not joined."""
    state = xxhash.xxh3_64()
    for part in parts:
        state.update(part)
    return records.signed(state.intdigest())


class TornHead(TraceError):  # noqa: N818 - what happened
    """The process was killed while it created its journal: nothing had happened yet."""


class JournalReader:
    """A journal from its beginning; what is appended meanwhile can be read later."""

    def __init__(self, path: Path) -> None:
        """`TraceError` if the file is not a journal, or one of another version."""
        self.path = path
        self._place = len(_MAGIC)
        self._decoder = msgspec.msgpack.Decoder(RECORDS)
        with path.open("rb") as file:
            begin = file.read(len(_MAGIC))
            packed = self._next(file.fileno()) if begin == _MAGIC else None
        if packed is None:
            raise (TornHead if _MAGIC.startswith(begin) else TraceError)(f"{path} is not a journal")
        try:
            self.head = msgspec.msgpack.decode(packed, type=Head)
        except msgspec.MsgspecError as error:
            raise TraceError(f"{path} has no readable header: {error}") from error
        if self.head.version != VERSION:
            raise TraceError(
                f"{path} has records of version {self.head.version}; this antiphon reads version {VERSION}"
            )

    def entries(self) -> Iterator[list[Record]]:
        """Whole entries that were not read before. A torn one at the end is left alone: its process was killed."""
        with self.path.open("rb") as file:
            while (packed := self._next(file.fileno())) is not None:
                try:
                    found: list[Record] = self._decoder.decode(packed)
                except msgspec.MsgspecError as error:
                    raise TraceError(f"{self.path} cannot be read before byte {self._place:,}: {error}") from error
                yield found

    def _next(self, file: int) -> bytes | None:
        before = os.pread(file, _ENTRY, self._place)
        length = int.from_bytes(before[:4])
        packed = os.pread(file, length, self._place + _ENTRY) if len(before) == _ENTRY else b""
        if len(before) < _ENTRY or len(packed) < length:
            return None
        if xxhash.xxh3_64_digest(packed) != before[4:]:
            raise TraceError(f"{self.path} is damaged at byte {self._place:,}")
        self._place += _ENTRY + length
        return packed


def is_locked(path: Path) -> bool:
    """True if the process that writes this journal still runs; False also if the journal is gone."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False
