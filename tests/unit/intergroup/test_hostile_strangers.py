"""What a process that is no member, or that uses the name of one, cannot do with a single plausible frame."""

from dataclasses import replace

from antiphon.protocols.intergroup.frames import DataFrame, JoinInfoFrame, ReportFrame, SourceAcceptFrame
from antiphon.protocols.intergroup.membership.bootstrap import HEARD_MAX, Bootstrap
from antiphon.protocols.intergroup.membership.claims import Claim
from antiphon.protocols.intergroup.membership.epoch import Epoch
from antiphon.protocols.intergroup.membership.foreign import FOREIGN_MAX, Foreigners
from antiphon.protocols.intergroup.membership.frames import (
    ChangeFrame,
    CutFrame,
    EpochEnd,
    ProposalFrame,
    SponsorRequestFrame,
)
from antiphon.protocols.intergroup.membership.plausible import PROCESSES_MAX, is_plausible
from antiphon.protocols.intergroup.membership.states import State
from antiphon.protocols.intergroup.membership.steps import Step
from antiphon.protocols.intergroup.membership.view_ids import Kind, view_id
from antiphon.protocols.intergroup.receiving.source_order import SourceOrderReceiver
from antiphon.types import ProcessId, ViewId
from tests.support.intergroup_bench import SETTINGS, A, B, C, Lab, RepairBench, SeatBench
from tests.support.intergroup_world import GROUP, SUSPECT_MS

S1, S2, R1, F1, STRANGER = (ProcessId(name) for name in ("s1", "s2", "r1", "f1", "x"))
FAR = 1 << 31


def names(count: int) -> list[ProcessId]:
    return [ProcessId(f"z{number:05d}") for number in range(count)]


def with_receiver() -> Lab:
    lab = Lab(2, ["r1"])
    lab.run(1_000)
    assert lab.standing("r1").state is State.RECEIVER
    return lab


def test_a_process_is_never_added_with_a_number_below_one() -> None:
    """A first number of 0 would say that it left, so nobody would watch it."""
    epoch = Epoch(ViewId("e"), 0, 0, {A: 1}, ViewId("e"), 0)
    assert not epoch.add(B, 0, by=A, seq=1, stamp=5)
    assert epoch.members == (A,)


def test_unknown_senders_of_earlier_do_not_keep_out_others() -> None:
    foreign = Foreigners(timeout_ns=100)
    for name in names(FOREIGN_MAX):
        foreign.is_overdue(name, 100, 0)
    assert not foreign.is_overdue(A, 100, 200)
    assert foreign.is_overdue(A, 100, 300)


def test_senders_heard_earlier_do_not_keep_out_others() -> None:
    bench = SeatBench()
    bootstrap = Bootstrap(bench.context, bench.outlet)
    for name in names(HEARD_MAX):
        bootstrap.heard(name, 0)
    bootstrap.heard(A, 1)
    assert not bootstrap.hears(A)
    bootstrap.heard(A, 5 * SETTINGS.suspect_after_ns)
    assert bootstrap.hears(A)


def test_a_joiner_believes_only_senders_that_it_hears() -> None:
    lab = Lab(1)
    lab.cut.add(("s1", "r1"))
    lab.come("r1", sends=False)
    lab.run(100)
    ones = ((STRANGER, 1),)
    lab.hand("r1", JoinInfoFrame(GROUP, STRANGER, R1, ViewId("e"), ViewId("e"), 0, lab.now_us(), ones, ones, (), ()))
    assert lab.standing("r1").state is State.BOOTSTRAP


def test_a_stranger_draws_no_receiver_into_a_repair() -> None:
    """Only a member can have delivered the message that adds it."""
    lab = with_receiver()
    lab.lost = lambda frame, _to: isinstance(frame, SponsorRequestFrame)
    lab.promote("r1")
    lab.run(10)
    assert lab.standing("r1").state is State.TO_SENDER
    proposal = ProposalFrame(GROUP, STRANGER, 1, 1, lab.epoch("r1"), lab.now_us(), (R1, STRANGER), ())
    lab.hand("r1", proposal)
    assert lab.standing("r1").state is State.TO_SENDER
    lab.hand("r1", replace(proposal, sender=S1, processes=(R1, S1, S2)))
    assert lab.standing("r1").state is State.REPAIR


