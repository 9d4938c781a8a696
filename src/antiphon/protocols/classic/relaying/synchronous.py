"""Synchronous rounds over R (Macedo94 §2.1; docs/spec/multicast.md 3.1): total order by the clock, without agreement.

Time is divided into rounds of Δ, by the clock of each process. A message leaves at the beginning of a round, and the
round is its stamp. All messages of a round are delivered when it ends, by sender and number. One that arrives later is
never delivered. If clocks differ by at most ε, a frame needs at most δ, and at most f processes crash, then
Δ ≥ (f + 1)·δ + ε lets every live member have the same messages at the end of the round: R relays each of them once,
and a chain of f processes that crash delays it by f hops. No process waits for another one, and none need know who
has crashed.

Order does not depend on Δ: a member delivers rounds in order, whatever it misses. Agreement does.
"""

from collections.abc import Callable

from antiphon.protocols.classic.frames import DataFrame, Stamp
from antiphon.protocols.classic.relaying.reliable import Reliable
from antiphon.protocols.classic.seen import Seen
from antiphon.protocols.classic.site import Site
from antiphon.types import ProcessId


class Synchronous(Reliable):
    """One process that multicasts in rounds."""

    def __init__(self, site: Site, round_ns: int, wake: Callable[[int | None], None]) -> None:
        """`wake`: asks for a call at that time; None: for no call."""
        assert round_ns > 0
        super().__init__(site)
        self._round_ns = round_ns
        self._wake = wake
        self._waiting: list[tuple[bytes, int, int | None]] = []
        """Payload, label and request of messages for the next round."""
        self._leaves: int | None = None
        """The round at whose beginning these leave; None until `settle` has seen them."""
        self._round = 0
        """The current round by our clock. Every round before it is over."""
        self._rounds: dict[int, list[DataFrame]] = {}
        """By round, what it will deliver; no round before the current one is here."""
        self._delivered: dict[ProcessId, int] = {}
        """By sender, its last message delivered. There are no gaps."""

    @property
    def held(self) -> int:
        """Number of messages that wait for the beginning or the end of a round."""
        return len(self._waiting) + sum(map(len, self._rounds.values()))

    def send(self, payload: bytes, label: int, request: int | None = None) -> None:
        """Keep it for the beginning of the next round; if one begins just now, `settle` lets it leave at once."""
        self._waiting.append((payload, label, request))

    def reach(self, now: int) -> None:
        """Deliver the rounds that have ended."""
        self._round = max(self._round, now // self._round_ns)
        for ended in sorted(each for each in self._rounds if each < self._round):
            self._end(self._rounds.pop(ended))

    def settle(self, now: int) -> None:
        """Deliver what has ended; send at the beginning of a round, or as soon after it as we are awake."""
        self.reach(now)
        if self._waiting:
            self._send_in_time(now)
        self._set_alarm()

    def _send_in_time(self, now: int) -> None:
        if self._leaves is None:
            self._leaves = -(-now // self._round_ns)  # this round, if it begins just now
        if self._round >= self._leaves:
            self._leaves = None
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                super().send(*each)

    def _stamp(self) -> Stamp:
        return Stamp(self._round, self._site.me)

    def _arrived(self, frame: DataFrame, by: ProcessId) -> None:
        """Relay and keep a message of a round that is not over. A later one is not relayed: it helps no member."""
        if frame.stamp is not None and frame.stamp.time >= self._round:
            super()._arrived(frame, by)
        else:
            self._seen.setdefault(frame.sender, Seen()).add(frame.sequence)

    def _reliable(self, frame: DataFrame) -> None:
        assert frame.stamp is not None
        self._rounds.setdefault(frame.stamp.time, []).append(frame)

    def _end(self, frames: list[DataFrame]) -> None:
        """Deliver in the order of senders and numbers.

        A message without its predecessor is dropped. Where links keep no order, a sender that crashes may leave such
        gaps; all members find the same ones.
        """
        for frame in sorted(frames, key=lambda frame: frame.name):
            if frame.sequence == self._delivered.get(frame.sender, 0) + 1:
                self._delivered[frame.sender] = frame.sequence
                self._site.deliver(frame)

    def _set_alarm(self) -> None:
        """Wake when our messages may leave, or when the first round that holds a message ends."""
        rounds = [each + 1 for each in self._rounds]
        if self._leaves is not None:
            rounds.append(self._leaves)
        self._wake(min(rounds) * self._round_ns if rounds else None)
