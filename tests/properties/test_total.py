"""O6 strong total order and O8 causal total order, by certificate and by graph."""

from tests.support.traces.handmade import Mid, Trace, ring, sentence, trio, verdict, violated


def test_o6_counts_deliveries_that_others_made_too() -> None:
    trace = trio()
    shared, private = trace.send("p1"), trace.send("p2")
    trace.deliver_everywhere(shared)
    trace.deliver("p2", private)
    judged = verdict(trace.end(), "O6")
    assert (judged.outcome, judged.opportunities, judged.note) == ("pass", 3, None)


def test_o6_two_processes_disagree() -> None:
    trace = trio()
    first, second = trace.send("p1"), trace.send("p2")
    trace.deliver("p1", first, second)
    trace.deliver("p2", first, second)
    trace.deliver("p3", second, first)
    judged = verdict(trace.end(), "O6")
    assert (judged.outcome, judged.violations) == ("violated", 1)
    assert judged.example is not None
    assert judged.example.processes == ("p1", "p3")
    assert judged.example.indexes == (3, 4, 2, 3)
    assert judged.example.sentence == (
        "p1 delivered orders/p1:0 (index 3) before orders/p2:0 (index 4), "
        "but p3 delivered orders/p2:0 (index 2) before orders/p1:0 (index 3)"
    )


def test_o6_the_witness_is_short_among_many_other_deliveries() -> None:
    trace = Trace({"orders": ["p1", "p2"], "left": ["p1"], "right": ["p2"]}).begin()
    mids = [trace.send("p1") for _ in range(2)]
    own = [trace.send("p1", "left") for _ in range(5)]
    others = [trace.send("p2", "right") for _ in range(5)]
    trace.deliver("p1", mids[0], *own, mids[1])
    trace.deliver("p2", mids[1], *others, mids[0])
    example = verdict(trace.end(), "O6").example
    assert example is not None
    assert example.messages == ("orders/p1:0", "orders/p1:1")


def test_o6_separate_disagreements_are_counted() -> None:
    trace = trio()
    mids = [trace.send(sender) for sender in ("p1", "p2", "p1", "p2", "p1", "p2")]
    trace.deliver("p1", *mids)
    trace.deliver("p2", mids[1], mids[0], mids[2], mids[3], mids[5], mids[4])
    judged = verdict(trace.end(quiet=False), "O6")
    assert judged.violations == 2
    assert judged.example is not None
    assert judged.example.messages == ("orders/p1:0", "orders/p2:0")


def test_o6_a_crashed_process_counts() -> None:
    trace = trio()
    first, second = trace.send("p1"), trace.send("p2")
    trace.deliver("p3", second, first)
    trace.crash("p3")
    for process in ("p1", "p2"):
        trace.deliver(process, first, second)
    assert "O6" in violated(trace.end())


def test_o6_a_cycle_that_no_two_processes_see() -> None:
    events = ring()
    assert violated(events) == {"O6", "O8"}
    assert verdict(events, "O6").violations == 1
    assert sentence(events, "O6") == (
        "p1 delivered a/p1:0 (index 4) before b/p2:0 (index 5), "
        "p2 delivered b/p2:0 (index 4) before c/p3:0 (index 5), "
        "but p3 delivered c/p3:0 (index 4) before a/p1:0 (index 5)"
    )


def test_o6_without_a_cycle_a_broken_stamp_is_a_note() -> None:
    trace = trio()
    first, second = trace.send("p1", clock=5), trace.send("p2", clock=4)
    trace.deliver_everywhere(first, second)
    judged = verdict(trace.end(), "O6")
    assert (judged.outcome, judged.violations) == ("pass", 0)
    assert judged.note is not None
    assert judged.note.endswith(
        "p1 delivered orders/p1:0 (index 3) with clock 5 before orders/p2:0 (index 4) with clock 4"
    )


def test_o6_a_stamp_that_differs_between_processes_is_a_note() -> None:
    trace = trio()
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    trace.deliver("p2", mid, clock=7)
    trace.deliver("p3", mid, clock=None)
    note = verdict(trace.end(), "O6").note
    assert note is not None
    assert "orders/p1:0 has clock 1 at p1 (index 3) and no clock at p3 (index 2)" in note


def test_o6_a_stamp_that_two_messages_share_is_a_note() -> None:
    trace = Trace({"a": ["p1", "p2"], "b": ["p1", "p2"]}).begin()
    trace.deliver_everywhere(trace.send("p1", "a", clock=3), trace.send("p1", "b", clock=3))
    note = verdict(trace.end(), "O6").note
    assert note is not None
    assert "a/p1:0 and b/p1:0 have the same stamp" in note


def test_o6_messages_of_one_frame_share_a_clock() -> None:
    trace = trio()
    trace.deliver_everywhere(*(trace.send("p1", clock=3) for _ in range(3)))
    assert verdict(trace.end(), "O6").note is None


def test_o6_the_stamp_of_an_orderer_comes_before_the_sender() -> None:
    trace = trio()
    first, second = trace.send("p3", clock=3), trace.send("p1", clock=3)
    for process in ("p1", "p2", "p3"):
        trace.deliver(process, first, orderer="p1")
        trace.deliver(process, second, orderer="p2")
    judged = verdict(trace.end(), "O6")
    assert (judged.outcome, judged.note) == ("pass", None)


def test_o6_forged_messages_are_left_to_d1() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"))
    trace.deliver("p2", Mid("orders", "p3", 7, 0))
    judged = verdict(trace.end(), "O6")
    assert (judged.outcome, judged.note) == ("pass", None)


# O8


