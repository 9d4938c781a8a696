import pytest

from tests.support.console import Console


@pytest.fixture
def antiphon(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Console:
    return Console(monkeypatch, capsys)
