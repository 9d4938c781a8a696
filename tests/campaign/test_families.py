"""Each family draws valid scenarios, every kind of run occurs, and a seed determines the scenario."""

import subprocess
import sys
from collections import Counter

import pytest

from antiphon.campaign.families import FAMILIES
from antiphon.protocols.newtop.scenarios import membership, sequencer
from antiphon.protocols.newtop.scenarios.overlapping import SERVICES
from antiphon.scenario.model import (
    Crash,
    Cut,
    Heal,
    Join,
    Leave,
    Partition,
    Pause,
    Scenario,
    Suspect,
    cut_links,
    members_of,
)
from antiphon.scenario.read import run_id
from antiphon.scenario.shapes import SHAPES

SEEDS = range(1_000)
NEWTOP = FAMILIES["newtop"]


@pytest.fixture(scope="module")
def drawn() -> list[Scenario]:
    return [NEWTOP.draw(seed) for seed in SEEDS]


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, str]:
    """By family, what another process draws."""
    code = (
        "from antiphon.campaign.families import *\nfor name in FAMILIES: print(name, FAMILIES[name].draw(7), sep='\\t')"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return dict(line.split("\t") for line in told.splitlines())


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_and_a_seed_determine_the_scenario(name: str, elsewhere: dict[str, str]) -> None:
    family = FAMILIES[name]
    assert elsewhere[name] == str(family.draw(7))
    assert len({run_id(family.draw(seed)) for seed in range(50)}) == 50


@pytest.mark.parametrize("name", FAMILIES)
def test_a_scenario_bears_family_and_seed(name: str) -> None:
    scenario = FAMILIES[name].draw(41)
    assert scenario.name.startswith(name)
    assert scenario.seed == 41


def test_a_fixed_group_is_always_valid() -> None:
    """`draw` has judged each of them: an invalid one is an assertion."""
    drawn = [FAMILIES["fixed-group"].draw(seed) for seed in SEEDS]
    assert [scenario.seed for scenario in drawn] == [*SEEDS]
    assert all(len(scenario.group) == 1 and scenario.network.transport == "stream" for scenario in drawn)


def test_every_kind_of_newtop_run_occurs_often_enough(drawn: list[Scenario]) -> None:
    """`draw` has judged each of them: an invalid one is an assertion."""
    seen = Counter[object]()
    for scenario in drawn:
        options = scenario.options
        seen.update(
            [
                NEWTOP.shape(scenario),
                scenario.group[0].service,
                ("flow control", options.flow_control),
                ("window", options.flow_control, options.window),
                ("numbering", scenario.group[0].numbering),
                ("frame bytes", options.frame_bytes),
                ("time-silence", options.time_silence),
                ("packing", options.packing),
                scenario.network.transport,
                type(scenario.network.latency),
                *{type(fault) for fault in scenario.fault},
            ]
        )
    shapes, services = [seen[shape] for shape in SHAPES], [seen[service] for service in SERVICES]
    assert sum(shapes) == sum(services) == len(drawn)
    assert min(shapes) > len(drawn) / 20
    assert min(services) > len(drawn) / 10
    windows = [(1, 3), (2, 2), (3, 2), *((algorithm, window) for algorithm in range(4) for window in (4, 8, 64))]
    assert all(seen["window", algorithm, window] > len(drawn) / 50 for algorithm, window in windows)
    assert min(seen.values()) > len(drawn) / 100


def test_all_groups_of_a_newtop_run_get_one_service(drawn: list[Scenario]) -> None:
    assert all(len({group.service for group in scenario.group}) == 1 for scenario in drawn)


def test_block_numbers_occur_in_groups_of_their_own_only(drawn: list[Scenario]) -> None:
    blocks = 0
    for scenario in drawn:
        for group in scenario.group:
            others = {name for other in scenario.group if other is not group for name in members_of(other)}
            blocks += group.numbering == "block"
            assert group.numbering == "separate" or not others & {*members_of(group)}
    assert blocks > len(drawn) / 50


def test_some_messages_are_larger_than_a_frame_and_some_windows_hold_one_frame(drawn: list[Scenario]) -> None:
    fragments = [
        any(workload.payload > scenario.options.frame_bytes for workload in scenario.workload) for scenario in drawn
    ]
    tight = [scenario.options.window_bytes == scenario.options.frame_bytes for scenario in drawn]
    assert sum(fragments) > len(drawn) / 10
    assert sum(tight) > len(drawn) / 10
    assert any(both == (True, True) for both in zip(fragments, tight, strict=True))


def test_faults_begin_early_and_end(drawn: list[Scenario]) -> None:
    for scenario in drawn:
        for fault in scenario.fault:
            until = getattr(fault, "until", None)
            assert fault.at <= 200_000_000
            assert until is not None
            assert until <= fault.at + 300_000_000


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [("pair", [4, 4]), ("fork", [3, 3]), ("triangle", [2, 2, 2]), ("ring", [4, 4, 4, 4])],
)
def test_the_figures_of_macedo94(drawn: list[Scenario], shape: str, sizes: list[int]) -> None:
    """Fig. 4.1, 4.2a, 4.2b and 5.1: groups overlap as drawn there; the processes are placed at random."""
    shared = {"pair": {2}, "fork": {2}, "triangle": {1}, "ring": {0, 2}}[shape]
    for scenario in (each for each in drawn if NEWTOP.shape(each) == shape):
        groups = [{*members_of(group)} for group in scenario.group]
        assert [len(group) for group in groups] == sizes
        assert {len(one & other) for one in groups for other in groups if one is not other} == shared


