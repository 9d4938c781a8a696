"""O5 and O5x: processes that go on together delivered in the same order, in one group and over two."""

import pytest

from antiphon.properties.families import BUILT_IN
from antiphon.properties.promises import COMING
from tests.support.traces.handmade import Mid, Trace, ring, sentence, trio, verdict, verdicts, violated

# O5


def test_o5_counts_pairs_that_delivered_at_least_two_messages() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"), trace.send("p2"))
    judged = verdict(trace.end(), "O5", "orders")
    assert (judged.outcome, judged.opportunities) == ("pass", 3)


def test_o5_needs_two_messages_and_a_common_next_view() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"))
    assert verdict(trace.end(), "O5", "orders").outcome == "vacuous"
    trace = trio()
    first, second = trace.send("p1"), trace.send("p2")
    trace.deliver("p1", first, second)
    trace.deliver("p2", second, first)
    assert verdict(trace.end(quiet=False), "O5", "orders").outcome == "vacuous"


def test_o5_two_orders_in_one_view() -> None:
    trace = trio()
    first, second = trace.send("p1"), trace.send("p2")
    for process in ("p1", "p2"):
        trace.deliver(process, first, second)
    trace.deliver("p3", second, first)
    judged = verdict(trace.end(), "O5", "orders")
    assert (judged.outcome, judged.violations, judged.opportunities) == ("violated", 2, 3)
    assert judged.example is not None
    assert judged.example.processes == ("p1", "p3")
    assert judged.example.indexes == (3, 4, 2, 3)
    assert judged.example.sentence == (
        "p1 delivered orders/p1:0 (index 3) before orders/p2:0 (index 4), "
        "but p3 delivered orders/p2:0 (index 2) before orders/p1:0 (index 3), and the run ended quiet"
    )


def test_o5_before_a_common_next_view() -> None:
    trace = trio()
    first, second = trace.send("p1"), trace.send("p2")
    trace.deliver("p1", first, second)
    trace.deliver("p2", second, first)
    trace.crash("p3")
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
    example = verdict(trace.end(quiet=False), "O5", "orders").example
    assert example is not None
    assert example.views == ("v0", "v1")
    assert example.sentence.endswith("and both went from view v0 to view v1")


def test_o5_says_nothing_of_those_that_part_or_crash() -> None:
    trace = Trace({"orders": ["p1", "p2", "p3", "p4"]}).begin()
    first, second = trace.send("p1"), trace.send("p2")
    for process in ("p1", "p2"):
        trace.deliver(process, first, second)
        trace.view(process, "orders", "v1", ["p1", "p2"])
    trace.deliver("p3", second, first)
    trace.view("p3", "orders", "v1x", ["p3"])
    trace.deliver("p4", second, first)
    trace.crash("p4")
    judged = verdict(trace.end(quiet=False), "O5", "orders")
    assert (judged.outcome, judged.opportunities) == ("pass", 1)


def test_o5_compares_common_messages_only() -> None:
    trace = trio()
    mids = [trace.send(process) for process in ("p1", "p2", "p3")]
    trace.deliver("p1", *mids)
    trace.deliver("p2", mids[0], mids[2])
    trace.deliver("p3", mids[1], mids[2])
    assert "O5" not in violated(trace.end())


def test_o5_messages_on_the_two_sides_of_a_view_change_are_not_of_one_view() -> None:
    trace = trio()
    first, second = trace.send("p1"), trace.send("p2")
    trace.deliver("p1", first)
    trace.deliver("p2", second)
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
    trace.deliver("p1", second)
    trace.deliver("p2", first)
    trace.crash("p3")
    events = trace.end(quiet=False)
    assert "O5" not in violated(events)
    assert {"D8", "O6"} <= violated(events)


def test_o5_forged_messages_are_left_to_d1() -> None:
    trace = trio()
    mids = [trace.send("p1"), trace.send("p2")]
    forged = Mid("orders", "p3", 7, 0)
    trace.deliver("p1", mids[0], forged, mids[1])
    trace.deliver("p2", forged, *mids)
    trace.deliver("p3", *mids)
    assert "O5" not in violated(trace.end())


# O5x


def two_groups(service: str = "total") -> Trace:
    return Trace({"a": ["p1", "p2", "p3"], "b": ["p2", "p3", "p4"]}, service=service).begin()


def test_o5x_counts_pairs_in_both_groups() -> None:
    trace = two_groups()
    trace.deliver_everywhere(trace.send("p1", "a"), trace.send("p4", "b"))
    judged = verdict(trace.end(), "O5x")
    assert (judged.outcome, judged.opportunities) == ("pass", 1)


