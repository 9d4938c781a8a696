import pytest

from antiphon.report.figures import NOTHING, count, duration, percent, rate, ratio, unit_for, whole


@pytest.mark.parametrize(
    ("longest_ns", "unit", "told"),
    [
        (999_999, "µs", "1,000.00"),
        (1_000_000, "ms", "1.00"),
        (9_999_999_999, "ms", "10,000.00"),
        (10**10, "s", "10.00"),
    ],
)
def test_one_unit_serves_all_durations_of_a_table(longest_ns: int, unit: str, told: str) -> None:
    chosen = unit_for(longest_ns)
    assert (chosen.name, chosen.format(longest_ns)) == (unit, told)


def test_a_duration_alone_takes_the_largest_unit_that_fits() -> None:
    assert [duration(ns) for ns in (0, 1_500, 2_500_000, 90_000_000_000)] == [
        "0.00 µs",
        "1.50 µs",
        "2.50 ms",
        "90.00 s",
    ]


def test_a_missing_figure_is_a_dash() -> None:
    told = [whole(None), ratio(None), percent(None), rate(None), unit_for(0).format(None)]
    assert told == [NOTHING] * 5


def test_counts_and_rates_are_grouped() -> None:
    assert (whole(12345), rate(1234.5), rate(9.87), percent(0.1234)) == ("12,345", "1,234", "9.9", "12.3 %")
    assert (count(1, "run"), count(1000, "run")) == ("1 run", "1,000 runs")
