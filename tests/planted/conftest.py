"""Planted bugs must be found by the checkers, so peers accept every frame that a bug produces."""

import pytest

from antiphon.protocols.newtop import bounds


@pytest.fixture(autouse=True)
def gullible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse no number (docs/design/bounds.md)."""
    monkeypatch.setattr(bounds, "refuse", lambda *_: None)
    monkeypatch.setattr(bounds, "refuse_gap", lambda *_: None)
