"""Worked examples of Macedo94 (the Newtop thesis), chapters 2 and 3; numbering of cases as in the specification."""

from collections.abc import Callable

from antiphon.core.effects import Frame, Transmit
from antiphon.core.vectors import MinVector
from antiphon.protocols.newtop.frames import BlockFrame, RequestFrame
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import ProcessId, first_view
from tests.support.cluster import GROUP, SLOW_NS, Cluster


def test_figure_2_4_a_reply_never_overtakes_its_cause() -> None:
    """Fig. 2.4: 2 delivers m1 and sends m2; 3 receives m2 first, and still delivers m1 before m2."""
    cluster = Cluster("1", "2", "3", silence_timeout_ns=SLOW_NS)
    cluster.send("1", b"m1")
    cluster.send("3", b"other")  # concurrent with m1; without it block 1 could not complete at 2
    cluster.move("1", "2")
    cluster.move("3", "2")
    cluster.wait(SLOW_NS)  # 2 answers block 1 with a null
    assert cluster.delivered["2"] == [b"m1", b"other"]
    cluster.send("2", b"m2")
    assert cluster.transmitted["2"][-1].block == 2  # m1 -> m2, hence a larger number
    cluster.move("2", "3", 2)
    assert cluster.delivered["3"] == []
    cluster.move("1", "3")
    assert cluster.delivered["3"] == [b"m1", b"other"]
    for _ in range(2):  # let all members answer m2
        cluster.wait(SLOW_NS)
        cluster.move_all()
    assert list(cluster.delivered.values()) == [[b"m1", b"other", b"m2"]] * 3


class Matrix:
    """The block matrix as the figures draw it: rows by number, and the receive vector that stands for its columns."""

    def __init__(self, columns: int, rows: dict[int, list[int]]) -> None:
        self.last_received = MinVector(columns)
        self.rows: set[int] = set()
        for block, senders in rows.items():
            for column in senders:
                self.insert(column, block)

    def insert(self, column: int, block: int) -> None:
        """Columns count from 1."""
        self.rows.add(block)
        self.last_received.raise_to(column - 1, block)

    @property
    def complete_block(self) -> int:
        return self.last_received.minimum

    @property
    def incomplete_rows(self) -> list[int]:
        """Rows, not numbers (E-8)."""
        return sorted(row for row in self.rows if row > self.complete_block)


def test_figure_3_1_the_receive_vector_gives_the_complete_blocks() -> None:
    """Fig. 3.1: six columns, five rows; block 2 is the largest complete one, rows 3, 4 and 5 are incomplete."""
    matrix = Matrix(6, {1: [1, 4], 2: [2, 5, 6], 3: [1, 3, 4], 4: [1, 5], 5: [2]})
    assert matrix.last_received.values == [4, 5, 3, 3, 4, 2]
    assert matrix.complete_block == 2
    assert matrix.incomplete_rows == [3, 4, 5]
    matrix.insert(6, 3)
    assert matrix.complete_block == 3
    assert matrix.incomplete_rows == [4, 5]


def test_section_3_2_a_larger_number_does_not_mean_a_later_message() -> None:
    """§3.2, text: with BC = B, m0 is received (B + 1) but not delivered; m1, m2 get B + 1, B + 2, both concurrent."""
    cluster = Cluster("1", "2", silence_timeout_ns=SLOW_NS)
    cluster.send("1", b"a", b"b", b"c")
    cluster.move("1", "2")
    cluster.wait(SLOW_NS)
    cluster.move_all()
    counter = cluster.transmitted["2"][-1].block  # B: everything up to it is delivered everywhere
    assert list(cluster.delivered.values()) == [[b"a", b"b", b"c"]] * 2
    cluster.send("1", b"m0")
    cluster.move("1", "2")
    cluster.send("2", b"m1")
    assert b"m0" not in cluster.delivered["1"]
    cluster.send("2", b"m2")
    m0, (m1, m2) = cluster.transmitted["1"][-1], cluster.transmitted["2"][-2:]
    assert (m0.block, m1.block, m2.block) == (counter + 1, counter + 1, counter + 2)
    assert m0.complete_block == m1.complete_block == counter  # neither sender had the other's message complete


