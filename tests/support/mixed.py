"""Members in virtual time, each with settings of its own."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from antiphon.api.member import Member
from antiphon.api.settings import settings
from antiphon.testing.cluster import _Member
from antiphon.testing.network import Network
from antiphon.types import ProcessId, split_process_id


@asynccontextmanager
async def mixed(*chosen: tuple[str, Mapping[str, Any]], started: int | None = None) -> AsyncIterator[list[Member]]:
    """A member for each identity and its settings; all are connected, and none is in a group.

    `started`: only the first ones run; a test enters the others when it needs them.
    """
    network = Network(7, (0.000_5, 0.005))
    names = {split_process_id(ProcessId(me))[0] for me, _ in chosen}
    found: list[Member] = []
    for me, own in chosen:
        others = sorted(names - {split_process_id(ProcessId(me))[0]})
        found.append(_Member(ProcessId(me), settings("lan", dict(own)), network, None, others=others))
    try:
        for member in found[:started]:
            await member.__aenter__()
        yield found
    finally:
        for member in found[:started]:
            await member.__aexit__()
