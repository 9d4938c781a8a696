"""Overlapping groups: the figures of Macedo94, and larger shapes like them.

A shape draws groups of positions 0, 1, 2, …. The process at each position is drawn too, because equal numbers are
ordered by name.
"""

import random
from collections.abc import Callable, Mapping
from typing import Final

Groups = tuple[tuple[int, ...], ...]
Shape = Callable[[random.Random], Groups]


def one(chance: random.Random) -> Groups:
    """A single group of 1 to 7."""
    return (tuple(range(chance.randint(1, 7))),)


def pair(_: random.Random) -> Groups:
    """Two groups that share two processes (Fig. 4.1)."""
    return (0, 1, 2, 3), (2, 3, 4, 5)


def fork(_: random.Random) -> Groups:
    """Two groups that share all but one process each (Fig. 4.2a)."""
    return (0, 1, 2), (0, 1, 3)


def triangle(_: random.Random) -> Groups:
    """Three groups; each two of them share one process (Fig. 4.2b)."""
    return (0, 1), (0, 2), (1, 2)


def ring(_: random.Random) -> Groups:
    """Four groups in a ring (Fig. 5.1)."""
    return (0, 1, 2, 3), (2, 3, 4, 5), (4, 5, 6, 7), (0, 1, 6, 7)


def chain(chance: random.Random) -> Groups:
    """Three to five groups, each sharing one process with the next."""
    groups: list[tuple[int, ...]] = []
    first = 0
    for _ in range(chance.randint(3, 5)):
        last = first + chance.randint(1, 2)
        groups.append(tuple(range(first, last + 1)))
        first = last
    return tuple(groups)


def star(chance: random.Random) -> Groups:
    """One process in ten groups of two or three."""
    groups: list[tuple[int, ...]] = []
    first = 1
    for _ in range(10):
        others = chance.randint(1, 2)
        groups.append((0, *range(first, first + others)))
        first += others
    return tuple(groups)


def twins(chance: random.Random) -> Groups:
    """Two groups with the same members."""
    members = tuple(range(chance.randint(2, 5)))
    return members, members


def scattered(chance: random.Random) -> Groups:
    """Two to five random groups of 1 to 5 out of 3 to 8 processes."""
    processes = range(chance.randint(3, 8))
    sizes = [min(len(processes), chance.randint(1, 5)) for _ in range(chance.randint(2, 5))]
    return tuple(tuple(chance.sample(processes, size)) for size in sizes)


SHAPES: Final[Mapping[str, Shape]] = {
    "one": one,
    "pair": pair,
    "fork": fork,
    "triangle": triangle,
    "ring": ring,
    "chain": chain,
    "star": star,
    "twins": twins,
    "random": scattered,
}


def members_by_group(chance: random.Random, shape: str) -> dict[str, tuple[str, ...]]:
    """The groups g1, g2, … of a shape, with processes p1, p2, … at random positions."""
    return placed(chance, SHAPES[shape](chance))


def placed(chance: random.Random, groups: Groups) -> dict[str, tuple[str, ...]]:
    """These groups, by name, with processes p1, p2, … at random positions."""
    positions = sorted({position for group in groups for position in group})
    names = [f"p{number}" for number in range(1, len(positions) + 1)]
    chance.shuffle(names)
    name_at = dict(zip(positions, names, strict=True))
    return {f"g{number}": tuple(name_at[at] for at in group) for number, group in enumerate(groups, start=1)}
