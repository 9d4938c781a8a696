"""Communication of a process with its children: lines of JSON on standard input and output."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any


def tell(line: dict[str, Any]) -> None:
    """Write a line to the parent process."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def orders() -> AsyncIterator[dict[str, Any]]:
    """The lines of a process, until its output ends."""
    reader = asyncio.StreamReader(limit=1 << 24)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield json.loads(line)
