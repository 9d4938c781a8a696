"""O2 reliable FIFO order and O4 reliable causal order."""

import pytest

from tests.support.traces.handmade import Mid, Trace, sentence, trio, verdict, violated


def exclude(trace: Trace, process: str, *by: str, view: str = "v1", group: str = "orders") -> None:
    """The others install a view without the process."""
    members = [member for member in trace.groups[group] if member != process]
    for member in by:
        trace.exclude(member, view, members, group)


# O2


def test_o2_counts_messages_with_a_predecessor() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"), trace.send("p2"), trace.send("p1"), trace.send("p1"))
    judged = verdict(trace.end(), "O2", "orders")
    assert (judged.outcome, judged.opportunities) == ("pass", 6)


def test_o2_a_gap() -> None:
    trace = trio()
    mids = [trace.send("p1") for _ in range(3)]
    trace.deliver("p2", mids[0], mids[2])
    judged = verdict(trace.end(quiet=False), "O2", "orders")
    assert (judged.outcome, judged.violations, judged.opportunities) == ("violated", 1, 1)
    assert judged.example is not None
    assert judged.example.messages == ("orders/p1:2", "orders/p1:1")
    assert judged.example.sentence == (
        "p2 delivered orders/p1:2 (index 3) but had not delivered orders/p1:1 before, which p1 sent first; "
        "p1 was with p2 in view v0"
    )


def test_o2_the_first_message_counts_too() -> None:
    trace = trio()
    trace.send("p1")
    trace.deliver("p2", trace.send("p1"))
    assert "but had not delivered orders/p1:0 before" in sentence(trace.end(quiet=False), "O2", "orders")


def test_o2_says_nothing_of_the_end_of_a_log() -> None:
    trace = trio()
    mids = [trace.send("p1") for _ in range(3)]
    trace.deliver("p2", *mids[:2])
    trace.deliver("p3", mids[0])
    trace.crash("p3")
    assert violated(trace.end(quiet=False)) == set()


def test_o2_a_late_one_is_missed_where_it_should_have_come() -> None:
    trace = trio()
    first, second = trace.send("p1"), trace.send("p1")
    trace.deliver("p2", second, first)
    events = trace.end(quiet=False)
    assert {"O1", "O2"} <= violated(events)
    assert verdict(events, "O2", "orders").violations == 1


def test_o2_a_crashed_process_counts_up_to_its_crash() -> None:
    trace = trio()
    trace.send("p1")
    trace.deliver("p3", trace.send("p1"))
    trace.crash("p3")
    assert "O2" in violated(trace.end(quiet=False))


def test_o2_goes_on_over_views_that_keep_the_sender() -> None:
    trace = trio()
    mids = [trace.send("p1") for _ in range(2)]
    trace.crash("p3")
    exclude(trace, "p3", "p1", "p2")
    mids.append(trace.send("p1"))
    trace.deliver("p1", *mids)
    trace.deliver("p2", mids[0], mids[2])
    judged = verdict(trace.end(quiet=False), "O2", "orders")
    assert judged.violations == 1
    assert judged.example is not None
    assert judged.example.views == ("v0", "v1")
    assert judged.example.sentence.endswith("p1 was with p2 in every view from v0 to v1")


def test_o2_is_owed_only_to_members_of_the_view() -> None:
    trace = trio()
    trace.send("p3")
    late = trace.send("p3")
    exclude(trace, "p3", "p1", "p2")
    trace.deliver("p1", late)
    assert verdict(trace.end(quiet=False), "O2", "orders").outcome == "vacuous"


def test_o2_a_joiner_owes_what_was_sent_in_its_views() -> None:
    trace = Trace({"orders": ["p1", "p2"]})
    for process in ("p1", "p2"):
        trace.start(process)
    trace.view("p1", "orders", "v0", ["p1"])
    mids = [trace.send("p1") for _ in range(2)]
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
    mids += [trace.send("p1") for _ in range(3)]
    trace.deliver("p1", *mids)
    trace.deliver("p2", mids[3], mids[4])
    judged = verdict(trace.end(quiet=False), "O2", "orders")
    assert judged.violations == 1
    assert judged.example is not None
    assert judged.example.messages == ("orders/p1:3", "orders/p1:2")


