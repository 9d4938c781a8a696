"""The buffers of one member in one group: which frames it holds, the bound, and what it frees (Macedo95 §3.2-3.4).

Messages that flow control bounds are held by flow number: data, and in block numbering (or without flow control)
also nulls, by their block number. Other nulls are held by block. A row is freed when its number is stable.
"""

from collections.abc import Iterable

from antiphon.core.effects import Discard, Effect, Gauge, Stable
from antiphon.protocols.newtop.flow.retained import Retained
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import ProcessId, View


class Buffers:
    """A pool of M = N·n frames, and separately the nulls that flow control does not count."""

    __slots__ = (
        "_algorithm",
        "_evicted",
        "_highs",
        "_of_sender",
        "_unsafe",
        "_view",
        "bounded",
        "nulls",
        "size",
        "told",
        "tracing",
    )

    def __init__(self, view: View, settings: NewtopSettings, *, by_block: bool, safe: bool = False) -> None:
        self.bounded = Retained()
        """The frames that flow control bounds, if it is on."""
        self.nulls = self.bounded if by_block else Retained()
        self.tracing = settings.tracing
        self.told: list[Effect] = []
        """Trace effects of events during reception."""
        self._view = view
        self._algorithm = settings.flow_control
        self.size = settings.window * len(view.members)
        """M: the capacity of the pool in frames, if flow control is on."""
        self._evicted = Retained()  # evicted before they were stable here; kept to report when they become stable
        self._of_sender = [0] * len(view.members)  # frames in `bounded`, by rank of sender; counted for the trace
        self._highs: dict[str, int] = {}
        self._unsafe = Retained() if safe and settings.tracing and settings.flow_control else None
        """By block, frames that are unstable for safe delivery, if flow control counts differently; for the trace."""

    @property
    def frames(self) -> int:
        """All that is held."""
        return self.bounded.frames if self.nulls is self.bounded else self.bounded.frames + self.nulls.frames

    def hold(self, number: int, rank: int, frame: BlockFrame) -> None:
        """Hold a frame that counts under this number."""
        self.bounded.hold(number, frame)
        if self.tracing:
            self._of_sender[rank] += 1
            if self._unsafe is not None:
                self._unsafe.hold(frame.block, frame)

    def held(self) -> Iterable[BlockFrame]:
        """All held frames, in no particular order."""
        yield from self.bounded.held()
        if self.nulls is not self.bounded:
            yield from self.nulls.held()

    def drop(self, number: int, rank: int, frame: BlockFrame) -> None:
        """Forget a frame that no member will deliver."""
        if self.bounded.drop(number, frame) and self.tracing:
            self._of_sender[rank] -= 1
            if self._unsafe is not None:
                self._unsafe.drop(frame.block, frame)

    def evict(self, unconsumed: int | None) -> BlockFrame | None:
        """No buffer is free: evict the smallest number (fb2), if the algorithm allows it and it was consumed here.

        A member then knows the smallest number to be stable (Lemmas 2.1, 3.1), so it was consumed here (E-39).
        Algorithm 1 always has a free buffer (Corollary 1.1). So None means that a peer uses another window.
        """
        number = self.bounded.smallest
        if self._algorithm == 1 or (unconsumed is not None and number >= unconsumed):
            return None
        frame = self.bounded.evict()
        if self.tracing:
            self._of_sender[self._view.ranks[frame.author]] -= 1
            self._evicted.hold(number, frame)
            if upto := _last_labels([frame]):
                self.told.append(Discard(self._view.group, upto, evicted=True))
        return frame

    def free(self, stable: int, effects: list[Effect]) -> list[BlockFrame]:
        """Free the frames that every member is now known to hold."""
        freed = self.bounded.free(stable)
        if self.tracing:
            for frame in freed:
                self._of_sender[self._view.ranks[frame.author]] -= 1
            known = self._evicted.free(stable) + freed
            if upto := _last_labels(known):
                if self._unsafe is None:
                    effects.append(Stable(self._view.group, upto))
                effects.append(Discard(self._view.group, upto))
        return freed

    def tell_safe(self, stable_block: int, effects: list[Effect]) -> None:
        """All members have these blocks, even if their applications have not consumed them; for safe delivery.

        For flow control a message is stable later, when all applications have consumed it; then it is only freed.
        """
        if self._unsafe is not None and (upto := _last_labels(self._unsafe.free(stable_block))):
            effects.append(Stable(self._view.group, upto))

    def gauge(self, own_bytes: int, effects: list[Effect]) -> None:
        """Report new maxima of the values that flow control bounds."""
        self._high("unstable_blocks", self.bounded.rows, effects)
        self._high("buffers", self.bounded.frames, effects)
        most = max(self._of_sender)
        self._high("unstable_frames_of_sender", most, effects, self._view.members[self._of_sender.index(most)])
        self._high("own_unstable_bytes", own_bytes, effects)

    def _high(self, name: str, value: int, effects: list[Effect], of: ProcessId | None = None) -> None:
        if value > self._highs.get(name, 0):
            self._highs[name] = value
            effects.append(Gauge(self._view.group, name, value, of))


def _last_labels(frames: Iterable[BlockFrame]) -> tuple[tuple[ProcessId, int], ...]:
    """Per sender the largest label of a message that these frames end, for the trace."""
    upto: dict[ProcessId, int] = {}
    for frame in frames:
        if frame.payloads and not frame.more and frame.state is None:
            last = frame.label + len(frame.payloads) - 1
            if last > upto.get(frame.author, -1):
                upto[frame.author] = last
    return tuple(sorted(upto.items()))
