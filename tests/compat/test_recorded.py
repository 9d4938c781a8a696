"""Recorded bytes stay readable: each decodes to the original frame, and that encodes to the same bytes."""

from pathlib import Path

import pytest

from antiphon.errors import ProtocolViolation
from antiphon.wire.codec import decode, encode
from antiphon.wire.frame import open_envelope, seal
from tests.compat.record import FILE, FOLDER, OPEN, record, recorded
from tests.support.frame_samples import SAMPLES

RECORDED = recorded(FILE)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_frame_is_what_it_was(name: str) -> None:
    frame = decode(RECORDED[name])
    assert frame == SAMPLES[name]
    assert type(frame) is type(SAMPLES[name])
    assert encode(frame) == RECORDED[name]


def test_every_sample_is_recorded() -> None:
    assert [*RECORDED] == [*SAMPLES]  # if not: python -m tests.compat.record, for a version that is still open


def test_every_kind_is_recorded() -> None:
    assert {open_envelope(sealed)[0] for sealed in RECORDED.values()} == {*filter(known, range(256))}


def known(kind: int) -> bool:
    with pytest.raises(ProtocolViolation) as caught:
        decode(seal(kind, b""))
    return caught.value.code != "kind"


OLDER = recorded(FOLDER / "frames-v2.txt")


@pytest.mark.parametrize("name", OLDER)
def test_a_frame_of_an_older_version_is_refused_in_words(name: str) -> None:
    with pytest.raises(ProtocolViolation, match="wire version 2 is not supported; this version is 3") as caught:
        decode(OLDER[name])
    assert caught.value.code == "version"


def test_an_open_version_is_recorded_again_and_gives_the_same(tmp_path: Path) -> None:
    file = tmp_path / "frames.txt"
    for _ in range(2):
        record(file)
        assert recorded(file) == {name: encode(frame) for name, frame in SAMPLES.items()}
    assert file.read_text(encoding="utf-8").startswith(OPEN)


def test_a_released_version_is_never_recorded_again(tmp_path: Path) -> None:
    file = tmp_path / "frames.txt"
    file.write_text("# wire version 3, released with 1.0.0\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="belongs to a release"):
        record(file)
    assert recorded(file) == {}
