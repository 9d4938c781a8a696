"""The size table is correct: attributes with inherited ones, writing files, branches, protocol names."""

import ast
from pathlib import Path

import pytest

from tools.sizes import ATTRIBUTES, COMPARISONS, COMPLEXITY, LINES, Measured, complaints, complexity, measured

BASE = """
class Base:
    def __init__(self) -> None:
        self.first, self._second = 1, 2

    def later(self) -> None:
        self.third: int = 3
"""
SUB = """
from dataclasses import dataclass

from antiphon.base import Base


class Sub(Base):
    __slots__ = ("fourth",)

    def raise_it(self) -> None:
        self.first += 1


@dataclass
class Record:
    fifth: int
    sixth: Base
"""
OUTSIDE = """
from antiphon.sub import Record, Sub


def meddle(sub: Sub, record: Record, other: object) -> None:
    sub.first = 7
    record.sixth.third = 8


def compare(protocol: str) -> bool:
    if protocol == "newtop" or protocol in ("acks", "fifo"):
        return True
    match protocol:
        case "classic":
            return True
    return False
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    package = tmp_path / "src/antiphon"
    (package / "protocols").mkdir(parents=True)
    for name, text in {"base": BASE, "sub": SUB, "outside": OUTSIDE, "protocols/inside": OUTSIDE}.items():
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


def test_attributes_lines_complexity_and_comparisons_are_counted(tree: Path) -> None:
    found = {what: {one.name: one for one in values} for what, values in measured(tree).items()}
    assert {name: one.value for name, one in found[ATTRIBUTES].items()} == {"Base": 3, "Sub": 4, "Record": 2}
    assert found[ATTRIBUTES]["Base"].note == "written in 3 files"  # its own, and two functions called `meddle`
    assert found[ATTRIBUTES]["Sub"].note == "2 inherited, written in 4 files"
    assert found[LINES]["base.py"].value == 7
    assert found[COMPLEXITY]["outside.py: compare"].value == 4
    assert {name: one.value for name, one in found[COMPARISONS].items()} == {"outside.py": 3}


@pytest.mark.parametrize(
    ("body", "branches"),
    [
        ("return 1", 1),
        ("return 1 if a else 2", 2),
        ("if a and b or c: pass", 4),
        ("for x in a:\n  pass\n else:\n  pass", 3),
        ("return [x for x in a if x if b]", 4),
        ("assert a and b", 2),
    ],
)
def test_complexity(body: str, branches: int) -> None:
    (function,) = ast.parse(f"def f(a, b, c):\n {body}\n").body
    assert isinstance(function, ast.FunctionDef)
    assert complexity(function) == branches


def test_exceeded_limits_and_needless_reasons_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.sizes.ALLOWED", {(LINES, "longer.py"): "a reason", (LINES, "short.py"): "not needed"})
    found = {
        ATTRIBUTES: [Measured("Large", 21), Measured("Small", 20)],
        LINES: [Measured("long.py", 501), Measured("longer.py", 502)],
    }
    assert [line.partition(":")[0] for line in complaints(found)] == ["Large", "long.py", "short.py"]