def test_the_centre_of_a_star_is_in_ten_groups_and_may_be_any_process(drawn: list[Scenario]) -> None:
    centres = set()
    for scenario in (each for each in drawn if NEWTOP.shape(each) == "star"):
        (centre,) = set.intersection(*({*members_of(group)} for group in scenario.group))
        centres.add(centre)
        assert len(scenario.group) == 10
    assert len(centres) > 5


@pytest.mark.parametrize("name", ["classic", "two-phase", "combined", "synchronous", "acks"])
def test_the_other_families_are_always_valid_and_their_kinds_occur_often_enough(name: str) -> None:
    """`draw` has judged each of them: an invalid one is an assertion."""
    family = FAMILIES[name]
    scenarios = [family.draw(seed) for seed in range(600)]
    seen = Counter[object]()
    for scenario in scenarios:
        crashes = any(isinstance(fault, Crash) for fault in scenario.fault)
        moves = any(isinstance(fault, Join | Leave) for fault in scenario.fault)
        kinds: set[object] = {
            family.shape(scenario),
            *(group.service for group in scenario.group),
            scenario.network.transport,
        }
        kinds |= {("crashes", crashes), ("moves", moves)} if name in ("classic", "acks") else {("crashes", crashes)}
        if name == "acks":
            kinds |= {scenario.options.acks, scenario.options.clock, ("loss", scenario.network.loss > 0)}
        else:
            kinds |= {("answers", workload.answers) for workload in scenario.workload}
        seen.update(kinds)
    assert min(seen.values()) > len(scenarios) / 50
    assert len(seen) >= {"classic": 17, "two-phase": 6, "combined": 11, "synchronous": 10, "acks": 16}[name]


def test_at_least_one_process_survives_every_classic_run() -> None:
    for seed in range(600):
        scenario = FAMILIES["classic"].draw(seed)
        assert {fault.process for fault in scenario.fault if isinstance(fault, Crash)} < {*scenario.processes}


@pytest.fixture(scope="module")
def failing() -> list[Scenario]:
    """`draw` has judged each of them: an invalid one is an assertion."""
    return [FAMILIES["membership"].draw(seed) for seed in range(1_000)]


