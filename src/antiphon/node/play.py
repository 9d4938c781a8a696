"""`python -m antiphon.node.play SCENARIO PROCESS ROWS HOST`: one member process, as the supervisor starts it."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Final

from antiphon.node.group_player import Worker
from antiphon.node.multicast_player import Participant
from antiphon.protocols.contract import Player
from antiphon.protocols.registry import family_of
from antiphon.scenario.read import parse_scenario
from antiphon.types import ProcessId

_PLAYERS: Final[dict[Player, type[Participant | Worker]]] = {"groups": Worker, "multicast": Participant}
"""By what a family declares."""


async def _play(scenario: Path, process: ProcessId, rows: Path, host: str) -> None:
    parsed = parse_scenario(scenario.read_text(encoding="utf-8"))
    sockets = family_of(parsed).sockets
    assert sockets is not None, f"{parsed.protocol} runs in the simulator only"
    await _PLAYERS[sockets.player](parsed, process, rows, host).run()


def main() -> None:
    """Play the part, until the supervisor says stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who interrupts a run interrupts its supervisor
    scenario, process, rows, host = sys.argv[1:]
    asyncio.run(_play(Path(scenario), ProcessId(process), Path(rows), host))


if __name__ == "__main__":
    main()
