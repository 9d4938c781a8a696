"""L9 of receive-only processes: once begun, they lose no sender, unless a fault explains the loss."""

import json
from typing import Any

import pytest

from tests.support.traces.handmade import Trace, sentence, verdict

BEARABLE = 50
STALL = 500
PERIOD = 20
SENDERS = ("p1", "p2")


def following(*, others: tuple[str, ...] = ()) -> Trace:
    """p3, and any others, have begun to follow p1 and p2."""
    receivers = ("p3", *others)
    trace = Trace(
        {"orders": (*SENDERS, *receivers)},
        protocol="intergroup",
        options={"suspect_after": f"{2 * BEARABLE}ns"},
        roles=dict.fromkeys(receivers, "receiver"),
    )
    for process in trace.members:
        trace.start(process)
    for process in SENDERS:
        trace.view(process, "orders", "v0", SENDERS)
    for process in receivers:
        trace.view(process, "orders", f"{process}/1", SENDERS)
    return trace


def begin_anew(trace: Trace) -> None:
    trace.view("p3", "orders", "p3/2", ["p3"])


def transmitted(trace: Trace, process: str, frame: str) -> None:
    detail = json.dumps({"type": "keep-alive", "frame": frame})
    trace.row(process, "transmit", group="orders", view="v0", detail=detail)


def received(trace: Trace, process: str, sender: str, kind: str, frame: str | None = None) -> None:
    detail = json.dumps({"type": kind, "frame": frame})
    view = trace.views[process, "orders"]
    trace.row(process, "receive", group="orders", view=view, sender=sender, peer=sender, detail=detail)


def talk(trace: Trace, rounds: int = 5, *, silent: str | None = None, deaf: str | None = None) -> None:
    """Both senders send keep-alives, except a silent one, and p3 hears them, except the one that it is deaf to."""
    for _ in range(rounds):
        trace.time += PERIOD
        for sender in SENDERS:
            frame = f"{sender}/{trace.time}"
            if sender != silent:
                transmitted(trace, sender, frame)
            if sender not in (silent, deaf):
                received(trace, "p3", sender, "keep-alive", frame)


def judged(trace: Trace) -> tuple[str, int]:
    found = verdict(trace.end(), "L9", "orders")
    return found.outcome, found.opportunities


def test_a_process_that_begins_once_keeps_the_promise() -> None:
    assert judged(following()) == ("pass", 1)


def test_a_process_that_hears_everything_in_time_has_no_reason_to_begin_anew() -> None:
    trace = following()
    talk(trace)
    begin_anew(trace)
    events = trace.end()
    assert verdict(events, "L9", "orders").violations == 1
    assert sentence(events, "L9", "orders") == (
        "p3 installed view p3/2 (index 12) after view p3/1, without p1, p2, although all that these sent had reached "
        "it in time"
    )


@pytest.mark.parametrize("delay", [None, BEARABLE, 2 * BEARABLE])
def test_a_frame_that_is_late_or_lost_is_a_reason(delay: int | None) -> None:
    trace = following()
    talk(trace)
    transmitted(trace, "p1", "p1/1")
    sent = trace.time
    talk(trace)
    if delay is not None:
        received(trace, "p3", "p1", "keep-alive", "p1/1")
        trace.rows[-1]["time"] = sent + delay
    begin_anew(trace)
    assert judged(trace)[0] == ("violated" if delay == BEARABLE else "pass")