def test_o2_a_process_that_leaves_and_comes_back_owes_nothing_for_the_time_between() -> None:
    trace = trio()
    mids = [trace.send("p1")]
    trace.deliver("p3", mids[0])
    trace.row("p3", "leave", group="orders")
    exclude(trace, "p3", "p1", "p2")
    mids.append(trace.send("p1"))
    for process in ("p1", "p2", "p3"):
        trace.view(process, "orders", "v2", ["p1", "p2", "p3"])
    mids.append(trace.send("p1"))
    trace.deliver("p3", mids[2])
    trace.deliver("p1", *mids)
    trace.deliver("p2", *mids)
    assert "O2" not in violated(trace.end(quiet=False))


def test_o2_numbers_go_on_beyond_the_log_of_a_crashed_sender() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p3"))
    trace.crash("p3")
    trace.deliver("p1", Mid("orders", "p3", 1, 2), Mid("orders", "p3", 2, 3))
    trace.deliver("p2", Mid("orders", "p3", 2, 3))
    judged = verdict(trace.end(quiet=False), "O2", "orders")
    assert (judged.violations, judged.opportunities) == (1, 3)


# O4


def answered(trace: Trace, group: str = "orders") -> tuple[Mid, Mid]:
    """p1 asks, p2 delivers the question and answers, both in one group."""
    question = trace.send("p1", group)
    trace.deliver("p2", question)
    return question, trace.send("p2", group)


def test_o4_counts_messages_with_a_cause_of_another() -> None:
    trace = trio()
    question, answer = answered(trace)
    trace.deliver("p1", question, answer)
    trace.deliver("p2", answer)
    trace.deliver("p3", question, answer)
    judged = verdict(trace.end(), "O4")
    assert (judged.outcome, judged.opportunities) == ("pass", 3)


def test_o4_an_answer_without_the_question() -> None:
    trace = trio()
    _, answer = answered(trace)
    trace.deliver("p3", answer)
    events = trace.end(quiet=False)
    assert violated(events) == {"O4"}
    judged = verdict(events, "O4")
    assert (judged.violations, judged.opportunities) == (1, 1)
    assert judged.example is not None
    assert judged.example.messages == ("orders/p2:0", "orders/p1:0")
    assert judged.example.sentence == (
        "p3 delivered orders/p2:0 (index 2) but never orders/p1:0, although orders/p1:0 happened before orders/p2:0 "
        "and its sender was in view: p2 delivered orders/p1:0 (index 2) before it sent orders/p2:0 (index 3)"
    )


def test_o4_a_cause_that_comes_late_is_left_to_o3() -> None:
    trace = trio()
    question, answer = answered(trace)
    trace.deliver("p3", answer, question)
    assert violated(trace.end(quiet=False)) == {"O3", "O8"}


def test_o4_each_missing_cause_counts_once() -> None:
    trace = trio()
    _, answer = answered(trace)
    trace.deliver("p3", answer, *(trace.send("p2") for _ in range(3)))
    assert verdict(trace.end(quiet=False), "O4").violations == 1


def test_o4_says_nothing_of_the_end_of_a_log() -> None:
    trace = trio()
    question, answer = answered(trace)
    trace.deliver("p1", question, answer)
    trace.crash("p3")
    assert violated(trace.end(quiet=False)) == set()


def test_o4_through_a_group_that_the_receiver_is_not_in() -> None:
    trace = Trace({"a": ["p1", "p2", "p4"], "b": ["p2", "p3"], "c": ["p3", "p4"]}).begin()
    first = trace.send("p1", "a")
    trace.deliver("p2", first)
    second = trace.send("p2", "b")
    trace.deliver("p3", second)
    trace.deliver("p4", trace.send("p3", "c"))
    events = trace.end(quiet=False)
    assert verdict(events, "O4").violations == 1
    assert sentence(events, "O4").endswith(
        "p2 delivered a/p1:0 (index 3) before it sent b/p2:0 (index 4), "
        "and p3 delivered b/p2:0 (index 3) before it sent c/p3:0 (index 4)"
    )


def test_o4_asks_only_for_groups_of_the_receiver() -> None:
    trace = Trace({"a": ["p1", "p2"], "b": ["p2", "p3"]}).begin()
    first = trace.send("p1", "a")
    trace.deliver("p2", first)
    trace.deliver("p3", trace.send("p2", "b"))
    judged = verdict(trace.end(quiet=False), "O4")
    assert (judged.outcome, judged.opportunities) == ("vacuous", 0)


