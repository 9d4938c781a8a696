"""The state of simulated applications, per process and group: it determines exactly what was delivered.

Two states are equal if and only if the same messages were delivered in the same order, before and after the same
merges. So the digest alone shows a wrong state, or a right state at a wrong place in the order. Where the service
promises no common order, the order of messages between two merges does not count.
"""

import hashlib
from collections.abc import Container, Mapping, Sequence
from typing import Final

from antiphon.core.effects import Frame, InstallState
from antiphon.scenario.model import STATE_BYTES_MIN
from antiphon.types import GroupId, ProcessId, name_of

_COUNT_BYTES: Final = 8
_HASH_BYTES: Final = STATE_BYTES_MIN - _COUNT_BYTES  # followed by the number of messages in it
_COUNTS: Final = (
    1 << 8 * _COUNT_BYTES
)  # messages that the sides have in common count once for each side, so merges double them
_NOTHING: Final = bytes(STATE_BYTES_MIN)


class State:
    """The state of one application in one group; its size is that of its group."""

    def __init__(self, size: int, *, ordered: bool = True) -> None:
        self._size = size
        self._ordered = ordered
        self._kernel = _NOTHING  # the state without its padding

    def add(self, message: bytes) -> None:
        """Add a message."""
        if self._ordered:
            self._kernel = _kernel(self._kernel + message, _count(self._kernel) + 1)
        else:
            self._kernel = _sum(self._kernel, _kernel(message, 1))

    def replace(self, states: Sequence[bytes]) -> None:
        """Replace the state by these, combined in their order; a single one is taken unchanged."""
        if len(states) == 1:
            self._kernel = states[0][:STATE_BYTES_MIN]
        elif states:
            self._kernel = _kernel(b"".join(states), sum(map(_count, states)))

    def whole(self) -> bytes:
        """The state as it is now."""
        return (self._kernel * (self._size // STATE_BYTES_MIN + 1))[: self._size]


class States:
    """The states of all applications of a run, by group."""

    def __init__(self, sizes: Mapping[GroupId, int], unordered: Container[str] = ()) -> None:
        self._sizes = sizes
        self._unordered = unordered
        self._states: dict[tuple[ProcessId, GroupId], State] = {}

    def delivered(self, process: ProcessId, frame: Frame) -> None:
        """Add the messages of a frame to the state."""
        state, sender = self._state(process, name_of(frame.group)), frame.sender.encode()
        for number, payload in enumerate(frame.payloads, start=frame.label):
            state.add(b"%b %d %b" % (sender, number, payload))

    def of(self, process: ProcessId, group: GroupId) -> bytes:
        """The state as it is now."""
        return self._state(process, group).whole()

    def merge(self, process: ProcessId, effect: InstallState) -> bytes:
        """Combine the states of all classes, in their order."""
        state, states = self._state(process, name_of(effect.group)), dict(effect.states)
        if effect.own is not None:
            states[effect.own] = state.whole()
        state.replace([states[place] for place in sorted(states)])
        return state.whole()

    def forget(self, process: ProcessId, group: GroupId) -> None:
        """The process has left the group: if it returns, it has no state."""
        self._states.pop((process, group), None)

    def _state(self, process: ProcessId, group: GroupId) -> State:
        return self._states.setdefault((process, group), self._new(group))

    def _new(self, group: GroupId) -> State:
        return State(self._sizes[group], ordered=group not in self._unordered)


def _kernel(content: bytes, count: int) -> bytes:
    digest = hashlib.blake2b(content, digest_size=_HASH_BYTES).digest()
    return digest + (count % _COUNTS).to_bytes(_COUNT_BYTES)


def _sum(one: bytes, other: bytes) -> bytes:
    """Both contents, in either order."""
    total = int.from_bytes(one[:_HASH_BYTES]) + int.from_bytes(other[:_HASH_BYTES])
    digest = (total % (1 << 8 * _HASH_BYTES)).to_bytes(_HASH_BYTES)
    return digest + ((_count(one) + _count(other)) % _COUNTS).to_bytes(_COUNT_BYTES)


def _count(state: bytes) -> int:
    return int.from_bytes(state[_HASH_BYTES:STATE_BYTES_MIN])
