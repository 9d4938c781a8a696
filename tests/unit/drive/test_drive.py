"""Effects carried out (`drive/drive.py`): by one table, in order, until the core asks for nothing more."""

from collections import deque
from typing import Any, get_args

import pytest

from antiphon.core.contract import Capabilities
from antiphon.core.effects import (
    Blocked,
    Deliver,
    Effect,
    Frame,
    Gauge,
    InstallView,
    Left,
    Query,
    Reach,
    Stable,
    Suspected,
    Transmit,
    Unblocked,
)
from antiphon.drive.drive import _ACTIONS, Drive, Shown
from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.trace.recorder import Recorder
from antiphon.types import GroupId, ProcessId, View, first_view, private_view

G, P1, P2 = GroupId("g"), ProcessId("p1"), ProcessId("p2")
V0 = first_view(G, frozenset({P1, P2}))


def data(number: int) -> BlockFrame:
    return BlockFrame(G, P1, number, number - 1, 0, (b"x",))


class Puppet:
    """A core that returns the given batches of effects, one at each drain."""

    capabilities = Capabilities()
    deadline: int | None = None
    needs_consumed = False

    def __init__(self, *batches: list[Effect]) -> None:
        self.batches = deque(batches)
        self.received: list[tuple[Frame, int]] = []

    def send(self, group: GroupId, payload: bytes, now: int, label: int = 0) -> None: ...
    def receive(self, frame: Frame, now: int) -> None:
        self.received.append((frame, now))

    def tick(self, now: int) -> None: ...
    def consumed(self, group: GroupId, position: int, now: int) -> bool:
        return False

    def writable(self, ready: bool, now: int) -> None: ...
    def drain(self, now: int) -> list[Effect]:
        return self.batches.popleft() if self.batches else []

    def unstable(self, group: GroupId) -> int:
        return 0


