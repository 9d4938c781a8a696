"""The service of each group, as its application chose it (docs/spec/newtop.md 11.5 rules 5 and 6)."""

import pytest

from antiphon.core.effects import Difference, Refused
from antiphon.core.services import GroupService, ViewMode
from antiphon.protocols.newtop.frames import VoteFrame
from antiphon.protocols.newtop.membership.views import ClosedChange, RemoveChange, SequencerChange, ViewChange
from antiphon.types import GroupId, ProcessId
from tests.support.forming import Forming

SAFE, CLOSED, REMOVED = GroupService("total-safe"), GroupService(views="closed"), GroupService(views="remove")
SEQUENCED = GroupService(sequencer=True)
CHANGES = {"safe": (SAFE, ViewChange), "closed": (CLOSED, ClosedChange), "removed": (REMOVED, RemoveChange)}


def choosing(*names: str) -> Forming:
    """Processes of one order, in no group yet, as the API makes them."""
    values = (("window", "64"),)
    return Forming(strangers=names, service="total-safe", agreed=values, invitations=False)


def choose(cluster: Forming, group: str, service: GroupService, *names: str) -> None:
    for name in names:
        cluster.core(name).choose(GroupId(group), service)


def test_groups_of_one_process_have_different_services_and_successors_keep_them() -> None:
    cluster = choosing("a", "b", "c")
    for group, (service, _) in CHANGES.items():
        choose(cluster, group, service, "a", "b", "c")
        cluster.join("b", "a", group=group)
        cluster.form("a", "a", "b", group=group)
        cluster.finish()
        cluster.join("c", "a", group=group)  # a successor of the group
        cluster.finish()
    for name in "abc":
        for group, (service, change) in CHANGES.items():
            own = cluster.core(name).current(GroupId(group))
            assert own is not None
            assert cluster.last_view(name, group) == "a b c"
            assert (own.progress.safe, type(own.change)) == (service.is_safe, change)


def test_a_process_sends_in_turn_from_its_first_group_with_a_sequencer_on() -> None:
    cluster = choosing("a")
    choose(cluster, "plain", GroupService(), "a")
    cluster.form("a", "a", group="plain")
    cluster.finish()
    assert cluster.core("a")._table.turns is None
    choose(cluster, "ordered", SEQUENCED, "a")
    cluster.form("a", "a", group="ordered")
    cluster.finish()
    own = cluster.core("a").current(GroupId("ordered"))
    assert own is not None
    assert isinstance(own.change, SequencerChange)
    assert cluster.core("a")._table.turns is not None


def test_both_ends_are_told_of_a_service_that_differs() -> None:
    cluster = choosing("a", "b")
    choose(cluster, "x", SAFE, "a")
    choose(cluster, "x", CLOSED, "b")
    cluster.form("a", "a", group="x")
    cluster.finish()
    cluster.join("b", "a", group="x")
    cluster.finish()
    told = {
        name: {effect.differences for effect in cluster.effects[name] if isinstance(effect, Refused)} for name in "ab"
    }
    assert told == {
        "a": {(Difference("service", "total-safe", "total"), Difference("views", "cut", "closed"))},
        "b": {(Difference("service", "total", "total-safe"), Difference("views", "closed", "cut"))},
    }


def test_a_process_has_no_opinion_about_a_group_that_its_application_has_not_asked_for() -> None:
    cluster = choosing("a", "b")
    choose(cluster, "x", SEQUENCED, "a")
    cluster.form("a", "a", "b", group="x")
    cluster.move_all()
    assert [frame.number for frame in cluster.control["b"] if isinstance(frame, VoteFrame)] == [None]
    assert not any(isinstance(effect, Refused) for name in "ab" for effect in cluster.effects[name])


def test_a_process_that_has_left_may_choose_anew() -> None:
    cluster = choosing("a")
    choose(cluster, "x", SAFE, "a")
    cluster.form("a", "a", group="x")
    cluster.finish()
    with pytest.raises(AssertionError, match="a group keeps its service"):
        choose(cluster, "x", CLOSED, "a")
    cluster.leave("a", group="x")
    cluster.finish()
    choose(cluster, "x", CLOSED, "a")
    cluster.form("a", "a", group="x")
    cluster.finish()
    own = cluster.core("a").current(GroupId("x"))
    assert own is not None
    assert isinstance(own.change, ClosedChange)
    assert own.view.members == (ProcessId("a"),)


@pytest.mark.parametrize("views", ["remove", "closed"])
def test_what_no_group_can_have_is_our_own_error(views: ViewMode) -> None:
    for service in ({"name": "total-safe"}, {"sequencer": True}):
        with pytest.raises(AssertionError, match="go with cuts"):
            GroupService(views=views, **service)
