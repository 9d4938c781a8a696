"""Whole runs in which members fail: their traces, their ends, and that they can be repeated."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from antiphon.campaign.families import FAMILIES
from antiphon.properties.judge import judge
from antiphon.scenario.read import parse_scenario, read_scenario, with_seed
from antiphon.sim.run import Run, simulate
from antiphon.trace.table import events_table

SCENARIOS = Path(__file__).parents[2] / "scenarios"
BASE = """
name = "failing"
duration = "20s"
quiet = "1200ms"
options = { suspect_after = "100ms", idle_probe = "300ms" }
group = [{ name = "g", members = 4 }]
"""
SPREAD = 'workload = [{ group = "g", messages = 20, interval = "10ms" }]\n'
SILENT = BASE.replace("300ms", "0s")


def events(run: Run) -> pa.Table:
    return events_table(run.id, run.histories)


def run_of(text: str, *faults: str, seed: int = 1) -> Run:
    listed = ", ".join(f"{{ {fault} }}" for fault in faults)
    return simulate(with_seed(parse_scenario(f"{text}fault = [{listed}]\n"), seed))


def rows(run: Run, kind: str, process: str | None = None) -> list[dict[str, Any]]:
    return [
        {**row, "process": history.process}
        for history in run.histories
        for row in history.rows
        if row["kind"] == kind and process in (None, history.process)
    ]


def last_views(run: Run) -> dict[str, list[str]]:
    return {row["process"]: row["members"] for row in rows(run, "view")}


def components(run: Run) -> list[list[str]]:
    (row,) = rows(run, "faults_end")
    return list(json.loads(row["detail"])["components"])


CRASH = 'kind = "crash", process = "p2", at = "95ms"'


@pytest.mark.parametrize("seed", range(20))
def test_halted_runs_keep_every_promise(seed: int) -> None:
    run = simulate(FAMILIES["halted"].draw(seed))
    assert run.quiet
    assert not [verdict for verdict in judge(events(run)) if verdict.violations]


def test_view_rows_tell_how_many_processes_were_excluded_if_the_scenario_asks() -> None:
    """The e of Macedo94 §6.4."""
    silent, telling = (
        run_of(text + SPREAD, CRASH, 'kind = "crash", process = "p3", at = "700ms"')
        for text in (BASE, BASE.replace("}", ", excluded_count = true }", 1))
    )
    told = [json.loads(row["detail"]).get("excluded") for row in rows(telling, "view", "p1")]
    assert told == [0, 1, 2]
    assert not any("excluded" in json.loads(row["detail"]) for row in rows(silent, "view"))


def pauses(view_change: str) -> tuple[int, int]:
    """How long senders of scenarios/halted.toml wait in this mode: until the crash, and after it."""
    text = (SCENARIOS / "halted.toml").read_text(encoding="utf-8").replace('"halted"\n\n', f'"{view_change}"\n\n')
    run = simulate(parse_scenario(text))
    assert run.quiet
    assert not [verdict for verdict in judge(events(run)) if verdict.violations]
    waited = [0, 0]
    since: dict[str, int] = {}
    for row in sorted((*rows(run, "block"), *rows(run, "unblock")), key=lambda row: row["time"]):
        if row["kind"] == "block":
            since.setdefault(row["process"], row["time"])
        else:
            began = since.pop(row["process"])
            waited[began > 600_000_000] += row["time"] - began
    return waited[0], waited[1]


def test_halted_senders_wait_longer_than_closed_ones_and_for_wrong_suspicions_too() -> None:
    (none, closed), (wrong, halted) = pauses("closed"), pauses("halted")
    assert none == 0 < wrong
    assert 0 < 5 * closed < halted


def test_a_crashed_process_is_suspected_confirmed_and_excluded() -> None:
    run = run_of(BASE + SPREAD, CRASH)
    assert run.quiet
    assert components(run) == [["p1", "p3", "p4"]]
    for name in ("p1", "p3", "p4"):
        order = [row["kind"] for row in run.histories[int(name[1]) - 1].rows]
        told = [kind for kind in order if kind in ("suspect", "confirm", "transitional", "view")]
        assert told == ["view", "suspect", "confirm", "transitional", "view"]
        assert last_views(run)[name] == ["p1", "p3", "p4"]
        (suspected,) = rows(run, "suspect", name)
        (confirmed,) = rows(run, "confirm", name)
        first, second = rows(run, "view", name)
        assert suspected["peer"] == confirmed["peer"] == "p2"
        assert suspected["view"] == confirmed["view"] == first["view"] == second["previous"]
        assert confirmed["members"] == ["p1", "p3", "p4"]
        assert confirmed["clock"] == suspected["clock"]
        (left,) = json.loads(second["detail"])["left"]
        assert (left["process"], left["last_block"], left["reason"]) == ("p2", confirmed["clock"], "silent")
        assert left["silent_ns"] >= 100_000_000
    assert len({row["view"] for row in rows(run, "view")}) == 2


def test_start_rows_tell_how_members_find_out() -> None:
    options = json.loads(rows(run_of(BASE), "start")[0]["detail"])["options"]
    assert {key: options[key] for key in ("suspect_after", "idle_probe", "view_change")} == {
        "suspect_after": "100ms",
        "idle_probe": "300ms",
        "view_change": "cut",
    }


def test_an_idle_group_that_is_probed_finds_the_crash_and_one_that_is_not_does_not() -> None:
    probed, silent = run_of(BASE, CRASH), run_of(SILENT, CRASH)
    assert last_views(probed)["p1"] == ["p1", "p3", "p4"]
    assert rows(silent, "suspect") == []
    assert silent.quiet


def test_a_probed_group_never_falls_silent_so_the_run_ends_a_quiet_time_after_the_last_disturbance() -> None:
    run = run_of(BASE + SPREAD, CRASH)
    assert run.quiet
    assert 1_400_000_000 <= run.virtual_ns <= 2_000_000_000  # the last request comes at 200 ms
    (end,) = rows(run, "end")
    assert json.loads(end["detail"]) == {"quiet": True, "reason": "quiet"}


def test_an_endlessly_paused_process_is_excluded_like_a_crashed_one() -> None:
    run = run_of(BASE + SPREAD, 'kind = "pause", process = "p2", at = "95ms"')
    assert run.quiet
    assert components(run) == [["p1", "p3", "p4"]]
    views = last_views(run)
    assert views["p1"] == views["p3"] == views["p4"] == ["p1", "p3", "p4"]
    assert views["p2"] == ["p1", "p2", "p3", "p4"]


@pytest.mark.parametrize("transport", ["stream", "datagram"])
def test_both_sides_of_a_partition_go_on(transport: str) -> None:
    text = BASE + SPREAD + f'network = {{ transport = "{transport}" }}\n'
    run = run_of(text, 'kind = "partition", sides = [["p1", "p2"], ["p3", "p4"]], at = "95ms"')
    assert run.quiet
    assert components(run) == [["p1", "p2"], ["p3", "p4"]]
    assert last_views(run) == {"p1": ["p1", "p2"], "p2": ["p1", "p2"], "p3": ["p3", "p4"], "p4": ["p3", "p4"]}


def test_a_wrong_suspicion_is_told_and_taken_back() -> None:
    run = run_of(BASE + SPREAD, 'kind = "suspect", process = "p3", by = "p1", at = "95ms"')
    (suspected,) = rows(run, "suspect")
    assert (suspected["process"], suspected["peer"], json.loads(suspected["detail"])) == (
        "p1",
        "p3",
        {"reason": "injected"},
    )
    assert [(row["process"], row["peer"]) for row in rows(run, "refute")] == [("p1", "p3")]
    assert all(members == ["p1", "p2", "p3", "p4"] for members in last_views(run).values())


def test_an_application_gets_to_notices_and_views_in_order_with_its_messages() -> None:
    """The protocol confirms while the application of p1 is stalled, which reads the notice after the earlier events."""
    stall = 'kind = "stall", process = "p1", at = "50ms", until = "600ms"'
    run = run_of(BASE + SPREAD, CRASH, stall)
    (confirmed,) = rows(run, "confirm", "p1")
    (notice,) = rows(run, "transitional", "p1")
    _, view = rows(run, "view", "p1")
    assert confirmed["time"] < 600_000_000 == notice["time"]
    kinds = [row["kind"] for row in run.histories[0].rows]
    assert "deliver" in kinds[kinds.index("confirm") : kinds.index("transitional")]
    assert view["time"] >= notice["time"]


@pytest.mark.parametrize("seed", [*range(1, 9)])
def test_a_run_with_failures_is_repeated_byte_for_byte_whatever_is_carried(seed: int) -> None:
    plan = FAMILIES["membership"].draw(seed)
    first = events(simulate(plan))
    assert events(simulate(plan)).equals(first)
    assert events(simulate(plan, "frames")).equals(first)


def test_an_untraced_run_behaves_the_same() -> None:
    text = BASE + SPREAD
    full, off = run_of(text, CRASH), run_of(text + 'trace = "off"\n', CRASH)
    assert off.histories == ()
    assert (off.virtual_ns, off.deliveries, off.inputs) == (full.virtual_ns, full.deliveries, full.inputs)


def test_a_crash_under_full_load_costs_three_suspicion_times_at_most_and_no_message_of_a_survivor() -> None:
    scenario = read_scenario(SCENARIOS / "crash.toml")
    survivors = ["p1", "p2", "p4", "p5"]
    run = simulate(scenario)
    assert run.quiet
    (crash,) = rows(run, "crash")
    sent = {name: len([row for row in rows(run, "send", name) if row["time"] > crash["time"]]) for name in survivors}
    assert all(count > 50 for count in sent.values())  # the crash came in the middle of the load
    for name in survivors:
        view = rows(run, "view", name)[-1]
        assert view["members"] == survivors
        assert view["time"] - crash["time"] <= 3 * scenario.options.suspect_after
        (left,) = json.loads(view["detail"])["left"]
        assert (left["process"], left["reason"]) == ("p3", "silent")
        assert set(left["accusers"]) == set(survivors)
        delivered = [(row["sender"], row["number"]) for row in rows(run, "deliver", name)]
        for sender in survivors:
            assert [number for origin, number in delivered if origin == sender] == list(range(400))
    assert not [verdict for verdict in judge(events(run)) if verdict.violations]


ONCE_FAILED = (
    288,
    367,
    640,
    5177,
    6105,
    7820,
    8443,
    10546,
    12310,
    27822,
    32797,
    34449,
    35187,
    36319,
    45566,
    45783,
    504_733,
)
"""Seeds of the family that broke a promise once (docs/track-record.md)."""


@pytest.mark.parametrize("seed", ONCE_FAILED)
def test_seeds_that_failed_once_hold(seed: int) -> None:
    run = simulate(FAMILIES["membership"].draw(seed))
    assert run.quiet
    assert not [verdict for verdict in judge(events(run)) if verdict.violations]
