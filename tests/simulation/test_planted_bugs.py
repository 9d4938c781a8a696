"""A protocol with one rule left out, run by the simulator: the judge must notice, under the right name."""

from collections.abc import Callable

import pytest

from antiphon.core.newtop import group as newtop_group
from antiphon.core.newtop.outbox import Outbox
from antiphon.core.newtop.silence import Silence
from antiphon.properties.judge import judge
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from tests.simulation.families import fixed_group

Plant = Callable[[pytest.MonkeyPatch], None]


def equal_blocks_in_arrival_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(newtop_group, "_SENDER", lambda _frame: 0)  # a stable sort by nothing keeps the order of arrival


def no_nulls_under_silence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Silence, "owe", lambda _self, _block, _now: None)


def lose_the_last_packed_message(patch: pytest.MonkeyPatch) -> None:
    take = Outbox.take
    patch.setattr(
        Outbox,
        "take",
        lambda self: ((label, payloads[: max(1, len(payloads) - 1)]) for label, payloads in take(self)),
    )


def lose_whatever_comes_late(patch: pytest.MonkeyPatch) -> None:
    put = Outbox.put
    patch.setattr(Outbox, "put", lambda self, payload, label: put(self, payload, label) if label < 3 else None)


def alter_a_payload(patch: pytest.MonkeyPatch) -> None:
    take = Outbox.take
    patch.setattr(
        Outbox,
        "take",
        lambda self: ((label, tuple(payload[:-1] + b"!" for payload in payloads)) for label, payloads in take(self)),
    )


@pytest.mark.parametrize(
    ("plant", "property_"),
    [
        (equal_blocks_in_arrival_order, "O6"),
        (no_nulls_under_silence, "L2"),
        (lose_the_last_packed_message, "L3"),
        (lose_whatever_comes_late, "L3"),
        (alter_a_payload, "D1"),
    ],
)
def test_a_planted_bug_is_found(plant: Plant, property_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in range(60):
        run = simulate(fixed_group(seed), "frames")  # the codec would refuse some of what these send
        verdicts = judge(events_table(run.id, run.histories))
        if any(verdict.property == property_ and verdict.violations for verdict in verdicts):
            return
    raise AssertionError(f"60 seeds and no {property_}")
