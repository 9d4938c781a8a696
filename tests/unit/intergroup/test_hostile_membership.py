"""Membership frames with any numbers and names: the group goes on, and nothing grows without bound.

docs/design/bounds.md lists what each field moves.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import pytest

from antiphon.core.effects import Reset
from antiphon.protocols.intergroup.frames import (
    InterGroupFrame,
    JoinInfoFrame,
    JoinRequestFrame,
    KeepAliveFrame,
    ReportFrame,
    SourceAcceptFrame,
)
from antiphon.protocols.intergroup.membership.claims import Claim
from antiphon.protocols.intergroup.membership.foreign import FOREIGN_MAX, Foreigners
from antiphon.protocols.intergroup.membership.frames import (
    ChangeFrame,
    CutFrame,
    EpochEnd,
    ProposalFrame,
    ReadyFrame,
    RecoveryInfoFrame,
    SponsorRequestFrame,
)
from antiphon.protocols.intergroup.membership.plausible import PROCESSES_MAX, is_plausible
from antiphon.protocols.intergroup.membership.proposers import PROPOSERS_MAX, LatestProposals
from antiphon.protocols.intergroup.membership.states import State
from antiphon.protocols.intergroup.membership.view_ids import Kind, view_id
from antiphon.protocols.intergroup.receiving.source_order import SourceOrderReceiver
from antiphon.protocols.intergroup.stability.schedule import REPORTERS_MAX
from antiphon.types import ProcessId, ViewId
from antiphon.wire.codec import encode
from tests.support.intergroup_bench import A, B, Lab, RepairBench
from tests.support.intergroup_world import GROUP, SUSPECT_MS

S1, S2, S3, R1, STRANGER = (ProcessId(name) for name in ("s1", "s2", "s3", "r1", "x"))
EXTREMES = (-1, 0, 1, 1 << 31, (1 << 62) - 1)
LATEST = 1_000_000


def samples(sender: ProcessId, epoch: ViewId, proposal: str, stamp: int) -> list[InterGroupFrame]:
    """A frame of each kind that may be true, for a group of s1, s2, s3 and the sender."""
    members = tuple(sorted({S1, S2, S3, sender}))
    claims = tuple((process, Claim(1, 1, stamp)) for process in (S3,))
    final = tuple((process, 0) for process in members)
    ones = tuple((process, 1) for process in members)
    origins = tuple((process, epoch) for process in members)
    new = view_id(stamp, Kind.CONSENSUS, members[0], 9)
    return [
        ProposalFrame(GROUP, sender, 1, 1, epoch, stamp, members, tuple({S3} - {sender})),
        RecoveryInfoFrame(GROUP, sender, epoch, proposal, 0, stamp, 1, 1, 1, claims, claims, 1),
        ReadyFrame(GROUP, sender, epoch, proposal, 0, stamp, 1, final, ones),
        ChangeFrame(GROUP, sender, new, stamp, proposal, 0, origins, (EpochEnd(epoch, final, ones, 1),), ones),
        CutFrame(GROUP, sender, epoch, 1, claims),
        JoinInfoFrame(GROUP, sender, R1, epoch, epoch, 0, stamp, ones, ones, ((ProcessId("z"), 1, 1),), ()),
        SourceAcceptFrame(GROUP, sender, ProcessId("f1"), 1, epoch, members, 1, stamp),
        SponsorRequestFrame(GROUP, sender, epoch, 1),
        SponsorRequestFrame(GROUP, R1, epoch, 1),
    ]


def places(value: Any, at: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Where the numbers of a frame are."""
    if isinstance(value, int):
        yield at
    elif isinstance(value, tuple):
        for place, part in enumerate(value):
            yield from places(part, (*at, place))


def put(value: Any, at: tuple[int, ...], number: int) -> Any:
    """The value with another number in that place."""
    if not at:
        return number
    parts = [put(part, at[1:], number) if place == at[0] else part for place, part in enumerate(value)]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def with_number(frame: InterGroupFrame, at: tuple[int, ...], number: int) -> InterGroupFrame:
    names = [field.name for field in fields(frame)]  # type: ignore[arg-type]
    values = tuple(getattr(frame, name) for name in names)
    return type(frame)(*put(values, at, number))


def numbered() -> list[tuple[int, tuple[int, ...]]]:
    """Each number of each sample; of numbers in a list of processes, the first and the last."""
    found = []
    for kind, frame in enumerate(samples(STRANGER, ViewId("e"), "p", 9)):
        values = tuple(getattr(frame, field.name) for field in fields(frame))  # type: ignore[arg-type]
        found += [(kind, at) for at in places(values) if len(at) < 3 or at[-2] in (0, len(values[at[0]]) - 1)]
    return found