def test_figure_3_3_a_block_completes_only_when_everyone_has_spoken_at_or_above_it() -> None:
    """Fig. 3.3: 3 holds rows 1 and 2 complete and its own number 3; row 3 waits for numbers >= 3 of both others."""
    matrix = Matrix(3, {1: [1, 2, 3], 2: [1, 2, 3], 3: [3]})
    assert matrix.complete_block == 2
    matrix.insert(1, 3)
    assert matrix.complete_block == 2
    matrix.insert(2, 5)
    assert matrix.complete_block == 3


def test_figure_3_4_a_missing_message_is_asked_for_and_completes_the_rows_when_it_comes() -> None:
    """Fig. 3.4: rows 1:{1,3,4} 2:{2} 3:{1,3 missing} 4:{2,3} 5:{1,4}; the contiguous prefix is row 1.

    The figure marks the message before the one that came as missing and asks for it; ours asks for all that is
    missing. On its arrival, if it follows 3's first message, rows 1 to 4 are complete.
    """
    core, sent = lossy_core()
    for sender, place, block, previous in (
        ("1", 1, 1, 0), ("3", 1, 1, 0), ("4", 1, 1, 0), ("2", 1, 2, 0),
        ("1", 2, 3, 1), ("2", 2, 4, 2), ("3", 3, 4, 3), ("1", 3, 5, 3), ("4", 2, 5, 1),
    ):  # fmt: skip
        core.receive(numbered(sender, place, block, previous), 0)
    requests = [frame for frame in sent() if isinstance(frame, RequestFrame)]
    assert requests == [RequestFrame(GROUP, ProcessId("me"), ProcessId("3"), (2,))]
    assert complete_block(core) == 1
    core.receive(numbered("3", 2, 3, 1), 0)
    assert complete_block(core) == 4


def test_figure_3_4_if_yet_another_message_is_missing_row_2_stays_incomplete() -> None:
    """Fig. 3.4, second case: 3 also sent number 2. Both are asked for at once; one alone completes nothing."""
    core, sent = lossy_core()
    for sender, place, block, previous in (
        ("1", 1, 1, 0), ("3", 1, 1, 0), ("4", 1, 1, 0), ("2", 1, 2, 0),
        ("1", 2, 3, 1), ("2", 2, 4, 2), ("3", 4, 4, 3), ("1", 3, 5, 3), ("4", 2, 5, 1),
    ):  # fmt: skip
        core.receive(numbered(sender, place, block, previous), 0)
    assert [frame.missing for frame in sent() if isinstance(frame, RequestFrame)] == [(2, 3)]
    core.receive(numbered("3", 3, 3, 2), 0)
    assert complete_block(core) == 1
    core.receive(numbered("3", 2, 2, 1), 0)
    assert complete_block(core) == 4


def lossy_core() -> tuple[NewtopProcess, Callable[[], list[Frame]]]:
    """A fifth member on a lossy transport, and the frames that it transmits; its own column never lags."""
    view = first_view(GROUP, frozenset(map(ProcessId, ("1", "2", "3", "4", "me"))))
    core = NewtopProcess(ProcessId("me"), {GROUP: view}, NewtopSettings(datagrams=True))
    return core, lambda: [effect.frame for effect in core.drain(0) if isinstance(effect, Transmit)]


def numbered(sender: str, place: int, block: int, previous: int) -> BlockFrame:
    return BlockFrame(GROUP, ProcessId(sender), block, previous, 0, (b"x",), sequence=place)


def complete_block(core: NewtopProcess) -> int:
    """As the next null tells it: `drain` answers everything that has arrived."""
    core.drain(0)
    return core._groups[GROUP].complete_block
