"""The ordering parts alone, on small inputs."""

from collections.abc import Sequence
from typing import Final

import pytest

from antiphon.core.clocks import BlockCounter
from antiphon.core.effects import Effect, Transmit
from antiphon.protocols.newtop.frames import BlockFrame, MapStamp, RelativeStamp, Stamp
from antiphon.protocols.newtop.group import NewtopGroup
from antiphon.protocols.newtop.membership.agreement import AgreementCallbacks
from antiphon.protocols.newtop.ordering.contract import Order
from antiphon.protocols.newtop.rules import ADOPTED
from antiphon.protocols.newtop.settings import NewtopSettings, Service
from antiphon.types import GroupId, ProcessId, first_view
from tests.support.cluster import Cluster

G, H, K = GroupId("g"), GroupId("h"), GroupId("k")
ME, A, B = ProcessId("me"), ProcessId("a"), ProcessId("b")
SERVICES: Final[tuple[Service, ...]] = (
    "total",
    "causal-slow",
    "causal-fast",
    "causal-relative",
    "causal-vector",
)
Entry = tuple[str, str, int]
_NO_FAILURES = AgreementCallbacks(lambda *_: None, lambda *_: False, lambda *_: None)


class Bench:
    """An ordering part with groups {a, b, me} under it, fed frame by frame; members by rank: a, b, me."""

    def __init__(self, service: Service, *groups: GroupId, compression: bool = False) -> None:
        settings = NewtopSettings(service=service, compression=compression)
        self.counter = BlockCounter()
        self.groups = {
            name: NewtopGroup(
                ME,
                first_view(name, frozenset({A, B, ME})),
                self.counter,
                settings,
                ADOPTED,
                _NO_FAILURES,
                [],
                settings.service_of(name),
            )
            for name in groups or (G,)
        }
        self.order: Order = ADOPTED.orders[service](ME, self.groups, settings)

    def receive(
        self, sender: ProcessId, block: int, stamp: Stamp | None = None, *, group: GroupId = G
    ) -> list[tuple[str, int]]:
        """Receive a data frame; return the messages that may be delivered then."""
        own = self.groups[group]
        frame = BlockFrame(group, sender, block, self._last(sender, group), 0, (b"x",), stamp=stamp)
        assert self.order.fits(own, frame)
        assert own.discipline.receive(frame, 0) is not None
        self.order.received(own, frame, 0)
        return self.take()

    def null(self, sender: ProcessId, block: int, *, group: GroupId = G) -> list[tuple[str, int]]:
        """A null comes, or is ours."""
        if sender == ME:
            self.groups[group].discipline.null(block, 0, [])
        else:
            self.groups[group].discipline.receive(BlockFrame(group, sender, block, self._last(sender, group), 0), 0)
        return self.take()

    def send(self, *, group: GroupId = G) -> tuple[BlockFrame, list[tuple[str, int]]]:
        """Our own message leaves."""
        own = self.groups[group]
        own.outgoing.outbox.put(b"own", 0)
        effects: list[Effect] = []
        own.discipline.send_waiting(self.order, 0, effects)
        (transmit,) = effects
        assert isinstance(transmit, Transmit)
        assert isinstance(transmit.frame, BlockFrame)
        return transmit.frame, self.take()

    def take(self) -> list[tuple[str, int]]:
        taken = self.order.take(1 << 62)
        assert all(self.counter.value >= frame.block for frame in taken)  # rule CA2
        return [(frame.sender, frame.block) for frame in taken]

    def _last(self, sender: ProcessId, group: GroupId) -> int:
        own = self.groups[group]
        return own.progress.received.values[own.view.ranks[sender]]


def known(*entries: Entry) -> MapStamp:
    return MapStamp(tuple((GroupId(group), ProcessId(process), number) for group, process, number in entries))


def relative(delivered: Sequence[int], **blocks: int) -> RelativeStamp:
    return RelativeStamp(tuple(delivered), tuple((GroupId(name), block) for name, block in blocks.items()))


