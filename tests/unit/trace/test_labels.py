"""Messages are numbered from 0 in each group, whether or not anything is traced."""

from antiphon.protocols.newtop.frames import BlockFrame
from antiphon.trace.labels import Labels
from antiphon.types import GroupId, ProcessId

NAME, FORMED, OTHER = GroupId("orders"), GroupId("orders@9"), GroupId("other")
P1, P2 = ProcessId("p1"), ProcessId("p2")


def test_numbers_count_up_in_each_group() -> None:
    labels = Labels(P1)
    assert [labels.take(NAME), labels.take(NAME, 5), labels.take(NAME), labels.take(OTHER)] == [0, 1, 6, 0]


def test_numbers_that_no_frame_took_are_given_again_after_leaving() -> None:
    labels = Labels(P1)
    labels.take(NAME, 10)
    labels.transmitted(BlockFrame(FORMED, P1, 1, 0, 0, (b"a", b"b", b"c"), 2))
    labels.transmitted(BlockFrame(FORMED, P1, 1, 0, 0, (b"a",), 0))  # once more
    labels.transmitted(BlockFrame(FORMED, P2, 1, 0, 0, (b"a",), 50))
    labels.transmitted(BlockFrame(FORMED, P1, 2, 1, 0, (b"piece",), 5, more=True))
    labels.transmitted(BlockFrame(FORMED, P1, 3, 2, 0, (b"state",), 1000, state=0))
    labels.parted(NAME)
    assert labels.take(NAME) == 5
    labels.parted(OTHER)
    assert labels.take(OTHER) == 0
