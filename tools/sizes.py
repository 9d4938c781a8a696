"""Print how large the parts of the code are, before and after: `python tools/sizes.py --base REVISION`.

Small functions are not enough: a class with forty attributes that six files write to is one large function in
disguise. So this counts attributes of classes (with those they inherit) and the files that write them, the McCabe
complexity of functions, lines of files, and comparisons with the name of a protocol outside `protocols/`. Exit
code: 0 within the limits, 1 a limit is exceeded without a reason in `ALLOWED`, 2 wrong question.
"""

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TREE: Final = Path(__file__).resolve().parents[1]

ATTRIBUTES, COMPLEXITY, LINES, COMPARISONS = "attributes", "complexity", "lines", "comparisons"
LIMITS: Final = {ATTRIBUTES: 20, COMPLEXITY: 15, LINES: 500, COMPARISONS: 0}

PROTOCOLS: Final = frozenset({"newtop", "classic", "acks", "intergroup"})

ALLOWED: Final[dict[tuple[str, str], str]] = {
    (
        ATTRIBUTES,
        "NewtopSettings",
    ): "an immutable record of settings, each documented at its field; nothing writes to it",
    (ATTRIBUTES, "LineRow"): "a record of the columns of the event schema, which has more than that",
}
"""By limit and name, the reason why it may be exceeded. A reason that is no longer needed is an error too."""

RECORDS: Final = frozenset({"NamedTuple", "Struct", "TypedDict"})
"""Bases whose annotated fields become attributes of instances, as those of dataclasses do."""


@dataclass(slots=True)
class ClassSize:
    """What one class declares; `bases` are names as written, resolved later."""

    name: str
    path: str
    bases: list[str]
    own: set[str]
    types: dict[str, str] = field(default_factory=dict)
    """By attribute, the class of our own that it holds, where the code says so."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure; larger is worse."""

    name: str
    value: int
    note: str = ""


