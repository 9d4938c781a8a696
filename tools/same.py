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
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parent
_LOOK_EVERY_S = 0.5


def checked_out(revision: str, into: Path) -> Path:
    """A copy of the repository at a revision."""
    subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", TREE, into], check=True)
    done = subprocess.run(
        ["git", "-C", into, "checkout", "--quiet", "--detach", revision], check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{revision} is no revision of this repository: {done.stderr.strip().splitlines()[-1]}")
    return into


class Hashing:
    """A process that hashes the runs of one tree. Its output goes to files, because a full pipe would stop it."""

    def __init__(self, tree: Path, arguments: list[str], into: Path) -> None:
        self._printed, self._progress = into.with_suffix(".json"), into.with_suffix(".txt")
        environment = os.environ | {"PYTHONPATH": str(tree / "src")}
        command = [sys.executable, str(HERE / "fingerprints.py"), str(tree), *arguments]
        with self._printed.open("w") as printed, self._progress.open("w") as progress:
            self._process = subprocess.Popen(command, cwd=tree, env=environment, stdout=printed, stderr=progress)

    def hashes(self) -> dict[str, str]:
        """Wait for the end; progress goes to the terminal."""
        while self._process.poll() is None:
            if sys.stderr.isatty():
                print(f"\r{len(self._lines())} runs", end="", file=sys.stderr)
            time.sleep(_LOOK_EVERY_S)
        if self._process.returncode:
            sys.exit("a revision could not be run:\n" + "\n".join(self._lines()[-20:]))
        found: dict[str, str] = json.loads(self._printed.read_text(encoding="utf-8"))
        return found

    def _lines(self) -> list[str]:
        return self._progress.read_text(encoding="utf-8").splitlines()


def main() -> int:
    """Run both revisions, compare, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="the revision to compare this tree with")
    parser.add_argument("--seeds", default="200", help="runs of each campaign family (default 200)")
    parser.add_argument("--family", action="append", default=[], help="only this family; may be repeated")
    arguments = parser.parse_args()
    passed = ["--seeds", arguments.seeds, *(word for family in arguments.family for word in ("--family", family))]
    with tempfile.TemporaryDirectory() as directory:
        aside = Path(directory)
        base = Hashing(checked_out(arguments.base, aside / "base"), passed, aside / "of-base")
        here = Hashing(TREE, passed, aside / "of-here")
        before, after = base.hashes(), here.hashes()
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
