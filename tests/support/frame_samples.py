"""Samples for the recorded frames: every kind of every family, with and without each optional part."""

from typing import Final

from antiphon.core.contract import Presence
from antiphon.core.effects import Frame
from antiphon.protocols.acks import frames as acks
from antiphon.protocols.classic import frames as classic
from antiphon.protocols.intergroup import frames as intergroup
from antiphon.protocols.intergroup.hierarchy import frames as hierarchy
from antiphon.protocols.intergroup.hierarchy.records import StabilityRecord
from antiphon.protocols.intergroup.membership import frames as membership
from antiphon.protocols.intergroup.membership.claims import NO_END, Claim
from antiphon.protocols.intergroup.membership.view_ids import Kind, view_id
from antiphon.protocols.intergroup.tickets import Ticket
from antiphon.protocols.newtop.frames import (
    WORD,
    AbortFrame,
    AckFrame,
    AliveFrame,
    AnsweredFrame,
    AnswerFrame,
    Ask,
    BaseFrame,
    BlockFrame,
    ConfirmedFrame,
    Flow,
    FoundFrame,
    InquireFrame,
    InstallFrame,
    LeavingFrame,
    MapStamp,
    NeedFrame,
    Notice,
    Ordering,
    PresenceFrame,
    ProbeFrame,
    ProposeFrame,
    QueryFrame,
    ReadyFrame,
    RefuseFrame,
    RefuteFrame,
    RelativeStamp,
    RepairFrame,
    RequestFrame,
    StatusFrame,
    SubmitFrame,
    SuspectFrame,
    VoteFrame,
    WantFrame,
)
from antiphon.types import Company, ViewId, formed_group, group_id, process_id

G, H = group_id("orders"), group_id("stock", 7)
P1, P2, P3 = process_id("p1"), process_id("p2"), process_id("p3", 2)
AE = process_id("ä", 2**32 - 1)
LARGEST = 2**62

_NULL = BlockFrame(G, P1, 9, 7, 5)
_DATA = _NULL._replace(payloads=(b"hello",), label=41)
_OF_P3 = BlockFrame(G, P3, 12, 10, 8, (b"late",), 3, excluded=(P2,))
_SUSPECT = SuspectFrame(G, P1, 9, P3, 10)
_REFUTE = RefuteFrame(G, P1, 9, P3, 10, (_OF_P3, BlockFrame(G, P3, 15, 12, 8)))
_CONFIRMED = ConfirmedFrame(G, P1, 9, ((P2, 0), (P3, 15)))
_FORMED, _VIEW = formed_group("orders", 3, P1, 2), ViewId("0002.000001.0123456789abcdef")
_SETTINGS = (("flow_control", "3"), ("sequenced", "no"), ("service", "total-safe"), ("suspect_after", "0.5"))
_ORDERED = BlockFrame(G, P1, 19, 12, 17, ordering=Ordering(P1, 0, 8))
_ORDERED_DATA = _ORDERED._replace(payloads=(b"hello",), label=41, ordering=Ordering(P3, 5, 8))
_SUBMIT = SubmitFrame(G, P3, 11, 5, 8, (b"hello",), 41)
_MESSAGE = classic.DataFrame(G, P1, 4, (b"hello",), 3)
_CONTEXT = classic.DataFrame(G, P3, 2, (b"before",), 1)
_STAMP = classic.Stamp(17, P3)