def test_every_kind_of_membership_run_occurs_often_enough(failing: list[Scenario]) -> None:
    seen = Counter[object]()
    for scenario in failing:
        options = scenario.options
        own = {
            FAMILIES["membership"].shape(scenario),
            scenario.group[0].service,
            ("view change", scenario.group[0].service == "total", options.view_change),
            ("flow control", options.flow_control),
            ("numbering", scenario.group[0].numbering),
            ("probe", options.idle_probe > 0),
            ("silence", options.time_silence),
            scenario.network.transport,
            ("processes", len(scenario.processes)),
            ("healed", any(isinstance(fault, Heal) for fault in scenario.fault)),
            *{(type(fault), getattr(fault, "until", None) is None) for fault in scenario.fault},
        }
        seen.update(own)
    assert min(len(scenario.processes) for scenario in failing) == 3
    assert max(len(scenario.processes) for scenario in failing) == 8
    assert [seen[shape] > 0.6 * share * len(failing) / 100 for shape, share in membership.SHAPES.items()] == [True] * 7
    assert all(seen[service] > 0.6 * share * len(failing) / 100 for service, share in membership.SERVICES.items())
    assert all(seen["view change", True, mode] > len(failing) / 10 for mode in ("cut", "remove", "closed"))
    assert 0.35 < seen["healed", True] / len(failing) < 0.5
    assert 0.1 < sum(not scenario.fault for scenario in failing) / len(failing) < 0.2
    assert all(seen[kind, True] > len(failing) / 4 for kind in (Crash, Suspect))
    ends = [(kind, ever) for kind in (Partition, Cut, Pause) for ever in (True, False)]
    assert all(seen[each] > len(failing) / 25 for each in ends)


def test_without_a_heal_a_core_stays_connected_and_all_others_are_gone(failing: list[Scenario]) -> None:
    sizes = Counter[int]()
    for scenario in failing:
        if not scenario.fault or any(isinstance(fault, Heal) for fault in scenario.fault):
            continue
        gone = {fault.process for fault in scenario.fault if isinstance(fault, Crash)}
        gone |= {fault.process for fault in scenario.fault if isinstance(fault, Pause) and fault.until is None}
        cuts = [fault for fault in scenario.fault if isinstance(fault, Partition | Cut)]
        ever = {link for fault in cuts for link in cut_links(fault)}
        lasting = {link for fault in cuts if fault.until is None for link in cut_links(fault)}
        up = [name for name in scenario.processes if name not in gone]
        sizes[max(len(core) for core in _cores(up, ever, lasting))] += 1
    assert min(sizes) >= 2
    assert len(sizes) >= 5


Links = set[tuple[str, str]]


def _cores(up: list[str], ever: Links, lasting: Links) -> list[list[str]]:
    """Sets that nothing ever divides, and from which all others are cut off for good, in the same direction each."""
    sets = [[each for each in up if not {(name, each), (each, name)} & lasting] for name in up]
    return [
        core
        for core in sets
        if not ever & {(a, b) for a in core for b in core}
        if all(
            {(each, name) for each in core} <= lasting or {(name, each) for each in core} <= lasting
            for name in up
            if name not in core
        )
    ]


def test_most_runs_end_quickly_by_plan(failing: list[Scenario]) -> None:
    for scenario in failing:
        last = max((getattr(fault, "until", None) or fault.at for fault in scenario.fault), default=0)
        assert last <= 1_100_000_000
        assert last + scenario.quiet <= 4_500_000_000


def test_every_kind_of_sequencer_run_occurs_often_enough() -> None:
    drawn = [FAMILIES["sequencer"].draw(seed) for seed in range(600)]
    seen = Counter[object]()
    for scenario in drawn:
        modes = {group.mode for group in scenario.group}
        seen.update(
            {
                FAMILIES["sequencer"].shape(scenario),
                ("modes", frozenset(modes)),
                ("flow control", scenario.options.flow_control),
                ("watched", scenario.options.suspect_after > 0),
                scenario.network.transport,
                *{type(fault) for fault in scenario.fault},
            }
        )
    assert all(seen[shape] > 0.6 * share * len(drawn) / 100 for shape, share in sequencer.SHAPES.items())
    assert seen["modes", frozenset({"asymmetric"})] > len(drawn) / 3
    assert seen["modes", frozenset({"asymmetric", "symmetric"})] > len(drawn) / 5
    assert seen["modes", frozenset({"symmetric"})] > len(drawn) / 25
    assert seen["flow control", 0] > len(drawn) / 5
    assert 0.05 < seen["watched", False] / len(drawn) < 0.2
    assert seen["datagram"] > len(drawn) / 5
    assert all(seen[kind] > len(drawn) / 10 for kind in (Crash, Suspect, Partition, Pause))
