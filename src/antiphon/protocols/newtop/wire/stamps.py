"""Encodes and decodes causal stamps, which a causal order adds to a block number.

    1, map:      count of groups, sorted, each a name and a count of processes from 1, each a name and a number
    2, relative: count and numbers by rank, count of groups, each a name and a number

Stamps use names, not ranks, because processes that do not know the groups in a stamp pass it on.
"""

import struct
from itertools import groupby
from operator import itemgetter
from typing import Final

from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import MapStamp, RelativeStamp, Stamp
from antiphon.types import GroupId, ProcessId
from antiphon.wire.names import encode_name
from antiphon.wire.reader import Reader

_MAP: Final = 1
_RELATIVE: Final = 2
_COUNT: Final = struct.Struct(">I")
_NUMBER: Final = struct.Struct(">q")
_KIND: Final = struct.Struct(">B")


def encode_stamp(stamp: Stamp) -> bytes:
    """The bytes of a stamp."""
    if isinstance(stamp, MapStamp):
        groups = [(name, [*entries]) for name, entries in groupby(stamp.entries, itemgetter(0))]
        parts = [_KIND.pack(_MAP), _COUNT.pack(len(groups))]
        for name, entries in groups:
            parts += [encode_name(name), _COUNT.pack(len(entries))]
            parts += [part for _, process, number in entries for part in (encode_name(process), _NUMBER.pack(number))]
        return b"".join(parts)
    count = len(stamp.delivered)
    parts = [_KIND.pack(_RELATIVE), struct.pack(f">I{count}q", count, *stamp.delivered)]
    parts.append(_COUNT.pack(len(stamp.blocks)))
    parts += [part for name, block in stamp.blocks for part in (encode_name(name), _NUMBER.pack(block))]
    return b"".join(parts)


def read_stamp(reader: Reader) -> Stamp:
    """The stamp that comes next."""
    (kind,) = reader.unpack(_KIND)
    if kind == _MAP:
        entries: list[tuple[GroupId, ProcessId, int]] = []
        for _ in range(reader.count()):
            group, before = reader.group(), len(entries)
            if entries and group <= entries[-1][0]:
                raise ProtocolViolation("body", f"the groups of a stamp are not sorted: {group}")
            entries += [(group, reader.process(), reader.number()) for _ in range(reader.count())]
            if len(entries) == before:
                raise ProtocolViolation("body", f"a stamp names group {group} without members")
        return MapStamp(tuple(entries))
    if kind == _RELATIVE:
        delivered = reader.numbers(reader.count())
        return RelativeStamp(delivered, tuple((reader.group(), reader.number()) for _ in range(reader.count())))
    raise ProtocolViolation("body", f"{kind} is not the kind of a stamp")
