"""`python -m antiphon.node.play SCENARIO PROCESS ROWS HOST`: one member process, as the supervisor starts it."""

import asyncio
import signal
import sys
from pathlib import Path

from antiphon.node.group_player import Worker
from antiphon.node.multicast_player import Participant
from antiphon.scenario.read import parse_scenario
from antiphon.types import ProcessId


async def _play(scenario: Path, process: ProcessId, rows: Path, host: str) -> None:
    parsed = parse_scenario(scenario.read_text(encoding="utf-8"))
    part = Participant if parsed.protocol == "intergroup" else Worker
    await part(parsed, process, rows, host).run()


def main() -> None:
    """Play the part, until the supervisor says stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who interrupts a run interrupts its supervisor
    scenario, process, rows, host = sys.argv[1:]
    asyncio.run(_play(Path(scenario), ProcessId(process), Path(rows), host))


if __name__ == "__main__":
    main()