def test_a_source_does_not_begin_beyond_every_time_that_was_heard() -> None:
    """What we acknowledge would be so high that no source could begin again."""
    lab = Lab(2, ["f1"], services={"f1": "fifo"})
    lab.run(1_500)
    receiver = lab.cores[F1]._members[GROUP]._role
    assert isinstance(receiver, SourceOrderReceiver)
    for source in (S1, S2):
        receiver._drop(source)
        receiver._activate(source, lab.now)
    nonce, year_us = receiver._activating[S1].nonce, 365 * 24 * 3_600 * 1_000_000
    lab.hand("f1", SourceAcceptFrame(GROUP, S1, F1, nonce, lab.epoch("s1"), (S1, S2), 1, lab.now_us() + year_us))
    lab.run(3_000)
    sent = {lab.send("s1"), lab.send("s2")}
    lab.run(SUSPECT_MS)
    assert sent <= {*lab.got("f1")}


def test_only_a_receiver_that_reports_is_sponsored() -> None:
    lab = with_receiver()
    lab.hand("s1", SponsorRequestFrame(GROUP, STRANGER, lab.epoch("s1"), 1))
    lab.run(50)
    assert [frame for frame in lab.frames(DataFrame) if frame.change is not None] == []


def test_a_view_has_no_more_members_than_a_frame_can_name() -> None:
    lab = Lab(1)
    lab.run(100)
    epoch = lab.epoch("s1")
    for name in names(PROCESSES_MAX + 100):
        report = ReportFrame(GROUP, name, epoch, lab.now_us(), None)
        lab.hand("s1", report, SponsorRequestFrame(GROUP, name, epoch, 1))
    asked = [frame for frame in lab.frames(DataFrame) if frame.change is not None]
    assert len(asked) == PROCESSES_MAX - 1


def test_a_receiver_follows_no_change_that_does_not_fit_its_epoch() -> None:
    """It knows all senders of the epoch, none is far ahead, and at least one of them survives."""
    lab = with_receiver()
    epoch, start = lab.epoch("r1"), lab.now_us() + 1_000

    def change(members: dict[ProcessId, int], lost: dict[ProcessId, int]) -> ChangeFrame:
        ends = dict(sorted({**members, **lost}.items()))
        end = EpochEnd(epoch, tuple(ends.items()), tuple((process, 1) for process in ends), start)
        origins = tuple((process, epoch) for process in members)
        first = tuple((process, last + 1) for process, last in members.items())
        new = view_id(start, Kind.CONSENSUS, next(iter(members)), 1)
        return ChangeFrame(GROUP, STRANGER, new, start, "p", 0, origins, (end,), first)

    for lie in (
        change({S1: 0, S2: FAR}, {}),
        change({S1: 0}, {S2: FAR}),
        change({S1: 0}, {}),
        change({STRANGER: 0}, {S1: 0, S2: 0}),
    ):
        assert is_plausible(lie, start)
        lab.hand("r1", lie)
        assert lab.standing("r1").state is State.RECEIVER
        assert lab.epoch("r1") == epoch
    lab.hand("r1", change({S1: 0, S2: 0}, {}))
    assert lab.epoch("r1") != epoch


def test_a_receiver_that_claims_what_nobody_sent_is_not_counted() -> None:
    lab = with_receiver()
    cuts = lab.cores[S1]._members[GROUP]._participant._senders.cuts
    epoch = lab.epoch("s1")
    for lie in (
        CutFrame(GROUP, STRANGER, epoch, 0, ((S2, Claim(1, FAR, 1)),)),
        CutFrame(GROUP, STRANGER, epoch, lab.now_us() + 10_000_000, ()),
    ):
        lab.hand("s1", lie)
        assert len(cuts._cuts) == 0
    lab.hand("s1", CutFrame(GROUP, R1, epoch, 0, ((S2, Claim(1, 1, 1)),)))
    assert len(cuts._cuts) == 1


def test_a_member_that_claims_what_it_cannot_have_is_not_counted() -> None:
    bench = RepairBench()
    bench.repair.begin(0, failed=C)
    bench.propose(B, "abc", "c")
    bench.believes = False
    bench.inform(B)
    assert bench.step() is Step.INFO
    bench.believes = True
    bench.inform(B)
    assert bench.step() is Step.READY
