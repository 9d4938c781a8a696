from antiphon.core.newtop.outbox import Outbox


def fill(outbox: Outbox, *sizes: int, label: int = 0) -> None:
    for position, size in enumerate(sizes):
        outbox.put(b"x" * size, label + position)


def taken(outbox: Outbox) -> list[tuple[int, list[int]]]:
    return [(label, [len(payload) for payload in payloads]) for label, payloads in outbox.take()]


def test_packs_up_to_the_limit_in_the_order_of_the_calls() -> None:
    outbox = Outbox(packing=True, frame_bytes_max=100)
    fill(outbox, 60, 36, 1, 200, 5, label=7)
    assert taken(outbox) == [(7, [60, 36]), (9, [1]), (10, [200]), (11, [5])]
    assert not outbox


def test_without_packing_even_empty_messages_travel_alone() -> None:
    outbox = Outbox(packing=False, frame_bytes_max=100)
    fill(outbox, 0, 0, 3)
    assert taken(outbox) == [(0, [0]), (1, [0]), (2, [3])]


def test_even_empty_messages_fill_a_frame() -> None:
    outbox = Outbox(packing=True, frame_bytes_max=40)
    fill(outbox, *[0] * 25)
    assert [len(sizes) for _, sizes in taken(outbox)] == [11, 11, 3]
