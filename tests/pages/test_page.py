import re
from dataclasses import replace

import pytest

from antiphon.properties.promises import JUDGED
from antiphon.properties.verdicts.wording import PROMISES
from antiphon.report.charts import course_chart, latency_chart
from antiphon.report.model import About, Page, RunVerdict
from antiphon.report.page import RUNS_MAX, render
from antiphon.report.wording import OUTCOMES, SYMBOLS, fault
from tests.support.document import Document, svgs
from tests.support.report_pages import HOSTILE, broken_page, entry, hostile_page, page, statistics

PAGES = [page(), broken_page(), hostile_page()]


def told(each: Page) -> str:
    return " ".join(Document(render(each)).text.split())


@pytest.mark.parametrize("each", PAGES)
def test_a_page_is_well_formed_and_its_ids_are_unique(each: Page) -> None:
    html = render(each)
    document = Document(html)
    ids = document.attributes("id")
    assert html.startswith("<!DOCTYPE html>")
    assert len(ids) == len(set(ids))
    referred = {name for value in document.attributes("aria-labelledby") for name in value.split()}
    assert referred <= set(ids)
    assert len(svgs(html)) >= 3


@pytest.mark.parametrize("each", PAGES)
def test_a_page_loads_nothing_and_runs_nothing(each: Page) -> None:
    html = render(each)
    document = Document(html)
    assert not {"script", "link", "iframe", "img", "object", "embed"} & {tag for tag, _ in document.elements}
    assert document.attributes("src") == []
    links = document.attributes("href") + document.attributes("xlink:href")
    assert all(link.startswith("#") for link in links)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", html))
    assert "@import" not in html
    assert not [name for _, attributes in document.elements for name in attributes if name.startswith("on")]


def test_names_stay_text() -> None:
    html = render(hostile_page())
    assert "<script" not in html
    assert Document(html).text.count(HOSTILE) > 15


def test_the_same_page_gives_the_same_bytes() -> None:
    assert render(broken_page()) == render(broken_page())


def test_a_page_that_holds_names_everything() -> None:
    text = told(page())
    for expected in (
        "run-1",
        "scenario orders-scenario",
        "seed 7",
        "antiphon 0.1.0",
        "All judged properties hold",
        "No opportunity to judge: D8.",
        'name = "<orders>"',
        "strong total order",
        "4,321",
        "Members of orders",
        "p50 (ms) p90 (ms) p99 (ms) max (ms) delivered messages/s most unstable",
        "a 2.25 3.50 3.88 4.00 1,234 99.5 17",
        "data frames 617",
        "null frames 55",
        "nulls per message 0.04",
        "header bytes per message 61.50",
        "headers in all bytes 62.5 %",
        "messages per data frame 2.00",
        "announcements per message 0.38",
        "recovery frames per message 1.25",
        "ordering bytes per data frame 90.50",
        "acknowledgment frames per message 0.62",
        "copies per message 5.75",
        "bytes on the wire per message 512.25",
        "times blocked by flow control 3",
        "blocked, all members (ms) 4.50",
        "most unstable blocks 48",
        "most buffers in use 69",
        "Run run-1 from 0.00 to 10.00 ms: its first messages.",
        "2.00 ms: pause of b begins",
    ):
        assert expected in text


def test_a_violation_is_told_with_its_witness() -> None:
    text = told(broken_page())
    for expected in (
        "Violated: strong total order (O6)",
        "a delivered this before that, yet b did not.",
        "orders/a:0, orders/b:0",
        "11, 12, 21, 22",
        "view-7",
        "named by the witness",
    ):
        assert expected in text
    assert "named by the witness" not in told(page())


def test_an_ill_formed_trace_is_unknown() -> None:
    example = {"run": "run-1", "sentence": "W1: a has a gap", "processes": ("a",), "indexes": (3,)}
    summary = {**entry("W", "harness error"), "example": {**example, "messages": (), "views": ()}}
    text = told(replace(page(), overall="unknown", properties=(summary,)))  # type: ignore[arg-type]
    assert "Unknown: the trace cannot be judged" in text
    assert "W1: a has a gap." in text


def test_many_runs_are_listed_the_violated_first() -> None:
    abouts = [About(f"run-{number}", "orders-scenario", number) for number in range(RUNS_MAX + 3)]
    runs = [RunVerdict(about, "hold", ()) for about in abouts]
    runs[9] = RunVerdict(abouts[9], "violated", ("O6",))
    several = replace(broken_page(), shown=abouts[9], runs=tuple(runs), statistics=statistics("run-9"))
    text = told(several)
    assert f"Of {RUNS_MAX + 3} runs, {RUNS_MAX + 2} hold, 1 violated, 0 unknown." in text
    assert text.index("run-9 orders-scenario 9 ✗ violated O6") < text.index("run-0 orders-scenario 0 ✓ hold")
    assert "3 more runs not listed" in text
    assert "Members of orders, run run-9" in text


def test_the_page_says_what_a_diagram_leaves_out() -> None:
    cut = replace(page().scene, arrows_total=900, processes_total=30, marks_cut=True)
    text = told(replace(page(), scene=cut))
    assert "The window up to 10.00 ms has 900 arrows; the first 2 are shown." in text
    assert "Only the first 6 sends and deliveries of the window are marked." in text
    assert "2 of 30 processes are shown." in text
    assert "Nothing happens in this window." in told(replace(page(), scene=replace(page().scene, arrows=(), marks=())))


def test_the_page_says_what_is_not_recorded() -> None:
    text = told(replace(page(), shown=About("run-1")))
    assert "scenario not recorded" in text
    assert "scenario.toml" not in text


def test_a_run_without_deliveries_has_no_charts_of_them() -> None:
    course = replace(page().course, edges_ns=[], sends=[], deliveries=[], nulls=[])
    text = told(replace(page(), histograms=(), course=course))
    assert "No message was delivered" in text
    assert "The run has no events to show." in text


def test_tables_have_scoped_headers_and_drawings_have_descriptions() -> None:
    html = render(page())
    document = Document(html)
    assert all(attributes.get("scope") for tag, attributes in document.elements if tag == "th")
    drawings = [svg for svg in svgs(html) if svg.get("role") == "img"]
    assert len(drawings) == 3
    for svg in drawings:
        children = [child.tag.rpartition("}")[2] for child in svg]
        assert children[:2] == ["title", "desc"]


def test_charts_take_their_colours_from_the_page() -> None:
    chart = latency_chart(page().histograms[0], "chart") + course_chart(page().course, "course", [1])
    assert "var(--c0)" in chart
    assert set(re.findall(r"#[0-9a-f]{6}", chart)) <= {"#ffffff", "#000000"}


def test_every_judged_property_and_outcome_has_words() -> None:
    assert tuple(PROMISES) == JUDGED
    assert OUTCOMES.keys() <= SYMBOLS.keys()


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ('{"kind":"pause","process":"p3","begins":true}', "pause of p3 begins"),
        ('{"kind":"delay","from":"p1","to":"p2","begins":false}', "delay from p1 to p2 ends"),
        ('{"kind":"partition","sides":[["p1","p2"],["p3"]]}', "partition between p1 p2 and p3 begins"),
        ('{"kind":"heal","begins":true}', "heal"),
        ("not JSON", "fault begins"),
        (None, "fault begins"),
    ],
)
def test_faults_are_told(detail: str | None, expected: str) -> None:
    assert fault(detail) == expected
