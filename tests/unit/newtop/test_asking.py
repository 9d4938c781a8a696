"""Requests to a group and their answers, schedule by schedule (docs/spec/newtop.md 16)."""

from collections import defaultdict
from typing import Any

import pytest

from antiphon.core import query_room
from antiphon.core.effects import Answered, Deliver, InstallState, Query, Unanswered
from antiphon.protocols.newtop.frames import AnsweredFrame, AnswerFrame, BlockFrame, QueryFrame
from antiphon.types import ProcessId
from tests.support.cluster import GROUP, OMEGA_NS
from tests.support.forming import Forming

A, B, C = map(ProcessId, "abc")


class Village(Forming):
    """Members a, b and c; those in `answering` answer every request that they deliver, with their name."""

    def __init__(self, *names: str, answering: str = "", **settings: Any) -> None:
        self.answering, self.ordered = answering, False
        self.seen: dict[str, list[Any]] = defaultdict(list)
        super().__init__(*(names or "abc"), **{"idle_probe_ns": OMEGA_NS, **settings})

    def ask(self, name: str, mode: str, payload: bytes = b"?") -> int:
        number = self.core(name).ask(GROUP, payload, mode, self.now, self._labels[name, GROUP])
        self._labels[name, GROUP] += mode != "any"
        self.settle(name)
        return number

    def answer(self, name: str, *, payload: bytes = b"", request: int = -1) -> None:
        """The application answers a request that it has got, by default the last one."""
        core = self.core(name)
        self.answer_frame(name, [frame for frame in self.got(name) if core.is_request(frame)][request], payload)

    def answer_frame(self, name: str, frame: Any, payload: bytes = b"") -> None:
        core, payload = self.core(name), payload or name.encode()
        if self.ordered:
            core.answer_in_order(frame, payload, self.now, self._labels[name, GROUP])
            self._labels[name, GROUP] += 1
        else:
            core.answer(frame, payload, self.now)
        self.settle(name)

    def got(self, name: str) -> list[Any]:
        return [effect.frame for effect in self.found(name, Deliver)]

    def take(self, name: str) -> None:
        super().take(name)
        for frame in self._unanswered(name) if name in self.answering else ():
            self.answer_frame(name, frame)

    def _unanswered(self, name: str) -> list[Any]:
        """The requests that an application has got since the last call."""
        got = [*filter(self.core(name).is_request, self.got(name)), *(each.frame for each in self.found(name, Query))]
        new = [frame for frame in got if frame not in self.seen[name]]
        self.seen[name] += new
        return new

    def answers(self, name: str) -> list[tuple[int, dict[str, bytes]]]:
        return [(each.request, dict(each.answers)) for each in self.found(name, Answered)]

    def failures(self, name: str) -> list[tuple[int, str]]:
        return [(each.request, each.reason) for each in self.found(name, Unanswered)]


TRANSPORTS = [{}, {"datagrams": True}, {"asymmetric": frozenset({GROUP})}, {"service": "total-safe"}]
IDS = ["streams", "datagrams", "sequencer", "safe"]


@pytest.mark.parametrize("settings", TRANSPORTS, ids=IDS)
@pytest.mark.parametrize("ordered", [False, True], ids=["outside", "in order"])
def test_each_mode_gets_its_answers(settings: dict[str, Any], ordered: bool) -> None:
    village = Village(answering="abc", **settings)
    village.ordered = ordered
    for mode in ("first", "majority", "all", "available", "any"):
        village.ask("a", mode)
        village.finish(4)
    found = village.answers("a")
    assert [request for request, _ in found] == [0, 1, 2, 3, 4]
    first, majority, every, available, one = (answers for _, answers in found)
    assert len(first) == len(one) == 1
    assert len(majority) >= 2
    assert every == available == {"a": b"a", "b": b"b", "c": b"c"}
    assert village.failures("a") == []


def test_a_request_is_a_message_with_its_place_among_others() -> None:
    village = Village()
    village.send("a", b"1")
    village.ask("a", "first", b"2")
    village.send("a", b"3")
    village.finish(2)
    assert [village.delivered[name] for name in "abc"] == [[b"1", b"2", b"3"]] * 3
    assert [frame.ask is not None for frame in village.got("b")] == [False, True, False]


def test_an_answer_in_order_is_delivered_by_all() -> None:
    village = Village(answering="b")
    village.ordered = True
    village.ask("a", "first")
    village.finish(2)
    assert [village.delivered[name] for name in "abc"] == [[b"?", b"b"]] * 3
    assert not village.core("c").is_request(village.got("c")[1])
    assert village.answers("a") == [(0, {"b": b"b"})]


