"""Requests to a group: four modes, lost or silent members, late or repeated answers."""

import pytest

from antiphon.protocols.classic.frames import AnswerFrame, QueryFrame
from antiphon.protocols.classic.settings import Service
from antiphon.types import ProcessId
from tests.support.classic_cluster import GROUP, SERVICES, ClassicCluster, faults

RETRY_NS = 100


def requesting(
    answers: str, *, service: Service = "total", members: tuple[str, ...] = ("p", "q", "r")
) -> ClassicCluster:
    """A client outside the group has sent a request, and all members have it."""
    cluster = ClassicCluster(*members, service=service, outside=["c"], retry_ns=RETRY_NS)
    cluster.ask("c", b"?", answers)
    cluster.move_all()
    return cluster


def answer(cluster: ClassicCluster, member: str, payload: bytes = b"!") -> None:
    """A member answers the last request delivered to it, and the client receives the answer."""
    cluster.answer(member, cluster.delivered[member][-1], payload)
    cluster.move_all()


def by(cluster: ClassicCluster, client: str = "c") -> list[list[str]]:
    """For each answered request, the members that answered."""
    return [[process for process, _ in answered.answers] for answered in cluster.answered[client]]


@pytest.mark.parametrize(
    ("answers", "expected"), [("first", [1, 1, 1]), ("majority", [0, 1, 1]), ("all", [0, 0, 1])], ids=str
)
def test_the_client_is_told_once_when_enough_members_have_answered(answers: str, expected: list[int]) -> None:
    cluster = requesting(answers)
    for member, told in zip(("r", "p", "q"), expected, strict=True):
        answer(cluster, member, member.encode())
        assert len(cluster.answered["c"]) == told
    (answered,) = cluster.answered["c"]
    assert answered.answers == (("r", b"r"), ("p", b"p"), ("q", b"q"))[: len(answered.answers)]
    assert answered.request == 0


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("answers", ["first", "majority", "all"])
def test_a_request_is_a_multicast_of_the_groups_service(service: Service, answers: str) -> None:
    cluster = requesting(answers, service=service)
    for member in ("p", "q", "r"):
        assert cluster.payloads(member) == [b"?"]
        assert cluster.delivered[member][0].request == 0
        answer(cluster, member)
    assert len(cluster.answered["c"]) == 1
    assert not faults(cluster)


def test_a_second_answer_of_a_member_does_not_count() -> None:
    cluster = requesting("majority")
    answer(cluster, "p", b"first")
    answer(cluster, "p", b"second")
    assert by(cluster) == []
    answer(cluster, "q")
    assert cluster.answered["c"][0].answers == (("p", b"first"), ("q", b"!"))


def test_an_answer_that_is_doubled_under_way_counts_once() -> None:
    cluster = requesting("majority")
    cluster.answer("p", cluster.delivered["p"][-1], b"!")
    cluster.move("p", "c", again=True)
    cluster.move("p", "c")
    assert by(cluster) == []


def test_a_lost_member_is_not_waited_for() -> None:
    cluster = requesting("all")
    answer(cluster, "p")
    answer(cluster, "q")
    assert by(cluster) == []
    cluster.crash("r")
    cluster.tell("c")
    assert by(cluster) == [["p", "q"]]


def test_the_answer_of_a_member_that_was_lost_since_does_not_make_a_majority() -> None:
    """Of four members p and q have answered, and q is lost: two of three are needed, and one has answered."""
    cluster = requesting("majority", members=("p", "q", "r", "t"))
    answer(cluster, "p")
    answer(cluster, "q")
    cluster.crash("q")
    cluster.tell("c")
    assert by(cluster) == []
    answer(cluster, "r")
    assert by(cluster) == [["p", "r"]]


def test_an_answer_of_a_lost_member_that_comes_late_is_ignored() -> None:
    cluster = requesting("majority")
    answer(cluster, "p")
    cluster.answer("q", cluster.delivered["q"][-1], b"!")
    cluster.crash("q")
    cluster.tell("c")  # two members live: both are needed
    cluster.move("q", "c")
    assert by(cluster) == []


@pytest.mark.parametrize("answers", ["any", "first", "majority", "all"])
def test_a_group_that_is_lost_gives_no_answers(answers: str) -> None:
    cluster = requesting(answers, members=("p",))
    cluster.crash("p")
    cluster.tell("c")
    assert by(cluster) == [[]]
    cluster.ask("c", b"again?", answers)
    assert by(cluster) == [[], []]
    assert cluster.cores["c"].deadline is None


