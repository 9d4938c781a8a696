"""The structure of the project: import rules, and checks that the documents are correct."""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tools.sizes import complaints, measured

ROOT = Path(__file__).parents[1]
HEAVY = {"pyspark", "pyarrow", "numpy", "pandas", "matplotlib", "jinja2", "typer", "rich", "asyncio"}


PURE = {
    "abc",
    "bisect",
    "collections",
    "dataclasses",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "math",
    "operator",
    "re",
    "typing",
}
"""All that a core may import of the standard library: no clock, socket, randomness, thread or log."""
PURE_OF_OURS = ("antiphon.core", "antiphon.types", "antiphon.errors", "antiphon.protocols")


PACKAGE = ROOT / "src/antiphon"
DESCRIPTIONS = {"family", "options", "validation", "building", "scenarios", "wire"}
"""Files and folders beside the cores of a family, which describe it to the rest of the product."""
CORES = [
    *sorted((PACKAGE / "core").rglob("*.py")),
    *(
        path
        for path in sorted((PACKAGE / "protocols").glob("*/**/*.py"))
        if not {*path.relative_to(PACKAGE).with_suffix("").parts} & DESCRIPTIONS
    ),
]


@pytest.mark.parametrize("path", CORES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_cores_are_pure(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            assert name.partition(".")[0] in PURE or name.startswith(PURE_OF_OURS), name


@cache
def imported(path: Path) -> set[str]:
    """The modules that a file names in its imports, wherever they stand."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


NEVER_IMPORTED = {"src": ("tests", "benchmarks", "tools"), "tests": ("benchmarks",), "benchmarks": ("tests",)}
NEVER_IMPORTED |= {"tools": ("tests", "benchmarks"), "examples": ("tests", "benchmarks", "tools")}


@pytest.mark.parametrize("folder", NEVER_IMPORTED)
def test_tests_and_benchmarks_are_separate(folder: str) -> None:
    """Shared code is in tools/lab."""
    wrong = {
        str(path.relative_to(ROOT)): sorted(names)
        for path in (ROOT / folder).rglob("*.py")
        if (names := {name for name in imported(path) if name.partition(".")[0] in NEVER_IMPORTED[folder]})
    }
    assert wrong == {}


def test_tests_do_not_import_each_other() -> None:
    """Shared code is in tests/support."""
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "tests").rglob("test_*.py")}
    wrong = {
        str(path.relative_to(ROOT)): sorted(names)
        for path in (ROOT / "tests").rglob("*.py")
        if (names := imported(path) & modules)
    }
    assert wrong == {}


def test_nothing_is_larger_than_it_may_be() -> None:
    """Attributes of classes, complexity of functions, lines of files, protocol names (`python tools/sizes.py`)."""
    assert complaints(measured(ROOT)) == []


def test_the_writer_of_traces_can_be_copied() -> None:
    """It is one file for other projects: only the standard library, and the syntax of Python 3.9."""
    text = (PACKAGE / "trace_writer.py").read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 9))
    assert {name.partition(".")[0] for name in imported(PACKAGE / "trace_writer.py")} <= sys.stdlib_module_names
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return {name.partition(".")[0] for name in output.split()}


@pytest.mark.parametrize(
    "statement",
    [
        "import antiphon",
        "import antiphon.protocols.newtop.process",
        "import antiphon.sim.run",
        "import antiphon.wire.codec",
    ],
)
def test_the_base_install_loads_nothing_heavy(statement: str) -> None:
    assert not modules_after(statement) & HEAVY


def test_help_does_not_wait_for_spark() -> None:
    assert "pyspark" not in modules_after("import antiphon.cli.app")


def test_the_page_of_the_api_names_all_of_it() -> None:
    text = (ROOT / "docs/guide/api.md").read_text(encoding="utf-8")
    settings = ast.parse((ROOT / "src/antiphon/api/settings.py").read_text(encoding="utf-8"))
    (table,) = (node for node in settings.body if isinstance(node, ast.ClassDef))
    names = [
        node.target.id for node in table.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    assert len(names) > 5
    assert [name for name in names if f"`{name}`" not in text] == []


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


RUN_ELSEWHERE = {ROOT / f"docs/guide/{page}.md" for page in ("tables", "analysis", "new-protocol")}
"""Their examples run in `test_tables_command.py`, `test_analysis.py` and `test_other_package.py`."""


@pytest.mark.parametrize(
    "path",
    [ROOT / "README.md", *sorted({*ROOT.glob("docs/guide/**/*.md")} - RUN_ELSEWHERE)],
    ids=lambda path: path.name,
)
def test_examples_in_the_documents_run(path: Path, tmp_path: Path) -> None:
    blocks = python_blocks(path)
    assert blocks
    for block in blocks:
        ours = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        subprocess.run(
            [sys.executable, "-c", block], cwd=tmp_path, env=ours, check=True, capture_output=True, timeout=300
        )


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")), ids=lambda path: path.name
)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


HISTORY = {"track-record.md", "CHANGELOG.md"}
"""They describe the past; decisions (docs/design/adr) do too, and are never edited."""
MENTIONED = re.compile(r"(?<![\w/.*<>-])((?:[\w-]+/)+[\w.-]+\.(?:py|md|toml|txt|json|parquet))(?![\w*/])")
PYTHON = re.compile(r"`([\w]+\.py)[`:]")
WRITTEN = {"events/", "live/", "checkpoint/", "out/"}
"""Folders that commands write."""


SOURCES = {
    f"/{path.relative_to(ROOT)}"
    for folder in ("src", "tests", "tools", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
}
OF_THE_READER = {"hello.py"}
"""Files that a page asks its reader to write."""


def exists(name: str, page: Path) -> bool:
    """A file is named from the root, from the package, from the page, or by the last parts of its path."""
    if any((folder / name).exists() for folder in (ROOT, PACKAGE, page.parent)):
        return True
    return any(path.endswith(f"/{name}") for path in SOURCES)


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")))
        if path.name not in HISTORY and "adr" not in path.parts
    ],
    ids=lambda path: path.name,
)
def test_files_that_a_document_mentions_exist(path: Path) -> None:
    text = re.sub(r"https?://\S+", "", path.read_text(encoding="utf-8"))
    names = {name for name in MENTIONED.findall(text) if not name.startswith(tuple(WRITTEN))} | {*PYTHON.findall(text)}
    assert sorted(name for name in names if not exists(name, path) and name not in OF_THE_READER) == []