def test_answers_before_our_own_delivery_count_only_then() -> None:
    village = Village(answering="b")
    village.ask("a", "first")
    village.move_between("a", "b")
    village.move_one_way("a", "c")
    village.move_one_way("c", "b")
    village.move_one_way("b", "a")
    assert village.found("b", Deliver)
    assert village.answers("a") == []
    village.finish(1)
    assert village.answers("a") == [(0, {"b": b"b"})]


def test_the_first_answer_of_a_member_counts_and_late_ones_are_dropped() -> None:
    village = Village()
    village.ask("a", "majority")
    village.finish(1)
    village.answer("b", payload=b"1")
    village.answer("b", payload=b"2")
    village.finish(1)
    assert village.answers("a") == []
    village.answer("a")
    village.answer("c")
    village.finish(1)
    assert village.answers("a") == [(0, {"b": b"1", "a": b"a"})]


def test_all_do_not_wait_for_a_member_that_fails() -> None:
    village = Village(answering="ab")
    village.ask("a", "all")
    village.finish(1)
    assert village.answers("a") == []
    village.crash("c")
    village.finish()
    assert village.answers("a") == [(0, {"a": b"a", "b": b"b"})]


def test_a_majority_that_is_impossible_fails_and_the_rest_waits_for_our_own_application() -> None:
    village = Village()
    for mode in ("majority", "all", "first"):
        village.ask("a", mode)
    village.finish(1)
    village.crash("b")
    village.finish()
    assert village.failures("a") == []
    village.crash("c")
    village.finish()
    assert village.failures("a") == [(0, "few")]
    village.answer("a", request=1)
    village.answer("a", request=2)
    assert village.answers("a") == [(1, {"a": b"a"}), (2, {"a": b"a"})]


def test_the_answer_of_a_member_that_fails_later_counts() -> None:
    village = Village(answering="b")
    village.ask("a", "majority")
    village.finish(1)
    village.crash("b")
    village.finish()
    assert village.failures("a") == []
    village.answer("c")
    village.finish(1)
    assert village.answers("a") == [(0, {"b": b"b", "c": b"c"})]


def test_a_process_that_joins_later_is_no_voter() -> None:
    village = Village("a", "b", strangers=["c"])
    village.ask("a", "all")
    village.finish(1)
    village.join("c", "a")
    village.finish()
    assert village.last_view("a") == "a b c"
    village.core("a").receive(AnswerFrame(GROUP, C, 0, b"c"), village.now)
    village.answer("a")
    village.answer("b")
    village.finish(1)
    assert village.answers("a") == [(0, {"a": b"a", "b": b"b"})]


def test_a_request_outlives_a_merge_and_does_not_wait_for_those_that_were_away() -> None:
    village = Village(merge_every_ns=2 * OMEGA_NS)
    village.ask("a", "all")
    village.finish(1)
    village.cut(["a", "b"], ["c"])
    village.finish(12)
    assert village.last_view("a") == "a b"
    village.heal()
    village.finish(40)
    assert village.last_view("a") == "a b c"
    village.answer("b")
    village.answer("a")
    village.finish(1)
    assert village.answers("a") == [(0, {"b": b"b", "a": b"a"})]


def test_leaving_ends_every_request_and_answers_are_dropped_then() -> None:
    village = Village()
    for mode in ("all", "any"):
        village.ask("a", mode)
    village.finish(1)
    village.leave("a")
    assert village.failures("a") == [(0, "left"), (1, "left")]
    village.answer("b")
    village.finish()
    assert village.answers("a") == []


def test_nobody_answers_an_asker_that_is_gone() -> None:
    village = Village()
    village.ask("a", "all")
    village.finish(1)
    village.crash("a")
    village.finish()
    assert village.last_view("b") == "b c"
    village.answer("b")
    assert not [frame for frame in village.control["b"] if isinstance(frame, AnswerFrame)]


def test_a_withdrawn_request_keeps_nothing() -> None:
    village = Village(answering="b")
    number = village.ask("a", "all")
    village.finish(1)
    assert village.core("a").withdraw(GROUP, number, village.now) == ((B, b"b"),)
    assert village.core("a").withdraw(GROUP, number, village.now) == ()
    village.answer("c")
    village.finish(1)
    assert village.answers("a") == []
    assert village.failures("a") == []


def test_any_asks_one_member_after_another() -> None:
    village = Village()
    village.ask("a", "any")
    village.finish(1)
    assert [len(village.found(name, Query)) for name in "abc"] == [1, 0, 0]
    village.wait(OMEGA_NS)
    village.move_all()
    assert [len(village.found(name, Query)) for name in "abc"] == [1, 1, 0]
    village.answer_frame("b", village.found("b", Query)[0].frame)
    village.finish(1)
    assert village.answers("a") == [(0, {"b": b"b"})]


