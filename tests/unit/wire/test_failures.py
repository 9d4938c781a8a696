"""Frames about failures and parts of them: encoded as described, and all other bytes are refused."""

import pytest
from hypothesis import given

from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import (
    AliveFrame,
    BlockFrame,
    ConfirmedFrame,
    Flow,
    Notice,
    RefuteFrame,
    RepairFrame,
    SuspectFrame,
)
from antiphon.types import GroupId, ProcessId
from antiphon.wire.codec import decode, encode, header_bytes, payload_bytes
from antiphon.wire.frame import seal
from tests.support.wire_bodies import (
    ALIVE,
    CONFIRMED,
    FLOW,
    FLUSH,
    MAP,
    MARK,
    MORE,
    NAMES,
    NOTICE,
    NUMBERED,
    PAYLOADS,
    REFUTE,
    REMOVE,
    REPAIR,
    SEQUENCE,
    STAMP,
    STATUS,
    SUSPECT,
    alive,
    confirmed,
    copy,
    count,
    mark,
    numbered,
    numbers,
    refute,
    shown,
    suspect,
    suspicions,
    text,
)
from tests.support.wire_frames import block_frames

G, P1, P2, P3 = GroupId("g"), ProcessId("p1"), ProcessId("p2"), ProcessId("p3#2")
TWO_FAILED = suspicions(("p2", 5), ("p3#2", 0))
ONE_PAYLOAD = numbers(0) + count(1) + count(4) + b"four"
SHOWN = BlockFrame(G, P2, 4, 1, 0)


