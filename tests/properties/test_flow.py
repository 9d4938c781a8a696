"""F1 the bounds of flow control, F2 its send conditions, F3 no loss under backpressure."""

from typing import Any

import pyarrow as pa
import pytest

from antiphon.errors import TraceError
from antiphon.properties.judge import judge
from tests.support.traces.handmade import Trace, sentence, trio, verdict


def windowed(algorithm: int, window: int = 3, **settings: Any) -> Trace:
    options = {"flow_control": algorithm, "window": window, "window_bytes": 100}
    return trio(options=options, **settings)


def outcome(events: pa.Table, property_id: str) -> tuple[str, int, int]:
    found = verdict(events, property_id, "orders")
    return found.outcome, found.opportunities, found.violations


def sent(trace: Trace, *headers: list[Any], kind: str = "data", receiver: str | None = "p2") -> Trace:
    """p1 transmits frames with these headers, and they are received; fragments and nulls have no message."""
    for place, header in enumerate(headers):
        if kind == "data":
            mid = trace.send("p1")
            trace.transmit("p1", str(mid.clock), header)
            if receiver:
                trace.receive(receiver, mid)
            continue
        name = f"{kind} {place}"
        trace.transmit("p1", name, header, kind)
        if receiver:
            detail = f'{{"frame": "orders/p1/{name}", "type": "{kind}"}}'
            trace.row(receiver, "receive", group="orders", sender="p1", sender_incarnation=0, detail=detail)
    return trace


# F1, by gauges


@pytest.mark.parametrize(
    ("algorithm", "name", "bound"),
    [
        (1, "unstable_blocks", 3),
        (2, "unstable_frames_of_sender", 3),
        (3, "unstable_frames_of_sender", 3),
        (1, "buffers", 9),
        (3, "buffers", 9),
        (2, "own_unstable_bytes", 100),
    ],
)
def test_f1_gauges_have_bounds(algorithm: int, name: str, bound: int) -> None:
    trace = windowed(algorithm)
    trace.gauge("p1", name, bound)
    assert outcome(trace.end(), "F1") == ("pass", 1, 0)
    over = windowed(algorithm)
    over.gauge("p1", name, bound + 1, "p3")
    assert outcome(over.end(), "F1") == ("violated", 1, 1)
    assert sentence(over.end(), "F1", "orders") == (
        f"p1 reached {bound + 1} {name} in orders, of p3 (index 2); at most {bound} are allowed"
    )


@pytest.mark.parametrize(
    ("algorithm", "name"), [(1, "unstable_frames_of_sender"), (3, "unstable_blocks"), (3, "other")]
)
def test_f1_other_gauges_have_none(algorithm: int, name: str) -> None:
    trace = windowed(algorithm)
    trace.gauge("p1", name, 1000)
    assert outcome(trace.end(), "F1") == ("vacuous", 0, 0)


def test_f1_buffers_of_a_removed_member_still_count() -> None:
    trace = windowed(3)
    trace.crash("p3")
    trace.view("p1", "orders", "v1", ["p1", "p2"])
    trace.gauge("p1", "buffers", 8)
    assert outcome(trace.end(), "F1") == ("pass", 1, 0)


@pytest.mark.parametrize("options", [{}, {"flow_control": 0, "window": 3}])
def test_without_flow_control_nothing_is_asked(options: dict[str, int]) -> None:
    trace = sent(trio(options=options), [9, 0, 0, 0])
    trace.gauge("p1", "buffers", 1000)
    events = trace.end()
    for name in ("F1", "F2"):
        assert outcome(events, name) == ("vacuous", 0, 0)
        assert verdict(events, name, "orders").note == "flow control is off"


# F1, from outside


def test_f1_a_frame_arrives_beyond_the_window() -> None:
    trace = sent(windowed(2), [1, 0, 0, 0], [2, 1, 0, 0], [3, 2, 0, 0], [4, 3, 0, 0])
    events = trace.end()
    assert outcome(events, "F1") == ("violated", 4, 1)
    assert sentence(events, "F1", "orders") == (
        "p2 received frame 4 of p1 (index 5), which left (index 9) when p1 knew number 0 to be stable: "
        "it is one of 4 frames of p1 above that; at most 3 are allowed"
    )


def test_f1_a_frame_that_no_process_received_is_not_counted() -> None:
    trace = sent(windowed(2), [1, 0, 0, 0], [2, 1, 0, 0], [3, 2, 0, 0])
    sent(trace, [4, 3, 0, 0], receiver=None)
    assert outcome(trace.end(settled=False), "F1") == ("pass", 3, 0)


def test_f1_counts_frames_of_one_sender_and_not_numbers() -> None:
    trace = sent(windowed(3), [1, 0, 0, 0], [50, 49, 0, 0], [90, 89, 0, 0])
    assert outcome(trace.end(), "F1") == ("pass", 3, 0)


