"""Simulated runs with requests to Newtop groups, under failures, partitions, leaves and merges; D14 judges them."""

import pytest

from antiphon.properties.judge import judge
from antiphon.properties.verdicts.verdict import Verdict
from antiphon.protocols.newtop.asking.asking import Asking
from antiphon.protocols.newtop.asking.requests import Outcome, Request
from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table

FAULTS = """
fault = [
    { at = "300ms", kind = "crash", process = "p3" },
    { at = "500ms", until = "2500ms", kind = "partition", sides = [["p1", "p2"], ["p4", "p5"]] },
    { at = "700ms", kind = "leave", process = "p5", group = "g" },
]
"""
MODES = ("any", "first", "majority", "all")
STREAMS, DATAGRAMS = 'transport = "stream"', 'transport = "datagram"\nloss = 0.05'


def verdicts(seed: int, *, group: str = "", network: str = STREAMS, faults: str = FAULTS) -> list[Verdict]:
    workload = "\n".join(
        f'[[workload]]\ngroup = "g"\nmessages = 6\ninterval = "{150 + place}ms"\nanswers = "{mode}"'
        for place, mode in enumerate(MODES)
    )
    run = simulate(
        parse_scenario(f"""
name = "requests"
seed = {seed}
duration = "60s"
quiet = "12s"
{faults}
[options]
suspect_after = "500ms"
idle_probe = "1s"
merge_every = "1s"
[[group]]
name = "g"
members = 5
{group}
[network]
{network}
{workload}
""")
    )
    assert run.quiet
    return judge(events_table(run.id, run.histories))


@pytest.mark.parametrize(
    ("group", "network"),
    [
        ("", STREAMS),
        ("", DATAGRAMS),
        ('service = "total-safe"', STREAMS),
        ('mode = "asymmetric"', DATAGRAMS),
    ],
    ids=["streams", "datagrams", "safe", "sequencer"],
)
def test_every_request_ends_with_its_answers_or_for_a_reason(group: str, network: str) -> None:
    for seed in range(2):
        found = verdicts(seed, group=group, network=network)
        assert not [f"{each.property}: {each.example}" for each in found if each.violations]
        assert next(each for each in found if each.property == "D14").opportunities > 60


def no_answers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Asking, "answer", lambda *_: None)


def one_answer_will_do(patch: pytest.MonkeyPatch) -> None:
    def outcome(self: Request) -> Outcome:
        return "answered" if self.voters and self.got else "waits"

    patch.setattr(Request, "outcome", property(outcome))


def strangers_answer(patch: pytest.MonkeyPatch) -> None:
    def answers(self: Request) -> tuple[tuple[str, bytes], ...]:
        return (*self.got.items(), ("p9", b""))

    patch.setattr(Request, "answers", property(answers))


@pytest.mark.parametrize("plant", [no_answers, one_answer_will_do, strangers_answer])
def test_a_planted_bug_is_found(plant: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(plant)
    plant(monkeypatch)
    assert any(each.violations for each in verdicts(0) if each.property == "D14")