def test_o5x_is_vacuous_where_groups_share_one_process() -> None:
    trace = Trace({"a": ["p1", "p2"], "b": ["p2", "p3"]}).begin()
    trace.deliver_everywhere(trace.send("p1", "a"), trace.send("p3", "b"))
    assert verdict(trace.end(), "O5x").outcome == "vacuous"


def test_o5x_two_orders_of_messages_of_two_groups() -> None:
    trace = two_groups()
    left, right = trace.send("p1", "a"), trace.send("p4", "b")
    trace.deliver("p1", left)
    trace.deliver("p2", left, right)
    trace.deliver("p3", right, left)
    trace.deliver("p4", right)
    events = trace.end()
    assert violated(events) == {"O5x", "O6", "O8"}
    assert verdict(events, "O5x").violations == 1
    assert sentence(events, "O5x") == (
        "p2 delivered a/p1:0 (index 3) before b/p4:0 (index 4), "
        "but p3 delivered b/p4:0 (index 3) before a/p1:0 (index 4)"
    )


def test_o5x_one_group_in_two_orders_is_left_to_o5() -> None:
    trace = two_groups()
    mids = [trace.send("p1", "a"), trace.send("p2", "a"), trace.send("p4", "b")]
    trace.deliver("p1", mids[0], mids[1])
    trace.deliver("p2", *mids)
    trace.deliver("p3", mids[1], mids[0], mids[2])
    trace.deliver("p4", mids[2])
    found = violated(trace.end())
    assert "O5" in found
    assert "O5x" not in found


def test_o5x_beside_another_order_in_one_group() -> None:
    trace = two_groups()
    mids = [trace.send("p1", "a"), trace.send("p2", "a"), trace.send("p4", "b")]
    trace.deliver("p1", mids[0], mids[1])
    trace.deliver("p2", *mids)
    trace.deliver("p3", mids[2], mids[1], mids[0])
    trace.deliver("p4", mids[2])
    assert {"O5", "O5x"} <= violated(trace.end())


@pytest.mark.parametrize("parted", ["a", "b"])
def test_o5x_asks_for_shared_views_in_both_groups(parted: str) -> None:
    trace = two_groups()
    left, right = trace.send("p1", "a"), trace.send("p4", "b")
    trace.deliver("p2", left, right)
    trace.deliver("p3", right, left)
    for process in ("p2", "p3"):
        for group in ("a", "b"):
            view = f"v1{process}" if group == parted else "v1"
            trace.view(process, group, view, ["p2", "p3"])
    events = trace.end(quiet=False)
    assert "O6" in violated(events)
    assert verdict(events, "O5x").outcome == "vacuous"


def test_o5x_over_different_views_of_the_two_groups() -> None:
    trace = two_groups()
    left, right = trace.send("p1", "a"), trace.send("p4", "b")
    for process in ("p2", "p3"):
        trace.view(process, "b", "v1", ["p2", "p3", "p4"])
    trace.deliver("p2", left, right)
    trace.deliver("p3", right, left)
    for process in ("p2", "p3"):
        trace.view(process, "b", "v2", ["p2", "p3"])
        trace.view(process, "a", "v1", ["p2", "p3"])
    assert "O5x" in violated(trace.end(quiet=False))


@pytest.mark.parametrize("quiet", [False, True])
def test_o5x_ignores_a_cycle_that_no_two_processes_see(quiet: bool) -> None:
    events = ring(quiet=quiet)
    assert violated(events) == {"O6", "O8"}


def test_o5x_ignores_broken_stamps() -> None:
    trace = two_groups()
    trace.deliver_everywhere(trace.send("p1", "a", clock=9), trace.send("p4", "b", clock=3))
    judged = verdict(trace.end(), "O5x")
    assert (judged.outcome, judged.note) == ("pass", None)


@pytest.mark.parametrize("service", ["causal-slow", "causal-fast", "causal-relative", "causal-vector"])
def test_causal_services_promise_no_common_order(service: str) -> None:
    trace = two_groups(service)
    left, right = trace.send("p1", "a"), trace.send("p4", "b")
    trace.deliver("p1", left)
    trace.deliver("p2", left, right)
    trace.deliver("p3", right, left)
    trace.deliver("p4", right)
    events = trace.end()
    assert violated(events) == set()
    found = verdicts(events)
    silent = {
        name for name, _ in found if found[name, None if (name, None) in found else "a"].outcome == "not promised"
    }
    never = {"O5", "O5x", "O6", "O8", "D11", "D13", "D14", "D15", "O7", "S3", "S5", "S6", "M12", "M13", "L11"}
    assert silent == never | BUILT_IN["newtop"].closed["total"] | COMING