def test_a_member_may_ask_its_own_group_and_answers_itself_too() -> None:
    cluster = ClassicCluster("p", "q")
    cluster.ask("p", b"?", "all")
    cluster.move_all()
    answer(cluster, "p")
    assert by(cluster, "p") == []
    answer(cluster, "q")
    assert by(cluster, "p") == [["p", "q"]]


def test_any_asks_one_member_outside_the_order_of_the_group() -> None:
    cluster = requesting("any")
    assert [len(cluster.queries[member]) for member in ("p", "q", "r")] == [1, 0, 0]
    assert not any(cluster.delivered.values())
    assert cluster.kinds() == {"query": 1}
    cluster.answer("p", cluster.queries["p"][0], b"!")
    cluster.move_all()
    assert cluster.answered["c"][0].answers == (("p", b"!"),)
    assert cluster.cores["c"].deadline is None


def test_any_asks_the_next_member_when_one_is_silent_and_takes_whichever_answer_comes_first() -> None:
    cluster = requesting("any")
    assert cluster.cores["c"].deadline == RETRY_NS
    cluster.wait(RETRY_NS)
    cluster.move_all()
    assert cluster.cores["c"].deadline == 2 * RETRY_NS
    assert [len(cluster.queries[member]) for member in ("p", "q", "r")] == [1, 1, 0]
    for member in ("p", "q"):  # the answers of p and then of q are late
        cluster.answer(member, cluster.queries[member][0], member.encode())
    cluster.move("p", "c")
    cluster.move("q", "c")
    assert by(cluster) == [["p"]]
    cluster.wait(RETRY_NS)
    assert cluster.kinds() == {"query": 2, "answer": 2}


def test_any_goes_round_until_a_member_answers() -> None:
    cluster = requesting("any")
    for _ in range(3):
        cluster.wait(RETRY_NS)
        cluster.move_all()
    assert [len(cluster.queries[member]) for member in ("p", "q", "r")] == [2, 1, 1]


def test_any_asks_the_next_member_at_once_when_the_one_asked_is_lost() -> None:
    cluster = requesting("any")
    cluster.crash("r")
    cluster.tell("c")
    assert cluster.kinds() == {"query": 1}  # another member was asked
    cluster.crash("p")
    cluster.tell("c")
    cluster.move_all()
    assert len(cluster.queries["q"]) == 1


def test_requests_to_any_begin_with_different_members_perhaps_with_ourselves() -> None:
    cluster = ClassicCluster("p", "q", retry_ns=RETRY_NS)
    for _ in range(3):
        cluster.ask("p", b"?", "any")
    cluster.move_all()
    assert [len(cluster.queries[member]) for member in ("p", "q")] == [2, 1]
    assert cluster.kinds() == {"query": 1}
    cluster.answer("p", cluster.queries["p"][1], b"!")
    assert [answered.request for answered in cluster.answered["p"]] == [2]


def test_a_lost_client_is_not_answered() -> None:
    cluster = requesting("all")
    cluster.crash("c")
    cluster.tell()
    answer(cluster, "p")
    assert "answer" not in cluster.kinds()


def test_unsolicited_answers_and_queries_to_outsiders_are_ignored() -> None:
    cluster = requesting("first")
    cluster.hand("c", AnswerFrame(GROUP, ProcessId("p"), 7, b"!"))
    cluster.hand("c", AnswerFrame(GROUP, ProcessId("stranger"), 0, b"!"))
    cluster.hand("c", QueryFrame(GROUP, ProcessId("p"), 0, b"?"))
    assert by(cluster) == []
    assert cluster.queries["c"] == []


def test_an_ordinary_message_wants_no_answer() -> None:
    cluster = ClassicCluster("p", "q")
    cluster.send("p", b"m")
    cluster.move_all()
    answer(cluster, "q")
    assert "answer" not in cluster.kinds()


@pytest.mark.parametrize("answers", ["any", "all"])
def test_a_withdrawn_request_gives_the_answers_so_far_and_keeps_nothing(answers: str) -> None:
    cluster = requesting(answers)
    if answers == "all":
        answer(cluster, "p")
    core = cluster.cores[ProcessId("c")]
    assert len(core.withdraw(GROUP, 0, cluster.now)) == (answers == "all")
    assert core.withdraw(GROUP, 0, cluster.now) == ()
    assert core.deadline is None
    assert not cluster.answered["c"]
