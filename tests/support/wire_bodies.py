"""Bodies of Newtop's frames, written by hand as `protocols/newtop/wire/numbered.py` describes them."""

import struct

NUMBERED, ALIVE, STATUS, ACK, REQUEST, REPAIR, SUSPECT, REFUTE, CONFIRMED = range(1, 10)
PAYLOADS, FLOW, SEQUENCE, STAMP, MORE, MARK, NOTICE = 1, 2, 4, 8, 16, 32, 64
MAP, RELATIVE = b"\x01", b"\x02"
REMOVE, FLUSH = b"\x01", b"\x02"


def numbers(*values: int) -> bytes:
    return b"".join(value.to_bytes(8, "big", signed=True) for value in values)


def count(number: int) -> bytes:
    return number.to_bytes(4, "big")


def text(name: str | bytes) -> bytes:
    encoded = name.encode() if isinstance(name, str) else name
    return bytes([len(encoded)]) + encoded


def identity(group: str | bytes, sender: str | bytes, *, epoch: int = 0, incarnation: int = 0) -> bytes:
    one, two = (name.encode() if isinstance(name, str) else name for name in (group, sender))
    return struct.pack(">QIBB", epoch, incarnation, len(one), len(two)) + one + two


NAMES = identity("g", "p1")


def numbered(rest: bytes = b"", *, flags: int = 0, at: tuple[int, int, int] = (3, 1, 1), names: bytes = NAMES) -> bytes:
    return names + bytes([flags]) + numbers(*at) + rest


def alive(rest: bytes = b"", *, flags: int = 0, at: tuple[int, int] = (3, 1)) -> bytes:
    return NAMES + bytes([flags]) + numbers(*at) + rest


def mark(*names: str | bytes) -> bytes:
    excluded = b"".join(map(text, names))
    return count(len(excluded)) + excluded


def suspicions(*pairs: tuple[str, int]) -> bytes:
    return count(len(pairs)) + b"".join(text(process) + numbers(last) for process, last in pairs)


def suspect(block: int = 3, last: int = 1, sequence: int = 0, name: str = "p2") -> bytes:
    return NAMES + numbers(block, last, sequence) + text(name)


def confirmed(failed: bytes, block: int = 3, sequence: int = 0) -> bytes:
    return NAMES + numbers(block, sequence) + failed


def copy(kind: int, body: bytes, length: int | None = None) -> bytes:
    return struct.pack(">BI", kind, len(body) if length is None else length) + body


def refute(*messages: bytes, last: int = 1) -> bytes:
    return suspect(last=last) + count(len(messages)) + b"".join(copy(NUMBERED, message) for message in messages)


def shown(block: int, previous: int, *, group: str = "g", sender: str = "p2") -> bytes:
    """A message of the suspect, as a refutation holds it."""
    return numbered(at=(block, previous, 0), names=identity(group, sender))
