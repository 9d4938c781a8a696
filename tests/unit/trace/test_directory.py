"""A run directory appears complete, or the old one stays."""

from pathlib import Path

import pytest

from antiphon.trace.directory import appearing


def test_a_directory_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    with appearing(tmp_path / "run") as aside:
        (aside / "new").write_text("new")
        assert not (tmp_path / "run").exists()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("moment", ["while it is filled", "while it takes its place"])
def test_an_existing_directory_stays_if_its_successor_fails(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "old").write_text("old")
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if (self / "new").exists() and moment == "while it takes its place":
            raise OSError("no")
        return rename(self, target)

    def fill() -> None:
        with appearing(tmp_path / "run") as aside:
            (aside / "new").write_text("new")
            if moment == "while it is filled":
                raise OSError("no")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="no"):
        fill()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (tmp_path / "run" / "old").read_text() == "old"
