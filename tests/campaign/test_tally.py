"""The totals of a campaign, from outcomes made by hand."""

from antiphon.campaign.run import Finding, Kind, Outcome
from antiphon.campaign.tally import Tally
from antiphon.trace.directory import RunRecord


def outcome(seed: int, *findings: Finding, settled: bool = True, failure: str | None = None) -> Outcome:
    return Outcome(
        kind=Kind("ring" if seed % 2 else "one", "total", 3, "stream"),
        record=RunRecord(f"run-{seed}", "run", seed, "0", "virtual", finished=failure is None),
        scenario_toml="",
        findings=findings,
        settled=settled,
        failure=failure,
        rows=seed,
    )


def tally(*outcomes: Outcome) -> Tally:
    counted = Tally()
    for each in outcomes:
        counted.add(each)
    return counted


def good(name: str, opportunities: int) -> Finding:
    return Finding(name, opportunities, 0, None)


def test_properties_are_counted_over_the_runs_that_promise_them() -> None:
    counted = tally(
        outcome(1, good("D1", 3), good("O6", 10)),
        outcome(2, good("D1", 0)),
        outcome(3, good("D1", 9), good("O6", 0)),
    )
    assert counted.properties() == [
        {
            "property": "D1",
            "runs": 3,
            "runs_with_opportunities": 2,
            "opportunities_median": 3,
            "opportunities": 12,
            "violations": 0,
        },
        {
            "property": "O6",
            "runs": 2,
            "runs_with_opportunities": 1,
            "opportunities_median": 5,
            "opportunities": 10,
            "violations": 0,
        },
    ]
    assert counted.rows() == {"median": 2, "max": 3, "total": 6}
    assert not list(counted.objections())


def test_violations_unsettled_runs_and_failed_runs_are_listed_as_objections() -> None:
    counted = tally(
        outcome(1, Finding("D2", 3, 2, "p1 delivers m twice")),
        outcome(2, good("D2", 3), settled=False),
        outcome(3, failure="AssertionError (flow.py:3, send)"),
        outcome(4, good("D2", 3)),
    )
    assert [*counted.objections()] == [
        "1 of 4 runs violated a promised property",
        "1 of 4 runs never settled",
        "1 of 4 runs failed",
    ]
    assert [(each.run, each.property, each.sentence) for each in counted.violated] == [
        ("run-1", "D2", "p1 delivers m twice")
    ]
    assert [each.run for each in counted.unsettled] == ["run-2"]
    assert [each.run for each in counted.failed] == ["run-3"]


def test_a_promise_rarely_put_to_the_test_fails_a_suite_but_not_a_few_runs() -> None:
    def runs(count: int, tested: int) -> Tally:
        return tally(*(outcome(seed, good("D1", 1), good("L7", int(seed < tested))) for seed in range(count)))

    assert runs(100, 9).untested() == ["L7"]
    assert "L7 had opportunities in fewer than one in ten" in "; ".join(runs(100, 9).objections())
    assert not runs(100, 10).untested()
    assert not runs(99, 0).untested()


def test_runs_are_counted_by_kind() -> None:
    counted = tally(*(outcome(seed) for seed in range(5)))
    common = {"service": "total", "flow_control": 3, "transport": "stream", "view_change": "none"}
    assert counted.counts() == [{"shape": "one", **common, "runs": 3}, {"shape": "ring", **common, "runs": 2}]
    assert counted.values("shape") == ["one", "ring"]
