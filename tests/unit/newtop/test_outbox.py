import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.protocols.newtop.frames import Ask
from antiphon.protocols.newtop.outbox import Outbox, Parcel, Stream
from antiphon.types import ProcessId

ROOM = 1_000_000
"""No window in the way."""


def fill(outbox: Outbox, *sizes: int, label: int = 0) -> None:
    for position, size in enumerate(sizes):
        outbox.put(b"x" * size, label + position)


def parcels(outbox: Outbox, room_bytes: int = ROOM) -> list[Parcel]:
    found = []
    while outbox.waiting:
        found.append(outbox.take(room_bytes))
    return found


def taken(outbox: Outbox, room_bytes: int = ROOM) -> list[tuple[int, list[int], bool]]:
    return [(label, [*map(len, payloads)], more) for label, payloads, more in parcels(outbox, room_bytes)]


def test_packs_up_to_the_limit_in_the_order_of_the_calls() -> None:
    outbox = Outbox(packing=True, frame_bytes_max=100)
    fill(outbox, 60, 36, 1, 100, 5, label=7)
    assert taken(outbox) == [(7, [60, 36], False), (9, [1], False), (10, [100], False), (11, [5], False)]
    assert not outbox.waiting


def test_without_packing_even_empty_messages_travel_alone() -> None:
    outbox = Outbox(packing=False, frame_bytes_max=100)
    fill(outbox, 0, 0, 3)
    assert taken(outbox) == [(0, [0], False), (1, [0], False), (2, [3], False)]


def test_even_empty_messages_fill_a_frame() -> None:
    outbox = Outbox(packing=True, frame_bytes_max=40)
    fill(outbox, *[0] * 25)
    assert [len(sizes) for _, sizes, _ in taken(outbox)] == [11, 11, 3]


@pytest.mark.parametrize("packing", [True, False])
def test_a_message_larger_than_a_frame_leaves_in_pieces_of_its_own(packing: bool) -> None:
    outbox = Outbox(packing=packing, frame_bytes_max=100)
    fill(outbox, 200, 201, 0, label=3)
    assert taken(outbox) == [
        (3, [100], True),
        (3, [100], False),
        (4, [100], True),
        (4, [100], True),
        (4, [1], False),  # and nothing is packed behind the rest of a message
        (5, [0], False),
    ]


def test_a_message_as_large_as_a_frame_is_whole() -> None:
    outbox = Outbox(packing=True, frame_bytes_max=100)
    fill(outbox, 100)
    assert taken(outbox) == [(0, [100], False)]


def test_messages_without_room_in_the_window_wait() -> None:
    outbox = Outbox(packing=True, frame_bytes_max=100)
    fill(outbox, 10, 10, 10)
    assert outbox.take(24) == (0, (b"x" * 10,) * 2, False)  # each further message costs four bytes more
    fill(outbox, 10, label=3)
    assert outbox.take(23) == (2, (b"x" * 10,), False)
    assert outbox.waiting


def test_the_first_message_leaves_however_little_room_there_is() -> None:
    """Flow control decides by `least_bytes` whether it may leave."""
    outbox = Outbox(packing=True, frame_bytes_max=100)
    fill(outbox, 30, 0)
    assert taken(outbox, 0) == [(0, [30], False), (1, [0], False)]


def test_the_least_that_the_next_frame_carries_is_known() -> None:
    outbox = Outbox(packing=True, frame_bytes_max=100)
    fill(outbox, 230, 7)
    least = []
    while outbox.waiting:
        least.append(outbox.least_bytes)
        outbox.take(ROOM)
    assert least == [100, 100, 30, 7]


def test_labels_go_on_after_a_pause() -> None:
    outbox = Outbox(packing=True, frame_bytes_max=100)
    fill(outbox, 1, 1)
    assert outbox.take(ROOM) == (0, (b"x", b"x"), False)
    fill(outbox, 250, label=2)
    assert {label for label, _, _ in taken(outbox)} == {2}
    fill(outbox, 1, label=3)
    assert taken(outbox) == [(3, [1], False)]


