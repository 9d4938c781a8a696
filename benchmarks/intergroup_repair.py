"""How long the repair of a sender group takes, and how many frames it needs.

One sender crashes under load. Measured in virtual time: from the crash, and from the first proposal of a survivor,
until the last surviving sender has installed the next view, and until each of them has delivered a message in it.
Counted from the first proposal until half a second after the last installation: membership frames that senders
transmit, and the frames of receivers that arrive at one sender. Receivers must not matter. Run from the root of the
repository:

    python -m benchmarks.intergroup_repair [--senders 2,4,8,16,32] [--receivers 10,100,1000] [--seeds 5] [--json FILE]
"""

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from antiphon.cli.shared.output import progress
from antiphon.protocols.intergroup.settings import InterGroupSettings
from tools.lab.intergroup_network import MS, InterGroupNetwork

SUSPECT_MS: Final = 500
EVERY_MS: Final = 50
"""Each sender sends a message in this interval."""
AFTER_MS: Final = 500
"""Frames are counted until this time after the last installation."""
LIMIT_MS: Final = 10_000
MEMBERSHIP: Final = ("proposal", "recovery-info", "ready", "change")
OF_RECEIVERS: Final = ("cut", "change-request", "report", "request", "repair")
SENDERS: Final = 4
"""In the table by receivers."""
RECEIVERS: Final = 10
"""In the table by senders."""


@dataclass(frozen=True, slots=True)
class Repaired:
    """One run."""

    senders: int
    receivers: int
    seed: int
    from_crash_ms: float
    from_proposal_ms: float
    to_delivery_ms: float
    """From the crash until every surviving sender has delivered in its next view."""
    followed_ms: float
    """From the crash until every receiver has installed the view."""
    membership: int
    cuts: int
    """Cut records that receivers transmitted."""
    arrived: dict[str, int]
    """Frames of receivers that arrived at one sender, by kind."""
    views: int
    """Views that the last survivor installed after the crash; more than one means that the repair was repeated."""


def settings() -> InterGroupSettings:
    return InterGroupSettings(suspect_after_ns=SUSPECT_MS * MS, distance=lambda _: 2 * MS)


def measure(senders: int, receivers: int, seed: int) -> Repaired:
    """Let one sender crash, and wait for the next view."""
    network = InterGroupNetwork(senders, receivers, seed=seed, settings=settings())
    network.run(1_500)
    while not network.all_receive():
        network.run(100)
    network.load(network.senders, EVERY_MS)
    network.run(2_000 + 37 * seed)
    crashed, survivors = network.senders[-1], network.senders[:-1]
    before = {each: len(network.views[each]) for each in network.live}
    crashed_at, frames = network.now, len(network.transmitted)
    network.crash(crashed)
    limit = network.now + LIMIT_MS * MS
    while any(len(network.views[each]) == before[each] for each in network.live) and network.now < limit:
        network.run(10)
    installed = max(network.views[each][before[each]][0] for each in survivors)
    followed = max(network.views[each][before[each]][0] for each in network.live)
    network.run(AFTER_MS)
    delivered = max(_first_after(network.delivered[each], network.views[each][before[each]][0]) for each in survivors)
    sent = network.transmitted[frames:]
    began = min((each.at for each in sent if each.kind == "proposal"), default=installed)  # alone: no proposal
    ended = installed + AFTER_MS * MS
    own = {*network.senders}
    counted = [each for each in sent if began <= each.at <= ended]
    arrived = [each for each in network.arrived if began <= each.at <= ended and each.sender not in own]
    return Repaired(
        senders,
        receivers,
        seed,
        (installed - crashed_at) / MS,
        (installed - began) / MS,
        (delivered - crashed_at) / MS,
        (followed - crashed_at) / MS,
        sum(each.kind in MEMBERSHIP for each in counted),
        sum(each.kind == "cut" for each in counted),
        dict(Counter(each.kind for each in arrived)),
        len(network.views[survivors[0]]) - before[survivors[0]],
    )


def _first_after(times: Sequence[int], moment: int) -> int:
    return next((each for each in times if each > moment), moment + AFTER_MS * MS)


def _spread(values: Sequence[float], digits: int = 0) -> str:
    """The mean, the least and the greatest."""
    mean = statistics.mean(values)
    return f"{mean:.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def _print(title: str, rows: Sequence[Sequence[Repaired]]) -> None:
    print(f"\n{title}")
    heads = "crash to view", "proposal to view", "crash to delivery", "receivers follow", "membership", "cuts sent"
    print(
        f"{'senders':>8}{'receivers':>10}"
        + "".join(f"{head:>20}" for head in heads)
        + f"{'of receivers, at a sender':>28}  by kind"
    )
    for runs in rows:
        times = (
            _spread([each.from_crash_ms for each in runs]),
            _spread([each.from_proposal_ms for each in runs], 1),
            _spread([each.to_delivery_ms for each in runs]),
            _spread([each.followed_ms for each in runs]),
            _spread([each.membership for each in runs]),
            _spread([each.cuts for each in runs]),
            _spread([sum(each.arrived.values()) for each in runs]),
        )
        kinds = {kind: statistics.mean(each.arrived.get(kind, 0) for each in runs) for kind in OF_RECEIVERS}
        shown = ", ".join(f"{kind} {value:.0f}" for kind, value in kinds.items() if value)
        print(f"{runs[0].senders:8}{runs[0].receivers:10}" + "".join(f"{text:>20}" for text in times[:-1]), end="")
        print(f"{times[-1]:>28}  {shown}")


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--senders", default="2,4,8,16,32", help=f"numbers of senders, with {RECEIVERS} receivers")
    parser.add_argument("--receivers", default="10,100,1000", help=f"numbers of receivers, with {SENDERS} senders")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each line")
    parser.add_argument("--json", type=Path, help="write every run there")
    arguments = parser.parse_args()
    by_senders = [(int(each), RECEIVERS) for each in arguments.senders.split(",") if each]
    by_receivers = [(SENDERS, int(each)) for each in arguments.receivers.split(",") if each]
    cases = [*dict.fromkeys((*by_senders, *by_receivers))]
    began, runs = time.monotonic(), dict[tuple[int, int], list[Repaired]]()
    with progress("runs") as show:
        for number, case in enumerate(cases):
            runs[case] = []
            for seed in range(1, arguments.seeds + 1):
                show(number * arguments.seeds + seed - 1, len(cases) * arguments.seeds)
                runs[case].append(measure(*case, seed))
    print(f"latency 1 to 3 ms, no loss, keep-alives after 25 to 75 ms, a message of each sender every {EVERY_MS} ms,")
    print(f"suspicion after {SUSPECT_MS} ms; times in ms; mean (least-greatest) of {arguments.seeds} seeds")
    if by_senders:
        _print("by senders", [runs[case] for case in by_senders])
    if by_receivers:
        _print("by receivers", [runs[case] for case in by_receivers])
    print(f"\n{time.monotonic() - began:.0f} s of real time")
    if arguments.json:
        found = [asdict(each) for case in cases for each in runs[case]]
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
