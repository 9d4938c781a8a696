"""The actions when an application reads an effect (`drive/reader.py`)."""

from typing import Any

from antiphon.core.contract import Capabilities, StateSource
from antiphon.core.effects import (
    Discard,
    Effect,
    Frame,
    InstallState,
    InstallView,
    Left,
    Stable,
    Suspected,
    Transitional,
)
from antiphon.drive.reader import Reader
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.trace.recorder import Recorder
from antiphon.trace.scribe import Scribe
from antiphon.types import (
    Company,
    GroupId,
    ProcessId,
    View,
    ViewId,
    first_view,
    formed_group,
    formed_view,
    receiver_view,
)

G, P1, P2 = GroupId("g"), ProcessId("p1"), ProcessId("p2")
V0 = first_view(G, frozenset({P1, P2}))
FORMED = formed_group("g", 1, P1, 0)
W0 = formed_view(FORMED, 3, tuple(Company((each,), None, 0, primary=False) for each in (P1, P2)), P1)


def data(number: int, group: GroupId = G) -> BlockFrame:
    return BlockFrame(group, P2, number, number - 1, 0, (b"x",), number - 1)


class Puppet:
    """A core that records its calls."""

    capabilities = Capabilities(suspects=True, changes=True)
    deadline: int | None = None

    def __init__(self, *, counts: bool = True) -> None:
        self.needs_consumed = counts
        self.told: list[tuple[Any, ...]] = []

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None: ...
    def receive(self, frame: Frame, now: int) -> None: ...
    def tick(self, now: int) -> None: ...
    def consumed(self, group: GroupId, position: int, now: int) -> bool:
        self.told.append(("consumed", group, position))
        return True

    def viewed(self, view: View, now: int) -> None:
        self.told.append(("viewed", view.id))

    def state(self, view: View, state: bytes | StateSource, now: int) -> None:
        self.told.append(("state", view.id, state))

    def writable(self, ready: bool, now: int) -> None: ...
    def drain(self, now: int) -> list[Effect]:
        return []

    def unstable(self, group: GroupId) -> int:
        return 0


def traced() -> tuple[Puppet, Recorder, Scribe, Reader]:
    core, recorder = Puppet(), Recorder(P1, {G: "total"}, signed=True)
    scribe = Scribe(recorder, core)
    return core, recorder, scribe, Reader(core, scribe)


def kinds(recorder: Recorder) -> list[str]:
    return [row["kind"] for row in recorder.rows]


def test_deliveries_are_counted_by_group_when_the_application_is_done() -> None:
    core = Puppet()
    reader = Reader(core, None)
    positions = [reader.take(frame, 0) for frame in (data(1), data(2), data(4, FORMED))]
    assert positions == [1, 2, 1]
    assert core.told == []
    assert reader.done(G, 2, 0)
    assert core.told == [("consumed", G, 2)]
    assert (reader.position(G), reader.position(FORMED)) == (2, 1)


def test_an_application_that_needs_no_time_is_done_at_once() -> None:
    core, recorder, _, reader = traced()
    reader.enter(InstallView(V0), 0, 0)
    for number in (1, 2):
        reader.consume(data(number), 0, 5)
    assert core.told[1:] == [("consumed", G, 1), ("consumed", G, 2)]
    assert kinds(recorder) == ["view", "deliver", "deliver"]


def test_a_core_that_does_not_count_is_told_nothing() -> None:
    core = Puppet(counts=False)
    reader = Reader(core, None)
    assert reader.silent
    reader.consume(data(1), 0, 0)
    assert not reader.done(G, 1, 0)
    assert core.told == []


def test_the_core_is_told_of_a_view_and_the_trace_catches_up_after_it() -> None:
    core, recorder, scribe, reader = traced()
    scribe.reached(W0)
    scribe.told(Suspected(FORMED, P2, 3, "silent"), 1)
    assert kinds(recorder) == []
    reader.enter(InstallView(W0, snapshot=True), 2, 3, state=b"state")
    reader.hand_over(W0, b"state", 2)
    assert core.told == [("viewed", W0.id), ("state", W0.id, b"state")]
    assert kinds(recorder) == ["view", "state", "suspect"]


def test_what_a_receiver_reports_in_a_view_waits_until_its_application_has_entered_it() -> None:
    _, recorder, scribe, reader = traced()
    here, there, last = (receiver_view(P2, G, ViewId(name), (P1,), None) for name in "abc")
    for view in (here, there, last):
        scribe.installed(view)
        if view is here:
            reader.enter(InstallView(here), 0, 0)
            scribe.told(Stable(G, ((P1, 1),)), 1)
        else:
            scribe.told(Stable(G, ((P1, 4),)), 2)
            scribe.told(Discard(G, ((P1, 4),)), 2)
    assert kinds(recorder) == ["view", "stable"]
    reader.enter(InstallView(there), 5, 5)
    assert kinds(recorder)[2:] == ["view", "stable", "discard"]
    reader.enter(InstallView(last), 6, 6)
    scribe.told(Stable(G, ((P1, 5),)), 7)
    rows = [(row["kind"], row["view"]) for row in recorder.rows[5:]]
    assert rows == [("view", "c"), ("stable", "c"), ("discard", "c"), ("stable", "c")]


def test_an_application_that_the_trace_does_not_follow_leaves_no_rows() -> None:
    core, recorder, _, reader = traced()
    reader.enter(InstallView(V0), 0, 0, recorded=False)
    assert reader.take(data(1), 0, recorded=False) == 1
    reader.notice(Transitional(G, (P1,)), 0, recorded=False)
    reader.restore(InstallState(FORMED, ((1, b"s"),), None), (b"s",), 0, recorded=False)
    assert reader.leave(Left(G, graceful=True), 0, recorded=False)
    assert kinds(recorder) == []
    assert core.told == [("viewed", V0.id)]


def test_a_view_that_is_passed_over_is_told_to_the_core_alone() -> None:
    core, recorder, _, reader = traced()
    reader.pass_over(V0, 0)
    assert core.told == [("viewed", V0.id)]
    assert kinds(recorder) == []


def test_with_a_successor_the_application_notices_nothing() -> None:
    _, recorder, _, reader = traced()
    reader.enter(InstallView(V0), 0, 0)
    reader.take(data(1), 0)
    assert not reader.leave(Left(G, graceful=True, successor=FORMED), 1)
    assert kinds(recorder) == ["view", "deliver"]
    assert reader.position(G) == 0  # a group that is formed later is another group


def test_without_a_successor_the_application_is_out() -> None:
    _, recorder, _, reader = traced()
    reader.enter(InstallView(V0), 0, 0)
    assert reader.leave(Left(G, graceful=True), 1)
    assert kinds(recorder) == ["view", "leave"]
