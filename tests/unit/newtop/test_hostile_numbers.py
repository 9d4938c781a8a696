"""Every number of every frame at its extremes, from a member and from a stranger (docs/design/bounds.md).

After each lie the honest members deliver again, perhaps without the liar, and a process joins. `NUMBERS` has an entry
for every number of every kind of frame: a new one without an entry fails.
"""

import struct
from contextlib import suppress
from typing import Any, Final

import pytest

from antiphon.core.effects import Frame
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import (
    BaseFrame,
    InstallFrame,
    ProbeFrame,
    ProposeFrame,
    VoteFrame,
)
from antiphon.protocols.newtop.specimens import specimens
from antiphon.testing.mutations import Mutation, mutations, number_paths, path_name
from antiphon.types import Company, ProcessId, View, epoch_of, first_view, formed_group
from antiphon.wire.codec import decode, encode
from tests.support.cluster import GROUP, OMEGA_NS
from tests.support.forming import Forming

A, B, LIAR, STRANGER, NEWCOMER = map(ProcessId, ("a", "b", "c", "x", "n"))

_NUMBERED: Final = {"block", "previous_block", "complete_block", "label", "sequence"}
_FLOW: Final = {"flow.number", "flow.complete", "flow.stable", "flow.super_stable"}
_COPIED: Final = {"block", "previous_block", "complete_block", "label", "sequence"}
_FORMED: Final = {"group.@epoch"}
NUMBERS: Final[dict[str, set[str]]] = {
    "null": _NUMBERED,
    "data": _NUMBERED,
    "data with flow and place": _NUMBERED | _FLOW,
    "piece of a message": _NUMBERED,
    "piece of a state": _NUMBERED | {"state"},
    "data with a map stamp": _NUMBERED | {"stamp.entries"},
    "data with a relative stamp": _NUMBERED | {"stamp.delivered", "stamp.blocks"},
    "remove": _NUMBERED | {"notice.failed"},
    "ordered": _NUMBERED | {"ordering.place", "ordering.stable"},
    "alive": {"block", "complete_block", "sequence"},
    "alive with flow and place": {"block", "complete_block", "sequence"} | _FLOW,
    "suspect": {"block", "last_block", "sequence"},
    "refute": {"block", "last_block", "sequence"} | {f"messages.{each}" for each in _COPIED},
    "confirmed": {"block", "failed", "sequence"},
    "leaving": {"block", "sequence"},
    "want": {"block", "wanted", "sequence"},
    "status": {"last", "settled"},
    "ack": {"upto"},
    "request": {"missing"},
    "repair": {f"repaired.{each}" for each in _COPIED},
    "submit": {"block", "place", "stable", "label"},
    "need": {"number"},
    "a request": _NUMBERED | {"ask.number"},
    "an answer in order": _NUMBERED | {"ask.number"},
    "query": {"request"},
    "answer": {"request"},
    "answered": {"request"},
    "propose": _FORMED,
    "vote": _FORMED | {"number", "epoch"},
    "base": _FORMED | {"base"},
    "ready": _FORMED | {"view.view epoch", "view.view count", "last", "history"},
    "install": _FORMED
    | {"base", "companies.size", "companies.last", "companies.history"}
    | {"companies.view.view epoch", "companies.view.view count"},
    "abort": _FORMED,
    "probe": set(),
    "found": _FORMED,
    "refuse": set(),
    "inquire": {"round"},
    "presence": {"round"},
}
"""By specimen, the numbers that docs/design/bounds.md has a row for."""

VIEW = first_view(GROUP, frozenset({A, B, LIAR}))


@pytest.mark.parametrize("name", specimens(VIEW, LIAR, known=10))
def test_every_number_of_every_frame_has_a_bound(name: str) -> None:
    assert {path_name(path) for path in number_paths(specimens(VIEW, LIAR, known=10)[name])} == NUMBERS[name]


SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "streams": {},
    "safe": {"service": "total-safe", "flow_control": 3, "window": 16},
    "datagrams": {"datagrams": True, "flow_control": 3, "window": 16},
    "sequencer": {"asymmetric": frozenset({GROUP})},
}
COMMON: Final = {"silence_timeout_ns": 0, "merge_every_ns": OMEGA_NS, "idle_probe_ns": OMEGA_NS}


