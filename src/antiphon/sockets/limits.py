"""Token buckets: how often something may happen, for each source and for all sources together."""

from typing import Final

_SOURCES_MAX: Final = 1024
"""Sources that have a bucket of their own: those seen last."""


class Rate:
    """One bucket. Invariant: it never holds more than `burst` tokens."""

    __slots__ = ("_at", "_burst", "_per_s", "_tokens")

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = self._tokens = burst
        self._at = 0.0

    def take(self, now_s: float, amount: float = 1.0) -> bool:
        """Take tokens if enough are left."""
        self._fill(now_s)
        if self._tokens < amount:
            return False
        self._tokens -= amount
        return True

    def spend(self, now_s: float, amount: float) -> bool:
        """Take tokens for what has happened already; False if more were taken than there are."""
        self._fill(now_s)
        self._tokens = max(self._tokens - amount, -self._burst)
        return self._tokens >= 0

    def _fill(self, now_s: float) -> None:
        self._tokens = min(self._burst, self._tokens + self._per_s * max(0.0, now_s - self._at))
        self._at = now_s


class SourceRates:
    """A bucket for each source and one for all. A source without tokens takes none of those that all share."""

    __slots__ = ("_each", "_sources", "_total")

    def __init__(self, each: tuple[float, float], total: tuple[float, float]) -> None:
        """Tokens per second, and the burst."""
        self._each = each
        self._total = Rate(*total)
        self._sources: dict[str, Rate] = {}

    def take(self, source: str, now_s: float, amount: float = 1.0) -> bool:
        """Take tokens of this source if enough are left."""
        return self._rate(source).take(now_s, amount) and self._total.take(now_s, amount)

    def spend(self, source: str, now_s: float, amount: float) -> bool:
        """Take tokens of this source for what has happened already; False if more were taken than there are."""
        enough = self._rate(source).spend(now_s, amount)
        return self._total.spend(now_s, amount if enough else 0) and enough

    def _rate(self, source: str) -> Rate:
        rate = self._sources.pop(source, None) or Rate(*self._each)
        self._sources[source] = rate
        if len(self._sources) > _SOURCES_MAX:
            del self._sources[next(iter(self._sources))]
        return rate
