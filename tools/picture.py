"""The picture in the README: the head of a report page and its diagram, as a small PNG made by headless Chromium.

    antiphon demo --out demo-run && python tools/picture.py demo-run/report.html docs/images/demo.png

Chromium is Debian's package `chromium`. The tables of the page are left out; they make the picture long.
"""

import argparse
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image

WIDTH: Final = 1100
HEIGHT_MAX: Final = 2400
COLOURS: Final = 128


def shortened(page: str) -> str:
    """The page with only its head, the figures there, and the diagram."""
    head = re.sub(r"<details>.*?(?=<h2 id=\"diagram\">)", "", page, flags=re.DOTALL)
    return re.sub(r"<h2 id=\"statistics\">.*(?=</main>)|<footer>.*</footer>", "", head, flags=re.DOTALL)


def photographed(page: Path, picture: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        short = Path(scratch, "page.html")
        short.write_text(shortened(page.read_text(encoding="utf-8")), encoding="utf-8")
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        sizes = [f"--window-size={WIDTH},{HEIGHT_MAX}", f"--screenshot={picture.absolute()}"]
        subprocess.run([*command, *sizes, f"--user-data-dir={scratch}/profile", short.as_uri()], check=True)


def trimmed(picture: Path) -> None:
    """Without the empty rest of the window, and with few colours: a tenth of the bytes."""
    image = Image.open(picture).convert("RGB")
    empty = image.getpixel((0, image.height - 1))
    rows = (
        y for y in range(image.height - 1, 0, -1) if any(image.getpixel((x, y)) != empty for x in range(0, WIDTH, 4))
    )
    image.crop((0, 0, WIDTH, min(image.height, next(rows, image.height) + 20))).quantize(COLOURS).save(
        picture, optimize=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    arguments = parser.parse_args()
    photographed(arguments.page, arguments.picture)
    trimmed(arguments.picture)
    print(f"{arguments.picture}: {arguments.picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
