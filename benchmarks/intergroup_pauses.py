"""How long deliveries pause when a sender group changes.

Every sender sends at a steady rate, also one that was just promoted. A receiver begins to send and so becomes a sender
(PAdd), a sender becomes a receiver (PLeave), a sender crashes, or the sender group splits and merges again. Measured in
virtual time at each process that survives: the longest gap between two deliveries from the event until half a second
after all have installed the view that follows, minus the longest gap in the half second before the event. Printed:
median and longest over all processes and seeds. PAdd and PLeave change views in order with the messages, so deliveries
must not stop for them. Run from the root of the repository:

    python -m benchmarks.intergroup_pauses [--seeds 20] [--loss 0,0.05] [--json FILE]
"""

import argparse
import itertools
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from antiphon.cli.shared.output import progress
from antiphon.protocols.intergroup.settings import InterGroupSettings
from tools.lab.intergroup_network import MS, InterGroupNetwork

SENDERS: Final = 4
RECEIVERS: Final = 4
EVERY_MS: Final = 10
SUSPECT_MS: Final = 500
BEFORE_MS: Final = 500
AFTER_MS: Final = 500
PARTED_MS: Final = 2_000
LIMIT_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Pause:
    """One process in one run."""

    change: str
    loss: float
    seed: int
    process: str
    normal_ms: float
    """The longest gap between deliveries before the event."""
    gap_ms: float
    """The longest gap after it."""

    @property
    def pause_ms(self) -> float:
        """Negative if the longest gap was before the event."""
        return self.gap_ms - self.normal_ms


Act = Callable[[InterGroupNetwork], None]


def _promote(network: InterGroupNetwork) -> None:
    """A receiver that sends becomes a sender."""
    network.load(network.receivers[:1], EVERY_MS)


def _demote(network: InterGroupNetwork) -> None:
    network.unload(network.senders[-1])
    network.demote(network.senders[-1])


def _crash(network: InterGroupNetwork) -> None:
    network.crash(network.senders[-1])


def _split(network: InterGroupNetwork) -> None:
    half = SENDERS // 2
    network.part(
        (*network.senders[:half], *network.receivers[:half]), (*network.senders[half:], *network.receivers[half:])
    )


def _merge(network: InterGroupNetwork) -> None:
    network.part()


CHANGES: Final[dict[str, tuple[Act | None, Act, int]]] = {
    "promotion (PAdd)": (None, _promote, SENDERS + 1),
    "demotion (PLeave)": (None, _demote, SENDERS - 1),
    "repair after a crash": (None, _crash, SENDERS - 1),
    "repair after a split": (None, _split, SENDERS // 2),
    "merge after a split": (_split, _merge, SENDERS),
}
"""By name: what happens before, what is measured, and the number of senders in the view that follows."""


def measure(change: str, loss: float, seed: int) -> list[Pause]:
    """One run: the pauses of all processes that live and deliver all the time."""
    before, act, senders = CHANGES[change]
    settings = InterGroupSettings(suspect_after_ns=SUSPECT_MS * MS, distance=lambda _: 2 * MS)
    network = InterGroupNetwork(SENDERS, RECEIVERS, seed=seed, settings=settings, loss=loss, joining_ms=200)
    network.run(2_000)
    while not network.all_receive():
        network.run(100)
    network.load(network.senders, EVERY_MS)
    network.run(1_000 + 17 * seed)
    if before is not None:
        before(network)
        network.run(PARTED_MS)
    begun = network.now
    act(network)
    while not _all_have(network, senders) and network.now < begun + LIMIT_MS * MS:
        network.run(10)
    network.run(AFTER_MS)
    return [
        Pause(
            change,
            loss,
            seed,
            process,
            _longest_gap(network.delivered[process], begun - BEFORE_MS * MS, begun) / MS,
            _longest_gap(network.delivered[process], begun, network.now) / MS,
        )
        for process in network.live
    ]


def _all_have(network: InterGroupNetwork, senders: int) -> bool:
    return all(len(network.views[process][-1][1].members) == senders for process in network.live)


def _longest_gap(times: Sequence[int], begin: int, end: int) -> int:
    """Between two deliveries, of which the later one is in this time; or from the last one until its end."""
    within = [each for each in times if begin <= each < end]
    earlier = [each for each in times if each < begin][-1:]
    marks = [*earlier, *within, end]
    return max(later - sooner for sooner, later in itertools.pairwise(marks))


def _row(change: str, pauses: Sequence[Pause]) -> str:
    gaps, normal = [each.gap_ms for each in pauses], [each.normal_ms for each in pauses]
    beyond = [each.pause_ms for each in pauses]
    return (
        f"{change:24}{len(pauses):8}{statistics.median(normal):14.1f}{max(normal):10.1f}"
        f"{statistics.median(gaps):16.1f}{max(gaps):10.1f}{statistics.median(beyond):14.1f}{max(beyond):10.1f}"
    )


def main() -> int:
    """Print one table for each loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="runs of each change")
    parser.add_argument("--loss", default="0,0.05", help="shares of frames that are lost")
    parser.add_argument("--json", type=Path, help="write every process of every run there")
    arguments = parser.parse_args()
    losses = [float(each) for each in arguments.loss.split(",")]
    cases = [(change, loss) for loss in losses for change in CHANGES]
    found: dict[tuple[str, float], list[Pause]] = {case: [] for case in cases}
    with progress("runs") as show:
        for number, case in enumerate(cases):
            for seed in range(1, arguments.seeds + 1):
                show(number * arguments.seeds + seed - 1, len(cases) * arguments.seeds)
                found[case] += measure(*case, seed)
    print(f"{SENDERS} senders, {RECEIVERS} receivers, a message of each sender every {EVERY_MS} ms, latency 1 to 3 ms,")
    print(f"keep-alives after 25 to 75 ms, suspicion after {SUSPECT_MS} ms, {arguments.seeds} seeds; times in ms")
    for loss in losses:
        print(f"\nloss {loss:.0%}")
        print(f"{'':32}{'gap before':>14}{'':10}{'gap at change':>16}{'':10}{'pause':>14}")
        heads = "".join(f"{'median':>{width}}{'longest':>10}" for width in (14, 16, 14))
        print(f"{'change':24}{'cases':>8}{heads}")
        for change in CHANGES:
            print(_row(change, found[change, loss]))
    if arguments.json:
        rows = [asdict(each) for case in cases for each in found[case]]
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
