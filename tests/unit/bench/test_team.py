"""The processes of a benchmark."""

import sys
from pathlib import Path

import pytest

from antiphon.bench.team import BenchmarkFailed, Team

_TALKATIVE = f"""#!{sys.executable}
import sys
sys.stderr.write("a warning\\n" * 100_000)
print('{{"bare": [], "members": {{}}}}', flush=True)
for line in sys.stdin:
    if '"fan-out"' in line:
        sys.exit("the last line")
    print("{{}}", flush=True)
"""


def test_a_process_may_write_any_number_of_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe has room for 64 kB: a process of which nobody reads the warnings would wait for ever."""
    process = tmp_path / "process"
    process.write_text(_TALKATIVE)
    process.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(process))
    with Team(2, "tcp", ["total"]) as team, pytest.raises(BenchmarkFailed, match="unexpectedly: the last line"):
        team.fan_out(32, 0.1, packed=True, senders=[0])
