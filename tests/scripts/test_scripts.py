"""Scenario in, transcript out (`tests/support/transcripts.py` has the language); `--rewrite`, then read the diff."""

from pathlib import Path

import pytest

from tests.support.transcripts import played

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 10


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_gives_its_transcript(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text(encoding="utf-8")
    now = played(text, path.stem)
    if request.config.getoption("--rewrite"):
        path.write_text(now, encoding="utf-8")
    else:
        assert now == text
