import re
from dataclasses import replace

import pytest

from antiphon.report.bars import Bar, bar_chart
from antiphon.report.compare_page import MARKS, render_comparison
from antiphon.report.comparison import Comparison, Judgement
from antiphon.report.figures import NOTHING, ratio
from tests.support.comparisons import broken_comparison, comparison, finding, hostile_comparison
from tests.support.document import Document, svgs
from tests.support.report_pages import HOSTILE

PAGES = [comparison(), broken_comparison(), hostile_comparison()]


def told(each: Comparison) -> str:
    return " ".join(Document(render_comparison(each)).text.split()).replace(NOTHING, "-")


@pytest.mark.parametrize("each", PAGES)
def test_a_page_is_well_formed_loads_nothing_and_runs_nothing(each: Comparison) -> None:
    html = render_comparison(each)
    document = Document(html)
    ids = document.attributes("id")
    assert html.startswith("<!DOCTYPE html>")
    assert len(ids) == len(set(ids))
    referred = {name for value in document.attributes("aria-labelledby") for name in value.split()}
    assert referred <= set(ids)
    assert not {"script", "link", "iframe", "img", "object", "embed"} & {tag for tag, _ in document.elements}
    assert document.attributes("src") + document.attributes("href") == []
    assert "@import" not in html
    assert "url(" not in html
    assert not [name for _, attributes in document.elements for name in attributes if name.startswith("on")]
    assert all(attributes.get("scope") for tag, attributes in document.elements if tag == "th")


def test_names_stay_text() -> None:
    html = render_comparison(hostile_comparison())
    assert "<script" not in html
    assert Document(html).text.count(HOSTILE) > 10


def test_the_same_comparison_gives_the_same_bytes() -> None:
    assert render_comparison(comparison()) == render_comparison(comparison())


def test_figures_of_every_protocol_are_told() -> None:
    text = told(comparison())
    for expected in (
        "antiphon comparison first protocols 3 seeds 1, 2 antiphon 0.1.0",
        "Every protocol keeps its promises",
        "3 protocols, 6 runs of the same workload.",
        "1 protocol cannot run it; the reasons are below.",
        'name = "<first>"',
        "delivery mean (ms) delivery p99 (ms) stability mean (ms) stability p99 (ms)",
        "messages wire bytes header bytes idle messages per second storage peak sender work receiver work",
        "newtop:total 1,234 2,468 2.50 3.88 7.50 9.50 4.50 256.25 30.50 - 17 - -",
        "classic:total 1,234 2,468 8.00 16.00 - - 4.50 256.25 30.50 - 12 - -",
        "acks:vector 1,234 2,468 2.50 3.88 7.50 9.50 4.50 256.25 30.50 120.50 17 1,200 34",
        "acks:vector : on streams instead of datagrams.",
        "acks:explicit : options.stability: why.",
    ):
        assert expected in text


def test_the_matrix_marks_promised_properties() -> None:
    html = render_comparison(comparison())
    marks = [
        (attributes["class"], attributes["title"])
        for tag, attributes in Document(html).elements
        if tag == "span" and "title" in attributes
    ]
    kept = ("mark kept promised", "promised, kept, opportunities: 4,321")
    assert marks == [
        *[kept] * 3,
        kept,
        kept,
        ("mark broken", "beyond the promise, broken, opportunities: 4,321"),
        ("mark broken", "not promised, broken, opportunities: 4,321"),
        *[("mark no-opportunity", "not promised, no opportunity, opportunities: 0")] * 2,
        ("mark no-opportunity promised", "promised, no opportunity, opportunities: 0"),
    ]
    text = told(comparison())
    assert "O6 strong total order ✓ ✓ ✗ ✗" in text
    assert "S5 known senders ○ ○ ○" in text


def test_a_promise_that_was_not_tried_is_not_called_kept() -> None:
    first, second, *others = comparison().contenders
    untried = Judgement("O6", finding("no opportunity"), finding("broken", "two groups disagree"))
    made = replace(comparison(), contenders=(first, replace(second, judgements=(untried,)), *others))
    assert "O6 strong total order ✓ ○ ✗ ✗" in told(made)
    assert "classic:total , which promises less and had no opportunity to break that promise: two groups" in told(made)


def test_a_property_that_was_not_judged_is_a_dash() -> None:
    first, *others = comparison().contenders
    partial = replace(comparison(), contenders=(replace(first, judgements=first.judgements[:1]), *others))
    assert "O6 strong total order - ✓ ✗ ✗" in told(partial)


def test_everything_broken_has_its_witness() -> None:
    text = told(broken_comparison())
    for expected in (
        "Broken promises: O6 by newtop:total",
        "newtop:total , which promises it: a delivered, b did not. 3 violations in all; this one in run run-1 .",
        "classic:total , which promises less and keeps that promise: two groups disagree.",
        "acks:vector , which does not promise it: p1 delivered this before that.",
    ):
        assert expected in text
    kept = replace(comparison(), contenders=comparison().contenders[:1])
    assert "What is broken, and how" not in told(kept)


def test_only_charts_with_figures_are_drawn() -> None:
    html = render_comparison(comparison())
    titles = [svg[0].text for svg in svgs(html)]
    assert titles == [
        "Delivery latency (ms)",
        "Stability latency (ms)",
        "Messages per multicast",
        "Bytes on the wire per multicast",
    ]
    assert (svgs(html)[1][1].text or "").replace(
        NOTHING, "-"
    ) == "newtop:total 7.50 / 9.50; classic:total -; acks:vector 7.50 / 9.50."


def test_families_have_a_colour_each() -> None:
    html = render_comparison(comparison())
    assert [re.findall(r'class="fill-(\d)"', svg) for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL)] == [
        ["0", "1", "2"],
        ["0", "2"],
        ["0", "1", "2"],
        ["0", "1", "2"],
    ]


def test_bars_are_as_long_as_their_figures() -> None:
    bars = [Bar("a", 0, 10.0, 40.0), Bar("b", 1, 20.0), Bar("c", 2, None)]
    [svg] = svgs(bar_chart("Title", bars, ratio, "x"))
    widths = [float(rect.get("width", "")) for rect in svg.iter() if rect.tag.endswith("rect")]
    assert widths[1] == 2 * widths[0]
    [whisker] = [path.get("d", "") for path in svg.iter() if path.tag.endswith("path")]
    begin, tip = (float(number) for number in re.findall(r"[MH]([\d.]+)", whisker)[:2])
    assert tip - begin == pytest.approx(3 * widths[0])


def test_bars_of_zero_or_missing_figures_are_drawn_too() -> None:
    for value in (0.0, None):
        [svg] = svgs(bar_chart("Title", [Bar("a", 0, value)], ratio, "x"))
        assert [text.text for text in svg.iter() if text.tag.endswith("text")] == ["a", ratio(value)]


def test_many_seeds_are_a_range() -> None:
    assert "seeds 1 to 40 antiphon" in told(replace(comparison(), seeds=tuple(range(1, 41))))


def test_standings_have_signs_of_their_own() -> None:
    assert len(set(MARKS.values())) == len(MARKS)