def attack(lab: Lab, sender: ProcessId, kind: int, at: tuple[int, ...], numbers: tuple[int, ...]) -> None:
    """Every process gets the frame with each of these numbers."""
    for victim in (S1, S3, R1, ProcessId("f1"), S2):
        repair = lab.cores[victim]._members[GROUP]._participant._senders.repair
        seat = lab.seat(victim)
        epoch = ViewId("none") if seat._epoch is None else seat.epoch.id
        frame = samples(sender, epoch, "" if repair is None else repair._proposal, lab.now_us())[kind]
        if victim != sender:
            lab.hand(victim, *(with_number(frame, at, number) for number in numbers))


@pytest.mark.parametrize("sender", [STRANGER, S2])
@pytest.mark.parametrize(("kind", "at"), numbered())
def test_no_number_of_a_membership_frame_stops_the_group(kind: int, at: tuple[int, ...], sender: ProcessId) -> None:
    """It arrives in a stable view, and again and again in a repair. Afterwards all deliver what is sent."""
    lab = Lab(4, ["r1", "f1"], services={"f1": "fifo"})
    lab.run(1_500)
    attack(lab, sender, kind, at, EXTREMES)
    lab.run(20)
    lab.crash("s4")
    lab.suspect("s1", "s4")
    for _ in range(10):
        attack(lab, sender, kind, at, EXTREMES)
        lab.run(7)
    lab.run(20 * SUSPECT_MS)
    sent = {lab.send(name) for name in ("s1", "s2", "s3")}
    lab.run(2 * SUSPECT_MS)
    for process in (S1, S2, S3, R1, ProcessId("f1")):
        assert sent <= {*lab.got(process)}, process
    for _, frame in lab.transmitted[-200:]:
        encode(frame)


def refuse(frame: InterGroupFrame, **changes: Any) -> bool:
    assert is_plausible(frame, LATEST)
    return not is_plausible(replace(frame, **changes), LATEST)  # type: ignore[type-var]


def names(count: int) -> tuple[ProcessId, ...]:
    return tuple(ProcessId(f"s{number:05d}") for number in range(count))


def test_lists_that_no_process_sends_are_refused() -> None:
    """Too many, twice the same, not sorted, without the sender, and lists that do not fit together."""
    proposal, info, ready, change, cut, join, accept, *_ = samples(S2, ViewId("e"), "p", 9)
    many = names(PROCESSES_MAX + 1)
    for wrong in ((), (S2, S1), (S1, S1, S2), (S1, S3), (*many, S2)):
        assert refuse(proposal, processes=wrong, failed=())
    for wrong in ((S2,), (STRANGER,), (S3, S1), many):
        assert refuse(proposal, failed=wrong)
    claims = tuple((name, Claim(1, 1, 1)) for name in many)
    for field in ("claims", "receiver_claims"):
        for told in (claims, claims[1::-1], (claims[0], claims[0])):
            assert refuse(info, **{field: told})
    assert refuse(cut, claims=claims)
    ones = tuple((name, 1) for name in many)
    assert refuse(ready, final=ones, stints=ones)
    assert refuse(ready, stints=())
    assert isinstance(change, ChangeFrame)
    wrong_changes: list[tuple[str, Any]] = [
        ("origins", ()),
        ("origins", change.origins[1:]),
        ("ends", ()),
        ("ends", change.ends * 2),
        ("ends", (change.ends[0]._replace(final=()),)),
        ("first", change.first[1:]),
        ("start", 10),
        ("epoch", ViewId("any")),
    ]
    for field, value in wrong_changes:
        assert refuse(change, **{field: value})
    assert isinstance(join, JoinInfoFrame)
    wrong_answers: list[tuple[str, Any]] = [
        ("first", join.first[1:]),
        ("stints", ((S1, 2), *join.stints[1:])),
        ("left", ((S1, 1, 1),)),
        ("left", join.left * 2),
        ("predecessors", (ViewId("a"),) * 65),
        ("predecessors", (join.epoch,)),
        ("entered", 10),
    ]
    for field, value in wrong_answers:
        assert refuse(join, **{field: value})
    assert refuse(accept, members=many)


# -------------------------------------------------------------------------------- single numbers


