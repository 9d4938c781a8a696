"""Promises of asymmetric groups: less order through splits, the same inside one group (newtop.md 11.3 rule 7)."""

from collections.abc import Sequence

import pytest

from tests.support.traces.handmade import Mid, Trace, verdict, violated

GROUPS: dict[str, Sequence[str]] = {"x": ["p1", "p2", "p3"], "y": ["p2", "p3"]}
SEQUENCED = {"x": "asymmetric"}


def begun(**modes: str) -> Trace:
    return Trace(GROUPS, modes=modes).begin()


def reversed_at_p3(trace: Trace, orderer: str | None = "p1") -> tuple[Mid, Mid]:
    """p2 sends m in x, then m' in y; p3 delivers m' first. The caller writes the earlier rows of p3."""
    m, later = trace.send("p2", "x"), trace.send("p2", "y")
    trace.deliver("p1", m, orderer=orderer)
    trace.deliver("p2", m, orderer=orderer)
    trace.deliver("p2", later)
    return m, later


@pytest.mark.parametrize(
    ("mode", "failed", "excused"),
    [
        ("asymmetric", "p2", True),  # its origin
        ("asymmetric", "p1", True),  # its sequencer
        ("asymmetric", None, False),
        ("symmetric", "p2", False),
    ],
)
def test_o3_a_late_cause_is_excused_from_the_confirmed_failure_on(mode: str, failed: str | None, excused: bool) -> None:
    trace = begun(x=mode)
    m, later = reversed_at_p3(trace, "p1" if mode == "asymmetric" else None)
    if failed is not None:
        trace.confirm("p3", failed, group="x")
    trace.deliver("p3", later)
    trace.deliver("p3", m, orderer="p1" if mode == "asymmetric" else None)
    assert ("O3" not in violated(trace.end(quiet=False))) == excused


def test_o3_the_failure_must_be_known_before_the_effect_is_delivered() -> None:
    trace = begun(**SEQUENCED)
    m, later = reversed_at_p3(trace)
    trace.deliver("p3", later)
    trace.confirm("p3", "p2", group="x")
    trace.deliver("p3", m, orderer="p1")
    assert verdict(trace.end(quiet=False), "O3").violations == 1


def test_o3_inside_the_group_there_is_no_exception() -> None:
    trace = Trace({"x": ["p1", "p2", "p3"]}, modes=SEQUENCED).begin()
    question = trace.send("p2", "x")
    trace.deliver("p1", question, orderer="p1")
    answer = trace.send("p1", "x")
    trace.confirm("p3", "p2", group="x")
    trace.deliver("p3", answer, question, orderer="p1")
    assert "O3" in violated(trace.end(quiet=False))


def test_o3_numbered_in_a_view_without_the_receiver() -> None:
    """E-71, before p3 learns anything: p2 has excluded it, and numbers m again."""
    trace = begun(**SEQUENCED)
    m = trace.send("p2", "x")
    trace.exclude("p2", "v1", ["p2"], group="x")
    trace.deliver("p2", m, orderer="p2")
    later = trace.send("p2", "y")
    trace.deliver("p3", later)
    trace.deliver("p3", m, orderer="p1", clock=18)
    assert "O3" not in violated(trace.end(quiet=False))


@pytest.mark.parametrize(("failed", "excused"), [("p1", True), ("p2", True), (None, False)])
def test_o4_a_cause_that_never_comes(failed: str | None, excused: bool) -> None:
    """p1 numbers p2's message, delivers it and tells p3 of it by another group."""
    trace = Trace({"x": ["p1", "p2", "p3"], "z": ["p1", "p3"]}, modes=SEQUENCED).begin()
    m = trace.send("p2", "x")
    trace.deliver("p1", m, orderer="p1")
    told = trace.send("p1", "z")
    if failed is not None:
        trace.confirm("p3", failed, group="x")
    trace.deliver("p3", told)
    assert ("O4" not in violated(trace.end(quiet=False))) == excused


def numbered_twice(*, changes: bool) -> Trace:
    """p2's and p3's messages are in one order at p1, and in another at p3."""
    trace = Trace({"x": ["p1", "p2", "p3"]}, modes=SEQUENCED).begin()
    one, two = trace.send("p2", "x"), trace.send("p3", "x")
    trace.deliver("p1", one, two, orderer="p1")
    if changes:
        trace.exclude("p3", "v1", ["p2", "p3"], group="x")
    trace.deliver("p3", two, one, orderer="p2")
    return trace


def test_o6_holds_while_no_process_leaves() -> None:
    assert {"O6", "O8"} <= violated(numbered_twice(changes=False).end(quiet=False))


def test_o6_is_not_promised_through_a_split_and_may_be_required() -> None:
    assert not {"O6", "O8"} & violated(numbered_twice(changes=True).end(quiet=False))
    assert "O6" in violated(numbered_twice(changes=True).end(quiet=False), "O6")


def test_the_stamp_goes_by_the_process_that_numbered_it() -> None:
    """Equal numbers are ordered by orderer: (4, p1) of p3's message is before (4, p2) of p2's own in y."""
    trace = begun(**SEQUENCED)
    in_x, in_y = trace.send("p3", "x", clock=1), trace.send("p2", "y", clock=4)
    for process in ("p2", "p3"):
        trace.deliver(process, in_x, orderer="p1", clock=4)
        trace.deliver(process, in_y)
    judged = verdict(trace.end(quiet=False), "O6")
    assert (judged.outcome, judged.note) == ("pass", None)


def test_no_condition_of_windows_is_asked_in_an_asymmetric_group() -> None:
    options = {"flow_control": 3, "window": 2, "window_bytes": 100}
    for mode, outcome in (("asymmetric", "not promised"), ("symmetric", "violated")):
        trace = Trace({"x": ["p1", "p2"]}, modes={"x": mode}, options=options).begin()
        trace.transmit("p1", "1", None, group="x")
        assert verdict(trace.end(quiet=False), "F2", "x").outcome == outcome


def test_bounds_are_kept_there_all_the_same() -> None:
    trace = Trace({"x": ["p1", "p2"]}, modes=SEQUENCED, options={"flow_control": 3, "window": 2}).begin()
    trace.gauge("p1", "unstable_frames_of_sender", 3, "p2", group="x")
    assert "F1" in violated(trace.end(quiet=False))
