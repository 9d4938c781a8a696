"""An event loop that does not run is noticed."""

import asyncio

from antiphon.api.loop_watch import LoopWatch

MS = 1_000_000


def test_a_loop_starves_only_while_it_does_not_run() -> None:
    async def scenario() -> None:
        now = 0
        watch = LoopWatch(lambda: now)
        seen = [watch.starves]
        for passed_ms in (9, 2):
            now += passed_ms * MS
            seen.append(watch.starves)
        await asyncio.sleep(0)
        seen.append(watch.starves)
        await asyncio.sleep(0)
        now += 1_000 * MS  # it has run meanwhile
        seen.append(watch.starves)
        assert seen == [False, False, True, False, False]

    asyncio.run(scenario())
