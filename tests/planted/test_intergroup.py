"""InterGroup with one rule left out, or turned: the judge must notice (properties.md 9; intergroup.md 4 to 7).

The runs are recorded in `tests/planted/plant.py`; each is played once more without the bug.
"""

import pytest

from tests.planted.intergroup import BUGS
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
