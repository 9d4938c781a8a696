"""Groups that keep their orders apart: a run is right exactly if it is right group by group (classic family)."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.traces.handmade import Trace, ring, sentence, verdict, verdicts, violated
from tests.support.traces.mutations import renumbered
from tests.support.traces.order_oracle import Naive, wild_trace

GROUPS = ("a", "b", "c")


def only(events: pa.Table, group: str) -> pa.Table:
    """The rows of one group, as if there were no other."""
    kept = events.filter(pc.or_kleene(pc.is_null(events["group"]), pc.equal(events["group"], group)))
    return renumbered(kept.sort_by([("process", "ascending"), ("incarnation", "ascending"), ("index", "ascending")]))


@pytest.mark.parametrize(("service", "names"), [("causal", ("O3", "O4")), ("total", ("O6",))])
def test_a_run_is_judged_group_by_group(service: str, names: tuple[str, ...]) -> None:
    differs = 0
    for seed in range(30):
        events = wild_trace(random.Random(seed), protocol="classic", service=service)
        if Naive(events).circular():
            continue
        found, across = verdicts(events), verdicts(events, *names)
        parts = [verdicts(only(events, group)) for group in GROUPS if group in events["group"].to_pylist()]
        for name in names:
            told, alone = found[name, None], [part[name, None] for part in parts]
            assert told.violations == sum(each.violations for each in alone), (seed, name)
            assert told.opportunities == sum(each.opportunities for each in alone), (seed, name)
            differs += across[name, None].violations != told.violations
    assert differs > 2


def test_a_required_property_is_judged_over_all_groups() -> None:
    for seed in range(30):
        events = wild_trace(random.Random(seed), protocol="classic", service="reliable")
        naive = Naive(events)
        found = verdicts(events, "O3", "O6")
        assert bool(found["O6", None].violations) == naive.cyclic_order(), seed
        if not naive.circular():
            assert found["O3", None].violations == naive.late(), seed
            assert found["O3", None].opportunities == naive.dependent(), seed


def test_a_ring_of_groups_breaks_no_order_of_a_group() -> None:
    columns = ring().to_pylist()
    for row in columns:
        if row["kind"] == "start":
            row["detail"] = row["detail"].replace("newtop", "classic")
    events = pa.Table.from_pylist(columns, schema=ring().schema)
    assert verdict(events, "O6").outcome == "pass"
    assert violated(events, "O6") == {"O6"}


def test_a_chain_through_another_group_is_no_cause() -> None:
    trace = Trace({"a": ["p1", "p2", "p3"], "b": ["p1", "p2"]}, protocol="classic", service="causal").begin()
    first = trace.send("p1", "a")
    trace.deliver("p1", first)
    between = trace.send("p1", "b")
    trace.deliver("p1", between)
    trace.deliver("p2", between)
    second = trace.send("p2", "a")
    trace.deliver("p2", second, first)
    trace.deliver("p3", second, first)
    trace.deliver("p1", second)
    events = trace.end(settled=False)
    assert violated(events) == set()
    assert violated(events, "O3") == {"O3"}
    assert "p2 delivered b/p1:0" in sentence(events, "O3", None, "O3")
