"""Frames that form, join, leave and merge groups: encoded as described, and all other bytes are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.contract import Presence
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import (
    WORD,
    AbortFrame,
    BaseFrame,
    BlockFrame,
    FoundFrame,
    InquireFrame,
    InstallFrame,
    LeavingFrame,
    PresenceFrame,
    ProbeFrame,
    ProposeFrame,
    ReadyFrame,
    RefuseFrame,
    RefuteFrame,
    RepairFrame,
    VoteFrame,
    WantFrame,
)
from antiphon.types import Company, GroupId, ProcessId, ViewId
from antiphon.wire.codec import decode, encode, header_bytes, payload_bytes
from antiphon.wire.frame import seal
from tests.support.wire_bodies import (
    MORE,
    NAMES,
    NOTICE,
    NUMBERED,
    PAYLOADS,
    REFUTE,
    REMOVE,
    REPAIR,
    copy,
    count,
    identity,
    numbered,
    numbers,
    suspect,
    suspicions,
    text,
)
from tests.support.wire_frames import block_frames

LEAVING, WANT = 14, 15
REFUSE = 10
PROPOSE, VOTE, BASE, READY, INSTALL, ABORT, PROBE, FOUND = range(24, 32)
INQUIRE, PRESENCE = 37, 38
FURTHER = 128
NO, YES = b"\0", b"\1"
G, H, P1, P2, P3 = GroupId("g"), GroupId("g@7"), ProcessId("p1"), ProcessId("p2"), ProcessId("p3#2")
ID = identity("g", "p1", epoch=7)
VIEW = "0002.000001.0123456789abcdef"
V = ViewId(VIEW)
ONE_PAYLOAD = numbers(0) + count(1) + count(4) + b"four"
STATE = b"\1" + count(2)


def members(*names: str) -> bytes:
    return count(len(names)) + b"".join(map(text, names))


def company(*names: str, view: str = VIEW, size: int = 3, primary: bytes = YES) -> bytes:
    return members(*names) + text(view) + count(size) + primary


def settings(*told: tuple[str, str]) -> bytes:
    return bytes((len(told),)) + b"".join(text(name) + text(value) for name, value in told)


TOLD = (("flow_control", "0"), ("service", "total"))
FROM_NOWHERE = company("p3#2", view="", size=0, primary=NO)


@pytest.mark.parametrize(
    ("kind", "body", "frame"),
    [
        (LEAVING, NAMES + numbers(3, 0), LeavingFrame(G, P1, 3)),
        (LEAVING, ID + numbers(3, 9), LeavingFrame(H, P1, 3, sequence=9)),
        (LEAVING, ID + numbers(3, 9) + YES, LeavingFrame(H, P1, 3, True, sequence=9)),
        (WANT, NAMES + numbers(3, 5, 9), WantFrame(G, P1, 3, 5, sequence=9)),
        (
            NUMBERED,
            numbered(b"\2" + count(0) + ONE_PAYLOAD, flags=FURTHER | PAYLOADS),
            BlockFrame(G, P1, 3, 1, 1, (b"four",), 0, state=WORD),
        ),
        (
            REPAIR,
            NAMES + count(2) + copy(WANT, NAMES + numbers(3, 5, 9)) + copy(LEAVING, NAMES + numbers(5, 10)),
            RepairFrame(G, P1, (WantFrame(G, P1, 3, 5, sequence=9), LeavingFrame(G, P1, 5, sequence=10))),
        ),
        (
            NUMBERED,
            numbered(STATE + ONE_PAYLOAD, flags=FURTHER | PAYLOADS),
            BlockFrame(G, P1, 3, 1, 1, (b"four",), 0, state=2),
        ),
        (
            NUMBERED,
            numbered(STATE + ONE_PAYLOAD, flags=FURTHER | PAYLOADS | MORE),
            BlockFrame(G, P1, 3, 1, 1, (b"four",), 0, more=True, state=2),
        ),
        (
            REFUTE,
            suspect(name="p2")
            + count(1)
            + copy(NUMBERED, numbered(STATE + ONE_PAYLOAD, flags=FURTHER | PAYLOADS, names=identity("g", "p2"))),
            RefuteFrame(G, P1, 3, P2, 1, (BlockFrame(G, P2, 3, 1, 1, (b"four",), 0, state=2),)),
        ),
        (
            PROPOSE,
            ID + count(3) + text("p1") + text("g") + text("p2") + text("g@5") + text("p3#2") + text(""),
            ProposeFrame(H, P1, ((P1, G), (P2, GroupId("g@5")), (P3, None))),
        ),
        (
            PROPOSE,
            ID + count(1) + text("p1") + text("") + settings(*TOLD),
            ProposeFrame(H, P1, ((P1, None),), TOLD),
        ),
        (VOTE, ID + numbers(3) + NO, VoteFrame(H, P1, None, 3)),
        (VOTE, ID + numbers(3) + YES + numbers(0), VoteFrame(H, P1, 0, 3)),
        (BASE, ID + numbers(12), BaseFrame(H, P1, 12)),
        (READY, ID + text(VIEW) + YES + members("p1", "p2"), ReadyFrame(H, P1, V, (P1, P2), primary=True)),
        (READY, ID + text(VIEW) + b"\2" + numbers(7) + members("p1"), ReadyFrame(H, P1, V, (P1,), False, 7)),
        (READY, ID + text(VIEW) + b"\4" + numbers(9) + members("p1"), ReadyFrame(H, P1, V, (P1,), False, 0, 9)),
        (READY, ID + text(VIEW) + b"\6" + numbers(7, 9) + members("p1"), ReadyFrame(H, P1, V, (P1,), False, 7, 9)),
        (READY, ID + text("") + NO + members(), ReadyFrame(H, P1, None, (), primary=False)),
        (
            INSTALL,
            ID + numbers(12) + count(2) + company("p1", "p2") + FROM_NOWHERE,
            InstallFrame(H, P1, 12, (Company((P1, P2), V, 3, True), Company((P3,), None, 0, False))),
        ),
        (ABORT, ID, AbortFrame(H, P1)),
        (PROBE, NAMES + YES, ProbeFrame(G, P1, joins=True)),
        (PROBE, ID + NO, ProbeFrame(H, P1, joins=False)),
        (PROBE, NAMES + YES + settings(*TOLD), ProbeFrame(G, P1, joins=True, settings=TOLD)),
        (REFUSE, NAMES, RefuseFrame(G, P1)),
        (REFUSE, NAMES + settings(("a" * 32, "~" * 64)), RefuseFrame(G, P1, (("a" * 32, "~" * 64),))),
        (FOUND, ID + members("p1", "p2"), FoundFrame(H, P1, (P1, P2))),
        (FOUND, NAMES + members("p1"), FoundFrame(G, P1, (P1,))),
        (INQUIRE, NAMES + numbers(5) + b"\2" + bytes(198), InquireFrame(G, P1, 5, Presence.FOUNDING)),
        (PRESENCE, NAMES + numbers(5) + b"\4", PresenceFrame(G, P1, 5, Presence.MEMBER)),
    ],
)
def test_the_bodies_are_as_the_codec_describes_them(kind: int, body: bytes, frame: object) -> None:
    decoded = decode(seal(kind, body))
    assert decoded == frame
    assert encode(decoded) == seal(kind, body)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (LEAVING, NAMES + numbers(3)),
        (LEAVING, NAMES + numbers(3, -1)),
        (WANT, NAMES + numbers(3, 5)),
        (WANT, NAMES + numbers(3, 2**62 + 1, 0)),
        # states: with other flags, nothing, several payloads, a notice
        (NUMBERED, numbered(b"\0" + count(2) + ONE_PAYLOAD, flags=FURTHER | PAYLOADS)),
        (NUMBERED, numbered(b"\3" + count(2) + ONE_PAYLOAD, flags=FURTHER | PAYLOADS)),
        (NUMBERED, numbered(STATE, flags=FURTHER)),
        (NUMBERED, numbered(b"\1", flags=FURTHER)),
        (NUMBERED, numbered(STATE + numbers(0) + count(2) + count(1) + count(1) + b"ab", flags=FURTHER | PAYLOADS)),
        (NUMBERED, numbered(STATE + REMOVE + suspicions(("p2", 1)), flags=FURTHER | NOTICE)),
        # proposals: no members, not sorted, twice, without the proposer, of another name, of itself
        (PROPOSE, ID + count(0)),
        (PROPOSE, ID + count(2) + text("p2") + text("") + text("p1") + text("")),
        (PROPOSE, ID + count(2) + text("p1") + text("") + text("p1") + text("")),
        (PROPOSE, ID + count(1) + text("p2") + text("")),
        (PROPOSE, ID + count(1) + text("p1") + text("h")),
        (PROPOSE, ID + count(1) + text("p1") + text("g@7")),
        (PROPOSE, ID + count(1) + text("p1") + text("g@0")),
        (PROPOSE, ID + count(2**32 - 1) + text("p1") + text("")),
        (PROPOSE, NAMES + count(1) + text("p1") + text("")),
        (VOTE, ID + numbers(3)),
        (VOTE, ID + numbers(3) + b"\2"),
        (VOTE, ID + numbers(3) + NO + numbers(1)),
        (VOTE, ID + numbers(3) + YES + numbers(-1)),
        (VOTE, ID + numbers(-3) + NO),
        (VOTE, NAMES + numbers(3) + NO),
        (BASE, NAMES + numbers(12)),
        (BASE, ID + numbers(-1)),
        # ready: no view with members, a view without, or without the sender, or not sorted, or no name of a view
        (READY, ID + text("") + NO + members("p1")),
        (READY, ID + text(VIEW) + NO + members()),
        (READY, ID + text(VIEW) + NO + members("p2")),
        (READY, ID + text(VIEW) + NO + members("p2", "p1")),
        (READY, ID + text("2.1.abc") + NO + members("p1")),
        (READY, ID + text(VIEW.upper()) + NO + members("p1")),
        (READY, ID + text(VIEW) + b"\2" + members("p1")),
        (READY, ID + text(VIEW) + b"\3" + numbers(7) + members("p1")),
        (READY, ID + text(VIEW) + b"\4" + numbers(0) + members("p1")),
        (READY, ID + text(VIEW) + b"\4" + members("p1")),
        (READY, ID + text(VIEW) + b"\10" + numbers(7) + members("p1")),
        (READY, NAMES + text("") + NO + members()),
        # install: no members, an empty company, of two from nowhere, larger than its view, not sorted, in two companies
        (INSTALL, ID + numbers(12) + count(0)),
        (INSTALL, ID + numbers(12) + count(2) + company() + company("p1")),
        (INSTALL, ID + numbers(12) + count(1) + company("p1", "p2", view="")),
        (INSTALL, ID + numbers(12) + count(1) + company("p1", "p2", size=1)),
        (INSTALL, ID + numbers(12) + count(2) + FROM_NOWHERE + company("p1", "p2")),
        (INSTALL, ID + numbers(12) + count(2) + company("p1", "p2") + company("p2", "p3")),
        (INSTALL, ID + numbers(12) + count(1) + company("p2")),
        (INSTALL, ID + numbers(-1) + count(1) + company("p1")),
        (INSTALL, NAMES + numbers(12) + count(1) + company("p1")),
        (ABORT, NAMES),
        (ABORT, ID + b"!"),
        (PROBE, NAMES),
        (PROBE, NAMES + b"\2"),
        # settings: none where there is a count, too many, too long, not sorted, told twice, empty, not plain, cut off
        (REFUSE, NAMES + b"\0"),
        (REFUSE, NAMES + settings(*((f"s{number:02}", "1") for number in range(33)))),
        (REFUSE, NAMES + settings(("a" * 33, "1"))),
        (REFUSE, NAMES + settings(("a", "1" * 65))),
        (REFUSE, NAMES + settings(("b", "1"), ("a", "1"))),
        (REFUSE, NAMES + settings(("a", "1"), ("a", "1"))),
        (REFUSE, NAMES + settings(("", "1"))),
        (REFUSE, NAMES + settings(("a", ""))),
        (REFUSE, NAMES + settings(("A", "1"))),
        (REFUSE, NAMES + settings(("a", "1\n2"))),
        (REFUSE, NAMES + settings(("a", "é"))),
        (REFUSE, NAMES + b"\2" + text("a") + text("1")),
        (PROBE, NAMES + YES + b"\0"),
        (PROPOSE, ID + count(1) + text("p1") + text("") + b"\0"),
        (FOUND, ID + members()),
        (FOUND, ID + members("p2")),
        (FOUND, ID + members("p1", "p1")),
        (INQUIRE, NAMES + numbers(5) + b"\2"),
        (INQUIRE, NAMES + numbers(5) + b"\2" + bytes(197)),
        (INQUIRE, NAMES + numbers(5) + b"\2" + bytes(199)),
        (INQUIRE, NAMES + numbers(5) + b"\2" + bytes(197) + b"!"),
        (INQUIRE, NAMES + numbers(5) + b"\5" + bytes(198)),
        (PRESENCE, NAMES + numbers(5)),
        (PRESENCE, NAMES + numbers(-1) + b"\0"),
        (PRESENCE, NAMES + numbers(5) + b"\5"),
        # these have no place in a stream
        (REPAIR, ID + count(1) + copy(ABORT, ID)),
        (REPAIR, ID + count(1) + copy(FOUND, ID + members("p1"))),
        (REPAIR, NAMES + count(1) + copy(REFUSE, NAMES)),
        (REFUTE, suspect() + count(1) + copy(LEAVING, NAMES + numbers(3, 0))),
    ],
)
def test_bodies_that_no_correct_peer_sends_are_refused_by_name(kind: int, body: bytes) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        decode(seal(kind, body))
    assert caught.value.code == "body"


@given(st.text("pü", min_size=1, max_size=100), st.text("pü", min_size=1, max_size=100))
def test_no_answer_is_longer_than_the_question_whatever_the_names(asker: str, answerer: str) -> None:
    question = InquireFrame(G, ProcessId(asker), 7, Presence.FOUNDING)
    answer = PresenceFrame(G, ProcessId(answerer), 7, Presence.MEMBER)
    assert len(encode(answer)) <= len(encode(question))


@given(block_frames(), st.integers(0, 2**32 - 1))
def test_a_state_costs_the_place_of_its_class(frame: BlockFrame, place: int) -> None:
    bare = frame._replace(payloads=(b"state",), stamp=None, notice=None, more=False, state=None)
    told = bare._replace(state=place)
    assert header_bytes(told) - header_bytes(bare) == len(encode(told)) - len(encode(bare)) == 5
    assert payload_bytes(told) == 5
    assert (bare.kind, told.kind) == ("data", "state")
