from antiphon.core.newtop.blocks import BlockMatrix
from antiphon.core.newtop.frames import BlockFrame
from antiphon.types import GroupId, ProcessId


def frame(sender: int, block: int) -> BlockFrame:
    return BlockFrame(GroupId("g"), ProcessId(f"p{sender}"), block, 0, 0)


def test_rows_leave_in_block_order_once_complete() -> None:
    matrix = BlockMatrix(2)
    matrix.insert(0, frame(0, 7))
    assert matrix.take_complete() == []
    matrix.insert(1, frame(1, 3))
    matrix.insert(1, frame(1, 9))
    assert [[cell.block for cell in row] for row in matrix.take_complete()] == [[3], [7]]
    assert matrix.take_complete() == []
    assert matrix.incomplete_rows == 1


def test_only_stable_rows_are_freed_and_counted_out() -> None:
    matrix = BlockMatrix(2)
    for block in (1, 2, 3):
        matrix.insert(0, frame(0, block))
        matrix.insert(1, frame(1, block))
    matrix.take_complete()
    assert [cell.block for cell in matrix.discard(2)] == [1, 1, 2, 2]
    assert matrix.unstable_frames == 2
    assert matrix.discard(2) == []
