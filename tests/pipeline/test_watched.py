"""The state of a watch, without Spark: for any division into parts, its counts equal those of the checkers."""

import random
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import TraceError
from antiphon.pipeline.live.figures import PROPERTIES, Figures, figures
from antiphon.pipeline.live.latencies import Spread, together
from antiphon.pipeline.live.numbers import Numbers
from antiphon.pipeline.live.rows import SEEN
from antiphon.pipeline.live.state import State
from tests.support.datasets import row, table, two_members
from tests.support.traces.membership_mutations import MEMBERSHIP_MUTATIONS
from tests.support.traces.mutations import MUTATIONS, Log, Mutation
from tests.support.watching import SCENARIOS, cut, events_of, judged


def watched(*parts: pa.Table) -> Figures:
    state = State(Path("run"))
    for part in parts:
        state.take(part.select(SEEN.names))
    return figures(state)


def counts(found: Figures) -> dict[tuple[str, str], tuple[int, int]]:
    told = {(each.property, each.group): (each.opportunities, each.violations) for each in found.properties}
    return {place: count for place, count in told.items() if count != (0, 0)}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_whole_run_is_judged_as_the_checkers_judge_it(name: str) -> None:
    events = events_of(name)
    found = watched(events)
    assert found.over
    assert found.waiting == found.unmatched == 0
    assert counts(found) == judged(events, PROPERTIES)
    assert [each.first for each in found.properties if each.first] == []


@pytest.mark.parametrize("name", ["crash", "merge", "two-phase"])
def test_parts_in_any_order_read_again_and_after_restarts_come_to_the_same(name: str, tmp_path: Path) -> None:
    events, chance = events_of(name), random.Random(7)
    parts = cut(events, 12)
    chance.shuffle(parts)
    state = State(tmp_path)
    for number, part in enumerate(parts):
        state.take(part.select(SEEN.names))
        state.save(tmp_path / "state")
        state = State.load(tmp_path / "state", tmp_path)
        state.take(parts[chance.randrange(number + 1)].select(SEEN.names))  # one that Spark repeats
    assert asdict(figures(state)) == asdict(watched(events))


def test_members_that_are_far_behind_lose_nothing() -> None:
    events = events_of("merge")
    whole = watched(events)
    one_by_one = [events.filter(pc.equal(events["process"], name)) for name in ("p1", "p2", "p3", "p4", "world")]
    for parts in (one_by_one, one_by_one[::-1]):
        assert not watched(*parts[:2]).over
        assert asdict(watched(*parts)) == asdict(whole)


@pytest.mark.parametrize("mutation", [*MUTATIONS, *MEMBERSHIP_MUTATIONS], ids=lambda mutation: mutation.name)
def test_violations_that_a_stream_can_judge_are_found(mutation: Mutation) -> None:
    for seed in range(3):
        events = mutation.apply(Log(events_of("crash")), random.Random(seed))
        if events is None or "forged" in mutation.apply.__name__:  # unsent messages are reported by D1 alone
            return
        found, expected = watched(*cut(events, 5)), judged(events, PROPERTIES)
        assert {**counts(found), ("O5", "orders"): None} == {**expected, ("O5", "orders"): None}
        if ("O5", "orders") in expected and not expected.get(("D8", "orders"), (0, 0))[1]:
            assert counts(found)["O5", "orders"] == expected["O5", "orders"]
        assert found.violated == any(violations for _, violations in counts(found).values())
        assert all(bool(each.first) == bool(each.violations) for each in found.properties)


def test_members_that_differ_are_noticed_before_their_view_ends() -> None:
    events = events_of("crash")
    early = events.filter(pc.less(events["time"], 300_000_000))
    (group,) = watched(early).runs[0].groups
    assert (group.alike, group.differ) == (64, False)
    rows = early.to_pylist()
    at = [n for n, each in enumerate(rows) if (each["kind"], each["process"]) == ("deliver", "p2")]
    one, other = next((a, b) for a, b in pairwise(at) if rows[a]["sender"] != rows[b]["sender"])
    for column in ("sender", "number"):
        rows[one][column], rows[other][column] = rows[other][column], rows[one][column]
    found = watched(table(rows))
    assert found.runs[0].groups[0].differ
    assert not found.violated  # they may separate before it counts


def test_an_empty_table_gives_empty_figures() -> None:
    assert asdict(watched(SEEN.empty_table())) == {"runs": [], "properties": [], "waiting": 0, "unmatched": 0}
    assert not watched().over


