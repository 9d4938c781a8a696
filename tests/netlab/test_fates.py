"""What a link of netlab does to frames, decided without a clock and without sockets."""

from dataclasses import replace

import pytest

from tools.netlab import HEADERS, Counts, Fates, LinkChange, destinations

FRAME = bytes(range(100))
PAIR = (0, 1)


def fates(change: LinkChange, seed: int = 1) -> Fates:
    found = Fates(2, seed)
    found.links[PAIR] = replace(found.links[PAIR], **change)
    return found


def arrivals(found: Fates, frames: int = 1000, every: float = 0.001) -> list[tuple[float, bytes]]:
    return [copy for number in range(frames) for copy in found.copies(PAIR, FRAME, number * every)]


def test_a_perfect_link_carries_everything_at_once() -> None:
    found = fates({})
    assert arrivals(found, 3) == [(0.0, FRAME), (0.001, FRAME), (0.002, FRAME)]
    assert found.counts[PAIR] == Counts(sent=3)


def test_a_link_that_is_down_carries_nothing_and_the_other_direction_does() -> None:
    found = fates({"up": False})
    assert not arrivals(found, 5)
    assert found.counts[PAIR] == Counts(blocked=5)
    assert [*found.copies((1, 0), FRAME, 0.0)] == [(0.0, FRAME)]


def test_loss_and_duplicates_come_at_their_rates() -> None:
    found = fates({"loss": 0.2, "duplicate": 0.1})
    copies = arrivals(found)
    counts = found.counts[PAIR]
    assert 150 < counts.lost < 250
    assert counts.sent == 1000 - counts.lost
    assert 50 < counts.duplicated < 120
    assert len(copies) == counts.sent + counts.duplicated


def test_delay_and_jitter_shift_and_reorder_overtakes() -> None:
    found = fates({"delay": 0.05, "jitter": 0.01})
    assert all(0.039 < due - number * 0.001 < 0.061 for number, (due, _) in enumerate(arrivals(found)))
    found = fates({"delay": 0.05, "reorder": 0.25})
    ahead = sum(due - number * 0.001 < 0.01 for number, (due, _) in enumerate(arrivals(found)))
    assert 200 < ahead < 300


def test_corruption_flips_one_bit_behind_the_headers() -> None:
    damaged = [copy for _, copy in arrivals(fates({"corrupt": 0.5})) if copy != FRAME]
    assert 400 < len(damaged) < 600
    for copy in damaged:
        differing = [(mine ^ theirs) for mine, theirs in zip(FRAME, copy, strict=True) if mine != theirs]
        assert len(differing) == 1
        assert differing[0].bit_count() == 1
        assert copy[:HEADERS] == FRAME[:HEADERS]


def test_a_rate_spaces_frames_and_a_full_queue_drops_them() -> None:
    found = fates({"rate": 80_000.0, "queue": 1_000})  # 100 bytes take 10 ms
    times = [due for due, _ in arrivals(found, 30, every=0.0)]
    assert times == pytest.approx([0.01 * (number + 1) for number in range(len(times))])
    assert found.counts[PAIR].overflowed == 30 - len(times) > 0


def test_the_same_seed_gives_the_same_fates() -> None:
    change: LinkChange = {"loss": 0.3, "jitter": 0.01, "duplicate": 0.2, "corrupt": 0.1}
    assert arrivals(fates(change, 7)) == arrivals(fates(change, 7)) != arrivals(fates(change, 8))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (b"\x02\0\0\0\0\x02", [1]),
        (b"\x02\0\0\0\0\x01", []),  # its own
        (b"\x02\0\0\0\0\x09", []),  # no such host
        (b"\x01\0\x5e\x4d\0\x01", [1, 2]),  # multicast
        (b"\xff" * 6, [1, 2]),
        (b"\x06\0\0\0\0\x02", []),
    ],
)
def test_where_a_frame_goes(address: bytes, expected: list[int]) -> None:
    assert destinations(0, address + bytes(60), 3) == expected