def test_o8_counts_messages_with_a_cause_of_another() -> None:
    trace = trio()
    first = trace.send("p1")
    trace.deliver_everywhere(first)
    trace.deliver_everywhere(trace.send("p2"), trace.send("p3"))
    judged = verdict(trace.end(), "O8")
    assert (judged.outcome, judged.opportunities, judged.note) == ("pass", 2, None)


def test_o8_says_what_o6_says_if_there_is_no_order_at_all() -> None:
    trace = trio()
    first, second = trace.send("p1"), trace.send("p2")
    trace.deliver("p1", first, second)
    trace.deliver("p2", second, first)
    events = trace.end(quiet=False)
    assert violated(events) == {"O6", "O8"}
    assert sentence(events, "O8") == sentence(events, "O6")


def test_o8_all_agree_on_an_order_against_cause() -> None:
    trace = Trace({"a": ["p1", "p2", "p3", "p4"]}).begin()
    question = trace.send("p1", "a")
    trace.deliver("p2", question)
    trace.crash("p2")
    answer = Mid("a", "p2", 0, 2)
    for process in ("p1", "p3", "p4"):
        trace.deliver(process, answer, question)
    events = trace.end(quiet=False)
    assert violated(events) == {"O3", "O8"}
    assert sentence(events, "O8") == (
        "a/p1:0 happened before a/p2:0 "
        "(p2 delivered a/p1:0 (index 2) before it sent a/p2:0 (beyond the end of its log)), "
        "but p1 delivered a/p2:0 (index 3) before a/p1:0 (index 4)"
    )


def against_cause() -> Trace:
    """a/p1:0 causes b/p2:0; q1 has the effect before c, q2 has c before the cause; no process has cause and effect."""
    trace = Trace({"a": ["p1", "p2", "q2"], "b": ["p2", "q1"], "c": ["q1", "q2"]}).begin()
    cause = trace.send("p1", "a")
    trace.deliver("p2", cause)
    effect = trace.send("p2", "b")
    between = trace.send("q1", "c")
    trace.deliver("q1", effect, between)
    trace.deliver("q2", between, cause)
    return trace


def test_o8_a_cause_after_its_effect_although_no_process_delivers_both() -> None:
    events = against_cause().end(quiet=False)
    assert violated(events) == {"O8"}
    assert verdict(events, "O8").violations == 1
    told = sentence(events, "O8")
    assert "q1 delivered b/p2:0 (index 4) before c/q1:0 (index 5)" in told
    assert "q2 delivered c/q1:0 (index 3) before a/p1:0 (index 4)" in told
    assert "a/p1:0 happened before b/p2:0 (p2 delivered a/p1:0 (index 3) before it sent b/p2:0 (index 4))" in told


def test_o8_a_stamp_against_cause_is_a_note_while_some_order_fits() -> None:
    trace = Trace({"a": ["p1", "p2"], "b": ["p2", "p3"]}).begin()
    cause = trace.send("p1", "a", clock=7)
    trace.deliver("p2", cause)
    effect = trace.send("p2", "b", clock=3)
    trace.deliver("p3", effect)
    events = trace.end(quiet=False)
    judged = verdict(events, "O8")
    assert (judged.outcome, judged.violations) == ("pass", 0)
    assert judged.note is not None
    assert judged.note.endswith("a/p1:0 happened before b/p2:0, but its stamp is not smaller")
    assert verdict(events, "O6").note is None


def test_o8_the_stamps_of_one_sender_grow() -> None:
    trace = Trace({"a": ["p1", "p2"], "b": ["p1", "p3"]}).begin()
    trace.deliver("p2", trace.send("p1", "a", clock=5))
    trace.deliver("p3", trace.send("p1", "b", clock=4))
    assert "a/p1:0 happened before b/p1:0" in str(verdict(trace.end(quiet=False), "O8").note)


def test_o8_over_views_that_change() -> None:
    trace = trio()
    first = trace.send("p3")
    trace.deliver("p1", first)
    second = trace.send("p1")
    trace.deliver("p1", second)
    trace.crash("p3")
    for process in ("p1", "p2"):
        if process == "p2":
            trace.deliver("p2", first, second)
        trace.exclude(process, "v1", ["p1", "p2"])
    trace.deliver("p1", third := trace.send("p2"))
    trace.deliver("p2", third)
    events = trace.end()
    assert violated(events) == set()
    assert verdict(events, "O8").opportunities == 2


# O6 where members crash (classic)


def test_o6_survivors_of_a_crash_agree_over_views() -> None:
    """O5 cannot tell: of the two messages, no view holds both at both."""
    trace = trio(protocol="classic", service="total")
    first, second = trace.send("p1"), trace.send("p2")
    trace.crash("p3")
    trace.deliver("p1", first)
    trace.deliver("p2", second)
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
    trace.deliver("p1", second)
    trace.deliver("p2", first)
    events = trace.end(settled=False)
    assert violated(events) == {"O6"}
    assert sentence(events, "O6") == (
        "p1 delivered orders/p1:0 (index 3) before orders/p2:0 (index 5), "
        "but p2 delivered orders/p2:0 (index 3) before orders/p1:0 (index 5)"
    )


def test_o6_a_process_that_crashed_may_have_had_its_own_order_unless_it_is_required() -> None:
    trace = trio(protocol="classic", service="total")
    first, second = trace.send("p1"), trace.send("p2")
    trace.deliver("p3", second, first)
    trace.crash("p3")
    for process in ("p1", "p2"):
        trace.view(process, "orders", "v1", ["p1", "p2"])
        trace.deliver(process, first, second)
    events = trace.end(settled=False)
    assert violated(events) == set()
    assert verdict(events, "O6").opportunities == 4
    assert violated(events, "O6") == {"O6"}
