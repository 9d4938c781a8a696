"""The checkers of stability against naive ones that follow the definitions row by row, on mostly wrong traces."""

import random
from collections import Counter

import pyarrow as pa
import pytest

from tests.support.traces.handmade import Trace, verdicts
from tests.support.traces.stability_oracle import Naive, some_prefixes


def wild_trace(rng: random.Random) -> pa.Table:
    """Members of two groups send, receive, deliver, report as stable and free random messages, often at one time."""
    members = ["p1", "p2", "p3"]
    options = rng.choice(({}, {"flow_control": 3, "window": 3, "window_bytes": 100}))
    numbering = rng.choice(("separate", "block"))
    trace = Trace({"a": members, "b": members[1:]}, options=options, numbering=numbering).begin()
    up = list(members)
    for _ in range(rng.randint(20, 90)):
        process = rng.choice(up)
        group = rng.choice(trace.groups_of(process))
        act(rng, trace, process, group)
        if len(up) == 3 and rng.random() < 0.02:
            trace.crash(process)
            up.remove(process)
    events = trace.end(quiet=False)
    at = events.schema.get_field_index("time")
    times = pa.array([time // 4 for time in events["time"].to_pylist()], pa.int64())
    return events.set_column(at, events.schema.field(at), times)


def act(rng: random.Random, trace: Trace, process: str, group: str) -> None:
    sent = [mid for mid in trace.sent if mid.group == group]
    lacking = [mid for mid in sent if (process, mid) not in trace.had]
    draw = rng.random()
    if draw < 0.25 or not sent:
        trace.send(process, group, clock=trace.clock + rng.randrange(2))
    elif draw < 0.5 and lacking:
        trace.receive(process, *rng.sample(lacking, min(len(lacking), 2)))
    elif draw < 0.7:
        trace.deliver(process, rng.choice(sent))
    elif draw < 0.85:
        trace.stable(process, some_prefixes(rng, sent), group)
    elif draw < 0.97:
        trace.discard(process, some_prefixes(rng, sent), group, evicted=rng.random() < 0.6)
    elif trace.views[process, group] == "v0":
        trace.view(process, group, "v1", sorted({process, *trace.groups[group][1:]}))


@pytest.mark.parametrize("block", range(3))
def test_checkers_agree_with_naive_ones(block: int) -> None:
    seen: Counter[tuple[str, bool]] = Counter()
    for seed in range(block * 50, block * 50 + 50):
        events = wild_trace(random.Random(seed))
        naive, found = Naive(events).found, verdicts(events)
        for name in ("S1", "S2", "S4"):
            for group in ("a", "b"):
                assert found[name, group].violations == naive[name, group], (seed, name, group)
                seen[name, bool(naive[name, group])] += 1
    assert min(seen.values()) > 5
    assert len(seen) == 6
