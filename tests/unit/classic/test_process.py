"""The contract of a classic process: independent groups, losses told once, channels, ignored frames."""

from antiphon.core.contract import Asking, Attended
from antiphon.core.effects import Channel, Deliver, InstallView, Transmit
from antiphon.protocols.classic.as_printed import ERRATA, EventClock, concerns, printed
from antiphon.protocols.classic.frames import DataFrame, RelayFrame, Stamp
from antiphon.protocols.classic.process import ClassicProcess
from antiphon.protocols.classic.rules import ADOPTED
from antiphon.protocols.classic.settings import ClassicGroupPlan, ClassicSettings
from antiphon.protocols.newtop.frames import AckFrame
from antiphon.types import GroupId, ProcessId, first_view

P, Q, S = ProcessId("p"), ProcessId("q"), ProcessId("s")
G, H = GroupId("g"), GroupId("h")


def process(*, datagrams: bool = False, delivers: bool = True) -> ClassicProcess:
    members = frozenset({P, Q})
    plans = {
        G: ClassicGroupPlan(first_view(G, members), "total", delivers),
        H: ClassicGroupPlan(first_view(H, members), "fifo", delivers),
    }
    return ClassicProcess(P if delivers else S, plans, ClassicSettings(datagrams=datagrams))


def test_it_keeps_the_contract() -> None:
    core = process()
    attended: Attended = core
    asking: Asking = core
    attended.consumed(G, 1, 0)
    attended.writable(False, 0)
    asking.tick(0)
    assert core.deadline is None
    assert core.unstable(GroupId("elsewhere")) == 0


def test_groups_are_independent() -> None:
    core = process()
    assert [type(effect) for effect in core.drain(0)] == [InstallView, InstallView]
    core.send(H, b"m", 0, label=4)
    transmit, deliver = core.drain(0)
    assert isinstance(transmit, Transmit)
    assert isinstance(deliver, Deliver)
    assert transmit.frame == deliver.frame == DataFrame(H, P, 1, (b"m",), 4)
    core.send(G, b"n", 0)
    assert (core.unstable(G), core.unstable(H)) == (1, 0)
    assert core.drain(0)
    assert not core.drain(0)


def test_a_loss_is_told_once_and_reaches_all_groups() -> None:
    core = process()
    core.drain(0)
    core.lost(Q, 0)
    core.lost(Q, 0)
    views = [effect.view for effect in core.drain(0) if isinstance(effect, InstallView)]
    assert [(view.group, view.members) for view in views] == [(G, (P,)), (H, (P,))]
    assert all(view.previous is not None for view in views)


def test_a_sender_outside_sees_the_views_and_delivers_nothing() -> None:
    core = process(delivers=False)
    core.receive(DataFrame(G, Q, 1, (b"m",)), 0)
    core.receive(RelayFrame(H, Q, DataFrame(H, P, 1, (b"m",))), 0)
    assert [type(effect) for effect in core.drain(0)] == [InstallView, InstallView]


def test_frames_ask_for_the_channel_that_there_is() -> None:
    for datagrams, channel in ((False, Channel.STREAM), (True, Channel.DATAGRAM)):
        core = process(datagrams=datagrams)
        core.send(H, b"m", 0)
        assert {effect.channel for effect in core.drain(0) if isinstance(effect, Transmit)} == {channel}


def test_frames_of_other_groups_and_outsiders_are_ignored() -> None:
    core = process()
    core.drain(0)
    core.receive(AckFrame(G, Q, 1), 0)
    core.receive(DataFrame(GroupId("elsewhere"), Q, 1, (b"m",)), 0)
    core.receive(RelayFrame(H, S, DataFrame(H, Q, 1, (b"m",))), 0)  # a relay from outside the group
    assert not core.drain(0)


def test_a_committed_message_shows_its_stamp_and_the_site_that_gave_it() -> None:
    frame = DataFrame(G, P, 3, (b"m",))
    assert (frame.clock, frame.orderer, frame.serial, frame.kind) == (3, None, 3, "data")
    committed = frame._replace(stamp=Stamp(7, Q))
    assert (committed.clock, committed.orderer, committed.serial) == (7, Q, 3)
    assert frame._replace(stamp=Stamp(7, P)).orderer is None  # the sender's own


def test_the_printed_rule_can_be_followed() -> None:
    assert ERRATA == ("N1",)
    assert printed(()) is ADOPTED
    assert printed(("N1",)).clock is EventClock
    assert concerns("N1", frozenset({"total", "fifo"}))
    assert not concerns("N1", frozenset({"fifo"}))
