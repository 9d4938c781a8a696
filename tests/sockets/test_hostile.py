"""A short version of `benchmarks/hostile.py`: attacks of strangers on two members in this process."""

import asyncio
import random

import pytest

from antiphon import Event, Group, Member
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.types import GroupId, View
from tests.support.loopback import deliver_at_all, join_all, members, on_loopback, read_on
from tools.lab.attacks import ATTACKS, STRANGER, Targets, fields, number_attack
from tools.lab.strangers import address_of

NUMBERS_EACH = 8
"""Kinds of frames and numbers in one test; the benchmark tries all."""


def targets_of(found: list[Member]) -> Targets:
    core = found[0]._process.core
    assert isinstance(core, NewtopProcess)
    group, formations = core.current(GroupId("orders")), core._formations
    assert group is not None
    assert formations is not None
    settings = formations.steps._terms.of(GroupId("orders"))
    addresses = tuple(address_of(member.address) for member in found)
    return Targets(addresses, group.view, core.counter.value, settings, random.Random(1), scale=0.05)


def all_fields() -> list[tuple[str, int]]:
    view = View(GroupId("orders@1099511627776"), "0001.000000.0123456789abcdef", ("p1", "p2"))  # type: ignore[arg-type]
    return fields(view, STRANGER)


async def survives(found: list[Member], groups: list[Group], attacks: list[str], transport: str) -> None:
    """After each attack a message of each member arrives at all members."""
    seen: list[list[Event]] = [[] for _ in groups]
    readers = [asyncio.create_task(read_on(group, events)) for group, events in zip(groups, seen, strict=True)]
    for number, name in enumerate(attacks):
        await ATTACKS[transport][name](targets_of(found))
        await deliver_at_all(groups, seen, f"after {name} {number}".encode())
    dice = random.Random(f"{transport}")
    for kind, place in dice.sample(all_fields(), NUMBERS_EACH):
        await number_attack(transport, kind, place)(targets_of(found))
        await deliver_at_all(groups, seen, f"after {kind} {place}".encode())
    for reader in readers:
        reader.cancel()
    await asyncio.wait(readers)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_members_deliver_after_every_attack(transport: str) -> None:
    @on_loopback
    async def scenario() -> None:
        async with members(2, transport=transport) as found:
            groups = await join_all(found)
            await survives(found, groups, [*ATTACKS[transport]], transport)

    scenario()
