"""Settings that must agree (docs/spec/newtop.md 11.5): a mismatch forms no group, and both ends are told."""

from typing import Any

from antiphon.core.effects import Difference, Refused
from antiphon.protocols.newtop.frames import FormationFrame, ProbeFrame, ProposeFrame, RefuseFrame, VoteFrame
from antiphon.types import GroupId, ProcessId
from tests.support.cluster import GROUP, OMEGA_NS
from tests.support.forming import Forming

OURS = (("flow_control", "3"), ("window", "64"))
THEIRS = (("flow_control", "0"), ("window", "64"))
HERE, THERE = Difference("flow_control", "3", "0"), Difference("flow_control", "0", "3")


def cluster_of(*names: str, **settings: Any) -> Forming:
    """Members with the same settings."""
    return Forming(*names, agreed=OURS, **settings)


def refused(cluster: Forming, name: str) -> list[Refused]:
    """The refusals that a process was told, without repetitions."""
    return [*dict.fromkeys(effect for effect in cluster.effects[name] if isinstance(effect, Refused))]


def sent(cluster: Forming, name: str, kind: type[FormationFrame]) -> list[Any]:
    return [frame for frame in cluster.control[name] if isinstance(frame, kind)]


def test_a_joiner_with_other_settings_is_refused_and_both_ends_are_told() -> None:
    cluster = cluster_of("a", "b")
    cluster.start("c", agreed=THEIRS)
    cluster.join("c", "a", "b")
    cluster.finish()
    assert refused(cluster, "a") == [Refused(GROUP, ProcessId("c"), (HERE,))]
    assert {each.differences for each in refused(cluster, "c")} == {(THERE,)}
    assert cluster.last_view("a") == cluster.last_view("b") == "a b"
    assert not sent(cluster, "a", ProposeFrame)  # no member was delayed
    assert cluster.views["c"] == []


def test_a_joiner_with_the_same_settings_is_taken_in() -> None:
    cluster = cluster_of("a", "b")
    cluster.start("c")
    cluster.join("c", "a")
    cluster.finish()
    assert {cluster.last_view(name) for name in "abc"} == {"a b c"}
    assert not any(refused(cluster, name) for name in "abc")


def test_groups_with_different_settings_do_not_merge() -> None:
    cluster = cluster_of("a", "b")
    for name in "cd":
        cluster.start(name, agreed=THEIRS)
    cluster.form("c", "c", "d", group=GROUP)
    cluster.finish()
    cluster.merge("a", "c")
    cluster.finish()
    assert refused(cluster, "a") == [Refused(GROUP, ProcessId("c"), (HERE,))]
    assert refused(cluster, "c") == [Refused(GROUP, ProcessId("a"), (THERE,))]
    assert [cluster.last_view(name) for name in "abcd"] == ["a b", "a b", "c d", "c d"]


def test_a_proposal_is_refused_by_an_invitee_with_other_settings() -> None:
    cluster = Forming(strangers=["a", "b"], agreed=OURS)
    cluster.start("c", agreed=THEIRS)
    cluster.form("a", "a", "b", "c", group="x")
    cluster.move_all()
    assert [frame.number for frame in sent(cluster, "c", VoteFrame)] == [None]
    assert refused(cluster, "c") == [Refused(GroupId("x"), ProcessId("a"), (THERE,))]
    assert refused(cluster, "a") == [Refused(GroupId("x"), ProcessId("c"), (HERE,))]
    assert all(core._formations is not None and not core._formations.busy for core in cluster.cores.values())


def test_a_setting_that_only_a_newer_version_knows_is_named() -> None:
    cluster = cluster_of("a")
    cluster.start("b", agreed=(*OURS, ("turbo", "on")))
    cluster.join("b", "a")
    cluster.finish()
    assert refused(cluster, "a") == [Refused(GROUP, ProcessId("b"), (Difference("turbo", None, "on"),))]
    assert {each.differences for each in refused(cluster, "b")} == {(Difference("turbo", "on", None),)}


def test_all_settings_that_differ_are_named_in_order() -> None:
    cluster = cluster_of("a")
    cluster.start("b", agreed=THEIRS, service="total-safe")
    cluster.join("b", "a")
    cluster.finish()
    (told,) = refused(cluster, "a")
    assert told.differences == (HERE, Difference("service", "total", "total-safe"))


def test_whether_there_is_a_sequencer_is_compared_for_each_group() -> None:
    other = GroupId("other")
    cluster = cluster_of("a")
    cluster.start("b", asymmetric=frozenset({other}))
    cluster.start("c", asymmetric=frozenset({other}))
    cluster.join("b", "a")
    cluster.finish()
    assert cluster.last_view("a") == "a b"
    cluster.form("a", "a", group=other)
    cluster.finish()
    cluster.join("c", "a", group=other)
    cluster.finish()
    assert refused(cluster, "a") == [Refused(other, ProcessId("c"), (Difference("sequencer", "no", "yes"),))]


def test_a_refusal_of_a_process_that_was_not_asked_means_nothing() -> None:
    cluster = cluster_of("a", "b")
    cluster.start("c")
    cluster.join("c", "a")
    for group in (GROUP, GroupId("never heard of")):
        for name in "ac":
            cluster.core(name).receive(RefuseFrame(group, ProcessId("mallory"), THEIRS), cluster.now)
            cluster.settle(name)
    assert not any(refused(cluster, name) for name in "ac")
    cluster.finish()
    assert cluster.last_view("c") == "a b c"


def test_a_refusal_without_a_difference_means_nothing() -> None:
    cluster = cluster_of("a", "b")
    cluster.core("a").receive(RefuseFrame(GROUP, ProcessId("b"), sent_by(cluster, "b")), cluster.now)
    cluster.settle("a")
    assert not refused(cluster, "a")


def sent_by(cluster: Forming, name: str) -> tuple[tuple[str, str], ...]:
    """The settings that a process tells."""
    cluster.merge(name, "nobody")
    settings: tuple[tuple[str, str], ...] = sent(cluster, name, ProbeFrame)[-1].settings
    return settings


def test_a_refusal_is_repeated_as_often_as_it_is_asked_for() -> None:
    """On datagrams it may be lost."""
    cluster = cluster_of("a")
    cluster.start("b", agreed=THEIRS)
    cluster.join("b", "a")
    cluster.move_all()
    cluster.wait(4 * OMEGA_NS)
    cluster.move_all()
    assert len(sent(cluster, "a", RefuseFrame)) >= 2


def test_without_values_nothing_is_told_and_nothing_differs() -> None:
    """The cores of scenarios."""
    cluster = Forming("a", "b", strangers=["c"])
    cluster.join("c", "a")
    cluster.finish()
    assert cluster.last_view("a") == "a b c"
    told = [
        frame.settings for name in "abc" for kind in (ProbeFrame, ProposeFrame) for frame in sent(cluster, name, kind)
    ]
    assert told
    assert not any(told)
