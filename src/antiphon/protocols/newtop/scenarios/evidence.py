"""The family `evidence`: the failures of the families `membership` and `changes`, with evidence of deaths beside them.

After most crashes some or all survivors get evidence, at once or late. Many false suspicions become false evidence: the
process lives, and other members still hear it.
"""

import random
from typing import Final

from msgspec.structs import replace

from antiphon.protocols.newtop.scenarios.changes import draw_changes
from antiphon.protocols.newtop.scenarios.membership import SERVICES, draw_with_failures
from antiphon.scenario.draws import MS
from antiphon.scenario.model import Crash, Fault, Gone, Scenario, Suspect, members_of
from antiphon.scenario.units import Duration

CHANGING: Final = 0.4
"""Share of the runs whose groups change."""
NOTICED: Final = 0.8
"""Share of the crashes for which others get evidence."""
FALSE: Final = 0.6
"""Share of the false suspicions that become false evidence."""


def draw_evidence(chance: random.Random) -> Scenario:
    """One run of the family; the scenario's name tells the shape."""
    if chance.random() < CHANGING:
        drawn = draw_changes(chance)
        scenario = replace(drawn, name=drawn.name.replace("changes", "evidence-changes"))
    else:
        scenario = draw_with_failures(chance, "evidence", SERVICES)
    faults = [each for fault in scenario.fault for each in _with_evidence(chance, scenario, fault)]
    return replace(scenario, fault=tuple(faults))


def _with_evidence(chance: random.Random, scenario: Scenario, fault: Fault) -> list[Fault]:
    if isinstance(fault, Suspect) and chance.random() < FALSE:
        return [Gone(at=fault.at, process=fault.process, by=fault.by)]
    if isinstance(fault, Crash) and chance.random() < NOTICED:
        return [fault, *_noticed(chance, scenario, fault)]
    return [fault]


def _noticed(chance: random.Random, scenario: Scenario, crash: Crash) -> list[Fault]:
    """Each of the others learns of it at a time of its own; some never do."""
    shared = [members_of(group) for group in scenario.group if crash.process in members_of(group)]
    others = sorted({name for members in shared for name in members} - {crash.process})
    silent = chance.choice([0.0, 0.0, 0.3])
    return [
        Gone(at=Duration(crash.at + chance.choice([0, 1, 5, 20, 60]) * MS), process=crash.process, by=name)
        for name in others
        if chance.random() >= silent
    ]
