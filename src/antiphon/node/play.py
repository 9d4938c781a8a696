"""`python -m antiphon.node.play SCENARIO PROCESS JOURNAL HOST`: one member process, as the supervisor starts it."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Final

from antiphon.node.group_player import GroupPlayer
from antiphon.node.multicast_player import MulticastPlayer
from antiphon.node.player import Player
from antiphon.node.stream_player import StreamPlayer
from antiphon.protocols.contract import Player as Kind
from antiphon.protocols.registry import family_of
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import parse_scenario
from antiphon.types import ProcessId

_PLAYERS: Final[dict[Kind, type[GroupPlayer | MulticastPlayer | StreamPlayer]]] = {
    "groups": GroupPlayer,
    "multicast": MulticastPlayer,
    "streams": StreamPlayer,
}
"""The players, by the name that a family declares."""


def player(scenario: Scenario, process: ProcessId, journal: Path, host: str) -> Player:
    """The process that plays this scenario."""
    sockets = family_of(scenario).sockets
    assert sockets is not None, f"{scenario.protocol} runs in the simulator only"
    return _PLAYERS[sockets.player](scenario, process, journal, host)


async def _play(scenario: Path, process: ProcessId, journal: Path, host: str) -> None:
    await player(parse_scenario(scenario.read_text(encoding="utf-8")), process, journal, host).run()


def main() -> None:
    """Play until the order to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor handles interrupts
    scenario, process, journal, host = sys.argv[1:]
    asyncio.run(_play(Path(scenario), ProcessId(process), Path(journal), host))


if __name__ == "__main__":
    main()
