"""Numbers from other processes: a time that cannot be one changes nothing (settings.STAMP_AHEAD_MAX_US)."""

import pytest

from antiphon.core.effects import ClockAhead
from antiphon.protocols.intergroup.frames import (
    DataFrame,
    InterGroupFrame,
    JoinInfoFrame,
    JoinRequestFrame,
    KeepAliveFrame,
    RepairFrame,
    ReportFrame,
    SourceAcceptFrame,
)
from antiphon.protocols.intergroup.settings import STAMP_AHEAD_MAX_US
from antiphon.types import ProcessId
from antiphon.wire.codec import encode
from antiphon.wire.reader import NUMBER_MAX
from tests.support.intergroup_cluster import GROUP, Cluster

S1, S2, R1 = ProcessId("s1"), ProcessId("s2"), ProcessId("r1")


def hostile(cluster: Cluster, number: int) -> list[InterGroupFrame]:
    epoch = cluster.views[S1][0].id
    data = DataFrame(GROUP, S2, 1, number, epoch, 0, (b"x",))
    return [
        JoinRequestFrame(GROUP, R1, number),
        data,
        DataFrame(GROUP, S2, 1, 1, epoch, number, (b"x",)),
        RepairFrame(GROUP, R1, data),
        KeepAliveFrame(GROUP, S2, 0, number, epoch, 0),
        KeepAliveFrame(GROUP, S2, 0, 1, epoch, number),
        ReportFrame(GROUP, R1, epoch, number, None),
        JoinInfoFrame(GROUP, S2, R1, epoch, epoch, 0, number, ((S1, 1), (S2, 1)), ((S1, 1), (S2, 1)), (), ()),
        SourceAcceptFrame(GROUP, S2, R1, 1, epoch, (S1, S2), 1, number),
    ]


@pytest.mark.parametrize("number", [NUMBER_MAX, NUMBER_MAX - 3, 2 * STAMP_AHEAD_MAX_US])
@pytest.mark.parametrize("kind", range(9))
def test_no_time_beyond_the_plausible_reaches_a_clock_or_an_acknowledgment(kind: int, number: int) -> None:
    cluster = Cluster(2, {"r1": "total", "f1": "fifo"})
    cluster.run(2_500)
    frame = hostile(cluster, number)[kind]
    for name in cluster.cores:
        if name != frame.sender:
            cluster.hand(name, frame)
    sent = [cluster.send(name) for name in ("s1", "s2") * 5]
    cluster.run(3_000)
    for _, each in cluster.transmitted:
        encode(each)  # every number still fits
    for reader in ("s1", "s2", "r1", "f1"):
        assert {*sent} == {*cluster.payloads(reader)}
    assert cluster.discarded[S1] == cluster.discarded[S2] == {S1: 4, S2: 4}


def test_a_clock_within_the_plausible_is_tolerated_and_reported() -> None:
    cluster = Cluster(2, skew={"s1": 3_600 * 10**9})
    cluster.run(300)
    sent = [cluster.send(name) for name in ("s1", "s2") * 5]
    cluster.run(3_000)
    assert {*sent} == {*cluster.payloads("s2")}
    assert [notice.process for notice in cluster.notices["s2"] if isinstance(notice, ClockAhead)] == ["s1"]
