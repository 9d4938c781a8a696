"""Compare the traces of two revisions: `python tools/same.py BASE`, or `make same BASE=<revision>`.

A restructuring must not change behaviour, and traces are deterministic. So both revisions run every scenario of the
repository and the first seeds of every campaign family, and the hashes of their traces must be equal. Differences
that are meant stand in `tools/same.toml` with their reason. Exit code: 0 equal, 1 different, 2 wrong question.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parent


def checked_out(revision: str, into: Path) -> Path:
    """A copy of the repository at a revision."""
    subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", TREE, into], check=True)
    done = subprocess.run(
        ["git", "-C", into, "checkout", "--quiet", "--detach", revision], check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{revision} is no revision of this repository: {done.stderr.strip().splitlines()[-1]}")
    return into


def started(tree: Path, arguments: list[str]) -> subprocess.Popen[str]:
    """A process that prints the hashes of a tree."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    command = [sys.executable, str(HERE / "fingerprints.py"), str(tree), *arguments]
    return subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def counted(process: subprocess.Popen[str]) -> dict[str, str]:
    """The hashes that it prints; progress goes to the terminal."""
    assert process.stdout is not None
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if sys.stderr.isatty():
            print(f"\r{len(lines)} runs, {line.strip():<60}", end="", file=sys.stderr)
    printed = process.stdout.read()
    if process.wait():
        sys.exit("a revision could not be run:\n" + "".join(lines[-20:]))
    hashes: dict[str, str] = json.loads(printed)
    return hashes


def main() -> int:
    """Run both revisions, compare, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="the revision to compare this tree with")
    parser.add_argument("--seeds", default="200", help="runs of each campaign family (default 200)")
    parser.add_argument("--family", action="append", default=[], help="only this family; may be repeated")
    arguments = parser.parse_args()
    passed = ["--seeds", arguments.seeds, *(word for family in arguments.family for word in ("--family", family))]
    with tempfile.TemporaryDirectory() as directory:
        base = started(checked_out(arguments.base, Path(directory) / "base"), passed)
        here = started(TREE, passed)
        before, after = counted(base), counted(here)
    expected: dict[str, str] = tomllib.loads((HERE / "same.toml").read_text(encoding="utf-8"))
    different = sorted(name for name in before.keys() & after.keys() if before[name] != after[name])
    only = sorted(before.keys() ^ after.keys())
    for name in different:
        print(f"different: {name} ({expected.get(name, 'not expected')})")
    for name in only:
        print(f"only in {'base' if name in before else 'this tree'}: {name} ({expected.get(name, 'not expected')})")
    surprises = [name for name in (*different, *only) if name not in expected]
    print(
        f"{len(before.keys() & after.keys())} runs compared, {len(different)} different, {len(only)} in one tree only"
    )
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
