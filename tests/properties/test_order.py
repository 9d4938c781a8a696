"""O1 FIFO order and O3 causal order."""

from tests.support.traces.handmade import Mid, Trace, sentence, trio, verdict, violated

# O1


def test_o1_counts_neighbours_of_one_sender() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"), trace.send("p2"), trace.send("p1"))
    judged = verdict(trace.end(), "O1", "orders")
    assert (judged.outcome, judged.opportunities) == ("pass", 3)


def test_o1_a_message_overtakes_another_of_its_sender() -> None:
    trace = trio()
    first, second = trace.send("p1"), trace.send("p1")
    trace.deliver("p1", first, second)
    trace.deliver("p2", second, first)
    trace.deliver("p3", first, second)
    judged = verdict(trace.end(), "O1", "orders")
    assert (judged.outcome, judged.violations) == ("violated", 1)
    assert sentence(trace.end(), "O1", "orders") == (
        "p2 delivered orders/p1:1 (index 2) before orders/p1:0 (index 3), but p1 sent orders/p1:0 first"
    )


def test_o1_ignores_gaps() -> None:
    trace = trio()
    mids = [trace.send("p1") for _ in range(3)]
    trace.deliver("p2", mids[0], mids[2])
    assert verdict(trace.end(), "O1", "orders").outcome == "pass"


def test_o1_groups_are_apart() -> None:
    trace = Trace({"a": ["p1", "p2"], "b": ["p1", "p2"]}).begin()
    mids = [trace.send("p1", group) for group in ("a", "b", "a", "b")]
    trace.deliver("p2", mids[1], mids[0], mids[2], mids[3])
    events = trace.end()
    assert {verdict(events, "O1", group).outcome for group in ("a", "b")} == {"pass"}


# O3


def question_and_answer(trace: Trace) -> tuple[Mid, Mid]:
    """p1 asks, p2 delivers the question and answers."""
    question = trace.send("p1")
    trace.deliver("p2", question)
    return question, trace.send("p2")


def test_o3_counts_dependencies_on_other_senders() -> None:
    trace = trio()
    question, answer = question_and_answer(trace)
    trace.deliver("p1", question, answer)
    trace.deliver("p2", answer)
    trace.deliver("p3", question, answer)
    judged = verdict(trace.end(), "O3")
    assert (judged.outcome, judged.opportunities) == ("pass", 3)


def test_o3_is_vacuous_without_dependencies() -> None:
    trace = trio()
    trace.deliver_everywhere(trace.send("p1"), trace.send("p2"))
    assert verdict(trace.end(), "O3").outcome == "vacuous"


def test_o3_the_answer_before_the_question() -> None:
    trace = trio()
    question, answer = question_and_answer(trace)
    trace.deliver("p1", question, answer)
    trace.deliver("p2", answer)
    trace.deliver("p3", answer, question)
    judged = verdict(trace.end(), "O3")
    assert (judged.outcome, judged.violations) == ("violated", 1)
    assert judged.example is not None
    assert judged.example.messages == ("orders/p2:0", "orders/p1:0")
    assert judged.example.sentence == (
        "p3 delivered orders/p2:0 (index 2) before orders/p1:0 (index 3), but orders/p1:0 happened before "
        "orders/p2:0: p2 delivered orders/p1:0 (index 2) before it sent orders/p2:0 (index 3)"
    )


def test_o3_through_a_group_that_the_receiver_is_not_in() -> None:
    trace = Trace({"a": ["p1", "p2", "p4"], "b": ["p2", "p3"], "c": ["p3", "p4"]}).begin()
    first = trace.send("p1", "a")
    trace.deliver("p2", first)
    second = trace.send("p2", "b")
    trace.deliver("p3", second)
    third = trace.send("p3", "c")
    trace.deliver("p4", third, first)
    events = trace.end()
    assert verdict(events, "O3").violations == 1
    assert sentence(events, "O3").endswith(
        "but a/p1:0 happened before c/p3:0: p2 delivered a/p1:0 (index 3) before it sent b/p2:0 (index 4), "
        "and p3 delivered b/p2:0 (index 3) before it sent c/p3:0 (index 4)"
    )


def test_o3_by_the_senders_own_earlier_message_in_another_group() -> None:
    trace = Trace({"a": ["p1", "p2"], "b": ["p1", "p2"]}).begin()
    first, second = trace.send("p1", "a"), trace.send("p1", "b")
    trace.deliver("p2", second, first)
    assert "p1 sent a/p1:0 before b/p1:0" in sentence(trace.end(), "O3")


def test_o3_ignores_causes_that_are_never_delivered() -> None:
    trace = trio()
    _, answer = question_and_answer(trace)
    trace.deliver("p3", answer)
    assert "O3" not in violated(trace.end(quiet=False))


def test_o3_judges_the_first_delivery_only() -> None:
    trace = trio()
    question, answer = question_and_answer(trace)
    trace.deliver("p3", question, answer, question)
    assert violated(trace.end(quiet=False)) == {"D2"}


def test_o3_counts_a_message_beyond_a_crashed_log_as_a_cause() -> None:
    trace = trio()
    trace.crash("p1")
    lost = Mid("orders", "p1", 0, 1)
    trace.deliver("p2", lost)
    answer = trace.send("p2")
    trace.deliver("p3", answer, lost)
    assert "p2 delivered orders/p1:0 (index 2) before it sent orders/p2:0" in sentence(trace.end(), "O3")


def test_o3_is_judged_beside_an_impossible_delivery() -> None:
    trace = trio()
    trace.deliver("p1", Mid("orders", "p1", 0, 1))
    question, answer = question_and_answer(trace)
    trace.deliver("p3", answer, question)
    assert {"D1", "O3"} <= violated(trace.end(quiet=False))


def test_o3_deliveries_of_a_crashed_sender_are_causes_of_messages_beyond_its_log() -> None:
    trace = trio()
    question = trace.send("p1")
    trace.deliver("p2", question)
    trace.crash("p2")
    answer = Mid("orders", "p2", 0, 9)
    trace.deliver("p3", answer, question)
    trace.deliver("p1", question, answer)
    told = sentence(trace.end(), "O3")
    assert "p2 delivered orders/p1:0 (index 2) before it sent orders/p2:0 (beyond the end of its log)" in told
