"""D1 integrity, D2 no duplication, D8 virtual synchrony."""

import pytest

from tests.support.traces.handmade import Mid, Trace, sentence, trio, verdict, violated


def test_good_deliveries_pass_with_their_opportunities() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"), trace.send("p2"))
    events = trace.end()
    assert [verdict(events, name, "orders").outcome for name in ("D1", "D2", "D8")] == ["pass"] * 3
    assert [verdict(events, name, "orders").opportunities for name in ("D1", "D2", "D8")] == [6, 6, 3]


def test_an_idle_group_is_vacuous() -> None:
    events = trio().end()
    assert [verdict(events, name, "orders").outcome for name in ("D1", "D2", "D8")] == ["vacuous"] * 3


# D1


def test_d1_no_process_sent_it() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"))
    trace.deliver("p2", Mid("orders", "p3", 4, 9))
    judged = verdict(trace.end(), "D1", "orders")
    assert (judged.outcome, judged.violations) == ("violated", 1)
    assert judged.example is not None
    assert judged.example.sentence.startswith("p2 delivered orders/p3:4 (index 3), but p3 never sent such")
    assert (judged.example.processes, judged.example.indexes) == (("p2",), (3,))


def test_d1_sent_in_another_group() -> None:
    trace = Trace({"a": ["p1", "p2"], "b": ["p1", "p2"]}).begin()
    mid = trace.send("p1", "a")
    trace.deliver("p2", mid._replace(group="b"))
    assert verdict(trace.end(), "D1", "a").outcome == "vacuous"
    assert "p2 delivered b/p1:0" in sentence(trace.end(), "D1", "b")


def test_d1_by_a_process_without_a_log() -> None:
    trace = trio()
    trace.deliver("p2", Mid("orders", "p9", 0, 9))
    assert "p9 never sent" in sentence(trace.end(), "D1", "orders")


def test_d1_another_payload() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid, digest=1)
    trace.deliver("p3", mid)
    told = sentence(trace.end(), "D1", "orders")
    assert told == "p2 delivered orders/p1:0 (index 2) with a different digest than p1 sent (index 2)"


def test_d1_delivered_by_its_sender_before_it_was_sent() -> None:
    trace = trio()
    trace.deliver("p1", Mid("orders", "p1", 0, 1))
    trace.send("p1")
    told = sentence(trace.end(), "D1", "orders")
    assert "p1 delivered orders/p1:0 (index 2) before it sent orders/p1:0 (index 3)" in told


def test_d1_two_messages_that_wait_for_each_other() -> None:
    trace = trio()
    first, second = Mid("orders", "p1", 0, 1), Mid("orders", "p2", 0, 2)
    trace.deliver("p1", second)
    trace.deliver("p2", first)
    trace.send("p1")
    trace.send("p2")
    judged = verdict(trace.end(), "D1", "orders")
    assert judged.violations == 1
    assert sentence(trace.end(), "D1", "orders") == (
        "p1 delivered orders/p2:0 (index 2) before it sent orders/p1:0 (index 3), "
        "but p2 delivered orders/p1:0 (index 2) before it sent orders/p2:0 (index 3): "
        "it was delivered before it was sent"
    )


def test_d1_every_circle_is_found() -> None:
    trace = trio()
    for sender in ("p1", "p2", "p3"):
        trace.deliver(sender, Mid("orders", sender, 0, 1))
        trace.send(sender)
    assert verdict(trace.end(), "D1", "orders").violations == 3


def test_d1_excuses_what_lies_beyond_the_log_of_a_crashed_sender() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p3"))
    lost = Mid("orders", "p3", 1, 2)
    trace.crash("p3")
    trace.deliver("p1", lost)
    trace.deliver("p2", lost)
    assert violated(trace.end()) == set()


# D2


