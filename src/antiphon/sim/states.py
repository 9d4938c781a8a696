"""What the simulated applications know: a state for each process and group that says exactly what was delivered.

Two states are equal if and only if the same messages were delivered in the same order, before and after the same
merges. So a member that got a wrong state, or the right one at a wrong place, is seen by its digest alone.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

from antiphon.core.effects import Frame, InstallState
from antiphon.scenario.model import STATE_BYTES_MIN
from antiphon.types import GroupId, ProcessId, name_of

_HASH_BYTES: Final = STATE_BYTES_MIN - 8  # behind it stands how many messages are in it
_NOTHING: Final = bytes(STATE_BYTES_MIN)


class States:
    """The states of all applications of a run, by the names of their groups; each as large as its group says."""

    def __init__(self, sizes: Mapping[GroupId, int]) -> None:
        self._sizes = sizes
        self._kernels: dict[tuple[ProcessId, GroupId], bytes] = {}  # a state without what fills it up

    def delivered(self, process: ProcessId, frame: Frame) -> None:
        """The messages of a frame go into the state."""
        key = process, name_of(frame.group)
        kernel = self._kernels.get(key, _NOTHING)
        for number, payload in enumerate(frame.payloads, start=frame.label):
            kernel = _kernel(b"%b%b %d %b" % (kernel, frame.sender.encode(), number, payload), _count(kernel) + 1)
        self._kernels[key] = kernel

    def of(self, process: ProcessId, group: GroupId) -> bytes:
        """The state as it is now."""
        kernel, size = self._kernels.get((process, group), _NOTHING), self._sizes[group]
        return (kernel * (size // STATE_BYTES_MIN + 1))[:size]

    def merge(self, process: ProcessId, effect: InstallState) -> bytes:
        """Put the states of all classes together, in their order; a single one is taken as it is."""
        group = name_of(effect.group)
        states = dict(effect.states)
        if effect.own is not None:
            states[effect.own] = self.of(process, group)
        parts = [states[place] for place in sorted(states)]
        if len(parts) == 1:
            self._kernels[process, group] = parts[0][:STATE_BYTES_MIN]
        elif parts:
            self._kernels[process, group] = _kernel(b"".join(parts), sum(map(_count, parts)))
        return self.of(process, group)

    def forget(self, process: ProcessId, group: GroupId) -> None:
        """The process is out of the group: should it come back, it comes without a state."""
        self._kernels.pop((process, group), None)


def _kernel(content: bytes, count: int) -> bytes:
    digest = hashlib.blake2b(content, digest_size=_HASH_BYTES).digest()
    return digest + count.to_bytes(STATE_BYTES_MIN - _HASH_BYTES)


def _count(state: bytes) -> int:
    return int.from_bytes(state[_HASH_BYTES:STATE_BYTES_MIN])