def test_f1_algorithm_1_counts_numbers() -> None:
    trace = sent(windowed(1), [1, 0, 0, 0], [2, 1, 0, 0], [2, 1, 0, 0], [3, 2, 0, 0])
    assert outcome(trace.end(), "F1") == ("pass", 4, 0)
    over = sent(windowed(1), [1, 0, 0, 0], [2, 1, 0, 0], [3, 1, 0, 0], [4, 2, 0, 0])
    assert "it is one of 4 numbers of p1" in sentence(over.end(), "F1", "orders")


def test_f1_fragments_hold_places_and_nulls_only_where_blocks_are_counted() -> None:
    nulls = [[number, number, 0, 0] for number in range(1, 6)]
    assert outcome(sent(windowed(2), *nulls, kind="fragment").end(), "F1") == ("violated", 5, 2)
    assert outcome(sent(windowed(2), *nulls, kind="null").end(), "F1") == ("vacuous", 0, 0)
    assert outcome(sent(windowed(2, numbering="block"), *nulls, kind="null").end(), "F1") == ("violated", 5, 2)


def test_f1_a_frame_that_leaves_again_counts_once() -> None:
    trace = windowed(2)
    for _ in range(5):
        trace.transmit("p1", "again", [1, 0, 0, 0])
    sent(trace, [2, 1, 0, 0])
    events = trace.end()
    assert outcome(events, "F1") == ("pass", 1, 0)
    assert outcome(events, "F2") == ("pass", 2, 0)


# F2


@pytest.mark.parametrize(
    ("algorithm", "header", "words"),
    [
        (1, [10, 9, 8, 7], None),
        (1, [10, 9, 8, 6], "when number 6 was the last it knew to be super-stable: with N = 3, algorithm 1 requires 7"),
        (1, [10, 9, 7, 7], "when number 7 was the last it knew to be stable: with N = 3, algorithm 1 requires 8"),
        (1, [10, 8, 8, 7], "when number 8 was the last it knew to be complete: with N = 3, algorithm 1 requires 9"),
        (2, [10, 8, 7, None], None),
        (2, [10, 8, 7], None),
        (2, [10, 8, 6, 6], "when number 6 was the last it knew to be stable: with N = 3, algorithm 2 requires 7"),
        (2, [10, 7, 7, 7], "when number 7 was the last it knew to be complete: with N = 3, algorithm 2 requires 8"),
        (3, [10, 8, 0, 0], None),
        (3, [10, 7, 7, 7], "when number 7 was the last it knew to be complete: with N = 3, algorithm 3 requires 8"),
        (2, [0, -1, -1, -1], None),
    ],
)
def test_f2_the_table_of_conditions(algorithm: int, header: list[Any], words: str | None) -> None:
    events = sent(windowed(algorithm), header).end()
    assert outcome(events, "F2") == (("violated", 1, 1) if words else ("pass", 1, 0))
    if words:
        assert sentence(events, "F2", "orders") == f"p1 transmitted frame 10 in orders (index 3) {words}"


def test_f2_algorithm_3_allows_n_frames() -> None:
    good = sent(windowed(3), [1, 0, 0, 0], [2, 1, 0, 0], [3, 2, 0, 0], [4, 3, 1, 1])
    assert outcome(good.end(), "F2") == ("pass", 4, 0)
    bad = sent(windowed(3), [1, 0, 0, 0], [2, 1, 0, 0], [3, 2, 0, 0], [4, 3, 0, 0])
    events = bad.end()
    assert outcome(events, "F2") == ("violated", 4, 1)
    assert sentence(events, "F2", "orders") == (
        "p1 transmitted frame 4 in orders (index 9) when 3 of its earlier frames were above number 0, "
        "the last it knew to be stable: algorithm 3 allows N = 3 including the new one"
    )


def test_f2_each_group_has_its_own_window() -> None:
    options = {"flow_control": 3, "window": 2, "window_bytes": 100}
    trace = Trace({"a": ["p1"], "b": ["p1"]}, options=options).begin()
    for group in ("a", "b", "a", "b"):
        number = len(trace.rows)
        trace.transmit("p1", str(number), [number, number - 1, 0, 0], "fragment", group)
    found = {(each.property, each.group): each for each in judge(trace.end())}
    assert [found["F2", group].outcome for group in ("a", "b")] == ["pass", "pass"]


def test_f2_nulls_obey_where_blocks_are_counted() -> None:
    late = [10, 0, 0, 0]
    assert outcome(sent(windowed(2), late, kind="null").end(), "F2") == ("vacuous", 0, 0)
    assert outcome(sent(windowed(2), late, kind="alive").end(), "F2") == ("vacuous", 0, 0)
    assert outcome(sent(windowed(2, numbering="block"), late, kind="null").end(), "F2") == ("violated", 1, 1)


def test_f2_a_frame_must_show_its_header() -> None:
    trace = windowed(3)
    trace.transmit("p1", "bare", None)
    events = trace.end()
    assert outcome(events, "F2") == ("violated", 1, 1)
    assert sentence(events, "F2", "orders") == (
        "p1 transmitted a frame in orders (index 2) without a flow-control header"
    )


