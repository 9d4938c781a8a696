"""Asymmetric groups and safe delivery with one rule left out, or turned: the judge must notice (newtop.md 11.3, 14).

The runs are recorded in `tests/planted/plant.py`; each is played once more without the bug. E-67, E-68, E-69, E-73 and
E-74 have pairs of scenarios too (`test_errata.py`). That a submission comes early, and that one of a failed member is
dropped, made no difference in 399 seeds; `tests/unit/newtop/test_sequencer.py` has schedules for both.
"""

import pytest

from tests.planted.modes import BUGS
from tests.planted.newtop import Plant
from tests.planted.plant import Shown, recorded, violations, without_bugs

RECORDED = recorded(BUGS)


@pytest.mark.parametrize(
    ("plant", "shown"), RECORDED, ids=[f"{plant.__name__}-{shown.rig}-{shown.seed}" for plant, shown in RECORDED]
)
def test_a_planted_bug_is_found(plant: Plant, shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_bugs(shown.rig, shown.seed) == []
    plant(monkeypatch)
    assert shown.property in violations(shown.rig, shown.seed)
