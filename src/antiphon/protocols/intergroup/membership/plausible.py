"""Which frames of another process are plausible in themselves, before anything that we know is compared with them.

A frame that is not plausible is ignored, as if it were lost. So a member that sends only such frames is excluded.
What a frame says about our own epoch is compared with what we know where it is used: `repair.py`, `receivers.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from antiphon.protocols.intergroup.frames import InterGroupFrame, JoinInfoFrame, SourceAcceptFrame
from antiphon.protocols.intergroup.membership.claims import NO_END, Claims
from antiphon.protocols.intergroup.membership.epoch import PREDECESSORS_MAX
from antiphon.protocols.intergroup.membership.frames import (
    ChangeFrame,
    CutFrame,
    EpochEnd,
    Numbers,
    ProposalFrame,
    ReadyFrame,
    RecoveryInfoFrame,
    SponsorRequestFrame,
)
from antiphon.protocols.intergroup.membership.view_ids import is_led_by

PROCESSES_MAX: Final = 1_024
"""No frame names more processes."""
COUNT_MAX: Final = 1 << 56
"""No process sends so many messages or proposals: two thousand years at a million a second."""
ROUNDS: Final = 2
"""The rounds of a repair: with the claims of receivers, and without them (J5)."""


def is_plausible(frame: InterGroupFrame, latest: int) -> bool:
    """True if the fields of the frame agree with each other; `latest`: no time is beyond it."""
    check = _CHECKS.get(type(frame))
    return check is None or check(frame, latest)


def _rise(names: Sequence[str]) -> bool:
    """True if the names are sorted, none is there twice, and there are not too many."""
    return len(names) <= PROCESSES_MAX and all(before < after for before, after in pairwise(names))


def _counts(*numbers: int) -> bool:
    return all(0 <= number <= COUNT_MAX for number in numbers)


def _are_numbers(numbers: Numbers) -> bool:
    return _rise([process for process, _ in numbers]) and _counts(*(number for _, number in numbers))


def _are_claims(claims: Claims, latest: int) -> bool:
    return _rise([process for process, _ in claims]) and all(
        _counts(claim.stint, claim.seq)
        and claim.stint <= claim.seq + 1
        and (claim.horizon <= latest or claim.horizon == NO_END)
        for _, claim in claims
    )


def _proposal(frame: ProposalFrame, _latest: int) -> bool:
    """A process proposes itself, and takes for failed only processes that it names."""
    processes, failed = {*frame.processes}, {*frame.failed}
    return (
        _rise(frame.processes)
        and _rise(frame.failed)
        and frame.sender in processes - failed
        and failed <= processes
        and _counts(frame.number, frame.run)
    )


def _recovery_info(frame: RecoveryInfoFrame, latest: int) -> bool:
    return (
        0 <= frame.round < ROUNDS
        and _counts(frame.last, frame.stint)
        and frame.stint <= frame.last + 1
        and frame.receiver_gate <= latest
        and _are_claims(frame.claims, latest)
        and _are_claims(frame.receiver_claims, latest)
    )


def _ready(frame: ReadyFrame, _latest: int) -> bool:
    """Its sender goes on after its own last message."""
    return (
        0 <= frame.round < ROUNDS
        and _are_numbers(frame.final)
        and _are_numbers(frame.stints)
        and dict(frame.final).keys() == dict(frame.stints).keys()
        and dict(frame.final).get(frame.sender) == frame.first - 1
    )


def _change(frame: ChangeFrame, latest: int) -> bool:
    """The first member leads; every member goes on after its last message in the epoch that it comes from."""
    members, first = frame.members, dict(frame.first)
    finals = {end.epoch: dict(end.final) for end in frame.ends}
    return (
        len(members) > 0
        and _rise(members)
        and _are_numbers(frame.first)
        and members == tuple(first)
        and 0 <= frame.round < ROUNDS
        and is_led_by(frame.epoch, frame.start, members[0])
        and _rise([end.epoch for end in frame.ends])
        and finals.keys() == {origin for _, origin in frame.origins}
        and all(_is_end(end, latest) for end in frame.ends)
        and all(finals[origin].get(process) == first[process] - 1 for process, origin in frame.origins)
    )


def _is_end(end: EpochEnd, latest: int) -> bool:
    return (
        end.gate <= latest
        and _are_numbers(end.final)
        and _are_numbers(end.stints)
        and dict(end.final).keys() == dict(end.stints).keys()
    )


def _cut(frame: CutFrame, latest: int) -> bool:
    return _are_claims(frame.claims, latest)


def _join_info(frame: JoinInfoFrame, _latest: int) -> bool:
    """Its sender is a member, and nobody has left that is still there."""
    first, stints = dict(frame.first), dict(frame.stints)
    left = [process for process, _, _ in frame.left]
    return (
        frame.entered <= frame.start
        and _are_numbers(frame.first)
        and _are_numbers(frame.stints)
        and frame.sender in first
        and first.keys() == stints.keys()
        and all(1 <= stints[process] <= number for process, number in first.items())
        and _rise(left)
        and first.keys().isdisjoint(left)
        and all(_counts(stint, seq) and stint <= seq for _, stint, seq in frame.left)
        and len(frame.predecessors) <= PREDECESSORS_MAX
        and frame.epoch not in frame.predecessors
    )


def _source_accept(frame: SourceAcceptFrame, _latest: int) -> bool:
    return len(frame.members) <= PROCESSES_MAX and 1 <= frame.first <= COUNT_MAX


def _sponsor_request(frame: SponsorRequestFrame, _latest: int) -> bool:
    return 1 <= frame.first <= COUNT_MAX


_CHECKS: Final[Mapping[type, Callable[[Any, int], bool]]] = {
    ProposalFrame: _proposal,
    RecoveryInfoFrame: _recovery_info,
    ReadyFrame: _ready,
    ChangeFrame: _change,
    CutFrame: _cut,
    JoinInfoFrame: _join_info,
    SourceAcceptFrame: _source_accept,
    SponsorRequestFrame: _sponsor_request,
}
