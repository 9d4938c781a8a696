"""Latency of group timestamp order in the simulator, and its ideal values and bound.

The ideal column is that of docs/spec/experiments-intergroup.md 3; the bound is erratum X1.
"""

import random
import statistics
from dataclasses import dataclass
from typing import Final

from antiphon.protocols.intergroup.options import InterGroupOptions
from antiphon.scenario.model import Fixed, Group, Network, Path, Scenario, Site, Skew, Uniform, Workload
from antiphon.scenario.read import parse_scenario, scenario_toml
from antiphon.scenario.units import Duration
from antiphon.sim.run import Run, simulate

MS: Final = 1_000_000
IDEAL: Final = {2: (23.9, 21.4), 4: (38.5, 37.9), 8: (48.4, 48.6), 16: (55.5, 55.9)}
"""By senders, mean and median in milliseconds."""
LONGEST_MS: Final = 75.0


def latencies(run: Run) -> dict[tuple[str, int], int]:
    """By message, how long it took from its sending to its last delivery, in nanoseconds."""
    sent, latest = dict[tuple[str, int], int](), dict[tuple[str, int], int]()
    for history in run.histories:
        for row in history.rows:
            if row["kind"] == "send":
                sent[history.process, row["number"]] = row["time"]
            elif row["kind"] == "deliver":
                key = row["sender"], row["number"]
                latest[key] = max(latest.get(key, 0), row["time"])
    return {key: latest[key] - time for key, time in sent.items()}


def evenly(senders: int, seed: int, messages: int = 10) -> Scenario:
    """Table 7.4: each process sends every 100 ms, at a random phase."""
    chance = random.Random(f"{senders}/{seed}")
    workloads = [
        Workload(
            name=f"w{number}",
            group="g",
            senders=(f"p{number}",),
            messages=messages,
            interval=Duration(100 * MS),
            start=Duration(int(chance.random() * 100 * MS) + 200 * MS),
        )
        for number in range(1, senders + 1)
    ]
    return _complete(
        Scenario(
            name=f"even-{senders}",
            seed=seed,
            protocol="intergroup",
            quiet=Duration(200 * MS),
            group=(Group(name="g", members=senders),),
            network=Network(transport="datagram", latency=Fixed(value=Duration(0))),
            workload=tuple(workloads),
        )
    )


@dataclass(frozen=True, slots=True)
class Apart:
    """A run with its own distances and clocks, and the bound for its messages."""

    scenario: Scenario
    distances: dict[tuple[str, str], int]
    behind: dict[str, int]
    """By process, the lag of its clock behind the foremost."""
    longest_silence: int

    def bound(self, sender: str) -> int:
        """The bound X1 for messages of this sender; the foremost clock may have pushed its stamps ahead."""
        others = [q for q in self.behind if q != sender]
        heard = [
            min(self.behind[q], self.distances[sender, q])
            + self.longest_silence
            + max(self.distances.get((q, r), 0) for r in self.behind)
            for q in others
        ]
        return max([*heard, *(self.distances[sender, q] for q in others)])


def apart(seed: int) -> Apart:
    """Each sender at a site of its own."""
    chance = random.Random(seed)
    names = [f"p{number}" for number in range(1, chance.randint(2, 6) + 1)]
    pairs = [(a, b) for rank, a in enumerate(names) for b in names[rank + 1 :]]
    far = {pair: chance.randint(0, 60) * MS for pair in pairs}
    silence = chance.choice([20, 50])
    alive = Uniform(low=Duration(silence * MS // 2), high=Duration(silence * MS))
    ahead = {name: chance.choice([0, 0, 5, 30, 200]) * MS for name in names}
    scenario = _complete(
        Scenario(
            name="apart",
            seed=seed,
            protocol="intergroup",
            quiet=Duration(3_000 * MS),
            options=InterGroupOptions(keep_alive=alive, suspect_after=Duration(500_000_000)),
            group=(Group(name="g", members=tuple(names)),),
            network=Network(transport="datagram", latency=Fixed(value=Duration(0))),
            site=tuple(Site(name=f"at-{name}", processes=(name,)) for name in names),
            path=tuple(
                Path(between=(f"at-{a}", f"at-{b}"), latency=Fixed(value=Duration(far[a, b]))) for a, b in pairs
            ),
            workload=(
                Workload(group="g", messages=15, interval=Duration(37 * MS), jitter=1.0, start=Duration(500 * MS)),
            ),
            fault=tuple(
                Skew(at=Duration(0), process=name, offset=Duration(offset)) for name, offset in ahead.items() if offset
            ),
        )
    )
    distances = far | {(b, a): value for (a, b), value in far.items()}
    foremost = max(ahead.values())
    return Apart(scenario, distances, {name: foremost - ahead[name] for name in names}, silence * MS)


def worst_share(seed: int) -> float:
    """The longest latency in a run with different distances and clocks, as a share of its bound."""
    case = apart(seed)
    slack = MS // 100  # stamps are microseconds, and no two of a sender are alike
    return max(took / (case.bound(sender) + slack) for (sender, _), took in latencies(simulate(case.scenario)).items())


def means(senders: int, runs: int) -> tuple[float, float, float]:
    """Mean, median and longest, in milliseconds, over this number of runs."""
    took = [value / MS for seed in range(runs) for value in latencies(simulate(evenly(senders, seed))).values()]
    return statistics.mean(took), statistics.median(took), max(took)


def _complete(scenario: Scenario) -> Scenario:
    return parse_scenario(scenario_toml(scenario))