def name_of(node: ast.expr | None) -> str:
    """The last word of a name, an attribute or a subscripted type."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return name_of(value)
        case ast.Constant(value=str(text)):
            return re.split(r"[.\[]", text)[-1]
        case ast.BinOp(left=left):
            return name_of(left)
        case ast.Call(func=called):
            return name_of(called)
    return ""


def targets(node: ast.AST) -> Iterator[ast.expr]:
    """The places to which a statement assigns."""
    found: list[ast.expr] = []
    match node:
        case ast.Assign(targets=assigned):
            found = list(assigned)
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.For(target=target):
            found = [target]
        case ast.With(items=items):
            found = [item.optional_vars for item in items if item.optional_vars]
    while found:
        place = found.pop()
        if isinstance(place, ast.Tuple | ast.List):
            found += place.elts
        else:
            yield place


def is_record(node: ast.ClassDef) -> bool:
    decorated = any(name_of(decorator) == "dataclass" for decorator in node.decorator_list)
    return decorated or any(name_of(base) in RECORDS for base in node.bases)


def class_size(node: ast.ClassDef, path: str, records: set[str]) -> ClassSize:
    """The attributes that one class gives its instances: slots, fields of a record, assignments on self."""
    size = ClassSize(node.name, path, [name_of(base) for base in node.bases], set())
    record = is_record(node) or any(base in records for base in size.bases)
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
                slots = [item.value for item in ast.walk(value) if isinstance(item, ast.Constant)]
                size.own.update(str(slot) for slot in slots)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if record:
                if name_of(annotation) not in {"ClassVar", "Final"}:
                    size.own.add(name)
                    size.types[name] = name_of(annotation)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                add_assigned(size, statement)
    size.own.discard("__dict__")
    return size


def add_assigned(size: ClassSize, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Add the attributes that a method assigns on its first argument."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    if not arguments:
        return
    me = arguments[0].arg
    known = {argument.arg: name_of(argument.annotation) for argument in arguments}
    for node in ast.walk(function):
        for place in targets(node):
            if isinstance(place, ast.Attribute) and isinstance(place.value, ast.Name) and place.value.id == me:
                size.own.add(place.attr)
                if isinstance(node, ast.AnnAssign):
                    size.types.setdefault(place.attr, name_of(node.annotation))
                elif isinstance(node, ast.Assign):
                    value = node.value
                    guess = known.get(value.id, "") if isinstance(value, ast.Name) else name_of(value)
                    size.types.setdefault(place.attr, guess)


class Sources:
    """The parsed files of one tree."""

    def __init__(self, root: Path) -> None:
        self.root = root
        package = root / "src/antiphon"
        self.texts = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
        self.trees = {path: ast.parse(text) for path, text in sorted(self.texts.items())}
        self.classes = self._classes()

    def _classes(self) -> dict[str, ClassSize]:
        nodes = [
            (path, node)
            for path, tree in self.trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        ]
        records = {node.name for _, node in nodes if is_record(node)}
        while more := {
            node.name
            for _, node in nodes
            if node.name not in records and any(name_of(base) in records for base in node.bases)
        }:
            records |= more
        found: dict[str, ClassSize] = {}
        for path, node in nodes:
            size = class_size(node, path, records)
            found[size.name if size.name not in found else f"{path}:{size.name}"] = size
        return found

    def line_of(self, name: str) -> list[ClassSize]:
        """A class and all classes of ours that it inherits from."""
        found: list[ClassSize] = []
        pending = [name]
        while pending:
            size = self.classes.get(pending.pop())
            if size is not None and size not in found:
                found.append(size)
                pending += size.bases
        return found

    def attributes(self, name: str) -> set[str]:
        return set().union(*(size.own for size in self.line_of(name)))


def writes(sources: Sources) -> dict[str, set[str]]:
    """By class, the files that assign to attributes of its instances.

    Methods of the class and of its relatives count by their file. Elsewhere the class of `x` in `x.name = …` is the
    annotation of the argument `x`, or of the attribute that holds it; without one, the only class that has `name`.
    """
    owners: dict[str, set[str]] = {}
    for name, size in sources.classes.items():
        for attribute in size.own:
            owners.setdefault(attribute, set()).add(name)
    found: dict[str, set[str]] = {name: set() for name in sources.classes}
    for path, tree in sources.trees.items():
        for me, function in functions(tree):
            for written in written_classes(sources, owners, me, function):
                found[written].add(path)
    return found


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions, each with the class that it is a method of, or an empty name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield node.name, statement
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield "", statement


def written_classes(
    sources: Sources, owners: dict[str, set[str]], me: str, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[str]:
    """The classes to whose instances a function assigns."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    types = {argument.arg: name_of(argument.annotation) for argument in arguments}
    if me and arguments:
        types[arguments[0].arg] = me

    def type_of(node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return types.get(name, "")
            case ast.Attribute(value=value, attr=attribute):
                holder = type_of(value)
                held = [size.types.get(attribute, "") for size in sources.line_of(holder)]
                return next((name for name in held if name), "")
        return ""

    for node in ast.walk(function):
        for place in targets(node):
            if isinstance(place, ast.Attribute):
                written = type_of(place.value)
                if written in sources.classes:
                    yield written
                elif len(owners.get(place.attr, ())) == 1:
                    yield from owners[place.attr]


def classes(sources: Sources) -> list[Measured]:
    """Attributes of every class, with the number of files that write to its instances."""
    written = writes(sources)
    found = []
    for name, size in sources.classes.items():
        line = sources.line_of(name) or [size]
        files = set().union(*(written.get(part.name, set()) for part in line))
        inherited = len(sources.attributes(name)) - len(size.own)
        note = f"{inherited} inherited, " if inherited > 0 else ""
        total = max(len(sources.attributes(name)), len(size.own))
        found.append(Measured(name, total, f"{note}written in {len(files)} file{'s' * (len(files) != 1)}"))
    return found


def complexity(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """One, and one for each place where paths divide: branches, loops, handlers, cases, `and`, `or`, `x if y else z`.

    Conditions of comprehensions count too. Assertions do not: they state an invariant and add no path.
    """
    count = 1
    for node in ast.walk(function):
        match node:
            case ast.If() | ast.IfExp() | ast.ExceptHandler() | ast.match_case():
                count += 1
            case ast.For(orelse=orelse) | ast.AsyncFor(orelse=orelse) | ast.While(orelse=orelse):
                count += 1 + bool(orelse)
            case ast.BoolOp(values=values):
                count += len(values) - 1
            case ast.comprehension(ifs=conditions):
                count += 1 + len(conditions)
    return count


def complexities(sources: Sources) -> list[Measured]:
    """McCabe complexity of every function, including its inner functions."""
    found = []
    for path, tree in sources.trees.items():
        for me, function in functions(tree):
            name = f"{me}.{function.name}" if me else function.name
            found.append(Measured(f"{path.removeprefix('src/antiphon/')}: {name}", complexity(function)))
    return found


def lines(sources: Sources) -> list[Measured]:
    return [
        Measured(path.removeprefix("src/antiphon/"), len(text.splitlines())) for path, text in sources.texts.items()
    ]


def named_protocols(node: ast.AST) -> int:
    """How many protocol names a node compares something with."""
    compared: list[ast.expr] = []
    if isinstance(node, ast.Compare):
        compared = [node.left, *node.comparators]
    elif isinstance(node, ast.MatchValue):
        compared = [node.value]
    inside = [
        item
        for part in compared
        for item in (part.elts if isinstance(part, ast.Tuple | ast.Set | ast.List) else [part])
    ]
    return sum(isinstance(item, ast.Constant) and item.value in PROTOCOLS for item in inside)


def comparisons(sources: Sources) -> list[Measured]:
    """By file outside the protocols, comparisons with the name of one."""
    found = []
    for path, tree in sources.trees.items():
        if "protocols" in Path(path).parts:
            continue
        count = sum(named_protocols(node) for node in ast.walk(tree))
        if count:
            found.append(Measured(path.removeprefix("src/antiphon/"), count))
    return found


def measured(root: Path) -> dict[str, list[Measured]]:
    sources = Sources(root)
    found = {
        ATTRIBUTES: classes(sources),
        COMPLEXITY: complexities(sources),
        LINES: lines(sources),
        COMPARISONS: comparisons(sources),
    }
    return {what: sorted(values, key=lambda one: (-one.value, one.name)) for what, values in found.items()}


TITLES: Final = {
    ATTRIBUTES: "Classes by attributes, own and inherited",
    COMPLEXITY: "Functions by McCabe complexity",
    LINES: "Files by lines",
    COMPARISONS: "Comparisons with a protocol name outside protocols/",
}


def over(what: str, values: Iterable[Measured]) -> list[Measured]:
    return [one for one in values if one.value > LIMITS[what]]


def told(one: Measured | None) -> str:
    return f"{one.value} | `{one.name}`{f' ({one.note})' if one.note else ''}" if one else " | "


def table(what: str, before: list[Measured] | None, after: list[Measured], rows: int) -> Iterator[str]:
    """The largest of one kind, and how many exceed the limit."""
    sides = [side for side in (before, after) if side is not None]
    yield f"\n## {TITLES[what]} (limit {LIMITS[what]})\n"
    heads = ["before", "after"] if before is not None else ["now"]
    yield "| " + " | | ".join(heads) + " | |"
    yield "|" + "---|---|" * len(sides)
    for row in range(rows):
        cells = [told(side[row] if row < len(side) else None) for side in sides]
        if any(cell.strip(" |") for cell in cells):
            yield "| " + " | ".join(cells) + " |"
    counts = [f"{len(over(what, side))} above the limit" for side in sides]
    totals = [f"{sum(one.value for one in side)} in all" for side in sides] if what == COMPARISONS else counts
    yield "| " + " | ".join(f"**{count}** | " for count in totals) + " |"


def complaints(after: dict[str, list[Measured]]) -> list[str]:
    """Exceeded limits without a reason, and reasons that are not needed."""
    exceeded = {(what, one.name): one.value for what, values in after.items() for one in over(what, values)}
    without = [
        f"{name}: {value} {what}, at most {LIMITS[what]}"
        for (what, name), value in exceeded.items()
        if (what, name) not in ALLOWED
    ]
    unneeded = [f"{name}: its exception for {what} is not needed any more" for what, name in ALLOWED.keys() - exceeded]
    return without + sorted(unneeded)


def at_revision(revision: str, into: Path) -> Path:
    """The sources of a revision, unpacked."""
    archive = subprocess.run(["git", "archive", revision, "src"], cwd=TREE, capture_output=True, check=False)
    if archive.returncode:
        print(f"{revision} is no revision of this repository: {archive.stderr.decode().strip()}", file=sys.stderr)
        raise SystemExit(2)
    subprocess.run(["tar", "-x", "-C", into], input=archive.stdout, check=True)
    return into


def main() -> int:
    """Measure, print the tables, and complain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", metavar="REVISION", help="a revision to measure too")
    parser.add_argument("--rows", type=int, default=10, help="rows in each table (default 10)")
    arguments = parser.parse_args()
    before = None
    if arguments.base:
        with tempfile.TemporaryDirectory() as folder:
            before = measured(at_revision(arguments.base, Path(folder)))
    after = measured(TREE)
    for what, values in after.items():
        print("\n".join(table(what, before[what] if before else None, values, arguments.rows)))
    if ALLOWED:
        print("\n## Above a limit, with a reason\n")
        print("\n".join(f"- `{name}` ({what}): {reason}" for (what, name), reason in ALLOWED.items()))
    wrong = complaints(after)
    if wrong:
        print("\n## Above a limit, without a reason\n")
        print("\n".join(f"- {complaint}" for complaint in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
