"""Planted bugs are to be found by their properties, so peers believe whatever the bug lets a process say."""

import pytest

from antiphon.protocols.newtop import bounds


@pytest.fixture(autouse=True)
def gullible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse no number (docs/design/bounds.md)."""
    monkeypatch.setattr(bounds, "refuse", lambda *_: None)
    monkeypatch.setattr(bounds, "refuse_gap", lambda *_: None)