def test_a_forged_number_silences_a_process_for_one_suspicion_timeout() -> None:
    latest = LatestProposals(timeout_ns=100)
    assert latest.is_latest(A, 1 << 50, 0)
    assert not latest.is_latest(A, 7, 99)
    assert latest.is_latest(A, 7, 100)
    assert not latest.is_latest(A, 6, 101)


def test_a_receiver_that_is_added_with_a_forged_number_begins_again() -> None:
    """If it became a sender, all would wait forever for the numbers before the forged one."""
    lab = Lab(2, ["r1"])
    lab.run(1_000)
    lab.hand("s1", SponsorRequestFrame(GROUP, R1, lab.epoch("s1"), 1 << 40))
    lab.run(15 * SUSPECT_MS)
    assert [each.reason for each in lab.log[R1] if isinstance(each, Reset)] == ["unsponsored"]
    sent = lab.send("s2")
    lab.run(SUSPECT_MS)
    assert lab.got("s1")[-1] == lab.got("r1")[-1] == sent


def test_a_receiver_that_is_added_and_did_not_ask_leaves_again() -> None:
    lab = Lab(2, ["r1"])
    lab.run(1_000)
    lab.hand("s1", SponsorRequestFrame(GROUP, R1, lab.epoch("s1"), 1))
    lab.run(5 * SUSPECT_MS)
    assert ("r1", "s1", "s2") in [view.members for view in lab.views("s1")]
    assert lab.members("s1") == ("s1", "s2")
    assert lab.standing("r1").state is State.RECEIVER


def test_a_source_that_tells_a_first_number_it_never_reaches_is_asked_again() -> None:
    lab = Lab(2, ["f1"], services={"f1": "fifo"})
    lab.run(20)
    receiver = lab.cores[ProcessId("f1")]._members[GROUP]._role
    assert isinstance(receiver, SourceOrderReceiver)
    receiver._activate(S1, lab.now)
    nonce = receiver._activating[S1].nonce
    lab.hand("f1", SourceAcceptFrame(GROUP, S1, ProcessId("f1"), nonce, lab.epoch("s1"), (S1, S2), 1 << 40, 0))
    lab.run(10 * SUSPECT_MS + 2_000)
    sent = lab.send("s1")
    lab.run(SUSPECT_MS)
    assert lab.got("f1")[-1] == sent


def test_the_leader_refuses_what_is_ready_for_another_epoch() -> None:
    bench = RepairBench()
    bench.repair.begin(0, failed=ProcessId("c"))
    bench.propose(B, "abc", "c")
    bench.inform(B)
    own = bench.repair.ready
    assert own is not None
    bench.repair.readied(replace(own, sender=B, epoch=ViewId("other")), 0)
    bench.repair.readied(replace(own, sender=B, first=9), 0)
    assert bench.decided == []
    bench.repair.readied(replace(own, sender=B), 0)
    assert len(bench.decided) == 1


def test_a_change_must_repeat_what_its_members_told() -> None:
    bench = RepairBench("abc", me=B)
    bench.repair.begin(0, failed=ProcessId("c"))
    bench.propose(A, "abc", "c")
    bench.inform(A)
    ready = bench.repair.ready
    assert ready is not None
    origins = ((A, ready.epoch), (B, ready.epoch))
    end = EpochEnd(ready.epoch, ready.final, ready.stints, 0)
    start = ready.stamp + 1
    change = ChangeFrame(GROUP, A, ViewId("v"), start, ready.proposal, 0, origins, (end,), ((A, 1), (B, 1)))
    assert bench.repair.is_decided_by(change)
    for lie in (
        replace(change, ends=()),
        replace(change, ends=(end._replace(final=((A, 0), (B, 1))),)),
        replace(change, start=ready.stamp),
        replace(change, origins=origins[:1]),
        replace(change, round=1),
        replace(change, proposal="other"),
    ):
        assert not bench.repair.is_decided_by(lie)


# -------------------------------------------------------------------------------- many names