def test_d2_delivered_twice() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.deliver_everywhere(mid)
    trace.deliver("p3", mid)
    judged = verdict(trace.end(), "D2", "orders")
    assert (judged.outcome, judged.violations, judged.opportunities) == ("violated", 1, 4)
    assert sentence(trace.end(), "D2", "orders") == "p3 delivered orders/p1:0 twice (index 2 and index 3)"
    assert violated(trace.end()) == {"D2"}


def test_d2_a_new_incarnation_may_deliver_it_again() -> None:
    trace = Trace({"orders": ["p1", "p2", "p2#1"]}).begin()
    mid = trace.send("p1")
    trace.receive("p2", mid)
    trace.deliver("p2", mid)
    trace.crash("p2")
    trace.deliver("p1", mid)
    trace.deliver("p2#1", mid)
    assert violated(trace.end()) == {"M2", "R2"}  # it should not have begun in the same view again


# D8


def split(trace: Trace) -> None:
    """p3 is excluded by p1 and p2, which go on to v1."""
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])


def test_d8_a_message_is_missing_before_the_next_view() -> None:
    trace = trio()
    first, second = trace.send("p1"), trace.send("p2")
    trace.deliver("p1", first, second)
    trace.deliver("p2", first)
    split(trace)
    trace.crash("p3")
    judged = verdict(trace.end(), "D8", "orders")
    assert (judged.violations, judged.opportunities) == (1, 1)
    assert judged.example is not None
    assert judged.example.views == ("v0", "v1")
    assert judged.example.sentence == (
        "p1 delivered orders/p2:0 (index 4) in view v0, but p2 did not deliver it; then both went to view v1"
    )


def test_d8_a_delivery_on_the_other_side_of_a_view_change() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    split(trace)
    trace.deliver("p2", mid)
    trace.crash("p3")
    told = sentence(trace.end(), "D8", "orders")
    assert "p1 delivered orders/p1:0 (index 3) in view v0, but p2 delivered it in view v1 instead (index 3)" in told


def test_d8_says_nothing_of_those_that_part() -> None:
    trace = trio()
    trace.deliver("p3", trace.send("p3"))
    split(trace)
    trace.view("p3", "orders", "v1x", ["p3"])
    assert verdict(trace.end(), "D8", "orders").outcome == "vacuous"


def test_d8_a_member_that_delivers_nothing_is_noticed() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    told = sentence(trace.end(), "D8", "orders")
    assert told == (
        "p1 delivered orders/p1:0 (index 3) in view v0, but p3 did not deliver it; then the run ended quiet"
    )


def test_d8_one_violation_for_each_process_outside_the_largest_camp() -> None:
    trace = Trace({"orders": ["p1", "p2", "p3", "p4", "p5"]}).begin()
    mid = trace.send("p1")
    for process in ("p1", "p2", "p3"):
        trace.deliver(process, mid)
    judged = verdict(trace.end(), "D8", "orders")
    assert (judged.violations, judged.opportunities) == (2, 10)


@pytest.mark.parametrize(
    ("quiet", "components"), [(False, None), (True, [["p1", "p2"], ["p3"]]), (True, [["p1", "p2"]])]
)
def test_d8_the_end_counts_only_if_quiet_and_within_a_component(
    quiet: bool, components: list[list[str]] | None
) -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    assert "D8" not in violated(trace.end(quiet=quiet, components=components))


@pytest.mark.parametrize("moves", [["leave"], ["leave", "join"]])
def test_d8_the_end_is_no_view_for_one_that_left(moves: list[str]) -> None:
    trace = trio()
    for move in moves:
        trace.row("p3", move, group="orders")
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid)
    assert "D8" not in violated(trace.end())


def test_d1_a_process_does_not_deliver_of_its_own_what_its_log_never_sent() -> None:
    trace = trio()
    trace.deliver("p3", Mid("orders", "p3", 7, 3))
    trace.crash("p3")
    assert "beyond the end of its log" in sentence(trace.end(), "D1", "orders")
