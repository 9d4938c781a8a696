"""On a busy machine a member may get no processor time in a whole measurement (docs/track-record.md)."""

import pytest

from antiphon.bench.measure import rate_of
from antiphon.bench.team import BenchmarkFailed


def test_a_measurement_in_which_a_member_read_nothing_is_repeated_for_longer() -> None:
    durations: list[float] = []

    def starved_twice(seconds: float) -> float:
        durations.append(seconds)
        return 0.0 if len(durations) < 3 else 1000.0

    assert rate_of(starved_twice, 0.5) == 1000.0
    assert durations == [0.5, 1.0, 2.0]


def test_a_member_that_never_reads_ends_the_benchmark_with_one_sentence() -> None:
    with pytest.raises(BenchmarkFailed, match="a member read nothing for 32 s: this machine is too busy"):
        rate_of(lambda _seconds: 0.0, 0.5)
