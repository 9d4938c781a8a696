"""Two processes with one name (docs/spec/newtop.md 11.2 rule 6): no group has both, the older keeps its place."""

from tests.support.cluster import GROUP
from tests.support.forming import Forming


def test_a_member_that_runs_is_not_replaced_by_a_later_start_of_its_name() -> None:
    cluster = Forming("a", "b", doubts_restarts=True)
    cluster.start("a#1")
    cluster.join("a#1", "b")
    cluster.finish()
    assert cluster.last_view("a") == cluster.last_view("b") == "a b"
    assert not cluster.views["a#1"]
    cluster.send("a", b"on")
    cluster.finish(2)
    assert cluster.delivered["b"] == [b"on"]


def test_a_member_that_has_crashed_is_replaced_once_it_has_not_voted() -> None:
    cluster = Forming("a", "b", doubts_restarts=True)
    cluster.crash("a")
    cluster.start("a#1")
    cluster.join("a#1", "b")
    cluster.finish(20)
    assert cluster.last_view("b") == cluster.last_view("a#1") == "a#1 b"


def test_a_member_whose_connection_is_broken_is_replaced_at_once() -> None:
    cluster = Forming("a", "b", doubts_restarts=True)
    cluster.crash("a")
    cluster.core("b").severed(cluster.members[GROUP][0], cluster.now)
    cluster.start("a#1")
    cluster.join("a#1", "b")
    cluster.finish(4)
    assert cluster.last_view("b") == cluster.last_view("a#1") == "a#1 b"


def test_groups_with_two_processes_of_one_name_do_not_merge() -> None:
    cluster = Forming("a", "b", doubts_restarts=True)
    for name in ("a#1", "c"):
        cluster.start(name)
    cluster.form("c", "a#1", "c", group=GROUP)
    cluster.finish()
    for one, other in (("a", "c"), ("b", "a#1"), ("c", "a"), ("a#1", "b")):
        cluster.merge(one, other)
        cluster.finish()
    assert [cluster.last_view(name) for name in ("a", "b", "a#1", "c")] == ["a b", "a b", "a#1 c", "a#1 c"]
