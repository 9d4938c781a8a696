"""Every citation of the specification leads to a section, rule or erratum that exists.

A citation names a file of docs/spec and then sections, rules or codes: `docs/spec/newtop.md 11.3 rule 8`,
`docs/spec/properties.md 5, S1`. The folder may be left out where a line is too short for it: no other
document has the name of a file in docs/spec, which is tested here too. Errata (`E-47`, `erratum X1`) are
resolved against the tables and lists of the errata files.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEC = ROOT / "docs/spec"
TEXT = {".py", ".md", ".toml", ".txt"}

NAMES = sorted((path.stem for path in SPEC.glob("*.md") if path.stem != "README"), key=len, reverse=True)
CITED = re.compile(rf"(?<![\w/.-])(?:docs/spec/)?`?(?P<file>{'|'.join(NAMES)})\.md`?(?!\))")

NUMBER = r"(?:\d+[a-z]?(?:\.\d+)*[a-z]?|B\d+)"
ITEM = re.compile(
    rf"\s*(?:,|;|:|and|to|or|[-\u2013]|sections?)?\s*(?:§\s*)?"
    rf"(?:rules?\s+(?P<rule>\d+(?:\.\d+)?)|(?P<section>{NUMBER})(?![\w-])|(?P<code>[A-Z]{{1,2}}-?\d+[a-z]?)\b"
    r"|\((?P<clause>[a-z]+)\)|(?P<roman>[ivx]+)\b)"
)
HEADING = re.compile(rf"^#+ (?P<number>{NUMBER})\.? ", re.MULTILINE)
BOLD_HEADING = re.compile(r"^\*\*(?P<number>\d+\.\d+) ", re.MULTILINE)
DEFINED = re.compile(r"^\| (?P<code>(?:E|A|FIG)-\d+[a-z]?|[A-Z]\d+[a-z]?)\b", re.MULTILINE)


def files(*folders: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "--", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    found = [ROOT / line for line in listed.stdout.splitlines()]
    return [path for path in found if path.suffix in TEXT and path.is_file()]


def spec(name: str) -> str:
    return (SPEC / f"{name}.md").read_text(encoding="utf-8")


def sections(name: str) -> dict[str, str]:
    """By number, the text of each section, those inside it included."""
    text = spec(name)
    marks = sorted((*HEADING.finditer(text), *BOLD_HEADING.finditer(text)), key=re.Match.start)
    found: dict[str, str] = {}
    for index, mark in enumerate(marks):
        number = mark["number"]
        later = (other for other in marks[index + 1 :] if not other["number"].startswith(f"{number}."))
        end = next(later, None)
        found[number] = text[mark.start() : end.start() if end else len(text)]
    return found


SECTIONS = {name: sections(name) for name in NAMES}
ERRATA = {code for name in NAMES if name.startswith("errata") for code in DEFINED.findall(spec(name))}
PROPERTIES = set(re.findall(r"\b[A-Z]\d+[a-z]?\b", spec("properties")))


def citations(text: str) -> Iterator[tuple[str, list[re.Match[str]]]]:
    """The files that a text cites, each with the items that follow its name."""
    flat = re.sub(r"\s+(?:#\s+)?", " ", text)
    for mark in CITED.finditer(flat):
        items = []
        position = mark.end()
        while item := ITEM.match(flat, position):
            items.append(item)
            position = item.end()
        yield mark["file"], items


def has_rule(section: str, rule: str) -> bool:
    first, _, second = rule.partition(".")
    found = re.search(rf"^\s*{first}\. ", section, re.MULTILINE) is not None
    return found and (not second or re.search(rf"^\s+{second}\. ", section, re.MULTILINE) is not None)


def unresolved(text: str) -> list[str]:
    missing = []
    for name, items in citations(text):
        section = spec(name)
        for item in items:
            if number := item["section"]:
                plain = number.rstrip("abcdefgh") if number not in SECTIONS[name] else number
                if plain not in SECTIONS[name]:
                    missing.append(f"{name}.md {number}")
                section = SECTIONS[name].get(plain, "")
            elif rule := item["rule"]:
                if not has_rule(section, rule):
                    missing.append(f"{name}.md rule {rule}")
            elif (code := item["code"]) and code not in ERRATA and not re.search(rf"\b{code}\b", spec(name)):
                missing.append(f"{name}.md {code}")
    return missing


ALL = files("src", "tests", "docs", "benchmarks", "tools", "examples", "scenarios", "README.md", "CONTRIBUTING.md")
ALL.remove(Path(__file__))
NO_ERRATUM = {"E-99"}
"""Named by a test because it does not exist."""


def test_every_citation_of_the_specification_resolves() -> None:
    found = {str(path.relative_to(ROOT)): unresolved(path.read_text(encoding="utf-8")) for path in ALL}
    assert {path: missing for path, missing in found.items() if missing} == {}


ERRATUM = re.compile(r"(?<![\w-])(E-\d+[a-z]?)(?![\w-]*\d)")
NAMED = re.compile(r"\berrat(?:um|a)\s+((?:[A-Z]-?\d+[a-z]?(?:,\s+|\s+and\s+|\s+to\s+|\s+or\s+)?)+)")


def test_every_erratum_that_is_named_is_defined() -> None:
    unknown = {}
    for path in ALL:
        text = re.sub(r"\s+(?:#\s+)?", " ", path.read_text(encoding="utf-8"))
        named = {code for words in NAMED.findall(text) for code in re.findall(r"[A-Z]-?\d+[a-z]?", words)}
        missing = (named | set(ERRATUM.findall(text))) - ERRATA - PROPERTIES - NO_ERRATUM
        if missing:
            unknown[str(path.relative_to(ROOT))] = sorted(missing)
    assert unknown == {}


def test_every_decision_that_is_cited_exists() -> None:
    missing = {
        (str(path.relative_to(ROOT)), number)
        for path in ALL
        for number in re.findall(r"docs/design/adr/(\d{4})", path.read_text(encoding="utf-8"))
        if not list(ROOT.glob(f"docs/design/adr/{number}-*.md"))
    }
    assert missing == set()


def test_the_track_record_names_tests_that_exist() -> None:
    code = [path for path in files("src", "tests", "benchmarks", "tools", "examples") if path.suffix == ".py"]
    names = {path.name for path in code}
    tests = {name for path in code for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))}
    cited = re.findall(r"([\w/]+\.py)(?:::(test_\w+))?", (ROOT / "docs/track-record.md").read_text(encoding="utf-8"))
    assert len(cited) > 100
    assert [file for file, _ in cited if file.rpartition("/")[2] not in names] == []
    assert [test for _, test in cited if not any(name.startswith(test) for name in tests)] == []


def test_errata_have_one_definition() -> None:
    defined = [code for name in NAMES if name.startswith("errata") for code in DEFINED.findall(spec(name))]
    assert len(defined) > 150
    assert sorted({code for code in defined if defined.count(code) > 1}) == []


def test_every_scenario_of_an_erratum_names_one() -> None:
    names = {path.stem.partition("-intergroup")[0] for path in (ROOT / "scenarios/errata").glob("*.toml")}
    assert names
    assert names <= ERRATA


def test_no_document_has_the_name_of_another() -> None:
    """Else a citation by name alone would be ambiguous."""
    names = [path.name for path in ROOT.glob("docs/**/*.md") if path.name not in {"README.md", "index.md"}]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("docs/spec/newtop.md 11.3 rule 8", []),
        ("docs/spec/newtop.md 11.9", ["newtop.md 11.9"]),
        ("newtop.md 9.2, 9.99 and 14", ["newtop.md 9.99"]),
        ("newtop.md 14, rule 60", ["newtop.md rule 60"]),
        ("stability.md 1-4", []),
        ("properties.md 5, S1 and Z9", ["properties.md Z9"]),
        ("`flow-control.md` 3 and 40", ["flow-control.md 40"]),
    ],
)
def test_citations_are_resolved(text: str, missing: list[str]) -> None:
    assert unresolved(text) == missing
