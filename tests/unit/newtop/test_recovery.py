"""The missing-message shim alone: requests, statuses, repairs, stored and freed frames."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.effects import Channel, Effect, Transmit
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import (
    AckFrame,
    AliveFrame,
    BlockFrame,
    NewtopFrame,
    RepairFrame,
    RequestFrame,
    StatusFrame,
    SuspectFrame,
)
from antiphon.protocols.newtop.recovery.streams import Recovery
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId, first_view
from antiphon.wire.codec import encode

G = GroupId("g")
P1, P2, P3, P4 = (ProcessId(f"p{number}") for number in range(1, 5))
SETTINGS = NewtopSettings(datagrams=True, repair_ns=20, repair_max_ns=100, frame_bytes_max=400)


def recovery(me: ProcessId = P2, *members: ProcessId) -> Recovery:
    return Recovery(me, first_view(G, frozenset(members or (P1, P2, P3))), SETTINGS)


def frame(place: int, sender: ProcessId = P1, payload: bytes = b"x") -> BlockFrame:
    return BlockFrame(G, sender, place, place - 1, 0, (payload,), sequence=place)


def drained(shim: Recovery, now: int) -> list[tuple[str, NewtopFrame]]:
    effects: list[Effect] = []
    shim.drain(now, effects)
    found: list[tuple[str, NewtopFrame]] = []
    for effect in effects:
        assert isinstance(effect, Transmit)
        assert effect.channel is Channel.DATAGRAM
        assert isinstance(effect.to, str)
        assert isinstance(effect.frame, NewtopFrame)
        found.append((effect.to, effect.frame))
    return found


def requests(shim: Recovery, until: int) -> list[tuple[int, str, tuple[int, ...]]]:
    """The requests of the shim (time, peer, places), driven by its own deadline alone."""
    found = []
    while shim.deadline is not None and shim.deadline <= until:
        now = shim.deadline
        for to, sent in drained(shim, now):
            if isinstance(sent, RequestFrame):
                found.append((now, to, sent.missing))
    return found


# Streams


def test_frames_in_order_pass_at_once_and_nothing_is_armed() -> None:
    shim = recovery()
    assert [shim.receive(frame(place), 0) for place in (1, 2)] == [[frame(1)], [frame(2)]]
    assert shim.deadline is None
    assert drained(shim, 0) == []


def test_the_gap_free_prefix_of_each_stream_is_handed_up_in_order() -> None:
    shim = recovery()
    handed = [shim.receive(frame(place), 0) for place in (3, 1, 4, 2)]
    assert handed == [[], [frame(1)], [], [frame(2), frame(3), frame(4)]]
    assert shim.receive(frame(1, P3), 0) == [frame(1, P3)], "streams do not wait for one another"


def test_duplicates_are_dropped_below_and_above_the_gap() -> None:
    shim = recovery()
    handed = [shim.receive(frame(place), 0) for place in (1, 1, 3, 3, 2, 2, 3)]
    assert handed == [[frame(1)], [], [], [], [frame(2), frame(3)], [], []]


def test_control_frames_have_their_place_in_the_stream_too() -> None:
    shim = recovery()
    alive = AliveFrame(G, P1, 1, 0, sequence=2)
    assert shim.receive(alive, 0) == []
    assert shim.receive(frame(1), 0) == [frame(1), alive]


@pytest.mark.parametrize(
    "stray",
    [
        frame(1, P4),
        frame(1, P2),
        frame(0),
        StatusFrame(G, P4, 5),
        AckFrame(G, P4, 5),
        RequestFrame(G, P4, P1, (1,)),
        RepairFrame(G, P1, (frame(1, P4), frame(1, P2))),
    ],
    ids=["stranger", "echo", "no place", "status", "ack", "request", "copies"],
)
def test_frames_of_foreign_streams_are_dropped(stray: NewtopFrame) -> None:
    shim = recovery()
    assert shim.receive(stray, 0) == []
    assert drained(shim, 0) == []
    assert shim.deadline is None


def test_our_own_frames_get_consecutive_places_whatever_their_kind() -> None:
    shim = recovery(P1)
    places = [
        shim.outgoing(frame(0), 0).sequence,
        shim.outgoing(AliveFrame(G, P1, 0, 0), 0).sequence,
        shim.outgoing(frame(0), 0).sequence,
    ]
    assert places == [1, 2, 3]


# Gaps


def test_a_gap_is_asked_for_at_once_and_all_of_it() -> None:
    shim = recovery()
    for place in (1, 3, 7):
        shim.receive(frame(place), 50)
    assert shim.deadline == 50
    assert drained(shim, 50) == [(P1, RequestFrame(G, P2, P1, (2, 4, 5, 6)))]
    assert shim.deadline == 70
    assert drained(shim, 69) == []


def test_it_asks_the_origin_and_others_in_turn_and_waits_longer_each_time() -> None:
    shim = recovery(P2, P1, P2, P3, P4)
    shim.receive(frame(2), 0)
    assert requests(shim, 450) == [
        (0, P1, (1,)),
        (20, P3, (1,)),
        (60, P1, (1,)),
        (140, P4, (1,)),
        (240, P1, (1,)),
        (340, P3, (1,)),
        (440, P1, (1,)),
    ]


def test_the_questions_end_when_the_gap_is_closed() -> None:
    shim = recovery()
    shim.receive(frame(2), 0)
    drained(shim, 0)
    assert shim.receive(frame(1), 5) == [frame(1), frame(2)]
    assert shim.deadline is None
    assert drained(shim, 1_000) == []


def test_some_progress_is_no_reason_to_hurry() -> None:
    shim = recovery()
    shim.receive(frame(4), 0)
    assert requests(shim, 60) == [(0, P1, (1, 2, 3)), (20, P3, (1, 2, 3)), (60, P1, (1, 2, 3))]
    shim.receive(frame(1), 61)
    shim.receive(frame(3), 62)
    assert requests(shim, 250) == [(140, P3, (2,)), (240, P1, (2,))]


def test_a_new_gap_after_a_closed_one_is_asked_for_at_once_again() -> None:
    shim = recovery()
    shim.receive(frame(2), 0)
    requests(shim, 200)
    shim.receive(frame(1), 201)
    shim.receive(frame(4), 210)
    assert requests(shim, 230) == [(210, P1, (3,)), (230, P3, (3,))]


def test_two_streams_with_gaps_are_asked_for_each() -> None:
    shim = recovery()
    shim.receive(frame(2, P1), 0)
    shim.receive(frame(3, P3), 0)
    assert drained(shim, 0) == [(P1, RequestFrame(G, P2, P1, (1,))), (P3, RequestFrame(G, P2, P3, (1, 2)))]


def test_a_request_is_bounded_whatever_a_peer_claims() -> None:
    """A limit on everything: one small status frame must not make us build, or send, megabytes."""
    shim = recovery()
    shim.receive(StatusFrame(G, P1, 200_000), 0)
    _, (_, request) = drained(shim, 0)
    assert isinstance(request, RequestFrame)
    assert len(request.missing) <= 65_536


# The end of a stream


def test_the_end_of_our_stream_is_told_until_all_have_acknowledged_it() -> None:
    shim = recovery(P1)
    shim.outgoing(frame(0), 0)
    shim.outgoing(frame(0), 10)
    told = [drained(shim, now) for now in (19, 20, 59, 60)]
    everybody = [(P2, StatusFrame(G, P1, 2)), (P3, StatusFrame(G, P1, 2))]
    assert told == [[], everybody, [], everybody]
    shim.receive(AckFrame(G, P2, 2), 61)
    shim.receive(AckFrame(G, P3, 1), 61)
    assert drained(shim, 140) == [(P3, StatusFrame(G, P1, 2, settled=1))]
    shim.receive(AckFrame(G, P3, 2), 150)
    assert drained(shim, 240) == []
    assert shim.deadline is None


def test_after_a_rest_the_first_wait_is_short_again() -> None:
    shim = recovery(P1, P1, P2)
    shim.outgoing(frame(0), 0)
    for now in (20, 60, 140):
        assert drained(shim, now) == [(P2, StatusFrame(G, P1, 1))]
    shim.receive(AckFrame(G, P2, 1), 150)
    drained(shim, 240)
    shim.outgoing(frame(0), 300)
    assert shim.deadline == 320


def test_the_waits_between_two_statuses_double_up_to_the_maximum() -> None:
    shim = recovery(P1)
    shim.outgoing(frame(0), 0)
    times = []
    for _ in range(6):
        assert shim.deadline is not None
        times.append(shim.deadline)
        drained(shim, shim.deadline)
    assert times == [20, 60, 140, 240, 340, 440]


def test_a_status_is_answered_by_what_is_here_and_a_request_for_the_rest() -> None:
    shim = recovery()
    shim.receive(frame(1), 0)
    shim.receive(StatusFrame(G, P1, 1), 0)
    assert drained(shim, 0) == [(P1, AckFrame(G, P2, 1))]
    shim.receive(StatusFrame(G, P1, 3), 5)
    assert drained(shim, 5) == [(P1, AckFrame(G, P2, 1)), (P1, RequestFrame(G, P2, P1, (2, 3)))]
    shim.receive(RepairFrame(G, P1, (frame(2), frame(3))), 9)
    shim.receive(StatusFrame(G, P1, 3), 9)
    assert drained(shim, 9) == [(P1, AckFrame(G, P2, 3))]
    assert shim.deadline is None


def test_an_old_status_is_acknowledged_as_far_as_it_goes() -> None:
    shim = recovery()
    for place in (1, 2, 4):
        shim.receive(frame(place), 0)
    drained(shim, 0)
    shim.receive(StatusFrame(G, P1, 1), 0)
    assert drained(shim, 0) == [(P1, AckFrame(G, P2, 1))]


def test_frames_that_were_not_sent_cannot_be_acknowledged() -> None:
    shim = recovery(P1)
    shim.outgoing(frame(0), 0)
    for member in (P2, P3):
        with pytest.raises(ProtocolViolation, match="place in our stream 99 is implausible: at most 1"):
            shim.receive(AckFrame(G, member, 99), 0)
    shim.outgoing(frame(0), 1)
    assert drained(shim, 20) == [(P2, StatusFrame(G, P1, 2)), (P3, StatusFrame(G, P1, 2))]


def test_a_lone_member_sends_no_status() -> None:
    shim = recovery(P1, P1)
    assert shim.outgoing(frame(0), 0).sequence == 1
    assert shim.deadline is None


# Copies


def test_any_holder_gives_unchanged_copies() -> None:
    shim = recovery(P3)
    for place in (1, 2, 4):
        shim.receive(frame(place), 0)
    drained(shim, 0)
    shim.receive(RequestFrame(G, P2, P1, (1, 2, 3, 4, 9)), 0)
    assert drained(shim, 0) == [(P2, RepairFrame(G, P3, (frame(1), frame(2), frame(4))))]


def test_the_origin_gives_copies_with_their_places() -> None:
    shim = recovery(P1)
    placed = [shim.outgoing(frame(0), 0) for _ in range(3)]
    shim.receive(RequestFrame(G, P2, P1, (3, 1)), 0)
    assert drained(shim, 0) == [(P2, RepairFrame(G, P1, (placed[2], placed[0])))]


def test_a_process_without_the_requested_frames_does_not_answer() -> None:
    shim = recovery(P3)
    shim.receive(RequestFrame(G, P2, P1, (1,)), 0)
    shim.receive(RequestFrame(G, P2, P4, (1,)), 0)
    assert drained(shim, 0) == []


def test_copies_travel_together_as_far_as_they_fit() -> None:
    shim = recovery(P1)
    placed = [shim.outgoing(frame(0, payload=bytes(size)), 0) for size in (4, 6, 1, 25, 0)]
    shim.receive(RequestFrame(G, P2, P1, (1, 2, 3, 4, 5)), 0)
    repairs = [sent for _, sent in drained(shim, 0)]
    assert repairs == [RepairFrame(G, P1, tuple(placed[:3])), RepairFrame(G, P1, tuple(placed[3:]))]
    assert all(len(encode(repair)) <= SETTINGS.frame_bytes_max for repair in repairs)


def test_a_copy_counts_as_coming_from_its_origin() -> None:
    shim = recovery()
    shim.receive(frame(3), 0)
    handed = shim.receive(RepairFrame(G, P3, (frame(2), frame(1), frame(1, P3))), 0)
    assert handed == [frame(1), frame(2), frame(3), frame(1, P3)]
    assert shim.receive(frame(2), 0) == []


def test_a_relayer_does_not_tell_how_far_a_stream_is() -> None:
    """We request only places that the origin has announced; all others are forged."""
    shim = recovery()
    shim.receive(frame(3), 0)
    with pytest.raises(ProtocolViolation, match="place in the stream of p1 4 is implausible: at most 3"):
        shim.receive(RepairFrame(G, P3, (frame(1), frame(4))), 0)
    assert shim.receive(frame(1), 0) == [frame(1)]
    assert requests(shim, 0) == [(0, P1, (2,))]


# Forgetting


def test_frames_that_all_acknowledged_are_not_kept() -> None:
    shim = recovery(P1)
    placed = [shim.outgoing(frame(0), 0) for _ in range(3)]
    shim.receive(AckFrame(G, P2, 3), 0)
    shim.receive(AckFrame(G, P3, 2), 0)
    shim.receive(AckFrame(G, P3, 1), 0)  # late
    shim.receive(RequestFrame(G, P2, P1, (1, 2, 3)), 0)
    assert drained(shim, 0) == [(P2, RepairFrame(G, P1, (placed[2],)))]


def test_our_stable_frames_are_neither_kept_nor_announced() -> None:
    shim = recovery(P1)
    placed = [shim.outgoing(frame(0), 0) for _ in range(2)]
    shim.stable([placed[1]])
    shim.receive(RequestFrame(G, P2, P1, (1, 2)), 0)
    assert drained(shim, 20) == []
    assert shim.deadline is None


def test_stable_frames_of_others_are_not_kept_either() -> None:
    shim = recovery(P3)
    for place in (1, 2, 3):
        shim.receive(frame(place), 0)
    shim.stable([frame(2)])
    shim.receive(RequestFrame(G, P2, P1, (1, 2, 3)), 0)
    assert drained(shim, 0) == [(P2, RepairFrame(G, P3, (frame(3),)))]
    assert shim.receive(frame(1), 0) == [], "forgotten is not missing"
    assert shim.deadline is None


# Random losses


@given(
    seed=st.integers(0, 2**32),
    loss=st.sampled_from([0.0, 0.2, 0.6]),
    sends=st.lists(st.sampled_from([P1, P2, P3]), min_size=1, max_size=12),
)
def test_every_stream_arrives_complete_and_in_order_and_then_traffic_ends(
    seed: int, loss: float, sends: list[ProcessId]
) -> None:
    random, members = Random(seed), (P1, P2, P3)
    shims = {me: recovery(me, *members) for me in members}
    handed: dict[tuple[ProcessId, ProcessId], list[int]] = {
        (me, origin): [] for me in members for origin in members if me != origin
    }
    network: list[tuple[ProcessId, NewtopFrame]] = []
    now = 0

    def cast(to: ProcessId, sent: NewtopFrame) -> None:
        copies = 0 if random.random() < loss else random.choice((1, 1, 2))
        network.extend([(to, sent)] * copies)

    for sender in sends:
        placed = shims[sender].outgoing(frame(0, sender), now)
        for other in members:
            if other != sender:
                cast(other, placed)
    for _ in range(4_000):
        if network:
            to, sent = network.pop(random.randrange(len(network)))
            for each in shims[to].receive(sent, now):
                handed[to, each.sender].append(each.sequence)
        else:
            deadlines = [shim.deadline for shim in shims.values() if shim.deadline is not None]
            if not deadlines:
                break
            now = max(now, min(deadlines))
        for shim in shims.values():
            for receiver, sent in drained(shim, now):
                cast(ProcessId(receiver), sent)
    else:
        raise AssertionError("no end of repairs")
    for (_, origin), places in handed.items():
        assert places == list(range(1, sends.count(origin) + 1))


def test_waits_grow_on_once_the_tries_that_must_fit_were_made() -> None:
    """Otherwise a link or host that is too slow would never catch up."""
    shim = recovery(P1)
    shim.outgoing(frame(0), 0)
    waits, now = [], 0
    for _ in range(14):
        deadline = shim.deadline
        assert deadline is not None
        waits.append(deadline - now)
        now = deadline
        drained(shim, now)
    assert waits[:8] == [20, 40, 80, 100, 100, 100, 100, 100]
    assert waits[8:] == [200, 400, 800, 1600, 3200, 6400]


def test_copies_are_freed_when_their_origin_says_that_all_have_them() -> None:
    """Announcements are stable with nothing that comes after them; their copies would stay for ever."""
    shim = recovery(P3)
    for place in range(1, 101):
        shim.receive(AliveFrame(G, P1, 0, 0, sequence=place), 0)
    shim.receive(StatusFrame(G, P1, 100, settled=98), 0)
    drained(shim, 0)
    shim.receive(RequestFrame(G, P2, P1, (97, 98, 99, 100)), 0)
    ((_, repair),) = drained(shim, 0)
    assert isinstance(repair, RepairFrame)
    assert [copy.sequence for copy in repair.copies] == [99, 100]


def test_no_peer_makes_us_forget_frames_that_we_lack() -> None:
    shim = recovery(P3)
    shim.receive(frame(1), 0)
    for settled in (2**11, 2**40):
        with pytest.raises(ProtocolViolation, match="settled place"):
            shim.receive(StatusFrame(G, P1, 5, settled=settled), 0)
    assert [each.sequence for each in shim.receive(frame(2), 0)] == [2]


# Members that fail


def test_a_settled_stream_continues_after_the_missing_frames() -> None:
    """E-78: the missing frames have come by a refutation, and no member holds a copy any more."""
    shim = recovery()
    assert shim.receive(frame(3), 0) == []
    assert shim.receive(frame(5), 0) == []
    shim.refuted(frame(3))
    assert shim.receive(StatusFrame(G, P1, 5, settled=3), 0) == [frame(3)]
    assert requests(shim, 0) == [(0, P1, (4,))]
    assert shim.receive(frame(4), 1) == [frame(4), frame(5)]


def test_a_stable_number_settles_announcements_before_it_but_not_what_agreement_needs() -> None:
    """E-78: a refutation brings numbered frames, and not the frames between them."""
    shim = recovery(P1)
    alive = shim.outgoing(AliveFrame(G, P1, 0, 0), 0)
    suspicion = shim.outgoing(SuspectFrame(G, P1, 0, P3, 0), 0)
    number = shim.outgoing(frame(0), 0)
    shim.stable([number])
    shim.receive(RequestFrame(G, P2, P1, (1, 2, 3)), 0)
    assert (P2, RepairFrame(G, P1, (suspicion, number))) in drained(shim, 0)
    assert alive.sequence == 1
    for member in (P2, P3):
        shim.receive(AckFrame(G, member, 3), 0)
    shim.receive(RequestFrame(G, P2, P1, (1, 2, 3)), 0)
    assert drained(shim, 0) == []


def test_a_peer_that_acknowledges_nothing_is_deaf_since_its_next_frame_left() -> None:
    """E-80: only after enough statuses, because statuses and acknowledgments may be lost."""
    shim = recovery(P1)
    assert shim.deaf_since(P2) is None
    for now in (5, 7):
        shim.outgoing(frame(0), now)
    assert shim.deaf_since(P2) is None
    told = tell_often(shim, 10_000)
    assert shim.deaf_since(P2) == 5
    shim.receive(AckFrame(G, P2, 1), told)
    assert shim.deaf_since(P2) is None
    tell_often(shim, told)
    assert shim.deaf_since(P2) == told
    shim.receive(AckFrame(G, P2, 2), told + 40)
    assert shim.deaf_since(P2) is None
    assert shim.deaf_since(P3) == 5


def test_a_peer_that_fills_no_gap_is_deaf_when_it_was_asked_often_enough() -> None:
    """E-80."""
    shim = recovery(P1)
    shim.receive(frame(2, P2), 7)
    assert shim.deaf_since(P2) is None
    tell_often(shim, 10_000)
    assert shim.deaf_since(P2) == 7
    assert shim.deaf_since(P3) is None
    shim.receive(frame(1, P2), 20_000)
    assert shim.deaf_since(P2) is None


def tell_often(shim: Recovery, now: int) -> int:
    """Let eight alarms ring; return the time of the last one."""
    for _ in range(8):
        now = max(now, shim.deadline or 0)
        shim.drain(now, [])
    return now


def test_failed_members_are_asked_for_nothing_and_nothing_is_kept_for_departed_ones() -> None:
    shim = recovery(P2, P1, P2, P3, P4)
    shim.fail(P3)
    shim.receive(frame(2), 0)
    assert requests(shim, 140) == [(0, P1, (1,)), (20, P4, (1,)), (60, P1, (1,)), (140, P4, (1,))]
    shim.outgoing(frame(0, P2), 200)
    for member in (P1, P4):
        shim.receive(AckFrame(G, member, 1), 201)
    shim.forget(P3)
    shim.receive(RequestFrame(G, P1, P2, (1,)), 202)
    assert not any(isinstance(sent, RepairFrame) for _, sent in drained(shim, 202))