# By block numbers


def test_total_waits_for_the_whole_block_and_orders_it_by_sender() -> None:
    bench = Bench("total")
    assert bench.receive(B, 1) == []
    assert bench.null(ME, 1) == []
    assert bench.receive(A, 1) == [("a", 1), ("b", 1)]


def test_total_delivers_blocks_in_order_however_far_apart() -> None:
    bench = Bench("total")
    assert [bench.receive(B, 7), bench.receive(A, 3), bench.null(ME, 9)] == [[], [], [("a", 3)]]
    assert bench.null(A, 9) == [("b", 7)]


def test_total_lets_our_own_message_wait_like_all_others() -> None:
    bench = Bench("total")
    assert bench.send()[1] == []
    assert bench.receive(A, 1) == []
    assert bench.null(B, 4) == [("a", 1), ("me", 1)]


def test_total_waits_for_every_group_and_orders_over_all_of_them() -> None:
    bench = Bench("total", G, H)
    bench.receive(B, 4, group=G)
    bench.receive(A, 4, group=H)
    bench.receive(A, 2, group=G)
    for sender, group in [(A, G), (ME, G), (B, H)]:
        assert bench.null(sender, 5, group=group) == []
    assert bench.null(ME, 3, group=H) == [("a", 2)]
    assert bench.null(ME, 5, group=H) == [("a", 4), ("b", 4)]


def test_slow_delivers_one_block_beyond_the_largest_complete_one() -> None:
    bench = Bench("causal-slow")
    assert bench.receive(A, 1) == [("a", 1)]
    assert bench.receive(A, 2) == []
    assert bench.receive(B, 1) == [("b", 1)]
    assert bench.null(ME, 1) == [("a", 2)]


def test_slow_waits_for_every_group_too() -> None:
    bench = Bench("causal-slow", G, H)
    for sender in (A, B, ME):
        bench.null(sender, 1, group=G)
    assert bench.receive(A, 2, group=G) == []
    for sender in (A, B):
        assert bench.null(sender, 1, group=H) == []
    assert bench.null(ME, 1, group=H) == [("a", 2)]


# Fast


def test_fast_delivers_at_once_what_has_no_past_here() -> None:
    bench = Bench("causal-fast")
    assert bench.receive(A, 1, known()) == [("a", 1)]
    assert bench.send()[1] == [("me", 2)]


def test_fast_holds_a_message_back_until_its_past_is_delivered() -> None:
    bench = Bench("causal-fast")
    assert bench.receive(B, 3, known(("g", "a", 1), ("g", "a", 2))) == []
    assert bench.receive(A, 1, known()) == [("a", 1)]
    assert bench.receive(A, 2, known(("g", "a", 1))) == [("a", 2), ("b", 3)]


def test_fast_waits_only_for_groups_of_its_own_and_passes_the_others_on() -> None:
    bench = Bench("causal-fast", G, H)
    assert bench.receive(A, 5, known(("k", "z", 4))) == [("a", 5)]
    assert bench.receive(B, 6, known(("h", "b", 2), ("k", "y", 1))) == []
    assert bench.send()[0].stamp == known(("g", "a", 5), ("k", "z", 4)), "merged on delivery, not on receipt"
    assert bench.receive(B, 2, known(), group=H) == [("b", 2), ("b", 6)]
    assert bench.send()[0].stamp == known(
        ("g", "a", 5), ("g", "b", 6), ("g", "me", 6), ("h", "b", 2), ("k", "y", 1), ("k", "z", 4)
    )


def test_fast_keeps_one_entry_a_group_for_each_process() -> None:
    """Keyed by process alone, message 9 of group h would make message 4 of group g look delivered (E-13)."""
    bench = Bench("causal-fast", G, H)
    assert bench.receive(A, 9, known(), group=H) == [("a", 9)]
    assert bench.receive(B, 5, known(("g", "a", 4))) == []
    assert bench.receive(A, 4, known()) == [("a", 4), ("b", 5)]


