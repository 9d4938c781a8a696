"""Writes the recorded frames of the version spoken now: `python -m tests.compat.record`, then read the diff.

Never record a released version again, because deployed peers use it. A change of the format needs a new version and a
new file. The first line of a file says whether its version is `open` or released.
"""

from pathlib import Path
from typing import Final

from antiphon.wire.codec import encode
from antiphon.wire.frame import VERSION
from tests.support.frame_samples import SAMPLES

FOLDER: Final = Path(__file__).parent
FILE: Final = FOLDER / f"frames-v{VERSION}.txt"
OPEN: Final = f"# wire version {VERSION}, open: a release writes its number in the place of this word"


def recorded(file: Path) -> dict[str, bytes]:
    """The frames in a file, by name."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    frames = [line.rpartition(" = ") for line in lines]
    return {name: bytes.fromhex(sealed) for name, _, sealed in frames}


def record(file: Path) -> None:
    """Write all samples to a file, unless it belongs to a release."""
    if file.exists() and not file.read_text(encoding="utf-8").startswith(OPEN):
        raise SystemExit(f"{file.name} belongs to a release; raise VERSION in antiphon/wire/frame.py instead")
    lines = [OPEN, *(f"{name} = {encode(frame).hex()}" for name, frame in SAMPLES.items())]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record(FILE)