def test_any_goes_to_the_next_member_when_one_fails() -> None:
    village = Village(answering="ac")
    village.ask("a", "any")
    village.finish(1)
    village.crash("b")
    village.ask("a", "any")
    village.finish()
    assert village.answers("a") == [(0, {"a": b"a"}), (1, {"c": b"c"})]


def joining() -> Village:
    """c has joined a and b, and does not have their state yet."""
    village = Village("a", "b", strangers=("c",))
    village.send("a", b"state")
    village.finish(1)
    village.join("c", "a")
    while (group := village.core("c").current(GROUP)) is None or not group.awaits_state:
        village.move_between("a", "b")
        village.move_one_way("c", "a", "b")
        village.move_one_way("a", "c")
    return village


def test_a_joiner_gets_no_query_before_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_room, "_COUNT_MAX", 2)
    village = joining()
    core, held_back = village.core("c"), village.core("c")._installer._held_back
    group = core.current(GROUP)
    assert group is not None
    core.receive(QueryFrame(group.view.group, A, 9, b"?"), village.now)
    held_back.drop(group.view.group)  # as if the group were left: its queries are gone, and free their room
    for number in range(3):
        core.receive(QueryFrame(group.view.group, A, number, b"?"), village.now)
    village.settle("c")
    assert village.found("c", Query) == []
    village.finish(2)
    kinds = [type(effect) for effect in village.effects["c"] if isinstance(effect, InstallState | Query)]
    assert kinds == [InstallState, Query, Query]
    core.receive(QueryFrame(group.view.group, A, 3, b"?"), village.now)
    village.settle("c")
    assert [query.frame.request for query in village.found("c", Query)] == [0, 1, 3]  # type: ignore[attr-defined]


def test_a_joiner_without_a_state_asks_others_and_not_itself() -> None:
    village = joining()
    for _ in range(3):
        village.ask("c", "any")
    village.move_all()
    assert [len(village.found(name, Query)) for name in "abc"] == [2, 1, 0]


def test_on_datagrams_a_lost_answer_is_repeated_until_it_is_acknowledged() -> None:
    village = Village(datagrams=True)
    village.ask("a", "first")
    village.finish(1)
    village.answer("b")
    for _ in range(3):
        village.channels["b", "a"].clear()
        village.wait(OMEGA_NS // 8)
    village.finish(2)
    assert village.answers("a") == [(0, {"b": b"b"})]
    sent = len([frame for frame in village.control["b"] if isinstance(frame, AnswerFrame)])
    assert sent > 1
    assert [frame for frame in village.control["a"] if isinstance(frame, AnsweredFrame)]
    village.finish(4)
    assert len([frame for frame in village.control["b"] if isinstance(frame, AnswerFrame)]) == sent


def test_on_datagrams_a_second_answer_does_not_replace_the_first() -> None:
    village = Village(datagrams=True)
    village.ask("a", "first")
    village.finish(1)
    village.answer("b", payload=b"1")
    village.channels["b", "a"].clear()
    village.answer("b", payload=b"2")
    village.finish(4)
    assert village.answers("a") == [(0, {"b": b"1"})]


def test_an_answer_of_any_size_to_a_request_of_any_size() -> None:
    village = Village(answering="b", frame_bytes_max=64)
    village.ask("a", "first", b"?" * 1000)
    village.send("a", b"behind")
    village.finish(2)
    assert village.delivered["c"] == [b"?" * 1000, b"behind"]
    assert village.answers("a") == [(0, {"b": b"b"})]


def test_forged_answers_queries_and_numbers_change_nothing() -> None:
    village = Village()
    village.ask("a", "all")
    village.finish(1)
    core, stranger = village.core("a"), ProcessId("x")
    for frame in (
        AnswerFrame(GROUP, stranger, 0, b"x"),
        AnswerFrame(GROUP, B, 1, b"x"),
        AnswerFrame(GROUP, B, 2**62, b"x"),
        AnsweredFrame(GROUP, B, 5),
        QueryFrame(GROUP, stranger, 0, b"x"),
    ):
        core.receive(frame, village.now)
    village.settle("a")
    assert village.answers("a") == []
    assert village.found("a", Query) == []
    assert core.withdraw(GROUP, 0, village.now) == ()


def test_a_request_in_a_causal_group() -> None:
    for service in ("causal-slow", "causal-fast", "causal-relative", "causal-vector"):
        village = Village(answering="abc", service=service)
        village.ask("a", "all")
        village.finish(2)
        assert village.answers("a") == [(0, {"a": b"a", "b": b"b", "c": b"c"})], service
        assert all(isinstance(frame, BlockFrame) for frame in village.got("b"))