Flood = Callable[[ProcessId, ViewId, int], InterGroupFrame]
ELSEWHERE = ViewId("elsewhere")
FLOODS: dict[str, Flood] = {
    "proposals": lambda who, epoch, stamp: ProposalFrame(GROUP, who, 1, 1, epoch, stamp, (who,), ()),
    "foreign proposals": lambda who, _, stamp: ProposalFrame(GROUP, who, 1, 1, ELSEWHERE, stamp, (who,), ()),
    "infos": lambda who, epoch, stamp: RecoveryInfoFrame(GROUP, who, epoch, "", 0, stamp, 0, 0, 1, (), (), 0),
    "readies": lambda who, epoch, stamp: ReadyFrame(GROUP, who, epoch, "", 0, stamp, 1, ((who, 0),), ((who, 1),)),
    "cuts": lambda who, epoch, _: CutFrame(GROUP, who, epoch, 0, ()),
    "foreign senders": lambda who, _, stamp: KeepAliveFrame(GROUP, who, 0, stamp, ELSEWHERE, 0),
    "unknown senders": lambda who, epoch, stamp: KeepAliveFrame(GROUP, who, 0, stamp, epoch, 0),
    "sponsor requests": lambda who, epoch, _: SponsorRequestFrame(GROUP, who, epoch, 1),
    "join requests": lambda who, _, __: JoinRequestFrame(GROUP, who, 0),
    "reports": lambda who, epoch, stamp: ReportFrame(GROUP, who, epoch, stamp, None),
}


def tables(part: Any, depth: int = 5) -> Iterator[int]:
    """The sizes of all tables of names in a part and in its parts."""
    if isinstance(part, dict | set | list):
        yield len(part)
    elif depth and type(part).__module__.startswith("antiphon.protocols.intergroup"):
        held = [getattr(part, name) for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ())]
        for each in (*held, *getattr(part, "__dict__", {}).values()):
            yield from tables(each, depth - 1)


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("when", ["stable", "repair"])
def test_thousands_of_names_fill_no_table_and_stop_nobody(flood: str, when: str) -> None:
    lab = Lab(3, ["r1"])
    lab.run(1_000)
    if when == "repair":
        lab.crash("s3")
        lab.suspect("s1", "s3")
    for name in names(2 * PROCESSES_MAX):
        for victim in (S1, R1):
            lab.hand(victim, FLOODS[flood](name, lab.epoch("s1"), lab.now_us()))
    member = lab.cores[S1]._members[GROUP]
    assert max(tables(member)) <= (REPORTERS_MAX if flood == "reports" else PROCESSES_MAX)
    lab.run(15 * SUSPECT_MS)
    come = lab.come("n1", sends=True)
    lab.run(10 * SUSPECT_MS)
    assert come in lab.members("s1")
    sent = lab.send(come)
    lab.run(SUSPECT_MS)
    assert all(lab.got(process)[-1] == sent for process in ("s1", "s2", "r1"))


def test_foreign_names_of_earlier_do_not_keep_out_others() -> None:
    """A flood before a partition heals must not stop the merge."""
    foreign = Foreigners(timeout_ns=100)
    for name in names(FOREIGN_MAX):
        assert foreign.should_probe(name, 0)
    assert not foreign.should_probe(A, 199)
    assert foreign.should_probe(A, 200)
    assert foreign.answered(A, 210)


def test_proposers_of_earlier_do_not_keep_out_others() -> None:
    latest = LatestProposals(timeout_ns=100)
    for name in names(PROPOSERS_MAX):
        latest.is_latest(name, 5, 0)
    assert latest.is_latest(A, 5, 50)
    assert latest.is_latest(A, 4, 60)
    assert latest.is_latest(A, 5, 150)
    assert not latest.is_latest(A, 4, 151)
    assert len(latest) == 1


def test_a_member_that_proposes_thousands_of_processes_is_not_followed() -> None:
    """Each proposal may name new ones, so their union is limited too."""
    bench = RepairBench("ab")
    bench.repair.begin(0)
    for start in range(0, 4_000, 500):
        processes = tuple(sorted((A, B, *(ProcessId(f"z{number:05d}") for number in range(start, start + 500)))))
        bench.repair.proposed(ProposalFrame(GROUP, B, 1, 1, bench.epoch.id, 1, processes, ()), 0)
    assert len(bench.repair._consensus.processes) <= PROCESSES_MAX


def test_the_requests_of_a_repair_are_limited() -> None:
    """A claim may be as far ahead as any window; its messages are requested a thousand at a time."""
    bench = RepairBench()
    bench.repair.begin(0, failed=ProcessId("c"))
    bench.propose(B, "abc", "c")
    bench.inform(B, c=Claim(1, 60_000, 9))
    assert 0 < len(bench.wanted) <= 1_024


def test_a_claim_further_ahead_than_any_window_is_not_believed() -> None:
    lab = Lab(2)
    lab.run(300)
    seat = lab.seat("s1")
    assert seat.may_have(((S2, Claim(1, 60_000, 9)),), seat.log.gate)
    assert not seat.may_have(((S2, Claim(1, 70_000, 9)),), seat.log.gate)
    assert not seat.may_have((), seat.context.clock.value + 1)
