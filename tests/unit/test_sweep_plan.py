"""The table [sweep]: valid contents, and the resulting runs."""

import pytest

from antiphon.errors import ConfigurationError
from antiphon.scenario.model import Crash, Fixed
from antiphon.scenario.units import Duration
from antiphon.sweep.plan import Sweep, parse_sweep

BASE = """
name = "varied"
seed = 7
[options]
time_silence = "0ms"
[[group]]
name = "orders"
members = 3
[[group]]
name = "a.b"
members = ["q1", "q2"]
[[workload]]
group = "orders"
interval = "10ms"
[[workload]]
name = "late"
group = "a.b"
[[fault]]
kind = "crash"
at = "1s"
process = "p3"
"""


def sweep(lines: str, seeds: int | None = None) -> Sweep:
    return parse_sweep(f"{BASE}\n[sweep]\n{lines}", seeds)


def test_every_combination_under_every_seed() -> None:
    plan = sweep('"options.window" = [8, 64]\n"options.time_silence" = ["0ms", "20ms", "50ms"]\nseeds = 10')
    assert (plan.name, plan.keys, plan.runs) == ("varied", ("options.window", "options.time_silence"), 60)
    assert [combination.values for combination in plan.combinations][:3] == [(8, "0ms"), (8, "20ms"), (8, "50ms")]
    last = plan.combinations[-1].scenario
    assert last is not None
    assert (last.options.window, last.options.time_silence) == (64, Duration(50_000_000))
    assert plan.seeds == range(7, 17)
    assert sweep('"options.window" = [8]\nseeds = 10', seeds=2).seeds == range(7, 9)


def test_groups_and_workloads_go_by_name_faults_by_number() -> None:
    plan = sweep(
        """
        "group.orders.members" = [4]
        "group.a.b.members" = [["q1", "q2", "q3"]]
        "workload.w1.interval" = ["1ms"]
        "workload.late.messages" = [5]
        "fault.1.at" = ["2s"]
        "network.latency" = [{ kind = "fixed", value = "1ms" }]
        hosts.count = [2]
        """
    )
    scenario = plan.combinations[0].scenario
    assert scenario is not None
    assert [group.members for group in scenario.group] == [("p1", "p2", "p3", "p4"), ("q1", "q2", "q3")]
    assert [workload.name for workload in scenario.workload] == ["w1", "late"]
    assert [workload.messages for workload in scenario.workload] == [1, 5]
    assert scenario.workload[0].interval == Duration(1_000_000)
    assert scenario.fault == (Crash(at=Duration(2_000_000_000), process="p3"),)
    assert scenario.network.latency == Fixed(value=Duration(1_000_000))
    assert scenario.hosts.count == 2


def test_an_impossible_combination_says_why_and_the_others_stand() -> None:
    plan = sweep('"options.time_silence" = ["0ms", "600ms"]')
    possible, impossible = plan.combinations
    assert possible.problem is None
    assert impossible.scenario is None
    assert impossible.problem is not None
    assert impossible.problem.startswith("options.suspect_after: must be more than")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("", "sweep: the table is missing"),
        ('"options.windows" = [1]', "sweep.options.windows: 1 cannot be set: options: unknown key `windows`"),
        ('"option.window" = [1]', "sweep.option.window: 1 cannot be set: unknown key `option`"),
        ('"options.window" = []', "sweep.options.window: the list is empty"),
        ('"options.window" = 8', "sweep.options.window: must be a list"),
        ('"options.window" = [8, "9"]', "sweep.options.window: '9' cannot be set: options.window: Expected `int`"),
        ('"options.time_silence" = ["5 parsecs"]', "sweep.options.time_silence: '5 parsecs' cannot be set"),
        ('"group.ordres.members" = [2]', "group.ordres.members is not a key of a group: there are orders, a.b"),
        ('"fault.2.at" = ["1s"]', "fault.2.at is not a key of a fault: there are 1"),
        ('"member.1.role" = ["sender"]', "member.1.role is not a key of a member: there is none"),
        ('"name.first" = [1]', "name is a value and has no keys"),
        ("seed = [1, 2]", "sweep.seed: cannot be varied"),
        ('trace = ["off"]', "sweep.trace: cannot be varied"),
        ("seeds = 0", "sweep.seeds: must be a number of seeds"),
        ("seeds = true", "sweep.seeds: must be a number of seeds"),
        ("seeds = [1]", "sweep.seeds: must be a number of seeds"),
        (f"seeds = {2**64}", "split sweeps of more than 100,000"),
        ('"options.window" = [8, 16]\nseeds = 60_000', "sweep: these are 120,000 runs"),
        ('"options.window" = [8, 8]', "options.window = 8 and options.window = 8 make the same scenario"),
        ('"options.time_silence" = ["1s", "1000ms"]', "no combination can run; options.suspect_after"),
        ('"network.loss" = [2.0]', "sweep: no combination can run; network.loss"),
    ],
)
def test_an_invalid_sweep_is_refused_with_the_key(lines: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        sweep(lines)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_sweep_needs_traces() -> None:
    with pytest.raises(ConfigurationError, match="trace: a sweep needs traces"):
        parse_sweep(f'trace = "off"\n{BASE}\n[sweep]\nseeds = 2')


def test_a_key_with_quotes_and_without_is_one_key_too_many() -> None:
    with pytest.raises(ConfigurationError, match=r"^sweep\.options\.window: given twice"):
        sweep('"options.window" = [8]\noptions.window = [16]')
