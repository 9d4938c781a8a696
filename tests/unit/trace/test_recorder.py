"""The recorder observes the messages at the boundary of a core, independent of the core's own reports."""

import json

from antiphon.core.effects import (
    Blocked,
    Confirmed,
    Departure,
    Discard,
    Gauge,
    Refuted,
    Stable,
    Suspected,
    Transitional,
    Unblocked,
)
from antiphon.protocols.newtop.frames import AliveFrame, BlockFrame, Notice
from antiphon.trace.recorder import Recorder, digest
from antiphon.types import (
    Company,
    GroupId,
    ProcessId,
    first_view,
    formed_group,
    formed_view,
    shrunk_view,
    signature,
)

G, P1, P2, P3, P4 = GroupId("g"), ProcessId("p1"), ProcessId("p2"), ProcessId("p3"), ProcessId("p4")


def recorder(*payloads: bytes) -> Recorder:
    history = Recorder(P1, {G: "total"})
    for now, payload in enumerate(payloads):
        assert history.requested(G, payload, now) == now
    return history


def transmit(history: Recorder, frame: BlockFrame) -> None:
    history.transmitted(frame, 50, payload_bytes=0, header_bytes=9, stamp_bytes=8, unstable=0, copies=1)


def sends(history: Recorder) -> list[tuple[int, int, int]]:
    rows = [row for row in history.rows if row["kind"] == "send"]
    return [(row["number"], row["requested"], row["digest"]) for row in rows]


def test_a_message_is_sent_when_its_frame_leaves_and_keeps_the_time_of_its_request() -> None:
    history = recorder(b"a", b"b")
    assert sends(history) == []
    transmit(history, BlockFrame(G, P1, 1, 0, 0, (b"a", b"b"), 0))
    assert sends(history) == [(0, 0, digest(b"a")), (1, 1, digest(b"b"))]


def test_a_repeated_frame_and_a_frame_of_another_process_send_nothing() -> None:
    history = recorder(b"a")
    frame = BlockFrame(G, P1, 1, 0, 0, (b"a",), 0)
    for each in (frame, frame, BlockFrame(G, P2, 1, 0, 0, (b"x",), 0)):
        transmit(history, each)
    assert sends(history) == [(0, 0, digest(b"a"))]
    assert [row["kind"] for row in history.rows].count("transmit") == 3


def test_a_message_that_the_core_skipped_counts_as_sent_so_that_its_loss_is_found() -> None:
    history = recorder(b"a", b"b", b"c")
    transmit(history, BlockFrame(G, P1, 1, 0, 0, (b"c",), 2))
    assert [number for number, _, _ in sends(history)] == [0, 1, 2]


def test_a_send_row_tells_the_request_and_not_the_frame() -> None:
    history = recorder(b"asked")
    transmit(history, BlockFrame(G, P1, 1, 0, 0, (b"altered",), 0))
    assert sends(history) == [(0, 0, digest(b"asked"))]


def test_unsent_messages_are_told_at_the_stop() -> None:
    history = recorder(b"a", b"b")
    transmit(history, BlockFrame(G, P1, 1, 0, 0, (b"a",), 0))
    history.stopped(99, {G: 2}, {})
    assert json.loads(history.rows[-1]["detail"]) == {"waiting": {"g": 1}, "held": {"g": 2}}
    done = recorder()
    done.stopped(99, {G: 0}, {})
    assert done.rows[-1]["detail"] is None


def test_a_large_message_is_sent_and_received_with_its_last_piece() -> None:
    history = recorder(b"large", b"b")
    transmit(history, BlockFrame(G, P1, 1, 0, 0, (b"la",), 0, more=True))
    assert sends(history) == []
    transmit(history, BlockFrame(G, P1, 2, 1, 0, (b"rge",), 0))
    assert sends(history) == [(0, 0, digest(b"large"))]
    history.received(BlockFrame(G, P2, 1, 0, 0, (b"la",), 4, more=True), 60, unstable=1)
    history.received(BlockFrame(G, P2, 2, 1, 0, (b"rge",), 4), 60, unstable=1)
    received = [row for row in history.rows if row["kind"] == "receive"]
    assert [(row["number"], json.loads(row["detail"])["type"]) for row in received] == [(None, "fragment"), (4, "data")]


def test_the_trace_tells_which_member_blocks_a_sender_and_which_messages_were_given_up() -> None:
    history = recorder()
    history.held_back(Blocked(G, P2), 5)
    history.held_back(Unblocked(G), 7)
    history.prefix(Discard(G, ((P2, 3),), evicted=True), 8, unstable=2)
    history.prefix(Discard(G, ((P2, 3),)), 9, unstable=1)
    history.gauged(Gauge(G, "buffers", 4, P2), 10)
    assert [(row["kind"], row["time"], row.get("peer")) for row in history.rows] == [
        ("block", 5, P2),
        ("unblock", 7, None),
        ("discard", 8, None),
        ("discard", 9, None),
        ("gauge", 10, P2),
    ]
    assert [row["detail"] for row in history.rows[2:]] == ['{"evicted":true}', None, '{"name":"buffers","value":4}']


def test_only_numbered_frames_have_a_name_of_their_own() -> None:
    history = recorder()
    history.transmitted(
        AliveFrame(G, P1, 3, 1), 5, payload_bytes=0, header_bytes=9, stamp_bytes=0, unstable=0, copies=1
    )
    transmit(history, BlockFrame(G, P1, 4, 3, 1))
    details = [json.loads(row["detail"]) for row in history.rows]
    assert [(detail["type"], detail["frame"]) for detail in details] == [("alive", None), ("null", "g/p1/4")]


