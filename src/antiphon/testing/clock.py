"""Virtual time: a clock that stands still while there is something to do, and then jumps to the next timer."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Jump(selectors.DefaultSelector):
    """Never waits: instead of waiting for a timeout, it advances the virtual clock."""

    def __init__(self, let_pass: Callable[[float], None]) -> None:
        super().__init__()
        self._let_pass = let_pass

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(None if timeout is None else 0)
        if not ready and timeout:
            self._let_pass(timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """For `asyncio.Runner(loop_factory=…)`, or the equivalent of your test framework. Its time begins at 0 seconds.

    It does not see work in threads and sockets: virtual time jumps ahead while they are busy.
    """

    def __init__(self) -> None:
        self._now_s = 0.0
        super().__init__(_Jump(self._let_pass))

    def time(self) -> float:
        """In seconds."""
        return self._now_s

    def _let_pass(self, seconds: float) -> None:
        self._now_s += seconds


def run(main: Coroutine[Any, Any, Result], *, limit_s: float = 3600) -> Result:
    """Like `asyncio.run`, in virtual time; raises `TimeoutError` after `limit_s` virtual seconds."""

    async def bounded() -> Result:
        try:
            async with asyncio.timeout(limit_s) as limit:
                return await main
        except TimeoutError:
            if limit.expired():
                raise TimeoutError(f"{limit_s:g} seconds of virtual time have passed, and it is not over") from None
            raise

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(bounded())
