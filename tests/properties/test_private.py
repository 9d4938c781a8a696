"""Private views: S1, O2, L2, L6 and L8 in the acknowledgment family."""

from typing import Any

import pyarrow as pa

from tests.support.traces.handmade import Trace, sentence, verdict, violated
from tests.support.traces.private import Nodes


def one_way(**options: Any) -> Nodes:
    """s sends, and never receives; r1 and r2 receive."""
    trace = Nodes({"orders": ["r1", "r2"]}, protocol="acks", service="fifo", outside={"orders": ["s"]}, options=options)
    for process in ("s", "r1", "r2"):
        trace.start(process)
    trace.connect("s", ["r1", "r2"], [])
    for process in ("r1", "r2"):
        trace.connect(process, [], ["s"])
    return trace


def outcome(events: pa.Table, property_id: str) -> tuple[str, int, int]:
    found = verdict(events, property_id, "orders")
    return found.outcome, found.opportunities, found.violations


def take(trace: Trace, process: str, *mids: Any) -> None:
    for mid in mids:
        trace.receive(process, mid)
        trace.deliver(process, mid)


def test_a_good_run_of_one_sender() -> None:
    trace = one_way()
    mid = trace.send("s")
    take(trace, "r1", mid)
    take(trace, "r2", mid)
    trace.stable("s", {"s": 0})
    trace.discard("s", {"s": 0})
    events = trace.end(settled=False)
    assert violated(events) == set()
    assert [outcome(events, name)[1] for name in ("S1", "S4", "L2", "L6", "L8")] == [1, 1, 2, 1, 1]


def test_s1_asks_every_receiver() -> None:
    trace = one_way()
    mid = trace.send("s")
    take(trace, "r1", mid)
    trace.stable("s", {"s": 0})
    take(trace, "r2", mid)
    events = trace.end(quiet=False)
    assert outcome(events, "S1") == ("violated", 1, 1)
    assert sentence(events, "S1", "orders") == (
        "s learned that orders/s:0 is stable (index 3), but r2, a receiver of view 1.s, "
        "received it only later (index 2)"
    )


def test_s1_covers_no_process_that_came_later_or_went() -> None:
    trace = one_way()
    mid = trace.send("s")
    take(trace, "r1", mid)
    trace.connect("s", ["r1"], [])
    trace.connect("s", ["r1", "r2"], [])
    trace.stable("s", {"s": 0})
    assert outcome(trace.end(quiet=False), "S1") == ("pass", 1, 0)


def test_s1_of_others_covers_all_receivers_here() -> None:
    trace = Nodes({"orders": ["p1", "p2"]}, protocol="acks", service="fifo", options={"stability": "all"})
    for process, other in (("p1", "p2"), ("p2", "p1")):
        trace.start(process)
        trace.connect(process, [other], [other])
    trace.send("p1")
    trace.stable("p2", {"p1": 0})
    told = sentence(trace.end(quiet=False), "S1", "orders")
    assert told == "p2 learned that orders/p1:0 is stable (index 2), but itself never received it"


def test_o2_counts_from_the_first_of_an_unbroken_run() -> None:
    trace = one_way()
    mids = [trace.send("s") for _ in range(5)]
    trace.deliver("r1", mids[1], mids[2])
    trace.connect("r1", [], [])
    trace.connect("r1", [], ["s"])
    trace.deliver("r1", mids[4])
    events = trace.end(quiet=False)
    assert outcome(events, "O2") == ("pass", 1, 0)
    gap = one_way()
    mids = [gap.send("s") for _ in range(4)]
    gap.deliver("r1", mids[1], mids[3])
    assert sentence(gap.end(quiet=False), "O2", "orders") == (
        "r1 delivered orders/s:3 (index 3) but had not delivered orders/s:2 before, which s sent first; "
        "s was with r1 in view 1.r1"
    )


def test_o2_goes_by_the_view_of_the_receipt() -> None:
    """A slow application reads messages from before the break only after it."""
    for received_before, expected in ((1, ("vacuous", 0, 0)), (0, ("violated", 1, 1))):
        trace = one_way()
        mids = [trace.send("s") for _ in range(3)]
        trace.receive("r1", *mids[:received_before])
        trace.connect("r1", [], [])
        trace.connect("r1", [], ["s"])
        trace.deliver("r1", mids[0], mids[2])
        assert outcome(trace.end(quiet=False), "O2") == expected


def test_l2_asks_those_that_stay_receivers() -> None:
    trace = one_way()
    mid = trace.send("s")
    take(trace, "r1", mid)
    trace.connect("s", ["r1"], [])
    events = trace.end(settled=False)
    assert outcome(events, "L2") == ("pass", 1, 0)
    lost = one_way()
    take(lost, "r1", lost.send("s"))
    lost.connect("s", ["r2", "r1"], [])
    events = lost.end(settled=False)
    assert outcome(events, "L2") == ("violated", 2, 1)
    assert sentence(events, "L2", "orders") == (
        "s sent orders/s:0 (index 2) in view 1.s, but r2, to which it sent from then on until the end, "
        "had not delivered it when the run ended quiet"
    )


def test_l2_tells_what_a_sender_never_sent() -> None:
    trace = one_way()
    trace.stop("s", waiting={"orders": 1})
    events = trace.end(settled=False)
    assert outcome(events, "L2") == ("violated", 1, 1)
    assert "s stopped (index 2) without having sent 1 message that its application gave it" in sentence(
        events, "L2", "orders"
    )


def test_l6_asks_the_sender_alone() -> None:
    trace = one_way()
    trace.send("s")
    events = trace.end(settled=False)
    assert outcome(events, "L6") == ("violated", 1, 1)
    assert sentence(events, "L6", "orders") == (
        "s sent orders/s:0 (index 2) but did not know it to be stable when the run ended quiet"
    )


def test_l8_asks_for_what_was_sent() -> None:
    trace = one_way()
    mid = trace.send("s")
    take(trace, "r1", mid)
    take(trace, "r2", mid)
    events = trace.end(settled=False)
    assert outcome(events, "L8") == ("violated", 1, 1)
    assert "s sent orders/s:0 (index 2) but had not freed it" in sentence(events, "L8", "orders")


def test_l8_asks_that_nothing_is_held() -> None:
    for protocol, service, lost in (("acks", "fifo", 1), ("classic", "reliable", 1), ("newtop", "total", 0)):
        trace = Trace({"orders": ["p1"]}, protocol=protocol, service=service).begin()
        trace.stop("p1", held={"orders": 3, "elsewhere": 1})
        events = trace.end(settled=False)
        assert outcome(events, "L8")[2] == lost
        if lost:
            assert sentence(events, "L8", "orders") == (
                "p1 stopped (index 2) while it still held 3 messages of orders, although the run ended quiet"
            )


def test_classic_processes_report_nothing_as_freed() -> None:
    trace = Trace({"orders": ["p1", "p2"]}, protocol="classic", service="reliable").begin()
    mid = trace.send("p1")
    trace.receive("p2", mid)
    trace.deliver_everywhere(mid)
    events = trace.end(settled=False)
    assert violated(events) == set()
    assert outcome(events, "L8") == ("pass", 2, 0)