@pytest.mark.parametrize(
    ("kind", "body", "frame"),
    [
        (NUMBERED, numbered(mark("p2", "p3#2"), flags=MARK), BlockFrame(G, P1, 3, 1, 1, excluded=(P2, P3))),
        (
            NUMBERED,
            numbered(REMOVE + TWO_FAILED, flags=NOTICE),
            BlockFrame(G, P1, 3, 1, 1, notice=Notice("remove", ((P2, 5), (P3, 0)))),
        ),
        (
            NUMBERED,
            numbered(
                numbers(7) + numbers(5, 4, 3, 2) + mark("p2") + FLUSH + suspicions(("p2", 5)),
                flags=SEQUENCE | FLOW | MARK | NOTICE,
            ),
            BlockFrame(
                G,
                P1,
                3,
                1,
                1,
                flow=Flow(5, 4, 3, 2),
                sequence=7,
                excluded=(P2,),
                notice=Notice("flush", ((P2, 5),)),
            ),
        ),
        (ALIVE, alive(flags=8), AliveFrame(G, P1, 3, 1, blocked=True)),
        (ALIVE, alive(flags=9), AliveFrame(G, P1, 3, 1, stalled=True, blocked=True)),
        (SUSPECT, suspect(), SuspectFrame(G, P1, 3, P2, 1)),
        (SUSPECT, suspect(sequence=9, name="p3#2"), SuspectFrame(G, P1, 3, P3, 1, sequence=9)),
        (REFUTE, refute(shown(4, 1)), RefuteFrame(G, P1, 3, P2, 1, (SHOWN,))),
        (
            REFUTE,
            refute(shown(4, 1), shown(6, 4)),
            RefuteFrame(G, P1, 3, P2, 1, (SHOWN, SHOWN._replace(block=6, previous_block=4))),
        ),
        (CONFIRMED, confirmed(TWO_FAILED, sequence=9), ConfirmedFrame(G, P1, 3, ((P2, 5), (P3, 0)), sequence=9)),
        (
            REPAIR,
            NAMES
            + count(3)
            + copy(SUSPECT, suspect())
            + copy(REFUTE, refute(shown(4, 1)))
            + copy(CONFIRMED, confirmed(TWO_FAILED)),
            RepairFrame(
                G,
                P1,
                (
                    SuspectFrame(G, P1, 3, P2, 1),
                    RefuteFrame(G, P1, 3, P2, 1, (SHOWN,)),
                    ConfirmedFrame(G, P1, 3, ((P2, 5), (P3, 0))),
                ),
            ),
        ),
    ],
)
def test_the_bodies_are_as_the_codec_describes_them(kind: int, body: bytes, frame: object) -> None:
    decoded = decode(seal(kind, body))
    assert decoded == frame
    assert encode(decoded) == seal(kind, body)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        # marks: empty, unsorted, twice, itself, cut, too long
        (NUMBERED, numbered(mark(), flags=MARK)),
        (NUMBERED, numbered(mark("p3", "p2"), flags=MARK)),
        (NUMBERED, numbered(mark("p2", "p2"), flags=MARK)),
        (NUMBERED, numbered(mark("p1"), flags=MARK)),
        (NUMBERED, numbered(mark("p2#0"), flags=MARK)),
        (NUMBERED, numbered(mark("p@2"), flags=MARK)),
        (NUMBERED, numbered(mark(b"\xff"), flags=MARK)),
        (NUMBERED, numbered(mark("p2")[:-1], flags=MARK)),
        (NUMBERED, numbered(mark("p2") + b"!", flags=MARK)),
        (NUMBERED, numbered(count(2) + text("p2"), flags=MARK)),
        (NUMBERED, numbered(count(2**32 - 1) + text("p2"), flags=MARK)),
        (NUMBERED, numbered(flags=MARK)),
        # notices
        (NUMBERED, numbered(flags=NOTICE)),
        (NUMBERED, numbered(b"\x00" + TWO_FAILED, flags=NOTICE)),
        (NUMBERED, numbered(b"\x03" + TWO_FAILED, flags=NOTICE)),
        (NUMBERED, numbered(REMOVE + suspicions(), flags=NOTICE)),
        (NUMBERED, numbered(REMOVE + suspicions(("p3", 1), ("p2", 1)), flags=NOTICE)),
        (NUMBERED, numbered(REMOVE + suspicions(("p2", 1), ("p2", 2)), flags=NOTICE)),
        (NUMBERED, numbered(REMOVE + suspicions(("p1", 1)), flags=NOTICE)),
        (NUMBERED, numbered(REMOVE + suspicions(("p2", -1)), flags=NOTICE)),
        (NUMBERED, numbered(REMOVE + suspicions(("p2", 2**62 + 1)), flags=NOTICE)),
        (NUMBERED, numbered(REMOVE + count(2**32 - 1) + TWO_FAILED[4:], flags=NOTICE)),
        (NUMBERED, numbered(REMOVE + count(1) + TWO_FAILED[4:], flags=NOTICE)),
        (NUMBERED, numbered(REMOVE + TWO_FAILED + ONE_PAYLOAD, flags=NOTICE | PAYLOADS)),
        (NUMBERED, numbered(REMOVE + TWO_FAILED + ONE_PAYLOAD, flags=NOTICE | PAYLOADS | MORE)),
        (NUMBERED, numbered(REMOVE + TWO_FAILED, flags=NOTICE | MORE)),
        (NUMBERED, numbered(FLUSH + TWO_FAILED + MAP + count(0), flags=NOTICE | STAMP)),
        # suspicions of oneself, numbers that cannot be, bodies too short and too long
        (SUSPECT, suspect(name="p1")),
        (SUSPECT, suspect(block=-1)),
        (SUSPECT, suspect(last=-1)),
        (SUSPECT, suspect(sequence=-1)),
        (SUSPECT, suspect(block=2**62 + 1)),
        (SUSPECT, suspect(last=2**62 + 1)),
        (SUSPECT, suspect(sequence=2**62 + 1)),
        (SUSPECT, suspect()[:-1]),
        (SUSPECT, suspect() + b"!"),
        (SUSPECT, NAMES + numbers(3, 1)),
        # refutations
        (REFUTE, suspect()),
        (REFUTE, refute(shown(1, 0))),
        (REFUTE, refute(shown(4, 1), last=4)),
        (REFUTE, refute(shown(4, 1), shown(6, 5))),
        (REFUTE, refute(shown(4, 1), shown(6, 3))),
        (REFUTE, refute(shown(4, 1), shown(4, 4))),
        (REFUTE, refute(shown(6, 4), shown(4, 1))),
        (REFUTE, refute(shown(4, 1), shown(4, 1))),
        (REFUTE, refute(shown(4, 1, sender="p3"))),
        (REFUTE, refute(shown(4, 1, sender="p1"))),
        (REFUTE, refute(shown(4, 1), shown(6, 4, sender="p3"))),
        (REFUTE, refute(shown(4, 1, group="h"))),
        (REFUTE, refute(shown(4, 1) + b"!")),
        (REFUTE, refute(shown(4, 1)) + b"!"),
        (REFUTE, refute(shown(4, 1))[:-1]),
        (REFUTE, suspect(name="p1") + count(1) + copy(NUMBERED, shown(4, 1, sender="p1"))),
        (REFUTE, suspect() + count(2**32 - 1) + copy(NUMBERED, shown(4, 1))),
        (REFUTE, suspect() + count(1) + copy(NUMBERED, shown(4, 1), 2**32 - 1)),
        (REFUTE, suspect() + count(1) + copy(ALIVE, alive())),
        (REFUTE, suspect() + count(1) + copy(REFUTE, refute(shown(4, 1)))),
        (REFUTE, suspect() + count(1) + copy(REPAIR, NAMES + count(0))),
        # confirmations
        (CONFIRMED, confirmed(suspicions())),
        (CONFIRMED, confirmed(suspicions(("p1", 4)))),
        (CONFIRMED, confirmed(suspicions(("p2", 4), ("p1", 4)))),
        (CONFIRMED, confirmed(suspicions(("p2", 4), ("p2", 4)))),
        (CONFIRMED, confirmed(suspicions(("p2", -4)))),
        (CONFIRMED, confirmed(TWO_FAILED, block=-1)),
        (CONFIRMED, confirmed(TWO_FAILED, sequence=2**62 + 1)),
        (CONFIRMED, confirmed(TWO_FAILED)[:-1]),
        (CONFIRMED, confirmed(TWO_FAILED) + b"!"),
        (CONFIRMED, confirmed(count(2**32 - 1) + TWO_FAILED[4:])),
        # repairs of them
        (REPAIR, NAMES + count(1) + copy(SUSPECT, suspect(name="p1"))),
        (REPAIR, NAMES + count(1) + copy(REFUTE, refute(shown(4, 1, group="h")))),
        (REPAIR, NAMES + count(1) + copy(CONFIRMED, confirmed(suspicions()))),
        (REPAIR, NAMES + count(1) + copy(CONFIRMED, confirmed(TWO_FAILED) + b"!")),
        (REPAIR, NAMES + count(1) + copy(REPAIR, NAMES + count(1) + copy(SUSPECT, suspect()))),
        (REPAIR, NAMES + count(1) + copy(STATUS, NAMES + numbers(4, 2))),
    ],
)
def test_bodies_that_no_correct_peer_sends_are_refused_by_name(kind: int, body: bytes) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        decode(seal(kind, body))
    assert caught.value.code == "body"


@given(block_frames())
def test_a_mark_costs_its_names_and_a_notice_its_pairs(frame: BlockFrame) -> None:
    bare = frame._replace(excluded=(), notice=None)
    marked = sum(1 + len(name.encode()) for name in frame.excluded)
    failed = frame.notice.failed if frame.notice is not None else ()
    noticed = sum(1 + len(name.encode()) + 8 for name, _ in failed)
    cost = (4 + marked if marked else 0) + (5 + noticed if noticed else 0)
    assert header_bytes(frame) - header_bytes(bare) == len(encode(frame)) - len(encode(bare)) == cost


def test_the_payloads_in_a_repaired_refutation_are_the_applications() -> None:
    message = BlockFrame(G, P2, 4, 1, 0, (b"four", b"more"), 0)
    frame = RepairFrame(G, P1, (RefuteFrame(G, P3, 3, P2, 1, (message,)), message))
    assert payload_bytes(frame) == 16
    assert header_bytes(frame) + 16 == len(encode(frame))