def test_rates_are_those_of_the_last_ten_seconds() -> None:
    sends = [
        row("a", index, index * 10**8, "send", sender="a", sender_incarnation=0, number=index, requested=0)
        for index in range(300)
    ]
    (group,) = watched(table(sends)).runs[0].groups
    assert group.members[0].sent == 300
    assert group.members[0].sent_per_second == pytest.approx(10, rel=0.02)


def test_latencies_meet_their_requests_across_parts() -> None:
    events = table(two_members())
    (group,) = watched(*reversed(cut(events, 4))).runs[0].groups
    assert (group.latency.count, group.latency.mean_ns, group.latency.max_ns) == (4, 1050, 1200)
    killed = table([each for each in two_members() if each["process"] != "a"])
    assert watched(killed).unmatched == 2
    assert not watched(*cut(table([each for each in two_members() if each["kind"] != "end"]), 3)).over


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=8), max_size=8))
def test_numbers_know_what_came_twice_and_what_came_late(batches: list[list[int]]) -> None:
    numbers, seen = Numbers(), list[int]()
    for batch in batches:
        taken = numbers.take(np.array(batch, np.int64))
        repeated, overtaken, compared = [], [], 0
        for position, number in enumerate(batch):
            if number in seen:
                repeated.append(position)
                continue
            compared += bool(seen)
            if seen and number < seen[-1]:
                overtaken.append((position, seen[-1]))
            seen.append(number)
        assert (taken.repeated, taken.overtaken, taken.compared) == (repeated, overtaken, compared)
    covered = [number for first, last in numbers.stretches for number in range(first, last + 1)]
    assert covered == sorted(seen)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 10**10), min_size=1, max_size=50), min_size=1, max_size=4))
def test_percentiles_are_two_percent_off_at_most(batches: list[list[int]]) -> None:
    spread, parts = Spread(), []
    for batch in batches:
        spread.take(np.array(batch, np.int64))
        parts.append(Spread())
        parts[-1].take(np.array(batch, np.int64))
    values = sorted(value for batch in batches for value in batch)
    assert together(parts) == spread
    assert (spread.count, spread.sum, spread.max) == (len(values), sum(values), max(values))
    for share in (0.5, 0.99):
        exact = values[int(np.ceil(share * len(values))) - 1]
        assert spread.percentile(share) == pytest.approx(exact, rel=0.023, abs=1.1)
    assert Spread().percentile(0.5) is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "nap"}, "there are events of unknown kind nap"),
        ({"detail": "{"}, r"row 0 \(start\) of a in r1 has an invalid detail: "),
        (
            {"detail": '{"groups": 3}'},
            r"row 0 \(start\) of a in r1 has an invalid detail: Expected `object`",
        ),
    ],
)
def test_rows_that_are_no_trace_are_refused(change: dict[str, str], sentence: str) -> None:
    with pytest.raises(TraceError, match=sentence):
        watched(table([{**row("a", 0, 0, "start"), **change}]))


def test_rows_without_a_place_are_refused() -> None:
    rows = table([row("a", 0, 0, "start")]).select(SEEN.names)
    without = rows.set_column(SEEN.names.index("time"), "time", pa.array([None], pa.int64()))
    with pytest.raises(TraceError, match="rows without a value in column `time`"):
        State(Path("run")).take(pa.Table.from_arrays(without.columns, schema=SEEN))


def test_a_state_is_of_one_directory_and_of_one_play(tmp_path: Path) -> None:
    rows = [row("a", 0, 5, "start"), row("a", 1, 7, "stop")]
    state = State(tmp_path)
    state.take(table(rows).select(SEEN.names))
    state.save(tmp_path / "state")
    state = State.load(tmp_path / "state", tmp_path)
    state.take(table(rows).select(SEEN.names))
    with pytest.raises(TraceError, match="the checkpoint belongs to another execution of r1: row 1 of a differs from"):
        state.take(table([rows[0], {**rows[1], "time": 8}]).select(SEEN.names))
    with pytest.raises(TraceError, match=r"is the checkpoint of a watch of .*; use another folder"):
        State.load(tmp_path / "state", tmp_path / "other")
    (tmp_path / "state").write_bytes(b"no")
    with pytest.raises(TraceError, match="is not the state of a watch"):
        State.load(tmp_path / "state", tmp_path)
