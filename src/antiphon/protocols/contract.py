"""What the product knows about a protocol family: one `Family` value, which its package exposes as `FAMILY`.

`registry.py` lists the families. Everything else asks this value for a fact or a function; nothing outside this
package compares the name of a protocol.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from antiphon.core.contract import Core
from antiphon.scenario.model import Group, Options, Scenario
from antiphon.types import ProcessId
from antiphon.wire.layout import Wire

Build = Callable[[ProcessId], Core]
"""Makes the core of one process."""
Problems = Iterator[tuple[str, str]]
"""Each mistake of a scenario: the key, and a sentence about it."""


def _no_problems(_scenario: Scenario) -> Problems:
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What drivers must know about the runs of one scenario."""

    perpetual: bool = False
    """Processes are never silent, so a run ends a quiet time after the last request and the last fault."""
    agreed: bool = False
    """Members detect failures themselves and agree on views."""
    signed: bool = False
    """A view tells the trace who left and why, whether it is primary, and the signature of its members."""
    counted: bool = False
    """A view also tells the trace how many processes were excluded so far."""
    changing: bool = False
    """Groups are formed, joined, left or merged while they work."""
    merges: bool = False
    """Members that lost each other merge again by themselves."""
    rides: bool = False
    """Messages carry acknowledgments, so a trace records for each message which processes its sender counts (S5)."""
    unordered: frozenset[str] = frozenset()
    """Groups whose members may deliver the same messages in different orders."""
    waiting: tuple[frozenset[ProcessId], ...] = ()
    """Sets of processes in which a stalled one may block all others."""
    told_after_ns: int | None = None
    """Survivors are informed of a crash after this time; None: they are not informed."""
    broken_after_ns: int = 0
    """Both ends of a stream that lost frames learn of it within this time."""
    recheck_ns: int = 0
    """Pause after a failed check before a driver checks again whether all is settled; 0: a quiet time."""
    resting_ns: int = 0
    """Real processes must be at rest together for this time before a run is over; 0: at rest when they last told.

    Processes tell at different times, so one may not yet know what another has just begun.
    """
    settling_ns: int = 0
    """Failed members are excluded within this time, if nothing else fails."""
    uniting_ns: int = 0
    """Connected members that search for each other are in one view within this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The categories by which a campaign counts the runs of one scenario, besides shape and transport."""

    service: str = ""
    """Replaces the service if services do not distinguish runs."""
    flow_control: int = 0
    view_change: str = "none"
    """How views change; "none" if they never do, or without agreement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """Which parts of the scenario language a family supports beyond those that all support."""

    formation: bool = False
    """Groups can be formed, joined through contacts, left and merged, and crashed processes can come back."""
    recovery: bool = False
    """A crashed process can come back as a new incarnation, which joins its groups again."""
    roles: bool = False
    """A process can change between sending and only receiving."""
    numbering: bool = False
    """A group may choose what flow control counts (`numbering`)."""
    sequencer: bool = False
    """A group may have a sequencer (`mode`)."""
    sites: bool = False
    """Sites, and paths between them, have an effect."""
    own_services: bool = False
    """Each member may choose its own service."""
    lossy_streams: bool = False
    """Acknowledgments are outside the streams, so loss has an effect with streams too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errata:
    """The printed rules that can replace the adopted ones."""

    names: tuple[str, ...] = ()
    concerns: Callable[[str, Scenario], bool] = lambda _erratum, _scenario: True
    """True if the printed rule has an effect in this scenario."""
    about: Mapping[str, str] = field(default_factory=dict)
    """By erratum, what its rule is about, if the groups do not show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomScenarios:
    """A named source of random scenarios for `antiphon campaign`."""

    name: str
    """The name of its scenarios, alone or followed by a dash and their shape."""
    sentence: str
    """What its runs have in common."""
    draw: Callable[[random.Random], Scenario]


def _unchanged(_original: Scenario, changed: Scenario, _choice: str) -> Scenario:
    return changed


def _no_notes(_original: Scenario, _changed: Scenario) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variants:
    """How `antiphon compare` turns a scenario of another family into one of this family."""

    option: str | None = None
    """The option that tells the variants apart; None: the service does."""
    choices: tuple[str, ...] = ()
    """Values of that option."""
    adapt: Callable[[Scenario, Scenario, str], Scenario] = _unchanged
    """From the original, the generic variant and the choice: the variant."""
    notes: Callable[[Scenario, Scenario], Mapping[str, str]] = _no_notes
    """By option, the reason why `adapt` changed it."""


Player = Literal["groups", "multicast", "streams"]
"""How `antiphon run` plays a process: with the public API, over multicast sockets, or a bare core over TCP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sockets:
    """What `antiphon run` needs to play the family with real processes."""

    player: Player
    problems: Callable[[Scenario], Problems] = _no_problems
    """Scenarios that real processes cannot play."""
    reconnects: bool = False
    """After a partition, connections carry messages again, also if groups never change."""
    link_faults: bool = False
    """Processes drop, duplicate and reorder received datagrams themselves, as in the scenario's network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One protocol family."""

    name: str
    """The value of `protocol` in a scenario."""
    services: tuple[str, ...]
    """The services of its groups; the first is the default."""
    options: type[Options]
    """The `[options]` table of its scenarios."""
    build: Callable[[Scenario, random.Random], Build]
    """From a scenario to the function that builds its cores; randomness is drawn in the order of the calls."""
    told: Callable[[Scenario, Group, ProcessId], dict[str, object]]
    """The fields of the `start` row of a process about a group, at least its `service`."""
    wire: Wire
    """Its frames as bytes."""
    facts: Callable[[Scenario], Facts] = lambda _scenario: Facts()
    labels: Callable[[Scenario], Labels] = lambda _scenario: Labels()
    problems: Callable[[Scenario], Problems] = _no_problems
    """Problems of a scenario for this family, beyond those for all families."""
    abilities: Abilities = Abilities()
    errata: Errata = Errata()
    scenarios: tuple[RandomScenarios, ...] = ()
    variants: Variants = Variants()
    sockets: Sockets | None = None
    """None: the family runs in the simulator only."""
