"""What members tell each other about primary views, as the payload of a numbered message (docs/spec/newtop.md 15).

    claim:    1, view, entitled, lapsed, last (count 0 or 1), attempts (count), names met (count)
    attempt:  2, view, number
    each primary view: number, view, voters (count), voters that left (count)

Names and views are preceded by a length byte. A word that cannot be read, or whose numbers are not plausible, is
ignored: all members read the same bytes, so they all ignore it.
"""

import struct
from typing import Final

from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.primary.lineage import NAMES_MAX, AttemptWord, Claim, ClaimWord, PrimaryView, Word
from antiphon.types import ProcessId, split_process_id
from antiphon.wire.names import decode_view, encode_name
from antiphon.wire.reader import Reader

_CLAIM: Final = 1
_ATTEMPT: Final = 2
_KIND: Final = struct.Struct(">B")
_COUNT: Final = struct.Struct(">I")
_NUMBER: Final = struct.Struct(">q")
_VIEWS_PER_EPOCH: Final = 1 << 16
"""A formation is followed by fewer views than this: each has lost a member of the one before."""


def encode(word: Word) -> bytes:
    """The payload of a message."""
    if isinstance(word, AttemptWord):
        return _KIND.pack(_ATTEMPT) + encode_name(word.view) + _NUMBER.pack(word.number)
    claim = word.claim
    last = () if claim.last is None else (claim.last,)
    parts = [_KIND.pack(_CLAIM), encode_name(word.view), _KIND.pack(claim.entitled), _KIND.pack(claim.lapsed)]
    for primaries in (last, claim.attempts):
        parts.append(_COUNT.pack(len(primaries)))
        parts += map(_primary, primaries)
    parts.append(_names(claim.met))
    return b"".join(parts)


def decode(payload: bytes, epoch: int) -> Word | None:
    """The word in a payload, if it can be read. `epoch`: of the group, which bounds all numbers.

    From each primary view to the next a process installs a view. So a number is below the count of views that a
    group of this epoch can have had.
    """
    try:
        return _read(Reader(payload), (epoch + 2) * _VIEWS_PER_EPOCH)
    except ProtocolViolation:
        return None


def _read(reader: Reader, number_max: int) -> Word:
    (kind,) = reader.unpack(_KIND)
    if kind not in (_CLAIM, _ATTEMPT):
        raise ProtocolViolation("body", f"a word of kind {kind} is unknown")
    view = decode_view(reader.part(reader.unpack(_KIND)[0]))
    if kind == _ATTEMPT:
        word: Word = AttemptWord(view, _read_number(reader, number_max))
    else:
        entitled, lapsed = reader.flag(), reader.flag()
        last = [_read_primary(reader, number_max) for _ in range(_read_count(reader, 1))]
        attempts = [_read_primary(reader, number_max) for _ in range(_read_count(reader, NAMES_MAX))]
        met = frozenset(split_process_id(process)[0] for process in _read_names(reader))
        word = ClaimWord(view, Claim(last[0] if last else None, tuple(attempts), met, entitled, lapsed))
    reader.end()
    return word


def _primary(primary: PrimaryView) -> bytes:
    head = _NUMBER.pack(primary.number) + encode_name(primary.view)
    return head + _names(primary.voters) + _names(primary.left)


def _names(names: frozenset[ProcessId] | frozenset[str]) -> bytes:
    return b"".join((_COUNT.pack(len(names)), *map(encode_name, sorted(names))))


def _read_primary(reader: Reader, number_max: int) -> PrimaryView:
    number = _read_number(reader, number_max)
    view = decode_view(reader.part(reader.unpack(_KIND)[0]))
    voters, left = _read_names(reader), _read_names(reader)
    if not left <= voters:
        raise ProtocolViolation("body", "a process is named as a voter that left, but was not a voter")
    return PrimaryView(number, view, voters, left)


def _read_names(reader: Reader) -> frozenset[ProcessId]:
    return frozenset(reader.process() for _ in range(_read_count(reader, NAMES_MAX)))


def _read_count(reader: Reader, most: int) -> int:
    count = reader.count()
    if count > most:
        raise ProtocolViolation("body", f"{count} entries found, but at most {most} are possible")
    return count


def _read_number(reader: Reader, number_max: int) -> int:
    number = reader.number()
    if not 0 < number < number_max:
        raise ProtocolViolation("body", f"no primary view can have the number {number} here")
    return number