def test_notices_are_named_like_messages_for_they_share_their_numbers() -> None:
    history = recorder()
    for block, kind in enumerate(("remove", "flush"), start=4):
        transmit(history, BlockFrame(G, P1, block, block - 1, 0, notice=Notice(kind, ((P2, 3),))))  # type: ignore[arg-type]
    details = [json.loads(row["detail"]) for row in history.rows]
    assert [(detail["type"], detail["frame"], detail["count"]) for detail in details] == [
        ("remove", "g/p1/4", 0),
        ("flush", "g/p1/5", 0),
    ]


def test_the_trace_tells_suspicions_confirmations_and_notices_to_the_application() -> None:
    history = Recorder(P1, {G: "total"}, signed=True)
    view = first_view(G, frozenset({P1, P2, P3, P4}))
    history.installed(view, 0)
    history.suspected(Suspected(G, P2, 7, "silent"), 5)
    history.suspected(Refuted(G, P2), 6)
    agreed = Confirmed(G, ((P2, 7), (P3, 9)), (P1, P4))
    history.confirmed(agreed, 7)
    history.noticed(Transitional(G, agreed.members), 8)
    suspect, refute, first, second, notice = history.rows[1:]
    assert {row["view"] for row in history.rows} == {view.id}
    assert (suspect["kind"], suspect["peer"], suspect["clock"]) == ("suspect", P2, 7)
    assert json.loads(suspect["detail"]) == {"reason": "silent"}
    assert (refute["kind"], refute["peer"], refute.get("clock")) == ("refute", P2, None)
    assert [(row["kind"], row["peer"], row["clock"]) for row in (first, second)] == [
        ("confirm", P2, 7),
        ("confirm", P3, 9),
    ]
    assert first["members"] == second["members"] == notice["members"] == [P1, P4]
    assert first["detail"] == second["detail"] == '{"failed":[["p2",7],["p3",9]]}'
    assert (notice["kind"], notice["time"], notice.get("detail")) == ("transitional", 8, None)


def test_an_agreed_view_tells_which_members_left_and_why() -> None:
    view = first_view(G, frozenset({P1, P2, P3}))
    smaller = shrunk_view(view, [(P3, 4)])
    why = Departure(P3, 4, "silent", (P1, P2), silent_ns=100, agreed_ns=20)
    history = Recorder(P1, {G: "total"}, signed=True)
    history.installed(view, 0)
    history.installed(smaller, 9, (why,))
    told = [json.loads(row["detail"]) for row in history.rows]
    assert told[0] == {"left": [], "primary": True, "signature": signature(view)}
    assert told[1] == {
        "left": [
            {
                "process": "p3",
                "last_block": 4,
                "reason": "silent",
                "accusers": ["p1", "p2"],
                "silent_ns": 100,
                "agreed_ns": 20,
            }
        ],
        "primary": True,
        "signature": signature(smaller),
    }
    untold = Recorder(P1, {G: "total"})
    untold.installed(view, 0)
    assert untold.rows[0]["detail"] is None


FORMED = formed_group("g", 2, P1, 0)
FROM_G = Company((P1, P2), first_view(G, frozenset({P1, P2})).id, 2, primary=True)
JOINED = formed_view(FORMED, 7, (FROM_G, Company((P3,), None, 0, primary=False)), P1)


def test_rows_bear_the_name_of_a_group_whatever_has_become_of_it() -> None:
    history = recorder(b"a", b"b")
    transmit(history, BlockFrame(G, P1, 1, 0, 0, (b"a",), 0))
    history.installed(JOINED, 60)
    transmit(history, BlockFrame(FORMED, P1, 8, 7, 7, (b"b",), 1))
    history.received(BlockFrame(FORMED, P2, 9, 7, 7), 70, unstable=0)
    history.delivered(BlockFrame(FORMED, P1, 8, 7, 7, (b"b",), 1), 80)
    history.suspected(Suspected(FORMED, P2, 9, "silent"), 81)
    history.confirmed(Confirmed(FORMED, ((P2, 9),), (P1, P3)), 82)
    history.noticed(Transitional(FORMED, (P1, P3)), 82)
    history.prefix(Stable(FORMED, ((P1, 1),)), 83, unstable=0)
    history.gauged(Gauge(FORMED, "buffers", 3), 84)
    assert {row["group"] for row in history.rows} == {G}
    assert {row["view"] for row in history.rows[2:] if row["kind"] != "gauge"} == {JOINED.id}
    assert [number for number, _, _ in sends(history)] == [0, 1]
    frames = [json.loads(row["detail"])["frame"] for row in history.rows if row["kind"] in ("transmit", "receive")]
    assert frames == ["g/p1/1", f"{FORMED}/p1/8", f"{FORMED}/p2/9"]


def test_the_first_view_of_a_formed_group_tells_its_classes() -> None:
    history = Recorder(P1, {G: "total"}, signed=True)
    history.installed(JOINED, 0)
    history.installed(shrunk_view(JOINED, [(P3, 9)]), 1)
    first, later = history.rows
    assert json.loads(first["detail"]) == {
        "left": [],
        "primary": True,
        "signature": signature(JOINED),
        "epoch": 2,
        "classes": [["p1", "p2"], ["p3"]],
    }
    assert (first["previous"], first["transitional"]) == (FROM_G.view, [P1, P2])
    assert json.loads(later["detail"]).keys() == {"left", "primary", "signature"}


def test_a_sender_is_held_back_in_a_group_while_it_is_in_any_of_its_formations() -> None:
    history = Recorder(P1, {G: "total"})
    for effect in (Blocked(G, P2), Blocked(FORMED, P2), Unblocked(G), Unblocked(G), Unblocked(FORMED), Blocked(G, P3)):
        history.held_back(effect, 0)
    assert [(row["kind"], row["peer"]) for row in history.rows] == [("block", P2), ("unblock", None), ("block", P3)]
