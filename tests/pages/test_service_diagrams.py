"""The diagrams of the guide to services: they are what their runs are, and these runs differ as the pages say."""

import pytest

from antiphon.properties.judge import judge
from tools.diagrams import COMPARISONS, IMAGES, Comparison

CASES = pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda each: each.scenario)


@CASES
def test_a_diagram_is_that_of_its_run(comparison: Comparison) -> None:
    for path, svg in comparison.files().items():
        assert path.read_text(encoding="utf-8") == svg, "python tools/diagrams.py draws them again"


def test_there_are_no_other_diagrams() -> None:
    drawn = {f"{each.scenario}-{word}.svg" for each in COMPARISONS for word in (each.weaker, each.stronger)}
    assert {path.name for path in IMAGES.iterdir()} == drawn


@CASES
def test_only_the_stronger_service_has_the_property(comparison: Comparison) -> None:
    if comparison.property is None:
        assert frames(comparison, comparison.stronger) < frames(comparison, comparison.weaker)
        return
    assert broken(comparison, comparison.weaker) == [comparison.property]
    assert broken(comparison, comparison.stronger) == []


def broken(comparison: Comparison, word: str) -> list[str]:
    assert comparison.property is not None
    verdicts = judge(comparison.events(word), frozenset([comparison.property]))
    return [verdict.property for verdict in verdicts if verdict.outcome == "violated"]


def frames(comparison: Comparison, word: str) -> int:
    return sum(kind == "transmit" for kind in comparison.events(word)["kind"].to_pylist())
