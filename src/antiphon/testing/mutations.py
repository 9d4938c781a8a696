"""Every number in a frame, and copies of the frame with that number replaced: for tests of hostile or broken peers.

    for mutation in mutations(frame, known=1_000):
        core.receive(mutation.frame, now)

A number is named by its path: `("flow", "complete")`, or `("members", 0, 1, "@epoch")` for the epoch in the identity of
a group. Works for the frames of every family. Flags, payloads and the names of processes are not numbers.
"""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, Final, NamedTuple

from antiphon.core.effects import Frame
from antiphon.types import EPOCH_MAX, GroupId, epoch_of, split_group_id

Path = tuple[str | int, ...]
"""From a frame to one of its numbers: names of fields, and places in tuples."""

EXTREMES: Final = (-1, 0, 1 << 31, 1 << 32, (1 << 62) - 3, 1 << 62)
"""Replacement values, in addition to the largest known number and the two that follow it."""
EPOCHS: Final = (0, 1 << 16, EPOCH_MAX - 1, EPOCH_MAX)
"""The same for the epoch of a group, which has fewer bits."""

_EPOCH: Final = "@epoch"
_VIEW: Final = re.compile(r"(\d+)\.(\d+)\.([0-9a-f]{16})")
_VIEW_PARTS: Final = {"view epoch": (0, 4), "view count": (1, 6)}
"""By name, the place of a number in the identity of a view, and its least number of digits."""
_EPOCH_BITS: Final = EPOCH_MAX.bit_length()
_TOKEN_BITS: Final = 64 - _EPOCH_BITS


class Mutation(NamedTuple):
    """A frame with one number replaced."""

    path: Path
    value: int
    frame: Frame

    @property
    def name(self) -> str:
        """For a report: `vote epoch = 4611686018427387904`."""
        return f"{self.frame.kind} {path_name(self.path)} = {self.value}"


def path_name(path: Path) -> str:
    """`flow.complete`; places in tuples are left out."""
    return ".".join(str(step) for step in path if isinstance(step, str))


def number_paths(frame: Any) -> list[Path]:
    """The paths of all numbers in a frame, those in copies of other frames included."""
    return [*_paths(frame)]


def with_number(frame: Any, path: Path, value: int) -> Any:
    """A copy of the frame with that number replaced. It may be one that no encoder accepts."""
    step, *rest = path
    if not rest and isinstance(frame, str):
        return _with_text_number(frame, step, value)
    if isinstance(step, int):
        changed = [*frame]
        changed[step] = with_number(frame[step], tuple(rest), value) if rest else value
        return tuple(changed)
    inner = getattr(frame, step)
    new = {step: with_number(inner, tuple(rest), value) if rest else value}
    is_named_tuple = isinstance(frame, tuple)
    return frame._replace(**new) if is_named_tuple else replace(frame, **new)


def mutations(frame: Frame, known: int) -> Iterator[Mutation]:
    """The frame with each of its numbers set to each extreme. `known`: the largest number that its receiver knows."""
    for path in number_paths(frame):
        for value in sorted(_values(frame, path, known)):
            yield Mutation(path, value, with_number(frame, path, value))


def _values(frame: Frame, path: Path, known: int) -> set[int]:
    if path[-1] == _EPOCH:
        return {*EPOCHS, epoch_of(_text_at(frame, path[:-1])) + 1}
    values = {*EXTREMES, known, known + 1, known + 2}
    return {value for value in values if value >= 0} if path[-1] in _VIEW_PARTS else values


def _paths(value: Any) -> Iterator[Path]:
    if isinstance(value, (bool, Enum)):
        return
    if isinstance(value, int):
        yield ()
    elif isinstance(value, str):
        yield from _text_paths(value)
    elif is_dataclass(value):
        for field in fields(value):
            yield from ((field.name, *rest) for rest in _paths(getattr(value, field.name)))
    elif isinstance(value, tuple):
        steps: tuple[str | int, ...] = getattr(value, "_fields", None) or tuple(range(len(value)))
        for step, each in zip(steps, value, strict=True):
            yield from ((step, *rest) for rest in _paths(each))


def _text_paths(text: str) -> Iterator[Path]:
    if "@" in text:
        yield (_EPOCH,)
    elif _VIEW.fullmatch(text):
        yield from ((part,) for part in _VIEW_PARTS)


def _with_text_number(text: str, part: str | int, value: int) -> str:
    if part == _EPOCH:
        name, formation = split_group_id(GroupId(text))
        token = formation & ((1 << _TOKEN_BITS) - 1)
        return f"{name}@{value << _TOKEN_BITS | token}"
    found = _VIEW.fullmatch(text)
    assert found is not None
    numbers = [*found.groups()]
    place, digits = _VIEW_PARTS[str(part)]
    numbers[place] = f"{value:0{digits}d}"
    return ".".join(numbers)


def _text_at(frame: Any, path: Path) -> GroupId:
    for step in path:
        frame = frame[step] if isinstance(step, int) else getattr(frame, step)
    return GroupId(frame)