class Notebook:
    """A network and an audience that record their calls in one list."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def install(self, view: View) -> None:
        self.told.append(("install", view))

    def leave(self, effect: Left) -> None:
        self.told.append(("leave", effect))

    def copies(self, effect: Transmit) -> int:
        return 1

    def transmit(self, effect: Transmit, now: int) -> None:
        self.told.append(("transmit", effect))

    def show(self, effect: Shown, now: int) -> None:
        self.told.append(("show", effect))


def settled(*batches: list[Effect], recorder: Recorder | None = None) -> tuple[list[tuple[str, Any]], bool]:
    notebook = Notebook()
    busy = Drive(Puppet(*batches), notebook, notebook, recorder).settle(7, 9)
    return notebook.told, busy


def test_every_effect_has_an_action() -> None:
    assert {*get_args(Effect)} == {*_ACTIONS, Deliver, Transmit}


def test_effects_are_carried_out_in_their_order_and_drained_to_the_end() -> None:
    transmit, deliver, query = Transmit(data(1)), Deliver(data(2)), Query(data(3))
    told, busy = settled([transmit, deliver], [query], [Transmit(data(4))])
    assert told == [("transmit", transmit), ("show", deliver), ("show", query), ("transmit", Transmit(data(4)))]
    assert busy


def test_a_core_that_asks_for_nothing_is_not_busy() -> None:
    assert settled() == ([], False)


def test_an_effect_for_the_trace_alone_does_not_make_a_core_busy() -> None:
    recorder = Recorder(P1, {G: "total"})
    assert settled([Gauge(G, "buffers", 1)], recorder=recorder) == ([], False)
    assert [row["kind"] for row in recorder.rows] == ["gauge"]


def test_what_became_stable_before_the_first_view_is_recorded_after_it() -> None:
    """An application may be stalled while its process already follows the group."""
    recorder = Recorder(P1, {G: "timestamp"})
    view = private_view(P1, G, [P2], [P2], None)
    settled([Stable(G, ((P1, 0),)), InstallView(view), Stable(G, ((P1, 1),))], recorder=recorder)
    assert [row["kind"] for row in recorder.rows] == ["view", "stable", "stable"]


def test_the_network_knows_a_view_before_the_application_does() -> None:
    effect = InstallView(V0)
    assert settled([effect])[0] == [("install", V0), ("show", effect)]


def test_a_private_view_is_recorded_at_once_and_not_shown() -> None:
    view, recorder = private_view(P1, G, [P2], [P2], None), Recorder(P1, {G: "timestamp"})
    assert settled([InstallView(view)], recorder=recorder)[0] == [("install", view)]
    assert [(row["kind"], row["time"]) for row in recorder.rows] == [("view", 9)]


def test_a_view_that_is_only_reached_is_not_shown() -> None:
    assert settled([Reach(V0)])[0] == [("install", V0)]


def test_the_network_forgets_a_group_before_the_application_hears_of_it() -> None:
    effect = Left(G, graceful=True)
    assert settled([effect])[0] == [("leave", effect), ("show", effect)]


def test_flow_control_is_shown_and_recorded() -> None:
    effects: list[Effect] = [Blocked(G, P2), Unblocked(G), Suspected(G, P2, 3, "silent")]
    recorder = Recorder(P1, {G: "total"})
    assert settled(effects, recorder=recorder)[0] == [("show", effects[0]), ("show", effects[1])]
    assert [row["kind"] for row in recorder.rows] == ["block", "unblock", "suspect"]


def test_a_frame_is_received_by_the_core_and_recorded() -> None:
    core, recorder, notebook = Puppet(), Recorder(P2, {G: "total"}), Notebook()
    Drive(core, notebook, notebook, recorder).receive(data(1), 7, 9)
    assert core.received == [(data(1), 7)]
    assert [(row["kind"], row["time"]) for row in recorder.rows] == [("receive", 9)]


class Line:
    """Newtop processes joined by channels. A process is fed `batch` frames before it is drained."""

    def __init__(self, names: str, batch: int) -> None:
        view = first_view(G, frozenset(map(ProcessId, names)))
        self.batch = batch
        self.delivered: dict[str, list[bytes]] = {name: [] for name in names}
        self.channels: dict[str, deque[Frame]] = {name: deque() for name in names}
        self.drives = {name: self._drive(ProcessId(name), view) for name in names}
        for drive in self.drives.values():
            drive.settle(0, 0)

    def _drive(self, name: ProcessId, view: View) -> Drive:
        line = self

        class Process(Notebook):
            def transmit(self, effect: Transmit, now: int) -> None:
                for other, channel in line.channels.items():
                    if other != name:
                        channel.append(effect.frame)

            def show(self, effect: Shown, now: int) -> None:
                if isinstance(effect, Deliver):
                    line.delivered[name] += effect.frame.payloads

        process = Process()
        return Drive(NewtopProcess(name, {G: view}, NewtopSettings(flow_control=0)), process, process, None)

    def run(self) -> None:
        """Until no frame is under way."""
        for _ in range(10_000):
            if not any(self.channels.values()):
                return
            for name, channel in self.channels.items():
                drive = self.drives[name]
                for _ in range(min(self.batch, len(channel))):
                    drive.receive(channel.popleft(), 0, 0)
                drive.settle(0, 0)
        raise AssertionError("frames never stop")


@pytest.mark.parametrize("batch", [1, 2, 5, 1_000])
def test_frames_may_be_fed_one_by_one_or_in_batches(batch: int) -> None:
    line = Line("abc", batch)
    sent = [b"%d %a" % (number, name) for number in range(20) for name in "abc"]
    for number in range(20):
        for name in "abc":
            line.drives[name].core.send(G, b"%d %a" % (number, name), 0)
            line.drives[name].settle(0, 0)
    line.run()
    assert sorted(line.delivered["a"]) == sorted(sent)
    assert line.delivered["a"] == line.delivered["b"] == line.delivered["c"]
