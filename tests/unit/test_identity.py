"""The identity that a process gets when it starts: a later start has a larger number, and no two are equal."""

import pytest

from antiphon.api.identity import new_identity
from antiphon.types import ProcessId, process_id, short_id, split_process_id, started_id
from antiphon.wire.names import INCARNATION_MAX, decode_process

HERE = "127.0.0.1", 7400
NOW_S = 1_794_000_000.0


def at(monkeypatch: pytest.MonkeyPatch, time_s: float) -> ProcessId:
    """The identity of a process that starts at that time."""
    monkeypatch.setattr("antiphon.api.identity.time.time", lambda: time_s)
    return new_identity("ann", HERE)


def test_starts_at_the_same_moment_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {at(monkeypatch, NOW_S) for _ in range(20)}
    assert len(found) > 15  # of 65,536 that there are
    assert {split_process_id(each)[0] for each in found} == {"ann"}


def test_a_later_start_has_a_larger_number(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = [at(monkeypatch, NOW_S + number / 500) for number in range(100)]
    numbers = [split_process_id(each)[1] for each in starts]
    assert numbers == sorted(numbers)


def test_it_fits_on_the_wire_for_centuries(monkeypatch: pytest.MonkeyPatch) -> None:
    late = at(monkeypatch, NOW_S + 300 * 365 * 86_400)
    assert split_process_id(late)[1] <= INCARNATION_MAX
    assert decode_process(late.encode()) == late


def test_traces_have_the_quarter_of_a_second() -> None:
    assert short_id(started_id("ann", 59_000_000_750, 7)) == process_id("ann", 236_000_003)
    assert short_id(started_id("ann", 59_000_000_999, 9)) == process_id("ann", 236_000_003)
    assert [short_id(process_id("p", number)) for number in (0, 1, 2**31 - 1)] == ["p", "p#1", f"p#{2**31 - 1}"]
