"""The shape `aimed` of the family `intergroup`: faults at the few moments when a rare change of state is possible.

Faults at random times hardly ever meet a step of a repair that lasts for the time of a few frames. Here the times are
drawn around such a step, in units of the latency of the network. Each plot needs luck as well, so it also gives runs in
which its faults come too early or too late.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from antiphon.protocols.intergroup.options import InterGroupOptions
from antiphon.scenario.draws import MS, draw_fault
from antiphon.scenario.model import (
    Crash,
    Cut,
    Demote,
    Fault,
    Fixed,
    Group,
    Hosts,
    Member,
    Network,
    Promote,
    Scenario,
    Skew,
    Suspect,
    Uniform,
    Workload,
)
from antiphon.scenario.units import Duration

_SLOW, _FAST = 0.5, 1.7
"""Rates of clocks: the slow one waits longer for one step than the fast ones for the next two."""


@dataclass(frozen=True, slots=True)
class _Stage:
    """The processes of a run, and its times in nanoseconds."""

    chance: random.Random
    senders: tuple[str, ...]
    receivers: tuple[str, ...]
    hop_ns: int
    """The longest latency of a frame."""
    keep_alive_ns: int
    suspect_ns: int

    def after(self, at_ns: int, low: float, high: float) -> Duration:
        """A time in this range of hops after `at_ns`."""
        return Duration(at_ns + int(self.chance.uniform(low, high) * self.hop_ns))

    def later(self, at_ns: int, low: float, high: float) -> Duration:
        """A time in this range of suspicion timeouts after `at_ns`."""
        return Duration(at_ns + int(self.chance.uniform(low, high) * self.suspect_ns))

    def without(self, *names: str) -> tuple[str, ...]:
        """The other senders."""
        return tuple(name for name in self.senders if name not in names)


def _lost_with_witness(stage: _Stage, at_ns: int) -> tuple[list[Fault], str, str, int]:
    """A sender crashes, and only a receiver has its last messages.

    Returns the faults, the sender, the receiver, and when the repair begins.
    """
    lost, witness = stage.chance.choice(stage.senders), stage.chance.choice(stage.receivers)
    crash = stage.after(at_ns + 20 * MS, 2, 5)
    faults: list[Fault] = [
        Cut(at=Duration(at_ns), until=crash, from_=lost, to=name)
        for name in stage.senders + stage.receivers
        if name not in (lost, witness)
    ]
    repair, others = stage.after(crash, 1, 2), stage.without(lost)
    faults += [Crash(at=crash, process=lost), Suspect(at=repair, process=lost, by=stage.chance.choice(others))]
    return faults, lost, witness, repair


def _unsupplied(stage: _Stage, at_ns: int) -> list[Fault]:
    """The receiver tells what it has, and then supplies it to nobody, or late to one of the members (J5)."""
    faults, lost, witness, repair = _lost_with_witness(stage, at_ns)
    mute, members = stage.after(repair, 1.5, 3.5), sorted(stage.without(lost))
    if stage.chance.random() < 0.2:
        return [*faults, Crash(at=mute, process=witness)]
    supplied = stage.chance.choice([members[0], *members])  # often the leader
    faults.append(Cut(at=mute, until=stage.later(repair, 0.6, 2.2), from_=witness, to=supplied))
    silent = stage.later(repair, 1.7, 1.9)
    for name in members:
        if name != supplied:
            faults.append(Cut(at=mute, until=stage.later(repair, 2.8, 4.5), from_=witness, to=name))
            faults.append(Cut(at=silent, until=stage.later(silent, 0.8, 0.95), from_=supplied, to=name))
    return faults


def _unsupplied_with_drift(stage: _Stage, at_ns: int) -> list[Fault]:
    """The same, while one slow clock still waits for the information of a member (J5)."""
    faults, lost, witness, repair = _lost_with_witness(stage, at_ns)
    end = stage.later(repair, 3.5, 4.0)
    slow, unheard = stage.chance.sample(stage.without(lost), 2)
    faults.append(Crash(at=stage.after(repair, 1.5, 3.5), process=witness))
    faults.append(Cut(at=stage.after(repair, 1, 3), until=stage.later(repair, 1.8, 2.2), from_=unheard, to=slow))
    faults += [
        Skew(at=Duration(at_ns), until=end, process=name, rate=_SLOW if name == slow else _FAST)
        for name in stage.without(lost)
    ]
    return faults


def _late_decision(stage: _Stage, at_ns: int) -> list[Fault]:
    """The leader decides, and is given up by those that hear of it only in the next attempt (7.6.6).

    The next attempt takes longer if it learns of messages that only a receiver has.
    """
    chance, witnessed = stage.chance, stage.chance.random() < 0.5
    if witnessed:
        faults, lost, witness, repair = _lost_with_witness(stage, at_ns)
    else:
        lost, witness, repair = chance.choice(stage.senders), "", stage.after(at_ns, 1, 2)
        faults = [Crash(at=Duration(at_ns), process=lost)]
        faults.append(Suspect(at=repair, process=lost, by=chance.choice(stage.without(lost))))
    leader, *others = sorted(stage.without(lost))
    mute, suspected = stage.after(repair, 1.5, 4), stage.after(repair, 4, 7)
    heard = stage.after(suspected, 0.5, 5) if witnessed else stage.after(suspected, -1.5, 2)
    for name in others:
        faults.append(Cut(at=mute, until=max(heard, Duration(mute + MS)), from_=leader, to=name))
        faults.append(Suspect(at=stage.after(suspected, 0, 1), process=leader, by=name))
    if witnessed:
        told = stage.after(suspected, -2, 0.5)
        faults += [Cut(at=Duration(at_ns), until=told, from_=witness, to=name) for name in (leader, *others)]
    return faults


def _addition(stage: _Stage, at_ns: int) -> list[Fault]:
    """A repair begins while some members have added a sender and others have not (7.4.3)."""
    chance = stage.chance
    joiner, unheard, behind = chance.choice(stage.receivers), *chance.sample(stage.senders, 2)
    added = at_ns + stage.keep_alive_ns
    faults: list[Fault] = [Promote(at=Duration(at_ns), process=joiner, group="g")]
    faults.append(Cut(at=stage.after(at_ns, 0, 2), until=stage.after(added, 2, 8), from_=unheard, to=joiner))
    if chance.random() < 0.5:
        faults.append(Cut(at=stage.after(at_ns, 0, 2), until=stage.after(added, 2, 5), from_=unheard, to=behind))
    for _ in range(chance.choice([1, 2])):
        suspect = chance.choice(stage.without(behind))
        faults.append(Suspect(at=stage.after(added, 0, 4), process=suspect, by=behind))
    return faults


def _late_addition(stage: _Stage, at_ns: int) -> list[Fault]:
    """A process begins again because it has no sponsor, just when its last question arrives (J14).

    It wants to send no longer, so the addition finds a mere receiver.
    """
    asker = stage.chance.choice(stage.receivers)
    until = stage.later(at_ns, 1.1, 1.5)
    faults: list[Fault] = [Cut(at=Duration(at_ns - MS), until=until, from_=asker, to=name) for name in stage.senders]
    faults.append(Promote(at=Duration(at_ns), process=asker, group="g"))
    faults.append(Demote(at=stage.later(at_ns, 0.5, 1.7), process=asker, group="g"))
    return faults


def _departure(stage: _Stage, at_ns: int) -> list[Fault]:
    """A sender leaves, and misses what the others send next: they no longer wait for it (R9)."""
    leaver = stage.chance.choice(stage.senders)
    faults: list[Fault] = [Demote(at=Duration(at_ns), process=leaver, group="g")]
    for name in stage.without(leaver):
        mute = Duration(at_ns + int(stage.chance.uniform(0, 2 * (stage.keep_alive_ns + stage.hop_ns))))
        faults.append(Cut(at=mute, until=stage.later(mute, 0.2, 0.9), from_=name, to=leaver))
    return faults


_PLOTS: Final[Mapping[str, Callable[[_Stage, int], list[Fault]]]] = {
    "unsupplied": _unsupplied,
    "drift": _unsupplied_with_drift,
    "decision": _late_decision,
    "addition": _addition,
    "late addition": _late_addition,
    "departure": _departure,
}
_WEIGHTS: Final = {"unsupplied": 3, "drift": 1, "decision": 3, "addition": 1, "late addition": 1, "departure": 1}
"""The two that meet their step most rarely are drawn most often."""


def draw_aimed(chance: random.Random) -> Scenario:
    """One run with one plot or two."""
    names = tuple(f"p{number}" for number in range(1, chance.randint(5, 6) + 1))
    count = chance.randint(3, len(names) - 1)
    senders, receivers = names[:count], names[count:]
    plots = chance.choices([*_PLOTS], [_WEIGHTS[plot] for plot in _PLOTS], k=chance.choice([1, 1, 2]))
    hop = (
        25 if "decision" in plots else chance.choice([4, 10, 25])
    ) * MS  # the leader repeats its decision every 20 ms
    keep_alive = chance.choice([10, 20, 30]) * MS
    suspect = max(200 * MS, 10 * keep_alive, 8 * hop)
    stage = _Stage(chance, senders, receivers, hop, keep_alive, suspect)
    begin = chance.randint(300, 500) * MS
    hosts = Hosts()
    return Scenario(
        name="intergroup-aimed",
        protocol="intergroup",
        duration=Duration(90_000 * MS),
        quiet=Duration(20 * suspect),
        options=InterGroupOptions(
            keep_alive=Fixed(value=Duration(keep_alive)),
            suspect_after=Duration(suspect),
            window=chance.choice([16, 256]),
            repair_timers=chance.choice(["default", "srm"]),
        ),
        group=(Group(name="g", members=names, service="total"),),
        member=tuple(Member(process=name, group="g", role="receiver") for name in receivers),
        network=Network(
            transport="datagram",
            latency=Uniform(low=Duration(hop // 2), high=Duration(hop)),
            loss=chance.choice([0.0, 0.0, 0.02, 0.1]),
        ),
        workload=(
            Workload(
                group="g",
                senders=senders,
                messages=60,
                interval=Duration(chance.choice([5, 10, 15]) * MS),
                jitter=1.0,
                start=Duration(begin - 100 * MS),
            ),
        ),
        hosts=hosts,
        fault=(
            *(
                fault
                for number, plot in enumerate(plots)
                for fault in _PLOTS[plot](stage, begin + number * chance.randint(0, 4 * suspect))
            ),
            *(draw_fault(chance, names, hosts, datagrams=True) for _ in range(chance.choice([0, 0, 0, 1]))),
        ),
    )