def overlapping(service: str = "total") -> tuple[Trace, Mid]:
    """p1 sends in a, p2 alone delivers it and sends in b, then p1 and p2 disappear."""
    trace = Trace({"a": ["p1", "p2", "p3", "p4"], "b": ["p2", "p3", "p4"]}, service=service).begin()
    lost = trace.send("p1", "a")
    trace.deliver("p2", lost)
    answer = trace.send("p2", "b")
    trace.crash("p1")
    trace.crash("p2")
    return trace, answer


def test_o4_a_cause_lost_with_its_sender_is_excused_once_the_sender_is_out_of_view() -> None:
    trace, answer = overlapping()
    exclude(trace, "p1", "p3", "p4", group="a")
    trace.deliver("p3", answer)
    trace.deliver("p4", answer)
    assert violated(trace.end(quiet=False)) == set()


def test_o4_a_cause_lost_with_its_sender_is_owed_until_then() -> None:
    trace, answer = overlapping()
    trace.deliver("p3", answer)
    exclude(trace, "p1", "p3", "p4", group="a")
    trace.deliver("p4", answer)
    judged = verdict(trace.end(quiet=False), "O4")
    assert judged.violations == 1
    assert judged.example is not None
    assert judged.example.processes == ("p3",)


@pytest.mark.parametrize(
    ("service", "group", "excused"),
    [
        ("causal-fast", "a", True),
        ("causal-relative", "a", True),
        ("causal-slow", "a", False),
        ("total", "a", False),
        ("causal-fast", "b", False),
    ],
)
def test_o4_across_groups_some_services_excuse_it_from_the_confirmed_failure_on(
    service: str, group: str, excused: bool
) -> None:
    trace, answer = overlapping(service)
    trace.row("p3", "confirm", group=group, peer="p1")
    trace.deliver("p3", answer)
    assert ("O4" not in violated(trace.end(quiet=False))) == excused


def test_o4_within_one_group_no_confirmed_failure_excuses() -> None:
    trace = trio(service="causal-fast")
    _, answer = answered(trace)
    trace.row("p3", "confirm", group="orders", peer="p1")
    trace.deliver("p3", answer)
    assert "O4" in violated(trace.end(quiet=False))


def test_o4_the_sender_of_the_effect_must_have_been_in_view_as_well() -> None:
    trace = Trace({"orders": ["p1", "p2", "p3"]})
    for process in trace.members:
        trace.start(process)
    for process in ("p1", "p3"):
        trace.view(process, "orders", "v0", ["p1", "p3"])
    old = trace.send("p1")
    trace.deliver("p1", old)
    for process in ("p1", "p2", "p3"):
        trace.view(process, "orders", "v1", ["p1", "p2", "p3"])
    new = trace.send("p1")
    trace.deliver("p2", new)
    trace.deliver("p3", trace.send("p2"))
    judged = verdict(trace.end(quiet=False), "O4")
    # p2 joined with v1: it is no witness for earlier messages, but it is one for later ones.
    assert judged.violations == 1
    assert judged.example is not None
    assert judged.example.messages == ("orders/p2:0", "orders/p1:1")


def test_o4_one_that_joins_later_owes_nothing_older() -> None:
    trace = Trace({"a": ["p1", "p2", "p3"], "b": ["p2", "p3"]})
    for process in trace.members:
        trace.start(process)
    for process in ("p1", "p2"):
        trace.view(process, "a", "v0", ["p1", "p2"])
    for process in ("p2", "p3"):
        trace.view(process, "b", "v0", ["p2", "p3"])
    old = trace.send("p1", "a")
    trace.deliver("p1", old)
    trace.deliver("p2", old)
    answer = trace.send("p2", "b")
    for process in ("p1", "p2", "p3"):
        trace.view(process, "a", "v1", ["p1", "p2", "p3"])
    trace.deliver("p3", answer)
    assert not {"O2", "O3", "O4"} & violated(trace.end(quiet=False))


def test_o4_a_process_that_left_a_group_is_not_asked() -> None:
    trace, answer = overlapping()
    trace.row("p3", "leave", group="a")
    trace.deliver("p3", answer)
    assert violated(trace.end(quiet=False)) == set()


def test_o4_messages_beyond_a_crashed_log_do_not_follow_from_one_another_across_groups() -> None:
    trace = Trace({"a": ["p1", "p2"], "b": ["p1", "p2"]}, service="causal-fast").begin()
    trace.crash("p1")
    trace.deliver("p2", Mid("b", "p1", 0, 2), Mid("a", "p1", 0, 1))
    assert violated(trace.end(quiet=False)) == set()
