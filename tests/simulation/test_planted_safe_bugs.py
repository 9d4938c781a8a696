"""Safe delivery with one rule left out, or turned: the judge must notice (newtop.md 14)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from antiphon.campaign.families import FAMILIES
from antiphon.core.newtop.frames import AliveFrame
from antiphon.core.newtop.group import NewtopGroup
from antiphon.core.newtop.orders.blocks import SafeOrder, TotalOrder
from antiphon.properties.judge import judge
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from tests.schedules import BrokenError, draw_safe, run


def _deliver_what_is_complete(patch: pytest.MonkeyPatch) -> None:
    """Rule 1: whether it is stable is not asked."""
    patch.setattr(SafeOrder, "_stable", lambda *_: True)


def _cut_before_it_is_stable(patch: pytest.MonkeyPatch) -> None:
    """Rule 4: the view does not wait for what is held back."""
    patch.setattr(SafeOrder, "passed", TotalOrder.passed)


def _acknowledge_what_one_has_sent(patch: pytest.MonkeyPatch) -> None:
    """Rule 2: an acknowledgment says how far its sender is, not what it has completed."""
    true = NewtopGroup._alive

    def alive(self: NewtopGroup) -> AliveFrame:
        return replace(true(self), complete_block=self.sent)

    patch.setattr(NewtopGroup, "_alive", alive)


def violated(seed: int) -> set[str]:
    played = simulate(FAMILIES["safe"].draw(seed))
    return {verdict.property for verdict in judge(events_table(played.id, played.histories)) if verdict.violations}


@pytest.mark.parametrize(
    ("plant", "seed", "property_id"),
    [
        (_deliver_what_is_complete, 2, "S3"),
        (_deliver_what_is_complete, 14, "D11"),
        (_cut_before_it_is_stable, 75, "D4"),
        (_acknowledge_what_one_has_sent, 4, "S1"),
        (_acknowledge_what_one_has_sent, 4, "D11"),
    ],
)
def test_a_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], seed: int, property_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert violated(seed) == set()
    plant(monkeypatch)
    assert property_id in violated(seed)


@pytest.mark.parametrize(
    ("plant", "seed", "property_id"), [(_deliver_what_is_complete, 2, "D11"), (_cut_before_it_is_stable, 9, "D4")]
)
def test_schedules_find_it_too(
    plant: Callable[[pytest.MonkeyPatch], None], seed: int, property_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(BrokenError) as found:
        run(draw_safe(seed))
    assert found.value.property == property_id
