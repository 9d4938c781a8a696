import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import pytest

from antiphon.properties.verdicts.verdict import Violation
from antiphon.report.spacetime import Arrow, Lifeline, Mark, Scene, draw
from antiphon.report.window import Highlight, _between, witness_events
from tests.support.report_pages import MS, scene

SVG = "{http://www.w3.org/2000/svg}"


def classed(svg: str, name: str) -> list[ET.Element]:
    return [each for each in ET.fromstring(svg).iter() if name in (each.get("class") or "").split()]


def number(element: ET.Element, name: str) -> float:
    return float(element.attrib[name])


def labels(svg: str) -> list[str]:
    groups = classed(svg, "labels")
    return [text.text or "" for group in groups for text in group.iter(SVG + "text")]


def test_each_receive_has_one_arrow_from_its_transmit() -> None:
    drawn = draw(scene())
    data, null = classed(drawn.svg, "data")[0], classed(drawn.svg, "null")[0]
    a, b = (number(each.find(SVG + "line"), "y1") for each in classed(drawn.svg, "lifeline"))  # type: ignore[arg-type]
    assert len(classed(drawn.svg, "arrow")) == drawn.arrows_shown == 2
    assert (number(data, "y1"), number(data, "y2")) == (a, b)
    assert (number(null, "y1"), number(null, "y2")) == (b, a)
    assert number(data, "x1") < number(data, "x2") < number(null, "x1") < number(null, "x2")


def test_time_runs_evenly_to_the_right() -> None:
    data, null = (classed(draw(scene()).svg, kind)[0] for kind in ("data", "null"))
    per_ms = (number(data, "x2") - number(data, "x1")) / 2
    assert number(null, "x1") - number(data, "x2") == pytest.approx(per_ms, abs=0.2)


def test_marks_are_drawn_once_a_place_and_labelled_with_their_messages() -> None:
    svg = draw(scene()).svg
    assert len(classed(svg, "send")) == 1
    assert len(classed(svg, "deliver")) == 2
    assert labels(svg) == ["a:0\N{EN DASH}1"] * 3


def test_a_label_keeps_the_order_of_delivery() -> None:
    marks = [Mark("a", i, 5 * MS, "deliver", sender, 0) for i, sender in enumerate("bacdefg")]
    svg = draw(replace(scene(), marks=tuple(marks))).svg
    assert labels(svg) == ["b:0", "a:0", "c:0", "d:0", "+3 more"]


def test_labels_of_one_lifeline_do_not_overlap() -> None:
    marks = tuple(Mark("a", i, i * MS // 9, "send", "a", i + i // 3) for i in range(90))
    texts = list(classed(draw(replace(scene(), marks=marks)).svg, "labels")[0].iter(SVG + "text"))
    assert len(texts) > 10
    for text, after in pairwise(sorted(texts, key=lambda each: (number(each, "y"), number(each, "x")))):
        letters = (len(text.text or "") + len(after.text or "")) / 2
        assert text.get("y") != after.get("y") or number(after, "x") - number(text, "x") >= 5.5 * letters


def test_more_arrows_than_fit_are_cut_and_counted() -> None:
    arrows = tuple(Arrow(f"f{i}", "data", "a", "b", i * MS // 100, i * MS // 100 + MS) for i in range(900))
    drawn = draw(replace(scene(), arrows=arrows, arrows_total=5000))
    assert len(classed(drawn.svg, "arrow")) == drawn.arrows_shown == 400
    assert drawn.arrows_total == 5000
    assert drawn.shown_ns == (0, arrows[399].sent_ns)
    assert draw(replace(scene(), arrows=arrows), arrows_max=7).arrows_shown == 7


def test_an_empty_window_says_so() -> None:
    drawn = draw(replace(scene(), arrows=(), marks=(), window_ns=(15 * MS, 16 * MS)))
    assert "Nothing happens in this window." in drawn.svg
    assert drawn.description == "2 processes from 15.00 to 16.00 ms: 0 sends, 0 arrows and 0 deliveries."


def test_a_scene_without_processes_is_drawn_too() -> None:
    assert "Nothing happens" in draw(Scene((0, 1), (), (), ())).svg


def test_a_gap_is_jumped_over_and_told() -> None:
    marks = tuple(Mark("a", i, i * MS, "send", "a", 2 * i) for i in range(101))
    gapped = replace(scene(), window_ns=(0, 100 * MS), arrows=(), marks=marks, gap_ns=(10 * MS, 90 * MS))
    svg = draw(gapped).svg
    xs = [number(each, "cx") for each in classed(svg, "send")]
    assert len(xs) == 22  # 0 to 10 and 90 to 100
    steps = [after - before for before, after in pairwise(xs)]
    jump = steps.pop(10)
    assert jump == pytest.approx(64, abs=0.2)
    assert all(step == pytest.approx(steps[0], abs=0.2) for step in steps)
    (gap,) = classed(svg, "gap")
    assert [text.text for text in gap.iter(SVG + "text")] == ["80 ms", "not shown"]


def test_a_label_names_a_view_before_what_led_to_it() -> None:
    marks = tuple(Mark("a", i, 5 * MS, kind) for i, kind in enumerate(("suspect", "confirm", "view")))
    assert labels(draw(replace(scene(), marks=marks)).svg) == ["+2 more", "view"]  # from the lifeline upwards


@pytest.mark.parametrize(
    ("first", "second", "window", "gap"),
    [
        ((100, 100), (900, 910), (80, 970), (160, 880)),  # much lies between
        ((100, 100), (200, 200), (80, 260), None),  # little does
        ((100, 100), None, (80, 160), None),
        ((10, 10), None, (0, 70), None),
    ],
)
def test_the_window_is_around_both_moments(
    first: tuple[int, int],
    second: tuple[int, int] | None,
    window: tuple[int, int],
    gap: tuple[int, int] | None,
) -> None:
    assert _between(first, second, 80, "because") == Highlight(window, "because", gap)


def test_a_lifeline_ends_with_its_process() -> None:
    lines = (Lifeline("a", 0, 5 * MS), Lifeline("b", 0, 20 * MS))
    first, second = (
        each.find(SVG + "line") for each in classed(draw(replace(scene(), lifelines=lines)).svg, "lifeline")
    )
    assert first is not None
    assert second is not None
    middle = (number(second, "x1") + number(second, "x2")) / 2
    assert number(first, "x2") == pytest.approx(middle, abs=0.1)


def test_the_events_of_a_witness_are_circled() -> None:
    drawn = draw(replace(scene(), witness=frozenset({("a", 5), ("b", 99)})))
    assert len(classed(drawn.svg, "witness")) == 1
    assert drawn.witness_shown
    assert not draw(scene()).witness_shown


def test_every_id_begins_with_the_prefix() -> None:
    root = ET.fromstring(draw(scene(), prefix="mine").svg)
    assert all(each.attrib["id"].startswith("mine-") for each in root.iter() if "id" in each.attrib)


@pytest.mark.parametrize(
    ("processes", "indexes", "expected"),
    [
        (("a", "b"), (1, 2, 3, 4), [("a", 1), ("a", 2), ("b", 3), ("b", 4)]),
        (("a", "b"), (1, 2), [("a", 1), ("b", 2)]),
        (("a", "b"), (1,), [("a", 1)]),
        (("a",), (1, 2), [("a", 1), ("a", 2)]),
        ((), (1,), []),
    ],
)
def test_indexes_are_given_to_the_processes_in_order(
    processes: tuple[str, ...], indexes: tuple[int, ...], expected: list[tuple[str, int]]
) -> None:
    assert witness_events(Violation("", processes, (), indexes)) == expected
