"""The frames of a hostile peer: every kind is there, and every number of a frame is found and can be replaced."""

import pytest

from antiphon.core.effects import Frame
from antiphon.protocols.newtop.frames import BlockFrame, Flow, VoteFrame
from antiphon.protocols.newtop.specimens import specimens
from antiphon.protocols.newtop.wire.declared import WIRE
from antiphon.testing.mutations import mutations, number_paths, path_name, with_number
from antiphon.types import GroupId, ProcessId, epoch_of, first_view, formed_group
from antiphon.wire.codec import decode, encode

P, Q, R = map(ProcessId, "pqr")
VIEW = first_view(GroupId("g"), frozenset({P, Q, R}))
SPECIMENS = specimens(VIEW, P, known=100)


def test_there_is_a_specimen_of_every_kind_of_frame() -> None:
    assert {type(frame) for frame in SPECIMENS.values()} == WIRE.writers.keys()


@pytest.mark.parametrize("name", SPECIMENS)
def test_a_correct_peer_could_have_sent_a_specimen(name: str) -> None:
    assert decode(encode(SPECIMENS[name])) == SPECIMENS[name]


def test_all_numbers_of_a_frame_are_found() -> None:
    frame = BlockFrame(VIEW.group, P, 9, 7, 5, (b"x",), 3, Flow(6, 5, 4, 3), more=True)
    found = {path_name(path) for path in number_paths(frame)}
    flow = {"flow.number", "flow.complete", "flow.stable", "flow.super_stable"}
    assert found == {"block", "previous_block", "complete_block", "label", "sequence", *flow}


def test_the_epoch_in_the_identity_of_a_group_is_a_number() -> None:
    vote = VoteFrame(formed_group("g", 3, P, 1), P, 11, 2)
    assert [path_name(path) for path in number_paths(vote)] == ["group.@epoch", "number", "epoch"]
    later = with_number(vote, ("group", "@epoch"), 7)
    assert epoch_of(later.group) == 7
    assert with_number(later, ("group", "@epoch"), 3) == vote


@pytest.mark.parametrize("name", SPECIMENS)
def test_a_mutation_differs_in_one_number(name: str) -> None:
    frame = SPECIMENS[name]
    for path, _, mutated in mutations(frame, known=100):
        back: Frame = with_number(mutated, path, _number_at(frame, path))
        assert back == frame


def _number_at(frame: Frame, path: tuple[str | int, ...]) -> int:
    value = frame
    for step in path:
        if step == "@epoch":
            return epoch_of(GroupId(str(value)))
        if isinstance(step, str) and step.startswith("view "):
            return int(str(value).split(".")[("view epoch", "view count").index(step)])
        value = value[step] if isinstance(step, int) else getattr(value, step)  # type: ignore[index]
    assert isinstance(value, int)
    return value
