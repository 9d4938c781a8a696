"""The messages of a service that moves (`migration.py`): a kind of one byte, then a body.

Readers return None for a body that cannot be read; all members ignore the same ones.
"""

import json
import struct
from typing import Final, NamedTuple

from antiphon.api.arguments import require_name
from antiphon.errors import ConfigurationError

REQUEST: Final = b"r"
FORWARD: Final = b"f"
MOVE: Final = b"m"
CLOSE: Final = b"c"
NEED: Final = b"n"
STATE: Final = b"s"
_HEAD: Final = struct.Struct(">QHH")
"""A number, and the lengths of the names of a group and of a process."""
_DIGITS_MAX: Final = 18


class Old(NamedTuple):
    """A request of the old group after the decision to move."""

    sender: str
    place: int
    """Among such requests of its sender, from 1."""
    body: bytes


class Snapshot(NamedTuple):
    """The state of a service at one place."""

    moving_from: str
    applied: dict[str, int]
    state: bytes


def forward(old: str, request: Old) -> bytes:
    return FORWARD + _with_names(request.place, old, request.sender) + request.body


def read_forward(body: bytes) -> tuple[str, Old] | None:
    """The name of the old group, and the request."""
    found = _read_names(body)
    if found is None:
        return None
    place, old, sender, rest = found
    return old, Old(sender, place, rest)


def need(question: int) -> bytes:
    return NEED + b"%d" % question


def read_need(body: bytes) -> int | None:
    return int(body) if body.isdigit() and len(body) <= _DIGITS_MAX else None


def state_for(target: str, question: int, state: bytes) -> bytes:
    return STATE + _with_names(question, "", target) + state


def read_state_for(body: bytes) -> tuple[str, int, bytes] | None:
    """The process that asked for the state, the number of its question, and the state."""
    found = _read_names(body)
    if found is None:
        return None
    question, _, target, rest = found
    return target, question, rest


def read_move(body: bytes) -> str | None:
    """The name of the new group."""
    try:
        return require_name(body.decode(), "a group")
    except (UnicodeDecodeError, ConfigurationError):
        return None


def snapshot(found: Snapshot) -> bytes:
    fields = {"moving_from": found.moving_from, "applied": found.applied, "state": found.state.hex()}
    return json.dumps(fields).encode()


def read_snapshot(state: bytes) -> Snapshot | None:
    try:
        fields = json.loads(state)
        found = Snapshot(fields["moving_from"], fields["applied"], bytes.fromhex(fields["state"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    is_counted = isinstance(found.applied, dict) and all(type(count) is int for count in found.applied.values())
    return found if is_counted and isinstance(found.moving_from, str) else None


def _with_names(number: int, group: str, process: str) -> bytes:
    names = group.encode(), process.encode()
    return b"".join((_HEAD.pack(number, *map(len, names)), *names))


def _read_names(body: bytes) -> tuple[int, str, str, bytes] | None:
    if len(body) < _HEAD.size:
        return None
    number, group_bytes, process_bytes = _HEAD.unpack_from(body)
    middle = _HEAD.size + group_bytes
    end = middle + process_bytes
    if len(body) < end:
        return None
    group, process = body[_HEAD.size : middle], body[middle:end]
    try:
        return number, group.decode(), process.decode(), body[end:]
    except UnicodeDecodeError:
        return None
