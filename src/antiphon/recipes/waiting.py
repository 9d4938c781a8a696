"""Tasks that wait until a recipe has reached a point, and end when the process has left the group."""

import asyncio
from collections.abc import Callable

from antiphon.api.group import Group
from antiphon.errors import NotAMember


class Waiting:
    """Wakes all waiting tasks after each step of a recipe. Invariant: the group knows it only while a task waits."""

    def __init__(self, group: Group | None = None) -> None:
        """`group`: the one that the tasks must stay in. None: the recipe calls `end`."""
        self._group = group
        self._tasks: list[asyncio.Future[None]] = []
        self._error: BaseException | None = None

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a step after which this holds; `NotAMember` or the error of `end` if it cannot come any more."""
        if holds():
            return
        forget = None if self._group is None else self._group.on_leaving(self.step)
        try:
            while not holds():
                self.require()
                await self._next_step()
        finally:
            if forget is not None:
                forget()

    def step(self) -> None:
        """Something has happened."""
        tasks, self._tasks = self._tasks, []
        for each in tasks:
            if not each.done():
                each.set_result(None)

    def end(self, error: BaseException) -> None:
        """Nothing more happens: every task that waits, now or later, gets the first error."""
        self._error = self._error or error
        self.step()

    def require(self) -> None:
        """Raise the error that a task would get now."""
        if self._error is not None:
            raise self._error
        if self._group is not None and self._group.leaving:
            raise NotAMember(f"this process has left {self._group.name}")

    async def _next_step(self) -> None:
        step = asyncio.get_running_loop().create_future()
        self._tasks.append(step)
        try:
            await step
        finally:
            if step in self._tasks:
                self._tasks.remove(step)
