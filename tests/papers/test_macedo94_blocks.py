"""Worked examples of Macedo94 (the Newtop thesis), chapters 2 and 3; numbering of cases as in the specification."""

from antiphon.core.newtop.blocks import BlockMatrix
from antiphon.core.newtop.frames import BlockFrame
from antiphon.types import GroupId, ProcessId
from tests.cluster import SLOW_NS, Cluster


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
    for _ in range(2):  # let everyone answer m2
        cluster.wait(SLOW_NS)
        cluster.move_all()
    assert list(cluster.delivered.values()) == [[b"m1", b"other", b"m2"]] * 3


def matrix_of(columns: int, rows: dict[int, list[int]]) -> BlockMatrix:
    """The matrix in which each row holds a message of each listed column (columns count from 1)."""
    matrix = BlockMatrix(columns)
    for block, senders in rows.items():
        for column in senders:
            matrix.insert(column - 1, BlockFrame(GroupId("g"), ProcessId(str(column)), block, 0, 0))
    return matrix


def test_figure_3_1_the_receive_vector_gives_the_complete_blocks() -> None:
    """Fig. 3.1: six columns, five rows; block 2 is the largest complete one, rows 3, 4 and 5 are incomplete."""
    matrix = matrix_of(6, {1: [1, 4], 2: [2, 5, 6], 3: [1, 3, 4], 4: [1, 5], 5: [2]})
    assert matrix.last_received.values == [4, 5, 3, 3, 4, 2]
    assert matrix.complete_block == 2
    assert matrix.incomplete_rows == 3
    matrix.insert(5, BlockFrame(GroupId("g"), ProcessId("6"), 3, 2, 0))
    assert matrix.complete_block == 3
    assert matrix.incomplete_rows == 2


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
    matrix = matrix_of(3, {1: [1, 2, 3], 2: [1, 2, 3], 3: [3]})
    assert matrix.complete_block == 2
    matrix.insert(0, BlockFrame(GroupId("g"), ProcessId("1"), 3, 2, 0))
    assert matrix.complete_block == 2
    matrix.insert(1, BlockFrame(GroupId("g"), ProcessId("2"), 5, 2, 0))
    assert matrix.complete_block == 3
