"""Every rule about changing sender groups has a test named after it, or a reason why it needs none."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
ERRATA = HERE.parents[2] / "docs" / "spec" / "errata-intergroup.md"
RULES = {
    *(f"M{number}" for number in range(1, 30)),
    *(f"J{number}" for number in range(19)),
    *(f"D{number}" for number in range(8, 13)),
    "P1",
    "P2",
}
WITHOUT_BEHAVIOUR = {
    "M2": "dropped: a process that starts asks to join, begins alone, and is merged; there is no empty proposal",
    "M3": "replaced by J12: there is no set of blocked processes",
    "M6": "not built (J15): there is no set of blocked processes",
    "J15": "not built: it says that PFailBlock and the set of blocked processes have no case left",
}


def named_rules() -> set[str]:
    """The rules in the names of the tests beside this one, as in `test_m5_and_j6_...`."""
    found = set()
    for path in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = isinstance(node, ast.FunctionDef) and re.match(r"test_([mjdp]\d+)(?:_and_([mjdp]\d+))?_", node.name)
            found |= {rule.upper() for rule in (named.groups() if named else ()) if rule}
    return found


def test_every_rule_has_a_test_named_after_it() -> None:
    rules = {*re.findall(r"^\| ([MJDP]\d+) \|", ERRATA.read_text(encoding="utf-8"), re.MULTILINE)}
    assert rules >= RULES
    assert named_rules() & RULES == RULES - WITHOUT_BEHAVIOUR.keys()
