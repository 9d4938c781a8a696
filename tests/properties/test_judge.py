"""The interface of the judge: refused traces, services without promises, and many runs in one table."""

import pyarrow as pa
import pytest

from antiphon.errors import TraceError
from antiphon.properties.judge import judge, judge_all
from antiphon.properties.promises import JUDGED
from antiphon.properties.verdicts.verdict import from_table, to_table
from antiphon.trace.schema import EVENTS
from tests.support.traces.handmade import Trace, good_trace, trio


def one_message(run: str = "run-1") -> pa.Table:
    trace = trio(run=run)
    trace.deliver_everywhere(trace.send("p1"))
    return trace.end()


def with_first(events: pa.Table, name: str, value: str | None) -> pa.Table:
    at = events.schema.get_field_index(name)
    values = [value, *events[name].to_pylist()[1:]]
    return events.set_column(at, events.schema.field(at), pa.array(values, events.schema.field(at).type))


def test_verdicts_come_in_order() -> None:
    found = [(verdict.property, verdict.group) for verdict in judge(one_message())]
    assert tuple(name for name, _ in found) == JUDGED
    assert {name for name, group in found if group is None} == {"W", "O3", "O4", "O5x", "O6", "O8"}


def test_verdicts_survive_the_way_through_a_table() -> None:
    trace = trio()
    trace.send("p1")
    found = judge(trace.end())
    assert any(verdict.example for verdict in found)
    assert from_table(to_table(found)) == found


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (EVENTS.empty_table(), "is empty"),
        (pa.concat_tables([one_message("a"), one_message("b")]), "holds 2 runs"),
        (one_message().drop_columns(["clock", "upto"]), "no column clock, upto"),
        (one_message().set_column(0, "run", pa.array([[1]] * len(one_message()))), "types of a trace"),
        (with_first(one_message(), "kind", "begin"), "unknown kind begin"),
        (with_first(one_message(), "detail", "{"), "start row of p1 has a detail that is not JSON"),
        (with_first(one_message(), "detail", "[]"), "start row of p1 has a detail that is not a JSON object"),
        (with_first(one_message(), "detail", None), "start row of p1 does not name protocol and groups"),
        (with_first(one_message(), "detail", '{"protocol": "newtop", "groups": {"orders": {}}}'), "service"),
        (with_first(one_message(), "kind", "gauge"), "p1 has no start row"),
    ],
)
def test_a_malformed_trace_is_refused(events: pa.Table, words: str) -> None:
    with pytest.raises(TraceError, match=words.replace("(", r"\(")):
        judge(events)


def test_a_message_without_a_name_is_refused() -> None:
    trace = trio()
    trace.row("p1", "send", group="orders", sender="p1")
    with pytest.raises(TraceError, match="p1 at index 2 sends or delivers a message without"):
        judge(trace.end())


def test_a_view_without_an_id_is_refused() -> None:
    trace = trio()
    trace.row("p1", "view", group="orders")
    with pytest.raises(TraceError, match="p1 at index 2 installs a view without group or id"):
        judge(trace.end())


def test_components_that_are_no_lists_are_refused() -> None:
    trace = trio()
    for process in trace.members:
        trace.stop(process)
    trace.world("faults_end", {"components": ["p1"]})
    with pytest.raises(TraceError, match="components"):
        judge(trace.table())


def test_a_process_that_never_woke_needs_no_start() -> None:
    trace = trio()
    trace.crash("p4")
    assert not any(verdict.violations for verdict in judge(trace.end()))


def test_services_without_a_promise_are_not_judged() -> None:
    trace = Trace({"orders": ["p1", "p2"]}, protocol="another", service="unreliable").begin()
    mid = trace.send("p1")
    trace.deliver("p2", mid, mid)
    found = judge(trace.end())
    assert [verdict.outcome for verdict in found] == ["pass"] + ["not promised"] * (len(JUDGED) - 1)


def test_a_group_joined_later_is_judged_by_the_service_of_its_rows() -> None:
    trace = trio()
    trace.groups = {**trace.groups, "late": ["p1", "p2"]}
    for process in ("p1", "p2"):
        trace.view(process, "late", "v0", ["p1", "p2"])
    mid = trace.send("p1", "late")
    trace.deliver("p2", mid, mid)
    found = {(verdict.property, verdict.group): verdict for verdict in judge(trace.end())}
    assert found["D2", "late"].violations == 1


def test_dictionary_columns_are_read_like_plain_ones() -> None:
    events = one_message()
    encoded = events.set_column(0, "run", events["run"].dictionary_encode())
    assert judge(encoded) == judge(events)


def test_all_runs_of_a_table_are_judged() -> None:
    runs = [one_message("b"), good_trace(1), one_message("a")]
    mixed = pa.concat_tables([runs[0].slice(0, 5), runs[1], runs[2], runs[0].slice(5)])
    assert judge_all(mixed) == [*judge(runs[2]), *judge(runs[0]), *judge(runs[1])]


def test_a_table_without_rows_has_no_verdicts() -> None:
    assert judge_all(EVENTS.empty_table()) == []


def test_texts_may_come_with_each_value_once() -> None:
    """As Parquet stores them. A table of many runs contains names that a single run does not use."""
    runs = [good_trace(1), one_message(), good_trace(2)]
    plain = pa.concat_tables(runs)
    once = plain.cast(
        pa.schema(
            [
                field.with_type(pa.dictionary(pa.int32(), pa.string()) if field.type == pa.string() else field.type)
                for field in EVENTS
            ]
        )
    ).unify_dictionaries()
    assert judge_all(once) == judge_all(plain)
    assert judge(once.slice(len(runs[0]), len(runs[1]))) == judge(runs[1])
