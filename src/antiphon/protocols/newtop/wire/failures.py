"""The parts of frames about failures: the exclusion mark, suspicions, the notice of a numbered message.

    mark:       number of bytes, then the excluded processes, sorted
    suspicions: count, then for each a process and its last block number, sorted by process
    notice:     1 for remove, 2 for flush, 3 for view, then suspicions

No list is empty, and none names a process twice.
"""

import struct
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal

from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import Notice, Suspicion
from antiphon.types import ProcessId
from antiphon.wire.names import encode_name
from antiphon.wire.reader import Reader

_COUNT: Final = struct.Struct(">I")
_NUMBER: Final = struct.Struct(">q")
_KIND: Final = struct.Struct(">B")
_KINDS: Final[dict[int, Literal["remove", "flush", "view"]]] = {1: "remove", 2: "flush", 3: "view"}
_KIND_BYTE: Final = {kind: _KIND.pack(byte) for byte, kind in _KINDS.items()}


@lru_cache(maxsize=4_096)
def encode_mark(excluded: tuple[ProcessId, ...]) -> bytes:
    """The mark; cached, because after an exclusion every numbered frame of a member carries the same one."""
    names = b"".join(map(encode_name, excluded))
    return _COUNT.pack(len(names)) + names


def read_mark(reader: Reader, sender: ProcessId) -> tuple[ProcessId, ...]:
    """The mark that comes next; its sender has not excluded itself."""
    excluded = _decode_mark(reader.part(reader.count()))
    _require_others(excluded, sender)
    return excluded


def encode_suspicions(suspicions: tuple[Suspicion, ...]) -> bytes:
    """The bytes of suspicions."""
    parts = [part for process, last in suspicions for part in (encode_name(process), _NUMBER.pack(last))]
    return b"".join((_COUNT.pack(len(suspicions)), *parts))


def read_suspicions(reader: Reader, sender: ProcessId) -> tuple[Suspicion, ...]:
    """The suspicions that come next; no member suspects itself."""
    suspicions = tuple((reader.process(), reader.number()) for _ in range(reader.count()))
    failed = [process for process, _ in suspicions]
    _require_sorted(failed)
    _require_others(failed, sender)
    return suspicions


def encode_notice(notice: Notice) -> bytes:
    """The bytes of a notice."""
    return _KIND_BYTE[notice.kind] + encode_suspicions(notice.failed)


def read_notice(reader: Reader, sender: ProcessId) -> Notice:
    """The notice that comes next."""
    (byte,) = reader.unpack(_KIND)
    if byte not in _KINDS:
        raise ProtocolViolation("body", f"{byte} is not the kind of a notice")
    return Notice(_KINDS[byte], read_suspicions(reader, sender))


@lru_cache(maxsize=4_096)
def _decode_mark(names: bytes) -> tuple[ProcessId, ...]:
    reader = Reader(names)
    excluded = []
    while reader.left:
        excluded.append(reader.process())
    _require_sorted(excluded)
    return tuple(excluded)


def _require_sorted(processes: list[ProcessId]) -> None:
    if not processes or any(one >= next_one for one, next_one in pairwise(processes)):
        raise ProtocolViolation("body", "the list of failed members is empty, not sorted, or names a member twice")


def _require_others(processes: Iterable[ProcessId], sender: ProcessId) -> None:
    if sender in processes:
        raise ProtocolViolation("body", f"{sender} names itself as failed")
