"""Every protocol family is one package and one value: nothing else knows its name, and the judges have its promises."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon.campaign.families import FAMILIES
from antiphon.properties.families import BUILT_IN as PROMISED
from antiphon.properties.promises import JUDGED
from antiphon.protocols.registry import BUILT_IN, built_in
from antiphon.scenario.model import Scenario
from antiphon.scenario.read import parse_scenario

PACKAGE = Path(__file__).parents[1] / "src/antiphon"
OUTSIDE = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] != "protocols"]


def compared(tree: ast.AST) -> list[str]:
    """Texts that are compared with something: by `==` and `in`, or as cases of a `match`."""
    found: list[str] = []
    for node in ast.walk(tree):
        parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        if isinstance(node, ast.MatchValue):
            parts = [node.value]
        constants = [each for part in parts for each in ast.walk(part) if isinstance(each, ast.Constant)]
        found += [each.value for each in constants if isinstance(each.value, str)]
    return found


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ('x == "newtop"', ["newtop"]),
        ('x.protocol not in ("acks", "classic")', ["acks", "classic"]),
        ('match x:\n    case "acks":\n        pass', ["acks"]),
        ('{"acks": 1}', []),
    ],
)
def test_comparisons_are_found(code: str, texts: list[str]) -> None:
    assert compared(ast.parse(code)) == texts


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_code_outside_protocols_compares_the_name_of_a_protocol(path: Path) -> None:
    names = [text for text in compared(ast.parse(path.read_text(encoding="utf-8"))) if text in BUILT_IN]
    assert names == []


def test_a_member_loads_its_own_family_only() -> None:
    others = [f"antiphon.protocols.{name}" for name in BUILT_IN if name != "newtop"]
    program = f"""
import sys, antiphon
antiphon.Member
from antiphon.core.contract import Presence
from antiphon.protocols.newtop.frames import InquireFrame
from antiphon.wire import codec
frame = InquireFrame("g", "p1", 1, Presence(1))
assert codec.decode(codec.encode(frame)) == frame
print([name for name in {others} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_judges_have_an_entry_for_every_family_and_service(name: str) -> None:
    assert {*built_in(name).services} <= {*PROMISED[name].services}
    assert all(codes <= {*JUDGED} for codes in PROMISED[name].services.values())


def test_the_judges_have_no_other_entries() -> None:
    assert [*PROMISED] == [*BUILT_IN]


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_family_is_called_like_its_package(name: str) -> None:
    assert (PACKAGE / "protocols" / name / "family.py").is_file()
    assert built_in(name).name == name


def test_frame_kinds_and_classes_belong_to_one_family() -> None:
    kinds = [kind for family in map(built_in, BUILT_IN) for kind in family.wire.readers]
    classes = [frame for family in map(built_in, BUILT_IN) for frame in family.wire.writers]
    assert len({*kinds}) == len(kinds)
    assert len({*classes}) == len(classes)
    assert max(kinds) < 128  # those from 128 on are for other packages


def scenario(name: str) -> Scenario:
    transport = "datagram" if built_in(name).abilities.sites else "stream"
    group = '[[group]]\nname = "g"\nmembers = 3\n'
    return parse_scenario(f'name = "n"\nprotocol = "{name}"\n{group}[network]\ntransport = "{transport}"\n')


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_scenario_has_the_options_of_its_family_and_no_others(name: str) -> None:
    assert type(scenario(name).options) is built_in(name).options


def test_options_that_several_families_have_mean_one_type_and_one_default() -> None:
    """A scenario file is written with the options of all families, so they must not contradict each other."""
    seen: dict[str, object] = {}
    for family in map(built_in, BUILT_IN):
        for option in family.options.__struct_fields__:
            default = getattr(family.options(), option)
            assert seen.setdefault(option, default) == default, option


def test_campaigns_draw_what_families_declare() -> None:
    assert [*FAMILIES] == [each.name for family in map(built_in, BUILT_IN) for each in family.scenarios]