class Besieged(Forming):
    """A group of a, b and c, and a stranger x. Forged frames of c or x arrive at a and b beside the genuine ones.

    A refused frame ends the connection, as in a driver: frames in transit on it are lost, in both directions.
    """

    def __init__(self, **settings: Any) -> None:
        self.streams = not settings.get("datagrams", False)
        self.refused: list[str] = []
        super().__init__("a", "b", "c", strangers=["x", "n"], **{**COMMON, **settings})
        for name in "abc":
            self.send(name, b"before " + name.encode())
        self.finish(2)

    def move(self, sender: str, receiver: str, frames: int = 1) -> None:
        for _ in range(min(frames, len(self.channels[sender, receiver]))):
            frame = self.channels[sender, receiver].popleft()
            self.arrive(frame, sender, receiver)
            self.settle(receiver)

    def arrive(self, frame: Frame, sender: str, receiver: str) -> None:
        """A frame arrives as bytes; if it is refused on a stream, the connection ends."""
        try:
            self.core(receiver).receive(decode(encode(frame)), self.now)
        except ProtocolViolation as violation:
            self.refused.append(str(violation))
            if self.streams:
                self._end(sender, receiver)

    def _end(self, one: str, other: str) -> None:
        for here, there in ((one, other), (other, one)):
            self.channels[here, there].clear()
            self.core(here).severed(ProcessId(there), self.now)

    @property
    def known(self) -> int:
        return max(self.core("a").counter.value, self.core("b").counter.value)

    def inject(self, frame: Frame) -> None:
        for receiver in "ab":
            with suppress(struct.error, OverflowError):  # no frame can carry it
                self.arrive(frame, frame.sender, receiver)
            self.settle(receiver)

    def recover(self, rounds: int = 60) -> None:
        """Let time pass until a and b have delivered a message of each other, and a process has joined."""
        for number in range(rounds):
            for name in "ab":
                self.send(name, f"after {name} {number}".encode())
            if number == rounds // 4:
                self.join("n", "a")
            self.finish(1, pause_ns=OMEGA_NS // 4)
            if self.is_well:
                return
        raise AssertionError(f"views {[self.last_view(name) for name in 'ab']}, refused {self.refused[-5:]}")

    @property
    def is_well(self) -> bool:
        views = [self.last_view(name).split() for name in "ab"]
        heard = [{each.split()[1] for each in self.delivered[name] if each.startswith(b"after")} for name in "abn"]
        united = all({"a", "b", "n"} <= {*view} for view in views)
        return united and {b"a", b"b"} <= heard[0] & heard[1]


def lies(sender: ProcessId, kind: str, cluster: Besieged) -> list[Mutation]:
    view = cluster.views["a"][-1]
    frame = specimens(view, sender, cluster.known)[kind]
    return [*mutations(frame, cluster.known)]


CASES: Final = [
    *((kind, settings, LIAR) for kind in NUMBERS for settings in SETTINGS),
    *((kind, settings, STRANGER) for kind in NUMBERS for settings in ("streams", "datagrams")),
]


@pytest.mark.parametrize(("kind", "settings", "sender"), CASES)
def test_honest_members_deliver_again_after_every_lie(kind: str, settings: str, sender: ProcessId) -> None:
    """Far and near lies each in one run: the first that is refused does not save the members from the others."""
    values: dict[bool, list[Mutation]] = {}
    for lie in lies(sender, kind, Besieged(**SETTINGS[settings])):
        values.setdefault(lie.value >= 1 << 31, []).append(lie)
    for told in values.values():
        cluster = Besieged(**SETTINGS[settings])
        for lie in told:
            cluster.inject(lie.frame)
        cluster.recover()


# Lies in the steps of a formation

NUMBERS_OF_FORMATIONS: Final = (0, 1 << 31, 1 << 32, 1 << 47, 1 << 48, (1 << 62) - 3, 1 << 62)


def view_of(cluster: Besieged) -> View:
    return cluster.views["a"][-1]


def proposed(cluster: Besieged) -> ProposeFrame:
    """The proposal of a when x asks to join."""
    cluster.arrive(ProbeFrame(GROUP, STRANGER, True), STRANGER, A)
    cluster.settle(A)
    return next(frame for frame in reversed(cluster.control[A]) if isinstance(frame, ProposeFrame))


@pytest.mark.parametrize("number", NUMBERS_OF_FORMATIONS)
@pytest.mark.parametrize("settings", ["streams", "datagrams", "sequencer"])
def test_a_vote_with_any_number_does_no_lasting_damage(number: int, settings: str) -> None:
    cluster = Besieged(**SETTINGS[settings])
    cluster.arrive(VoteFrame(proposed(cluster).group, STRANGER, number, 0), STRANGER, A)
    cluster.crash("x")
    cluster.recover()


@pytest.mark.parametrize("epoch", [0, 1 << 14, 1 << 20, 1 << 24, 1 << 32, (1 << 62) - 3, 1 << 62])
@pytest.mark.parametrize("number", [None, 0])
def test_a_vote_with_any_epoch_prevents_no_later_join(number: int | None, epoch: int) -> None:
    cluster = Besieged()
    cluster.arrive(VoteFrame(proposed(cluster).group, STRANGER, number, epoch), STRANGER, A)
    cluster.crash("x")
    cluster.recover()


@pytest.mark.parametrize("number", NUMBERS_OF_FORMATIONS)
@pytest.mark.parametrize("initiator", [LIAR, STRANGER])
@pytest.mark.parametrize("settings", ["streams", "datagrams", "sequencer"])
def test_a_base_with_any_number_does_no_lasting_damage(number: int, initiator: ProcessId, settings: str) -> None:
    cluster = Besieged(**SETTINGS[settings])
    group = propose(cluster, initiator)
    cluster.crash(initiator)
    cluster.inject(BaseFrame(group, initiator, number))
    cluster.recover()


@pytest.mark.parametrize("number", NUMBERS_OF_FORMATIONS)
@pytest.mark.parametrize("initiator", [LIAR, STRANGER])
def test_an_installation_with_any_number_does_no_lasting_damage(number: int, initiator: ProcessId) -> None:
    cluster = Besieged()
    group, view = propose(cluster, initiator), view_of(cluster)
    cluster.crash(initiator)
    companies = [Company(view.members, view.id, len(view.members), True)]
    companies += [Company((STRANGER,), None, 0, False)] if initiator == STRANGER else []
    cluster.inject(InstallFrame(group, initiator, number, tuple(companies)))
    cluster.recover()


def propose(cluster: Besieged, initiator: ProcessId) -> Any:
    """A proposal as a correct initiator makes it; a and b vote for it."""
    view = view_of(cluster)
    group = formed_group(GROUP, epoch_of(view.group) + 1, initiator, 1)
    members = {member: view.group if member in view.ranks else None for member in sorted({*view.members, initiator})}
    cluster.inject(ProposeFrame(group, initiator, tuple(members.items())))
    return group