NEWTOP: Final[dict[str, Frame]] = {
    "null": _NULL,
    "null in a later epoch, of a later incarnation": BlockFrame(H, P3, 9, 7, 5),
    "null with the largest of everything": BlockFrame(
        group_id("größe", 2**64 - 1), AE, LARGEST, LARGEST, LARGEST, sequence=LARGEST
    ),
    "null of a process with random bits": BlockFrame(G, process_id("p1", 59_388_123_456 << 16 | 0xBEEF), 9, 7, 5),
    "null with flow control and a place": _NULL._replace(flow=Flow(6, 5, 4, 3), sequence=30),
    "null with a mark": _NULL._replace(excluded=(P2, P3)),
    "data": _DATA,
    "data of no bytes": _DATA._replace(payloads=(b"",)),
    "data, packed": _DATA._replace(payloads=(b"one", b"", b"three")),
    "data with all it can have": _DATA._replace(
        flow=Flow(6, 5, 4, 3), sequence=30, excluded=(P2,), stamp=MapStamp(((G, P1, 8), (H, AE, 3)))
    ),
    "fragment": _DATA._replace(more=True),
    "data with an empty map stamp": _DATA._replace(stamp=MapStamp(())),
    "data with a map stamp": _DATA._replace(stamp=MapStamp(((G, P1, 8), (G, P3, LARGEST), (H, P2, 0)))),
    "data with a relative stamp": _DATA._replace(stamp=RelativeStamp((8, 0, 12), ((G, 12), (H, 3)))),
    "remove": _NULL._replace(notice=Notice("remove", ((P2, 6), (P3, 0)))),
    "flush with a mark": _NULL._replace(excluded=(P2,), notice=Notice("flush", ((P2, 6),)), sequence=31),
    "alive": AliveFrame(G, P1, 9, 5),
    "alive with flow control and a place": AliveFrame(G, P1, 9, 5, Flow(6, 5, 4, 3), sequence=32),
    "alive, stalled": AliveFrame(G, P1, 9, 5, stalled=True),
    "alive, blocked": AliveFrame(G, P1, 9, 5, blocked=True),
    "suspect": _SUSPECT,
    "suspect with a place": SuspectFrame(H, P3, 9, P1, 0, sequence=33),
    "refute": _REFUTE,
    "refute with a place": RefuteFrame(G, P1, 9, P3, 11, (_OF_P3,), sequence=34),
    "confirmed": _CONFIRMED,
    "confirmed with a place": ConfirmedFrame(G, P1, 9, ((P2, 0),), sequence=35),
    "status": StatusFrame(G, P1, 35, 30),
    "ack": AckFrame(G, P2, 35),
    "request": RequestFrame(G, P2, P3, (12, 14)),
    "repair": RepairFrame(
        G,
        P2,
        (_DATA._replace(sequence=30), AliveFrame(G, P3, 9, 5, sequence=4), _SUSPECT, _REFUTE, _CONFIRMED),
    ),
    "repair of nothing": RepairFrame(H, P2, ()),
    "state": _DATA._replace(group=_FORMED, state=0),
    "state, a piece of it, with all it can have": _DATA._replace(
        group=_FORMED, state=3, more=True, flow=Flow(6, 5, 4, 3), sequence=30, excluded=(P2,)
    ),
    "word about primary views": _DATA._replace(group=_FORMED, state=WORD),
    "leaving": LeavingFrame(_FORMED, P1, 9),
    "leaving that passes a vote on": LeavingFrame(_FORMED, P1, 9, passes_vote=True),
    "leaving with a place": LeavingFrame(G, P3, 9, sequence=36),
    "leaving, stalled": LeavingFrame(G, P3, 9, stalled=True, sequence=36),
    "leaving, stalled, with its vote passed on": LeavingFrame(G, P3, 9, passes_vote=True, stalled=True),
    "want": WantFrame(G, P1, 9, 11),
    "want with a place": WantFrame(G, P1, 9, 11, sequence=37),
    "repair of a leave": RepairFrame(
        G, P2, (WantFrame(G, P1, 9, 11, sequence=37), LeavingFrame(G, P1, 11, sequence=38))
    ),
    "propose": ProposeFrame(_FORMED, P1, ((P1, G), (P2, group_id("orders", 7)), (P3, None))),
    "propose with settings": ProposeFrame(_FORMED, P1, ((P1, G), (P3, None)), _SETTINGS),
    "vote, yes": VoteFrame(_FORMED, P2, 11, 2),
    "vote, no": VoteFrame(_FORMED, P3, None, 3),
    "base": BaseFrame(_FORMED, P1, 12),
    "ready": ReadyFrame(_FORMED, P1, _VIEW, (P1, P2), primary=True),
    "ready where views are voted on": ReadyFrame(_FORMED, P1, _VIEW, (P1, P2), primary=False, last=7),
    "ready with a history": ReadyFrame(_FORMED, P1, _VIEW, (P1, P2), primary=False, last=7, history=2**61 + 5),
    "ready from nowhere": ReadyFrame(_FORMED, P3, None, (), primary=False),
    "install": InstallFrame(
        _FORMED, P1, 12, (Company((P1, P2), _VIEW, 3, primary=True), Company((P3,), None, 0, primary=False))
    ),
    "install where views are voted on": InstallFrame(
        _FORMED, P1, 12, (Company((P1, P2), _VIEW, 3, False, 7), Company((P3,), None, 0, primary=False))
    ),
    "abort": AbortFrame(_FORMED, P3),
    "probe": ProbeFrame(G, P2, joins=False),
    "probe to be taken in": ProbeFrame(G, P3, joins=True),
    "probe with settings": ProbeFrame(G, P3, joins=True, settings=_SETTINGS),
    "found": FoundFrame(_FORMED, P1, (P1, P2)),
    "refuse": RefuseFrame(G, P1, _SETTINGS),
    "refuse without settings": RefuseFrame(G, P1),
    "inquire": InquireFrame(G, P3, 7, Presence.FOUNDING),
    "presence": PresenceFrame(G, P2, 7, Presence.MEMBER),
    "ordered null": _ORDERED,
    "ordered message of another": _ORDERED_DATA,
    "ordered message of its own, with all it can have": _ORDERED_DATA._replace(
        ordering=Ordering(P1, 5, 8), more=True, sequence=36, excluded=(P2,)
    ),
    "ordered view": _ORDERED._replace(notice=Notice("view", ((P2, 6), (P3, 0))), excluded=(P2, P3)),
    "refute of a sequencer": RefuteFrame(G, P2, 9, P1, 10, (_ORDERED_DATA,)),
    "repair of a sequencer": RepairFrame(G, P2, (_ORDERED_DATA._replace(sequence=30),)),
    "submit": _SUBMIT,
    "submit, packed": _SUBMIT._replace(payloads=(b"one", b"", b"three")),
    "piece with a mark": _SUBMIT._replace(more=True, excluded=(P2, AE)),
    "need": NeedFrame(G, P2, 17),
    "data that is a request": _DATA._replace(ask=Ask(2)),
    "data that is an answer, with all it can have": _DATA._replace(
        ask=Ask(LARGEST, AE), more=True, flow=Flow(6, 5, 4, 3), sequence=30, excluded=(P2,)
    ),
    "ordered request of another": _ORDERED_DATA._replace(ask=Ask(0)),
    "submitted answer": _SUBMIT._replace(ask=Ask(3, P1)),
    "repair of a request": RepairFrame(G, P2, (_DATA._replace(ask=Ask(2), sequence=30),)),
    "query": QueryFrame(G, P1, 4, b"which?"),
    "answer": AnswerFrame(_FORMED, P3, 4, b"that"),
    "answer of nothing": AnswerFrame(G, P3, 0, b""),
    "answered": AnsweredFrame(G, P1, 4),
}
CLASSIC: Final[dict[str, Frame]] = {
    "data": _MESSAGE,
    "data in a later epoch, of a later incarnation": _MESSAGE._replace(group=H, sender=P3),
    "data that is a request": _MESSAGE._replace(request=2),
    "data with a context": _MESSAGE._replace(copies=(_CONTEXT,)),
    "relay": classic.RelayFrame(G, P2, _MESSAGE._replace(copies=(_CONTEXT,))),
    "proposal": classic.ProposalFrame(G, P2, 4, _STAMP, 3),
    "commit": classic.CommitFrame(G, P1, classic.MessageName(P3, 4), _STAMP, 2),
    "inquiry": classic.InquiryFrame(G, P1, 1, (classic.MessageName(P3, 4),)),
    "inquiry that hands over": classic.InquiryFrame(G, P1, 1, (_CONTEXT.name,), (_CONTEXT,)),
    "report": classic.ReportFrame(
        G,
        P2,
        1,
        (
            classic.Known(_MESSAGE.name, held=True, stamp=_STAMP, committed=True),
            classic.Known(_CONTEXT.name, held=False),
        ),
    ),
    "query": classic.QueryFrame(G, P1, 2, b"what?"),
    "answer": classic.AnswerFrame(G, P2, 2, b"that"),
}
ACKS: Final[dict[str, Frame]] = {
    "null": acks.MessageFrame(G, P1, 17),
    "data": acks.MessageFrame(G, P1, 17, (b"hello",), 41),
    "data in a later epoch, of a later incarnation": acks.MessageFrame(H, P3, LARGEST, (b"hello",), 41),
    "data with a past": acks.MessageFrame(G, P1, 17, (b"hello",), 41, ((P2, 16), (P3, 12)), ((P3, 14),)),
    "acknowledgment": acks.AckFrame(G, P2, 5, 16),
    "acknowledgment with a time": acks.AckFrame(G, P2, 5, 16, 20),
    "vector of acknowledgments": acks.VectorAckFrame(G, P2, 5, ((P1, 17), (P3, 12))),
    "open": acks.OpenFrame(G, P2, 1, 0, 1, "both", None),
    "open for some": acks.OpenFrame(G, P2, 2, 1, 6, "receiver", (P1, P3)),
    "close": acks.CloseFrame(G, P2, 1),
}
_EPOCH: Final = ViewId("0000.000000.0123456789abcdef")
_NEXT = view_id(12, Kind.CONSENSUS, P1, 1)
_CLAIM, _LEFT = Claim(1, 17, 8), Claim(2, 5, NO_END)
_SAID: Final = intergroup.DataFrame(G, P1, 17, 1_700_000_000_000_000, _EPOCH, 1_699_999_999_000_000, (b"hello",), 41)
INTERGROUP: Final[dict[str, Frame]] = {
    "data": _SAID,
    "data with a name": _SAID._replace(name=b"bids/7", place=8),
    "keep-alive with names": intergroup.KeepAliveFrame(G, P1, 17, LARGEST, _EPOCH, 0, ((b"bids", 8), (b".", 1))),
    "request by name": intergroup.RequestFrame(G, P2, Ticket(P1, 8, b"bids")),
    "keep-alive": intergroup.KeepAliveFrame(G, P1, 17, LARGEST, _EPOCH, 0),
    "request": intergroup.RequestFrame(G, P2, Ticket(P1, 16)),
    "repair": intergroup.RepairFrame(G, P3, _SAID),
    "gone": intergroup.GoneFrame(G, P1, Ticket(P1, 3), _EPOCH, 1_600_000_000_000_000),
    "report": intergroup.ReportFrame(G, P2, _EPOCH, 1_699_999_999_000_000, None),
    "report on some sources": intergroup.ReportFrame(G, P2, _EPOCH, 1_699_999_999_000_000, (P1,)),
    "report of who leaves": intergroup.ReportFrame(G, P2, _EPOCH, 1_699_999_999_000_000, ()),
    "join request": intergroup.JoinRequestFrame(G, P2, 5),
    "join info": intergroup.JoinInfoFrame(
        G, P1, P2, _EPOCH, _EPOCH, 5, 1_700_000_000_000_000, ((P1, 18), (P3, 4)), ((P1, 1), (P3, 2)), ((P2, 1, 7),), ()
    ),
    "source request": intergroup.SourceRequestFrame(G, P2, 3),
    "source accept": intergroup.SourceAcceptFrame(G, P1, P2, 3, _EPOCH, (P1, P3), 18, 1_700_000_000_000_000),
    "message that adds a sender": intergroup.DataFrame(G, P1, 19, 7, _EPOCH, 6, (), change=(P2, 3)),
    "message that leaves": intergroup.DataFrame(G, P1, 20, 8, _EPOCH, 6, (), change=(P1, 0)),
    "proposal": membership.ProposalFrame(G, P1, 4, 2, _EPOCH, 9, (P1, P2, P3), (P3,)),
    "recovery info": membership.RecoveryInfoFrame(
        G, P1, _EPOCH, "0f1e2d3c4b5a", 0, 9, 8, 20, 1, ((P2, _CLAIM), (P3, _LEFT)), ((P3, _CLAIM),), 7
    ),
    "ready": membership.ReadyFrame(G, P1, _EPOCH, "0f1e2d3c4b5a", 1, 9, 21, ((P1, 20), (P3, 5)), ((P1, 1), (P3, 2))),
    "change": membership.ChangeFrame(
        G,
        P1,
        _NEXT,
        12,
        "0f1e2d3c4b5a",
        0,
        ((P1, _EPOCH), (P2, _EPOCH)),
        (membership.EpochEnd(_EPOCH, ((P1, 20),), ((P1, 1),), 8),),
        ((P1, 21), (P2, 3)),
    ),
    "change request": membership.ChangeRequestFrame(G, P2, _EPOCH),
    "cut": membership.CutFrame(G, P2, _EPOCH, 8, ((P1, _CLAIM),)),
    "probe": membership.ProbeFrame(G, P2),
    "probe answer": membership.ProbeAnswerFrame(G, P1),
    "sponsor request": membership.SponsorRequestFrame(G, P2, _EPOCH, 3),
}
_RECORD = StabilityRecord(G, _EPOCH, 17, b"\x05", 3)
_CUT = hierarchy.CutRecord(G, _EPOCH, 8, ((P1, _CLAIM),))
_PAIR, _SITE = hierarchy.Pair(P3, 1_000, 2_000), hierarchy.Site(P1, P3)
HIERARCHY: Final[dict[str, Frame]] = {
    "local": hierarchy.LocalFrame(H, P1, P3, 16, 5_000, 7, (_PAIR,), (_RECORD,), (_CUT,)),
    "last local": hierarchy.LocalFrame(H, P1, P3, 16, 5_000, 7, (), leaving=True),
    "coordinator": hierarchy.CoordinatorFrame(
        H,
        P3,
        16,
        LARGEST,
        30,
        7,
        2,
        9,
        (_PAIR,),
        (hierarchy.Distance(P1, 30),),
        (hierarchy.CoordinatorDistance(P2, 40, 5),),
        (_RECORD,),
        (_CUT,),
    ),
    "global": hierarchy.GlobalFrame(H, P3, 5_000, 7, 2, 9, (_PAIR,), 5, (_RECORD,), (_CUT,)),
    "global of a coordinator that leaves": hierarchy.GlobalFrame(H, P3, 5_000, 0, 1, 9, (), 0, leaving=True),
    "ring query": hierarchy.RingQueryFrame(H, P1, 8, 3),
    "search response": hierarchy.SearchResponseFrame(H, P3, P1, 3, 8, 7),
    "coordinator leave": hierarchy.CoordinatorLeaveFrame(H, P3, 5_000),
    "acknowledgment of a sender": hierarchy.AckReportFrame(G, P1, _EPOCH, 17, 2),
    "acknowledgment of a receiver that leaves": hierarchy.AckReportFrame(G, P1, _EPOCH, 17, None, leaving=True),
    "system": hierarchy.SystemFrame(G, P3, _RECORD, P2),
    "distance query": hierarchy.DistanceQueryFrame(G, P1, (_SITE,)),
    "distance answer": hierarchy.DistanceAnswerFrame(G, P3, ((_SITE, 30_000_000),)),
}
SAMPLES: Final[dict[str, Frame]] = {
    f"{family}: {name}": frame
    for family, samples in (
        ("newtop", NEWTOP),
        ("classic", CLASSIC),
        ("acks", ACKS),
        ("intergroup", INTERGROUP),
        ("hierarchy", HIERARCHY),
    )
    for name, frame in samples.items()
}