@pytest.mark.parametrize(
    "options",
    [{"flow_control": 3}, {"flow_control": 4, "window": 3}, {"flow_control": "on"}, {"flow_control": 1, "window": "x"}],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TraceError, match="the start row of p1"):
        judge(trio(options=options).end())


# F3


def pressed(*, blocked: bool = True) -> Trace:
    trace = trio()
    if blocked:
        trace.block("p1", "p3")
        trace.unblock("p1")
    return trace


def test_f3_all_is_delivered_after_a_block() -> None:
    trace = pressed()
    trace.deliver_everywhere(trace.send("p1"), trace.send("p2"))
    assert outcome(trace.end(), "F3") == ("pass", 3, 0)


def test_f3_asks_only_of_senders_that_were_blocked() -> None:
    trace = pressed(blocked=False)
    trace.send("p1")
    assert outcome(trace.end(), "F3") == ("vacuous", 0, 0)


def test_f3_a_message_is_lost() -> None:
    trace = pressed()
    mid = trace.send("p1")
    trace.deliver("p2", mid)
    events = trace.end()
    assert outcome(events, "F3") == ("violated", 3, 2)
    assert sentence(events, "F3", "orders") == (
        "p1, which flow control had blocked in that group, sent orders/p1:0 (index 4), "
        "but it had not delivered it when the run ended quiet"
    )


def test_f3_asks_in_earlier_views_too() -> None:
    trace = pressed()
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.crash("p3")
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
    events = trace.end()
    assert outcome(events, "F3") == ("violated", 2, 1)
    assert "but p2 had not delivered it" in sentence(events, "F3", "orders")


def test_f3_excuses_crashed_and_removed_senders() -> None:
    crashed = pressed()
    crashed.send("p1")
    crashed.crash("p1")
    assert outcome(crashed.end(), "F3") == ("vacuous", 0, 0)
    removed = pressed()
    removed.deliver("p1", removed.send("p1"))
    removed.view("p1", "orders", "v1x", ["p1"])
    for process in ("p2", "p3"):
        removed.view(process, "orders", "v1", ["p2", "p3"])
    assert outcome(removed.end(), "F3") == ("pass", 1, 0)


def test_f3_a_request_never_left() -> None:
    trace = trio()
    trace.block("p1")
    trace.closed.add("p1")
    trace.row("p1", "stop", detail='{"waiting": {"orders": 2}}')
    events = trace.end()
    assert outcome(events, "F3") == ("violated", 2, 1)
    assert "2 messages that its application gave it" in sentence(events, "F3", "orders")


def test_f3_needs_a_quiet_end() -> None:
    trace = pressed()
    trace.send("p1")
    assert outcome(trace.end(quiet=False), "F3") == ("vacuous", 0, 0)


# InterGroup: a process that begins again


def senders_with_window() -> Trace:
    options = {"window": 2, "suspect_after": "1s"}
    return Trace({"orders": ("p1", "p2")}, protocol="intergroup", options=options).begin()


def only_receive(trace: Trace, process: str, view: str, members: list[str]) -> None:
    """The process only receives in that view."""
    previous, detail = trace.views[process, "orders"], '{"role":"receiver"}'
    trace.row(process, "view", group="orders", view=view, members=members, previous=previous, detail=detail)
    trace.views[process, "orders"] = view


@pytest.mark.parametrize(("later", "over"), [(2, 0), (3, 1)])
def test_f1_what_a_sender_sent_before_it_began_again_does_not_count(later: int, over: int) -> None:
    """M16: it holds none of these messages any more, and never learns whether they are stable."""
    trace = senders_with_window()
    for _ in range(2):
        trace.send("p1")
    only_receive(trace, "p1", "p1/1", ["p1"])
    for _ in range(later):
        trace.send("p1")
    assert outcome(trace.end(), "F1") == ("violated" if over else "pass", 2 + later, over)


def test_f1_an_orderly_departure_does_not_open_the_window() -> None:
    trace = senders_with_window()
    for _ in range(2):
        trace.send("p1")
    only_receive(trace, "p1", "v1", ["p2"])
    trace.view("p1", "orders", "v2", ["p1", "p2"])
    trace.send("p1")
    assert outcome(trace.end(), "F1") == ("violated", 3, 1)


@pytest.mark.parametrize(("between", "outcome_of_both"), [(["p2"], ("pass", 1, 0)), (["p1"], ("violated", 2, 1))])
def test_f3_a_process_that_began_again_owes_nothing(between: list[str], outcome_of_both: tuple[str, int, int]) -> None:
    """p2 leaves the senders and returns: alone in its view because it begins again, or in order."""
    trace = senders_with_window()
    trace.block("p1")
    trace.deliver("p1", trace.send("p1"))
    only_receive(trace, "p2", "between", between)
    trace.view("p1", "orders", "v2", ["p1", "p2"])
    trace.view("p2", "orders", "v2", ["p1", "p2"])
    assert outcome(trace.end(), "F3") == outcome_of_both