def test_fast_numbers_our_next_message_above_what_was_delivered() -> None:
    bench = Bench("causal-fast")
    bench.receive(A, 7, known())
    assert bench.send()[0].block == 8


def test_fast_does_not_count_what_is_held_back_as_past() -> None:
    bench = Bench("causal-fast")
    bench.receive(B, 3, known(("g", "a", 2)))
    frame, taken = bench.send()
    assert (frame.stamp, frame.block, taken) == (known(), 1, [("me", 1)])


def test_compressed_stamps_say_what_changed_and_each_group_hears_all() -> None:
    bench = Bench("causal-fast", G, H, compression=True)
    bench.receive(A, 1, known())
    stamps = [bench.send(group=group)[0].stamp for group in (G, G, G, H)]
    assert stamps == [
        known(("g", "a", 1)),
        known(("g", "me", 2)),
        known(("g", "me", 3)),
        known(("g", "a", 1), ("g", "me", 4)),
    ]


def test_compressed_stamps_are_rebuilt_per_sender_and_group() -> None:
    bench = Bench("causal-fast", G, H, compression=True)
    assert bench.receive(B, 3, known(("g", "a", 2))) == []
    assert bench.receive(B, 4, known(("g", "b", 3))) == []
    assert bench.receive(B, 5, known(), group=H) == [("b", 5)], "what b said in g it did not say in h"
    assert bench.receive(A, 2, known()) == [("a", 2), ("b", 3), ("b", 4)]


def test_compression_changes_the_stamps_and_nothing_else() -> None:
    plain, compressed = (_exchange(compression) for compression in (False, True))
    assert plain.delivered == compressed.delivered
    sizes = []
    for name, frames in plain.transmitted.items():
        rebuilt: dict[GroupId, dict[tuple[GroupId, ProcessId], int]] = {}
        for whole, part in zip(frames, compressed.transmitted[name], strict=True):
            if whole.stamp is None or part.stamp is None:
                assert whole == part
                continue
            assert isinstance(whole.stamp, MapStamp)
            assert isinstance(part.stamp, MapStamp)
            heard = rebuilt.setdefault(part.group, {})
            heard.update({(group, process): number for group, process, number in part.stamp.entries})
            assert MapStamp(tuple(sorted((*key, number) for key, number in heard.items()))) == whole.stamp
            sizes.append((len(whole.stamp.entries), len(part.stamp.entries)))
    assert 3 * sum(short for _, short in sizes) < 2 * sum(full for full, _ in sizes)


def _exchange(compression: bool) -> Cluster:
    cluster = Cluster(groups={"g": "abc", "h": "bcd"}, service="causal-fast", compression=compression, packing=False)
    for turn in range(12):
        cluster.send("abcd"[turn % 4], b"%d" % turn, b"and %d" % turn, group="g" if turn % 4 < 2 else "h")
        if turn % 3 == 0:
            cluster.move_all()
    cluster.finish()
    return cluster


# Vector


def test_vector_takes_the_next_message_of_each_sender() -> None:
    bench = Bench("causal-vector")
    assert bench.receive(A, 1, known(("g", "a", 1))) == [("a", 1)]
    assert bench.receive(A, 2, known(("g", "a", 3))) == []
    assert bench.receive(A, 3, known(("g", "a", 2))) == [("a", 3), ("a", 2)], "it goes by its own count"


def test_vector_waits_for_the_rest_of_the_past_in_its_own_groups() -> None:
    bench = Bench("causal-vector", G, H)
    assert bench.receive(B, 1, known(("g", "b", 1), ("h", "a", 1), ("k", "z", 9))) == []
    assert bench.receive(A, 1, known(("h", "a", 1)), group=H) == [("a", 1), ("b", 1)]


def test_vector_counts_itself_before_it_stamps() -> None:
    bench = Bench("causal-vector", G, H)
    bench.receive(A, 5, known(("g", "a", 1), ("k", "z", 2)))
    assert bench.send()[0].stamp == known(("g", "a", 1), ("g", "me", 1), ("k", "z", 2))
    frame, taken = bench.send(group=H)
    assert frame.stamp == known(("g", "a", 1), ("g", "me", 1), ("h", "me", 1), ("k", "z", 2))
    assert taken == [("me", 7)]


