"""Members on sockets that trace themselves: on every transport, in several groups, and when the disk is full."""

import asyncio
import errno
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon import Group, Member, Message, Total, TraceError
from antiphon.trace.journal import JournalFile
from tests.support.loopback import DEADLINE_S, FAST, join_all, members, take_each
from tests.support.traced import collected, judged


async def exchange(trace: Path, **settings: Any) -> None:
    async with asyncio.timeout(DEADLINE_S), members(3, trace=trace, **settings) as found:
        groups = await join_all(found)
        for group in groups:
            for number in range(50):
                await group.send(b"%d" % number)
        heard = await take_each(groups, 150)
        assert heard[0] == heard[1] == heard[2]


@pytest.mark.parametrize(
    "settings",
    [{}, {"transport": "udp"}, {"service": Total(safe=True)}, {"service": Total(sequencer=True)}],
    ids=["tcp", "udp", "safe", "sequenced"],
)
def test_deliveries_of_members_on_sockets_are_judged(tmp_path: Path, settings: dict[str, Any]) -> None:
    asyncio.run(exchange(tmp_path / "run", **settings))
    verdicts = judged(tmp_path / "run")
    for property_id in ("W", "M3", "D1", "O1"):
        assert verdicts[property_id].opportunities, property_id


def test_groups_that_are_read_as_one_are_judged_as_one(tmp_path: Path) -> None:
    """Order over groups is promised to an application that reads all groups in their one order."""

    async def read(member: Member, messages: int) -> None:
        async for _, event in member.events():
            messages -= isinstance(event, Message)
            if not messages:
                return

    async def exchange_in_two(trace: Path) -> None:
        async with asyncio.timeout(DEADLINE_S), members(2, trace=trace) as found:
            readers = [asyncio.create_task(read(member, 80)) for member in found]
            await asyncio.sleep(0)
            groups: list[Group] = [*await join_all(found, "one"), *await join_all(found, "two")]
            for number in range(20):
                for group in groups:
                    await group.send(b"%d" % number)
            await asyncio.gather(*readers)

    asyncio.run(exchange_in_two(tmp_path / "run"))
    verdicts = judged(tmp_path / "run")
    assert verdicts["O6"].opportunities
    rows = collected(tmp_path / "run").to_pylist()
    assert not any("apart" in (row["detail"] or "") for row in rows if row["kind"] == "join")


class Full:
    """A disk on which nothing more can be written after some entries."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, entries: int) -> None:
        append = JournalFile.append

        def refuse(file: JournalFile, packed: bytes) -> None:
            nonlocal entries
            entries -= 1
            if entries < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            append(file, packed)

        monkeypatch.setattr(JournalFile, "append", refuse)


def test_a_full_disk_ends_the_trace_and_not_the_member_and_is_raised_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def alone() -> list[bytes]:
        async with Member(name="p1", trace=tmp_path / "run", **FAST) as member:
            group = await member.join("orders")
            for number in range(50):
                await group.send(b"%d" % number)
            (heard,) = await take_each([group], 50)
            seen.extend(message.payload for message in heard)
        return seen

    seen: list[bytes] = []
    Full(monkeypatch, 3)
    with (
        caplog.at_level(logging.ERROR, "antiphon"),
        pytest.raises(TraceError, match=r"the trace of p1#\d+ is incomplete: No space left on device"),
    ):
        asyncio.run(alone())
    assert seen == [b"%d" % number for number in range(50)]
    (record,) = caplog.records
    assert "ends here: No space left on device" in record.getMessage()
    monkeypatch.undo()
    judged(tmp_path / "run")


def test_an_error_of_the_application_is_not_replaced_by_that_of_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail() -> None:
        async with Member(name="p1", trace=tmp_path / "run", **FAST) as member:
            await member.join("orders")
            raise LookupError

    Full(monkeypatch, 3)
    with pytest.raises(LookupError):
        asyncio.run(fail())


def test_a_member_needs_no_arrow_to_write_its_trace(tmp_path: Path) -> None:
    code = f"""
import asyncio, sys
sys.modules["pyarrow"] = None  # an import of it fails
import antiphon
async def main():
    async with antiphon.join("orders", name="p1", trace={str(tmp_path / "run")!r}) as group:
        await group.send(b"hello")
        await anext(group)
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert judged(tmp_path / "run")["W"].outcome == "pass"
