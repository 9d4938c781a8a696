"""Bodies written as tuples: decoding gives back every encoded frame, and all other bytes are refused."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import ProtocolViolation
from antiphon.protocols.acks.frames import AckFrame, AcksFrame, CloseFrame, MessageFrame, OpenFrame, VectorAckFrame
from antiphon.protocols.classic.frames import (
    AnswerFrame,
    ClassicFrame,
    CommitFrame,
    DataFrame,
    InquiryFrame,
    Known,
    MessageName,
    ProposalFrame,
    QueryFrame,
    RelayFrame,
    ReportFrame,
    Stamp,
)
from antiphon.protocols.intergroup import frames as intergroup
from antiphon.protocols.intergroup.hierarchy import frames as hierarchy
from antiphon.protocols.intergroup.hierarchy.records import StabilityRecord
from antiphon.protocols.intergroup.membership import frames as membership
from antiphon.protocols.intergroup.membership.claims import Claim
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.types import GroupId, ProcessId, ViewId, name_of
from antiphon.wire.codec import decode, encode, header_bytes, payload_bytes, stamp_bytes
from antiphon.wire.frame import open_envelope, seal
from tests.support.wire_bodies import NAMES, identity
from tests.support.wire_frames import groups, processes

G, P, Q = GroupId("g"), ProcessId("p"), ProcessId("q")

numbers = st.integers(0, 2**62)
payloads = st.lists(st.binary(max_size=20), max_size=2).map(tuple)
one_payload = st.binary(max_size=20).map(lambda payload: (payload,))
names = st.builds(MessageName, processes, numbers)
stamps = st.builds(Stamp, numbers, processes)
data = st.builds(
    DataFrame, groups, processes, numbers, one_payload, numbers, st.none() | numbers, st.just(()), st.none()
)
packets = st.builds(
    lambda frame, context: frame._replace(copies=tuple(each._replace(group=frame.group) for each in context)),
    data,
    st.lists(data, max_size=3),
)
known = st.builds(Known, names, st.booleans(), st.none() | stamps, st.booleans())
ids = st.lists(st.tuples(processes, numbers), max_size=3).map(tuple)

classic_frames = st.one_of(
    packets,
    st.builds(lambda sender, frame: RelayFrame(frame.group, sender, frame), processes, packets),
    st.builds(ProposalFrame, groups, processes, numbers, stamps, numbers),
    st.builds(CommitFrame, groups, processes, names, stamps, numbers),
    st.builds(
        lambda sender, losses, messages, frame: InquiryFrame(frame.group, sender, losses, messages, (frame,)),
        processes,
        numbers,
        st.lists(names).map(tuple),
        packets,
    ),
    st.builds(ReportFrame, groups, processes, numbers, st.lists(known).map(tuple)),
    st.builds(QueryFrame, groups, processes, numbers, st.binary()),
    st.builds(AnswerFrame, groups, processes, numbers, st.binary()),
)
acks_frames = st.one_of(
    st.builds(MessageFrame, groups, processes, numbers, payloads, numbers, ids, ids),
    st.builds(AckFrame, groups, processes, numbers, numbers, numbers),
    st.builds(VectorAckFrame, groups, processes, numbers, ids),
    st.builds(
        OpenFrame,
        groups,
        processes,
        numbers,
        numbers,
        numbers,
        st.sampled_from(["both", "sender", "receiver"]),
        st.none() | st.lists(processes, max_size=3).map(tuple),
    ),
    st.builds(CloseFrame, groups, processes, numbers),
)

tickets = st.builds(Ticket, processes, numbers, st.binary(max_size=20))
views = st.sampled_from([ViewId("0000.000000.0123456789abcdef"), ViewId("00000000000000500000.3.0000.000000.01")])
said = st.builds(
    intergroup.DataFrame,
    groups,
    processes,
    numbers,
    numbers,
    views,
    numbers,
    one_payload,
    numbers,
    st.binary(max_size=20),
    numbers,
    st.none(),
)
changes = st.builds(
    lambda frame, change: frame._replace(payloads=(), change=change), said, st.tuples(processes, numbers)
)
claims = st.lists(st.tuples(processes, st.builds(Claim, numbers, numbers, numbers)), max_size=2).map(tuple)
proposed = st.lists(processes, max_size=3).map(tuple)
texts = st.text("0123456789abcdef", min_size=1, max_size=24)
epoch_ends = st.lists(st.builds(membership.EpochEnd, views, ids, ids, numbers), max_size=2).map(tuple)
origins = st.lists(st.tuples(processes, views), max_size=3).map(tuple)
membership_frames = st.one_of(
    st.builds(membership.ProposalFrame, groups, processes, numbers, numbers, views, numbers, proposed, proposed),
    st.builds(
        membership.RecoveryInfoFrame,
        *(groups, processes, views, texts, numbers, numbers, numbers, numbers, numbers, claims, claims, numbers),
    ),
    st.builds(membership.ReadyFrame, groups, processes, views, texts, numbers, numbers, numbers, ids, ids),
    st.builds(membership.ChangeFrame, groups, processes, views, numbers, texts, numbers, origins, epoch_ends, ids),
    st.builds(membership.ChangeRequestFrame, groups, processes, views),
    st.builds(membership.CutFrame, groups, processes, views, numbers, claims),
    st.builds(membership.ProbeFrame, groups, processes),
    st.builds(membership.ProbeAnswerFrame, groups, processes),
    st.builds(membership.SponsorRequestFrame, groups, processes, views, numbers),
)
counts = st.lists(st.tuples(st.binary(max_size=20), numbers), max_size=3).map(tuple)
intergroup_frames = st.one_of(
    said,
    changes,
    membership_frames,
    st.builds(intergroup.KeepAliveFrame, groups, processes, numbers, numbers, views, numbers, counts),
    st.builds(intergroup.RequestFrame, groups, processes, tickets),
    st.builds(lambda sender, frame: intergroup.RepairFrame(frame.group, sender, frame), processes, said),
    st.builds(intergroup.GoneFrame, groups, processes, tickets, views, numbers),
    st.builds(
        intergroup.ReportFrame,
        groups,
        processes,
        views,
        numbers,
        st.none() | st.lists(processes, max_size=3).map(tuple),
    ),
    st.builds(intergroup.JoinRequestFrame, groups, processes, numbers),
    st.builds(
        intergroup.JoinInfoFrame,
        groups,
        processes,
        processes,
        views,
        views,
        numbers,
        numbers,
        ids,
        ids,
        st.lists(st.tuples(processes, numbers, numbers), max_size=2).map(tuple),
        st.lists(views, max_size=2).map(tuple),
    ),
    st.builds(intergroup.SourceRequestFrame, groups, processes, numbers),
    st.builds(
        intergroup.SourceAcceptFrame,
        groups,
        processes,
        processes,
        numbers,
        views,
        st.lists(processes, max_size=3).map(tuple),
        numbers,
        numbers,
    ),
)
group_names = groups.map(name_of)  # the group of a record has no formation: InterGroup groups are not formed
records = st.lists(st.builds(StabilityRecord, group_names, views, numbers, st.binary(max_size=9), numbers), max_size=2)
cuts = st.lists(st.builds(hierarchy.CutRecord, group_names, views, numbers, claims), max_size=2)
pairs = st.lists(st.builds(hierarchy.Pair, processes, numbers, numbers), max_size=3).map(tuple)
distances = st.lists(st.builds(hierarchy.Distance, processes, numbers), max_size=3).map(tuple)
far = st.lists(st.builds(hierarchy.CoordinatorDistance, processes, numbers, numbers), max_size=3).map(tuple)
sites = st.builds(hierarchy.Site, processes, processes)
carried = records.map(tuple), cuts.map(tuple)
hierarchy_frames = st.one_of(
    st.builds(
        hierarchy.LocalFrame, groups, processes, processes, numbers, numbers, numbers, pairs, *carried, st.booleans()
    ),
    st.builds(hierarchy.CoordinatorFrame, groups, processes, *[numbers] * 6, pairs, distances, far, *carried),
    st.builds(hierarchy.GlobalFrame, groups, processes, *[numbers] * 4, pairs, numbers, *carried, st.booleans()),
    st.builds(hierarchy.RingQueryFrame, groups, processes, numbers, numbers),
    st.builds(hierarchy.SearchResponseFrame, groups, processes, processes, numbers, numbers, numbers),
    st.builds(hierarchy.CoordinatorLeaveFrame, groups, processes, numbers),
    st.builds(hierarchy.AckReportFrame, groups, processes, views, numbers, st.none() | numbers, st.booleans()),
    st.builds(
        hierarchy.SystemFrame,
        groups,
        processes,
        st.builds(StabilityRecord, group_names, views, numbers, st.binary(max_size=9), numbers),
        processes,
    ),
    st.builds(hierarchy.DistanceQueryFrame, groups, processes, st.lists(sites, max_size=3).map(tuple)),
    st.builds(
        hierarchy.DistanceAnswerFrame, groups, processes, st.lists(st.tuples(sites, numbers), max_size=3).map(tuple)
    ),
)
frames = classic_frames | acks_frames | intergroup_frames | hierarchy_frames
AnyFrame = ClassicFrame | AcksFrame | intergroup.InterGroupFrame | hierarchy.AnyHierarchyFrame


@given(frames)
def test_decoding_gives_back_the_encoded_frame(frame: AnyFrame) -> None:
    again = decode(encode(frame))
    assert again == frame
    assert type(again) is type(frame)


@given(frames)
def test_the_sizes_told_are_those_of_the_bytes(frame: AnyFrame) -> None:
    assert header_bytes(frame) + payload_bytes(frame) == len(encode(frame))
    assert stamp_bytes(frame) >= 0


@given(frames, st.data())
def test_a_damaged_body_is_refused_or_is_another_frame(frame: AnyFrame, draw: st.DataObject) -> None:
    kind, good = open_envelope(encode(frame))
    body = bytearray(good)
    place = draw.draw(st.integers(0, len(body) - 1))
    body[place] = draw.draw(st.integers(0, 255))
    try:
        other = decode(seal(kind, bytes(body)))
    except ProtocolViolation:
        return
    assert decode(encode(other)) == other


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (33, [-1, 5, 0]),
        (33, [1, 2**62 + 1, 0]),
        (33, [1, 5]),
        (33, [1, 5, 0, 7]),
        (33, ["g", "p", 1, 5, 0]),
        (33, [1, "5", 0]),
        (34, [1, [["q", -5]]]),
        (34, [1, [["q@1", 5]]]),
        (34, [1, [["q#0", 5]]]),
        (34, [1, [["", 5]]]),
        (35, [1, 0, 1, "boss", None]),
        (35, [1, 0, 1, "both", ["world"]]),
        (18, [1, [-1, "p"], 0]),
        (18, [1, [1, "p#01"], 0]),
        (16, [1, ["text"], 0, None, [], None]),
        (16, [1, [], 0, None, [], None]),
        (16, [1, [b"a", b"b"], 0, None, [], None]),
        (16, [1, [b"a"], 0, None, [], [3, "p"]]),
        (17, [["h", "q", 1, [b"a"], 0, None, [], None]]),
        (17, [["g", "q", 1, [b"a"], 0, None, [["h", "r", 1, [b"a"], 0, None, [], None]], None]]),
        (17, [["g", "q", 1, [b"a"], 0, None, [["g", "r:2", 1, [b"a"], 0, None, [], None]], None]]),
        (16, [1, [b"a"], 0, None, [["h", "q", 1, [b"a"], 0, None, [], None]], None]),
        (16, [1, [b"a"], 0, None, [["g@1", "q", 1, [b"a"], 0, None, [], None]], None]),
        (51, [1, 5, "v", 0, [b"a", b"b"], 0, b"", 1]),
        (51, [1, 5, "v", 0, [b"a"], 0, "name", 1]),
        (51, [1, -5, "v", 0, [b"a"], 0, b"", 1]),
        (52, [1, 5, "v", 0, [["bids", 3]]]),
        (52, [1, 5, "v", 0, [[b"bids", -3]]]),
        (53, [["q", 2**62 + 1, b""]]),
        (53, [["q q", 1, b""]]),
        (54, [["h", "q", 1, 5, "v", 0, [b"a"], 0, b"", 1]]),
        (58, ["q", "v", 5, [["q", -1]]]),
    ],
)
def test_bodies_that_no_correct_peer_sends_are_refused(kind: int, values: list[object]) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        decode(seal(kind, NAMES + msgspec.msgpack.encode(values)))
    assert caught.value.code == "body"


def test_group_and_sender_stand_before_the_array() -> None:
    body = identity("g", "p", epoch=7, incarnation=2) + msgspec.msgpack.encode([4, 5, 0])
    frame = AckFrame(GroupId("g@7"), ProcessId("p#2"), 4, 5)
    assert decode(seal(33, body)) == frame
    assert encode(frame) == seal(33, body)


def test_contexts_do_not_nest() -> None:
    inner = DataFrame(G, P, 1, (b"a",))
    middle = inner._replace(copies=(inner,))
    assert decode(encode(middle)) == middle
    for nested in (inner._replace(copies=(middle,)), RelayFrame(G, Q, inner._replace(copies=(middle,)))):
        with pytest.raises(ProtocolViolation, match="a context of its own"):
            decode(encode(nested))


@pytest.mark.parametrize("depth", [100, 300, 450, 600, 100_000])
def test_contexts_nested_without_end_are_refused(depth: int) -> None:
    first, nested = b"\x96\x01\x91\xa1a\x00\xc0\x91", b"\x98\xa1g\xa1p\x01\x91\xc4\x01a\x00\xc0"
    whole = (
        b"\x96\x01\x91\xc4\x01a\x00\xc0\x91"
        + (nested + b"\x91") * depth
        + nested
        + b"\x90\xc0"
        + b"\xc0" * depth
        + b"\xc0"
    )
    for body in (whole, first + nested * depth):
        with pytest.raises(ProtocolViolation):
            decode(seal(16, NAMES + body))


def test_the_cost_of_order_and_stability_is_told() -> None:
    context = DataFrame(G, Q, 1, (b"x" * 50,))
    plain = DataFrame(G, P, 1, (b"y",))
    assert stamp_bytes(plain) == 0
    assert stamp_bytes(plain._replace(copies=(context,))) > 50
    assert payload_bytes(plain._replace(copies=(context,))) == 1
    assert payload_bytes(RelayFrame(G, Q, plain)) == 1
    assert stamp_bytes(AckFrame(G, P, 1, 10**18)) == 8
    assert stamp_bytes(VectorAckFrame(G, P, 1, ((P, 1), (Q, 2)))) == 16