# Relative


def test_relative_is_precise_inside_a_group() -> None:
    bench = Bench("causal-relative")
    assert bench.receive(B, 4, relative([2, 0, 0], g=2)) == []
    assert bench.receive(A, 2, relative([0, 0, 0])) == [("a", 2), ("b", 4)]


def test_relative_needs_the_whole_block_of_another_group() -> None:
    bench = Bench("causal-relative", G, H)
    assert bench.receive(A, 5, relative([0, 0, 0], h=3)) == []
    assert bench.null(B, 3, group=H) == []
    assert bench.null(ME, 3, group=H) == []
    assert bench.receive(A, 3, relative([0, 0, 0]), group=H) == [("a", 3), ("a", 5)]


def test_relative_needs_all_of_the_other_group_up_to_that_block_delivered() -> None:
    """Not only the row named: the prefix (E-15)."""
    bench = Bench("causal-relative", G, H)
    assert bench.receive(A, 2, relative([0, 1, 0]), group=H) == []  # waits for b's message 1
    bench.null(A, 6, group=H)
    bench.null(ME, 6, group=H)
    assert bench.receive(B, 6, relative([0, 0, 0], g=9), group=H) == []
    assert bench.receive(B, 7, relative([0, 0, 0], h=5)) == []


def test_relative_does_not_wait_for_groups_of_others_and_passes_them_on() -> None:
    bench = Bench("causal-relative", G)
    assert bench.receive(A, 4, relative([0, 0, 0], h=9, k=3)) == [("a", 4)]
    assert bench.send()[0].stamp == relative([4, 0, 0], g=4, h=9, k=3)


def test_relative_remembers_the_largest_number_of_a_group() -> None:
    """A maximum: assigned, a smaller number delivered later would be all that is told (E-15)."""
    bench = Bench("causal-relative", G, H)
    bench.receive(A, 8, relative([0, 0, 0]))
    bench.receive(B, 3, relative([0, 0, 0]))
    frame, taken = bench.send(group=H)
    assert frame.stamp == relative([0, 0, 0], g=8)
    assert taken == [("me", 9)]
    assert bench.send()[0].stamp == relative([8, 3, 0], g=8, h=9)


def test_relative_owes_an_answer_to_a_block_that_is_only_named() -> None:
    """Its sender may be gone (E-63)."""
    bench = Bench("causal-relative", G, H)
    bench.receive(A, 9, relative([0, 0, 0], g=20, h=6, k=7))
    assert [group.numbers.silence.due(0) for group in bench.groups.values()] == [True, True]
    assert [group.numbers.received for group in bench.groups.values()] == [9, 6]


# Stamps that fit


@pytest.mark.parametrize("service", SERVICES)
def test_a_stamp_of_another_order_does_not_fit(service: Service) -> None:
    bench = Bench(service)
    stamps = {
        "none": None,
        "map": known(("g", "b", 1)),
        "counts itself": known(("g", "a", 1)),
        "relative": relative([0, 0, 0]),
        "of another view": relative([0, 0]),
    }
    fitting = [
        name
        for name, stamp in stamps.items()
        if bench.order.fits(bench.groups[G], BlockFrame(G, A, 1, 0, 0, (b"x",), stamp=stamp))
    ]
    assert (
        fitting
        == {
            "total": ["none"],
            "causal-slow": ["none"],
            "causal-fast": ["map", "counts itself"],
            "causal-relative": ["relative"],
            "causal-vector": ["counts itself"],
        }[service]
    )


@pytest.mark.parametrize("service", SERVICES)
def test_our_own_stamps_fit(service: Service) -> None:
    bench = Bench(service)
    for _ in range(2):
        frame, _ = bench.send()
        assert bench.order.fits(bench.groups[G], frame)