@pytest.mark.parametrize("silent", [None, *SENDERS])
def test_a_sender_that_stood_still_is_a_reason_though_no_fault_is_told(silent: str | None) -> None:
    """It sent nothing, so nothing was lost."""
    trace = following()
    talk(trace)
    talk(trace, 2 * 2 * BEARABLE // PERIOD, silent=silent)
    begin_anew(trace)
    assert judged(trace)[0] == ("pass" if silent else "violated")


def test_a_sender_that_stands_still_for_a_bearable_time_is_no_reason() -> None:
    trace = following()
    for _ in range(4):
        talk(trace, 1)
        talk(trace, 1, silent="p1")
    begin_anew(trace)
    assert judged(trace)[0] == "violated"


def lacking(trace: Trace, wait: int, report_every: int) -> None:
    """A message of p1 does not arrive; after a while p3 is told that it is gone."""
    received(trace, "p1", "p3", "report")
    trace.send("p1")
    for _ in range(wait // report_every):
        trace.time += report_every
        received(trace, "p1", "p3", "report")
    received(trace, "p3", "p1", "gone")
    trace.time += STALL
    begin_anew(trace)


def test_a_message_that_is_gone_too_early_is_no_reason_although_it_was_lost() -> None:
    trace = following()
    lacking(trace, wait=100, report_every=20)
    events = trace.end()
    assert verdict(events, "L9", "orders").violations == 1
    assert sentence(events, "L9", "orders").endswith(
        "although what it lacked was gone before it could have received it"
    )


def test_a_process_that_lacked_it_for_half_of_the_stall_time_has_a_reason() -> None:
    trace = following()
    lacking(trace, wait=STALL // 2, report_every=10)
    assert judged(trace) == ("pass", 1)


def test_a_process_that_was_not_heard_for_half_of_it_has_a_reason() -> None:
    trace = following()
    received(trace, "p1", "p3", "report")
    trace.time += STALL // 2
    lacking(trace, wait=20, report_every=10)
    assert judged(trace) == ("pass", 1)


def test_a_process_whose_first_report_was_lost_has_a_reason() -> None:
    trace = following()
    trace.time += BEARABLE
    lacking(trace, wait=20, report_every=10)
    assert judged(trace) == ("pass", 1)


def test_an_answer_about_messages_received_meanwhile_is_no_evidence() -> None:
    """Later messages are delivered, so none was missing before; in the end p3 is deaf to p1."""
    trace = following()
    received(trace, "p1", "p3", "report")
    received(trace, "p3", "p1", "gone")
    for _ in range(20):
        message = trace.send("p1")
        trace.receive("p3", message)
        trace.deliver("p3", message)
        talk(trace, 1)
        received(trace, "p1", "p3", "report")
    talk(trace, 20, deaf="p1")
    begin_anew(trace)
    assert judged(trace) == ("pass", 1)


@pytest.mark.parametrize(("rounds", "outcome"), [(10, "violated"), (100, "pass")])
def test_an_answer_is_no_evidence_if_the_process_continued_for_long_after_it(rounds: int, outcome: str) -> None:
    """If the sender has nothing more to send, only the time without a reset shows that nothing was missing."""
    trace = following()
    received(trace, "p1", "p3", "report")
    received(trace, "p3", "p1", "gone")
    talk(trace, rounds)
    talk(trace, 5, deaf="p1")
    begin_anew(trace)
    assert judged(trace) == (outcome, 1)


@pytest.mark.parametrize("of", ["sent before", "another sender", "not delivered"])
def test_an_old_foreign_or_undelivered_message_does_not_prove_that_nothing_was_missing(of: str) -> None:
    trace = following()
    received(trace, "p1", "p3", "report")
    before = {sender: trace.send(sender) for sender in SENDERS}
    received(trace, "p3", "p1", "gone")
    after = {sender: trace.send(sender) for sender in SENDERS}
    message = before["p1"] if of == "sent before" else after["p2" if of == "another sender" else "p1"]
    trace.receive("p3", message)
    if of != "not delivered":
        trace.deliver("p3", message)
    talk(trace, 20, deaf="p1")
    begin_anew(trace)
    assert sentence(trace.end(), "L9", "orders").endswith(
        "although what it lacked was gone before it could have received it"
    )


def test_a_message_that_is_gone_later_is_evidence_although_an_earlier_answer_was_none() -> None:
    trace = following()
    received(trace, "p1", "p3", "report")
    received(trace, "p3", "p1", "gone")
    message = trace.send("p1")
    trace.receive("p3", message)
    trace.deliver("p3", message)
    lacking(trace, wait=100, report_every=20)
    assert judged(trace) == ("violated", 1)


@pytest.mark.parametrize("lost", [True, False])
def test_losses_before_the_last_source_began_count(lost: bool) -> None:
    """p3 begins with p1 a second time and continues with p2; the lost message is an older one of p2."""
    trace = following()
    talk(trace)
    if lost:
        transmitted(trace, "p2", "p2/lost")
    talk(trace)
    trace.view("p3", "orders", "p3/2", ["p2"])
    talk(trace)
    trace.view("p3", "orders", "p3/3", SENDERS)
    talk(trace)
    trace.view("p3", "orders", "p3/4", ["p3"])
    assert verdict(trace.end(), "L9", "orders").violations == (0 if lost else 2)


def test_a_process_that_loses_one_of_two_sources_begins_anew_with_it() -> None:
    trace = following()
    talk(trace)
    trace.view("p3", "orders", "p3/2", ["p2"])
    trace.view("p3", "orders", "p3/3", SENDERS)
    events = trace.end()
    assert verdict(events, "L9", "orders").violations == 1
    assert "without p1, although" in sentence(events, "L9", "orders")


def test_a_process_that_leaves_and_comes_back_begins_twice() -> None:
    trace = following()
    trace.leave("p3")
    trace.join("p3")
    trace.view("p3", "orders", "p3/2", SENDERS)
    assert judged(trace) == ("pass", 2)


SHORT, LONG = ({"at": "0s", "until": f"{time}ns"} for time in (BEARABLE, BEARABLE + 1))


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        ("pause", {"process": "p3", **LONG}),
        ("pause", {"process": "p1", **LONG}),
        ("stall", {"process": "p3", "at": "0s"}),
        ("slow", {"process": "p2", **LONG}),
        ("skew", {"process": "p3", "offset": "51ns", "rate": 1.0}),
        ("skew", {"process": "p3", "offset": "0s", "rate": 1.5}),
        ("delay", {"extra": "51ns", **SHORT}),
        ("delay", {"extra": "51ns", "from": "p3", "to": "p1", **SHORT}),
        ("loss", {"rate": 1.0, "process": "p2", **SHORT}),
        ("partition", {"sides": [["p1"], ["p3", "p4"]], **LONG}),
        ("cut", {"from": "p2", "to": "p3", **LONG}),
        ("crash", {"process": "p1"}),
    ],
)
def test_a_fault_beyond_the_bounds_excuses_the_process(kind: str, detail: dict[str, Any]) -> None:
    trace = following()
    trace.fault(kind, **detail)
    talk(trace)
    begin_anew(trace)
    assert judged(trace) == ("vacuous", 0)


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        ("pause", {"process": "p1", **SHORT}),
        ("pause", {"process": "p4", **LONG}),
        ("skew", {"process": "p1", "offset": "50ns", "rate": 1.0}),
        ("delay", {"extra": "50ns", **LONG}),
        ("delay", {"extra": "51ns", "from": "p3", "to": "p4", **LONG}),
        ("partition", {"sides": [["p1", "p2", "p3"], ["p4"]], **LONG}),
        ("cut", {"from": "p4", "to": "p3", **LONG}),
        ("join", {"process": "p3", "group": "orders", "at": "0s"}),
    ],
)
def test_a_fault_within_the_bounds_or_at_other_processes_is_no_excuse(kind: str, detail: dict[str, Any]) -> None:
    trace = following(others=("p4",))
    trace.fault(kind, **detail)
    talk(trace)
    begin_anew(trace)
    assert judged(trace)[0] == "violated"
