"""Which identity a process gets when it starts: a name, and a number that is higher at each later start."""

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from antiphon.api.arguments import require_name
from antiphon.api.refusals import Refusal
from antiphon.errors import NameTaken
from antiphon.limited_log import LimitedLog
from antiphon.sockets.transports.contract import Address
from antiphon.types import RANDOM_BITS, ProcessId, split_process_id, started_id

_YEAR_2025_S: Final = 1_735_689_600


def new_identity(name: str | None, address: Address) -> ProcessId:
    """A name, and a number that no other start has, so that two incarnations are never confused."""
    host, port = address
    chosen = name if name is not None else f"{host.replace(':', '.')}-{port or secrets.token_hex(4)}"
    return started_id(
        require_name(chosen, "a process"), int((time.time() - _YEAR_2025_S) * 1000), secrets.randbits(RANDOM_BITS)
    )


class Namesakes:
    """Peers with the name of this process: it was started twice, or two machines were given one name.

    A peer that we are connected with runs, so it is not an earlier incarnation that has died.
    """

    def __init__(self, me: ProcessId, peers: Callable[[], tuple[ProcessId, ...]], clock: Callable[[], int]) -> None:
        self._name, self._incarnation = split_process_id(me)
        self._peers = peers
        self._log = LimitedLog("antiphon", clock=lambda: clock() / 1e9)

    def is_one(self, peer: ProcessId) -> bool:
        """Whether a peer has our name; if so, that is logged."""
        if split_process_id(peer)[0] != self._name:
            return False
        self._log.warn(self._name, "%s", _sentence(peer))
        return True

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """The namesakes that run now, for `health`."""
        return tuple(Refusal(peer, _sentence(peer)) for peer in self._running())

    @property
    def error(self) -> NameTaken | None:
        """The error if this process must not join: another one with its name was started earlier, and runs."""
        older = [peer for peer in self._running() if split_process_id(peer)[1] < self._incarnation]
        return NameTaken(_sentence(older[0])) if older else None

    def _running(self) -> list[ProcessId]:
        return [peer for peer in self._peers() if split_process_id(peer)[0] == self._name]


def _sentence(peer: ProcessId) -> str:
    name, incarnation = split_process_id(peer)
    started_s = (incarnation >> RANDOM_BITS) / 1000 + _YEAR_2025_S
    since = f", started at {datetime.fromtimestamp(started_s, UTC):%Y-%m-%d %H:%M:%S} UTC" if incarnation >> 31 else ""
    return f"another process named {name} runs: {peer}{since}; give each process a name of its own"
