from dataclasses import replace

import pytest

from antiphon.properties.verdicts.verdict import Outcome, Verdict, Violation
from antiphon.report.comparison import Contender, judgements
from tests.support.comparisons import asked, broken_comparison, comparison, promised
from tests.support.report_pages import run_statistics


def verdict(run: str, name: str, outcome: Outcome, group: str | None = "g") -> Verdict:
    opportunities = {"vacuous": 0, "not promised": 0}.get(outcome, 5)
    example = Violation(f"{name} is broken in {run}") if outcome in ("violated", "harness error") else None
    return Verdict(run, name, group, outcome, opportunities, 2 if example else 0, example)


def test_promised_properties_are_distinguished_from_others() -> None:
    plain = [verdict("r1", "W", "pass"), verdict("r1", "O1", "pass"), verdict("r1", "O6", "not promised")]
    everything = [verdict("r1", "W", "pass"), verdict("r1", "O1", "pass"), verdict("r1", "O6", "violated")]
    first, fifo, total = judgements(plain, everything)
    assert [(each.property_id, each.promised, each.standing) for each in (first, fifo, total)] == [
        ("W", True, "kept"),
        ("O1", True, "kept"),
        ("O6", False, "broken"),
    ]
    assert (total.worded.sentence, total.worded.run, total.worded.violations) == ("O6 is broken in r1", "r1", 2)


@pytest.mark.parametrize(
    ("outcomes", "standing"),
    [
        (["vacuous", "vacuous"], "no opportunity"),
        (["vacuous", "pass"], "kept"),
        (["pass", "violated"], "broken"),
        (["harness error", "violated"], "broken"),
        (["harness error", "pass"], "cannot tell"),
    ],
)
def test_the_worst_of_runs_and_groups_counts(outcomes: list[Outcome], standing: str) -> None:
    verdicts = [verdict(f"r{at}", "O6", outcome) for at, outcome in enumerate(outcomes)]
    [judgement] = judgements(verdicts, verdicts)
    assert judgement.standing == standing
    assert judgement.worded.opportunities == sum(each.opportunities for each in verdicts)


def test_the_witness_is_of_the_first_run_that_breaks_it() -> None:
    verdicts = [verdict("r1", "O6", "pass"), verdict("r2", "O6", "violated"), verdict("r3", "O6", "violated")]
    [judgement] = judgements([], verdicts)
    assert (judgement.worded.run, judgement.worded.violations) == ("r2", 4)


def test_a_promise_may_be_kept_where_the_property_is_broken() -> None:
    """Of each group by itself, and not over both."""
    [judgement] = judgements([verdict("r1", "O6", "pass")], [verdict("r1", "O6", "violated", None)])
    assert (judgement.promised, judgement.standing, judgement.goes_no_further) == (True, "kept", True)
    contender = Contender("classic:total", ("r1",), (), run_statistics(None), (judgement,))
    assert contender.broken_promises == ()
    assert contender.findings == ((judgement, judgement.worded),)


@pytest.mark.parametrize(
    ("promise", "no_further", "told"),
    [("pass", True, True), ("vacuous", False, True), ("violated", False, False), ("harness error", False, False)],
)
def test_only_kept_promises_are_reported_as_kept(promise: Outcome, no_further: bool, told: bool) -> None:
    """Broken beyond the promise: shown also for a promise without an opportunity, neither kept nor broken."""
    [judgement] = judgements([verdict("r1", "O6", promise)], [verdict("r1", "O6", "violated", None)])
    assert (judgement.goes_no_further, judgement.broken_beyond) == (no_further, told)
    contender = Contender("classic:total", ("r1",), (), run_statistics(None), (judgement,))
    assert [found for _, found in contender.findings] == [judgement.worded if told else judgement.promise]


def test_properties_keep_the_order_in_which_they_are_judged() -> None:
    names = ["L8", "O6", "W", "O1"]
    found = judgements([verdict("r1", name, "pass") for name in names], [])
    assert [each.property_id for each in found] == ["W", "O1", "O6", "L8"]
    assert comparison().properties == ("W", "O6", "S5")


def test_only_a_broken_promise_speaks_against_a_protocol() -> None:
    assert comparison().overall == "hold"
    assert broken_comparison().overall == "violated"
    [broken] = broken_comparison().contenders[0].broken_promises
    assert broken.property_id == "O6"


def test_the_verdict_is_unknown_without_judgement_unless_a_promise_is_broken() -> None:
    torn = replace(comparison().contenders[2], judgements=(promised("W", "cannot tell", "a gap"),))
    assert replace(comparison(), contenders=(torn,)).overall == "unknown"
    assert replace(comparison(), contenders=(torn, *broken_comparison().contenders)).overall == "violated"
    silent = replace(torn, judgements=())
    assert replace(comparison(), contenders=(silent,)).overall == "unknown"
    assert [each.standing for each, _ in torn.findings] == ["cannot tell"]


def test_a_figure_that_no_protocol_has_is_no_column() -> None:
    names = [figure.name for figure in comparison().figures]
    assert "sender work" in names
    assert "answer mean" not in names
    first, second, third = comparison().contenders
    assert "sender work" not in [figure.name for figure in replace(comparison(), contenders=(first, second)).figures]
    values = {figure.name: figure.of(third.figures) for figure in comparison().figures}
    assert (values["delivery mean"], values["stability p99"], values["storage peak"]) == (2.5e6, 9.5e6, 17)
    assert (values["messages"], values["wire bytes"], values["header bytes"]) == (4.5, 256.25, 30.5)
    assert (values["sender work"], values["receiver work"]) == (1200, 34)
    assert values["idle messages per second"] == 120.5
    assert "idle messages per second" not in [
        figure.name for figure in replace(comparison(), contenders=(first, second)).figures
    ]


def test_findings_are_exactly_the_broken_properties() -> None:
    contender = comparison().contenders[2]
    assert [judgement for judgement, _ in contender.findings] == [
        asked("O6", "broken", "p1 delivered this before that")
    ]