@given(
    st.lists(st.binary(max_size=25), max_size=12),
    st.booleans(),
    st.integers(1, 30),
    st.lists(st.integers(0, 40), min_size=40, max_size=40),
)
def test_messages_of_any_size_come_out_whole_in_order_and_within_limits(
    messages: list[bytes], packing: bool, frame_bytes_max: int, rooms: list[int]
) -> None:
    outbox = Outbox(packing=packing, frame_bytes_max=frame_bytes_max)
    for label, message in enumerate(messages):
        outbox.put(message, label)
    found: list[tuple[int, bytes]] = []
    piece = b""
    place = 0
    while outbox.waiting:
        least, room = outbox.least_bytes, rooms[place % len(rooms)]
        label, payloads, more = outbox.take(room)
        place += 1
        size = sum(map(len, payloads))
        assert least <= size <= frame_bytes_max
        assert len(payloads) == 1 or (packing and size + 4 * (len(payloads) - 1) <= min(room, frame_bytes_max))
        if more or piece:
            assert len(payloads) == 1
            piece += payloads[0]
            if more:
                continue
            payloads, piece = (piece,), b""
        found += enumerate(payloads, start=label)
    assert found == list(enumerate(messages))


class Pages:
    """A state with a given number of bytes; if it is torn, reading fails after them."""

    def __init__(self, state: bytes, *, torn: bool = False) -> None:
        self.total = len(state)
        self._state = state
        self._torn = torn

    def read(self, size: int) -> bytes | None:
        page, self._state = self._state[:size], self._state[size:]
        return None if self._torn and not page else page

    def close(self) -> None:
        self._state = b""


def stream_parcels(state: bytes, *, torn: bool = False) -> list[Parcel]:
    stream = Stream(Pages(state, torn=torn), 4)
    found = []
    while stream.waiting:
        assert stream.least_bytes <= 4
        found.append(stream.take(ROOM))
    return found


@given(st.binary(max_size=30))
def test_a_state_is_read_while_it_leaves_as_it_would_leave_at_once(state: bytes) -> None:
    outbox = Outbox(packing=False, frame_bytes_max=4)
    outbox.put(state, len(state))
    assert stream_parcels(state) == parcels(outbox)


@pytest.mark.parametrize("size", [0, 3, 4, 9])
def test_a_state_that_cannot_be_read_to_its_end_never_ends(size: int) -> None:
    found = stream_parcels(b"s" * size, torn=True)
    assert sum(len(payload) for _, payloads, _ in found for payload in payloads) == size
    assert all(more for _, _, more in found)


def test_requests_and_answers_leave_alone_in_their_place() -> None:
    outbox = Outbox(packing=True, frame_bytes_max=100)
    marks = {2: Ask(0), 3: Ask(7, ProcessId("p2")), 5: Ask(1)}
    for place in range(7):
        outbox.put(b"x" * (250 if place == 5 else 10), 40 + place, marks.get(place))
    found = []
    while outbox.waiting:
        mark = outbox.next_ask
        label, payloads, more = outbox.take(ROOM)
        found.append((label, len(payloads), more, mark))
    assert found == [
        (40, 2, False, None),
        (42, 1, False, marks[2]),
        (43, 1, False, marks[3]),
        (44, 1, False, None),
        *((45, 1, more, marks[5]) for more in (True, True, False)),
        (46, 1, False, None),
    ]
    assert not outbox.asks


def test_marks_go_over_to_a_successor() -> None:
    outbox, successor = (Outbox(packing=True, frame_bytes_max=100) for _ in range(2))
    fill(outbox, 10, 10)
    outbox.put(b"x" * 250, 2, Ask(4))
    outbox.take(ROOM)
    outbox.take(ROOM)
    unsent = outbox.remove_all()
    assert unsent == [(b"x" * 250, 2, Ask(4))]
    assert not outbox.asks
    for message in unsent:
        successor.put(*message)
    assert successor.next_ask == Ask(4)
