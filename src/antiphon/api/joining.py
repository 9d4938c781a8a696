"""A process of one group, in one call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from antiphon.api.group import Group
from antiphon.api.member import Member
from antiphon.api.states import Snapshot


@asynccontextmanager
async def join(group: str, /, *, snapshot: Snapshot | None = None, **member: Any) -> AsyncIterator[Group]:
    """Run a process of one group: `async with antiphon.join("orders", bind=…, peers=[…]) as group`.

    `member`: the arguments of `Member`, such as `name` and `service`. At the end it leaves the group, once all have
    what was sent.
    """
    async with Member(**member) as process:
        yield await process.join(group, snapshot=snapshot)
