"""Members that start and end independently: properties that cannot be judged are reported, the others are judged."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from tests.support.traces.changing_traces import OPTIONS
from tests.support.traces.handmade import Trace, sentence, verdict, violated

FIRST, SECOND = "0001.000000.aa", "0002.000000.bb"


class Open(Trace):
    """A trace without world rows: no row tells when the run was quiet."""

    def __init__(self, groups: dict[str, Sequence[str]]) -> None:
        super().__init__(groups, options=OPTIONS)

    def start(self, process: str) -> None:
        detail = {"protocol": "newtop", "options": OPTIONS, "groups": {}, "open": True}
        self.row(process, "start", detail=json.dumps(detail))

    def form(self, view: str, *classes: list[str], only: list[str] | None = None, group: str = "orders") -> None:
        members = sorted(member for together in classes for member in together)
        for together in classes:
            for process in together if only is None else [each for each in together if each in only]:
                along = together if (process, group) in self.views else ()
                self.view(
                    process,
                    group,
                    view,
                    members,
                    transitional=along,
                    primary=True,
                    epoch=int(view[:4]),
                    classes=classes,
                )

    def join(self, process: str, group: str = "orders", **detail: Any) -> None:
        self.row(process, "join", group=group, service="total", detail=json.dumps(detail) if detail else None)

    def told(self, process: str, role: str, digest: int, view: str, **detail: Any) -> None:
        text = json.dumps({"role": role, **detail})
        self.row(process, "state", group="orders", view=view, digest=digest, detail=text)

    def close(self) -> pa.Table:
        for process in [each for each in self.lengths if each not in self.closed]:
            self.stop(process)
        return self.table()


def together(*groups: str, apart: bool = False) -> Open:
    """p1 and p2 form each of these groups."""
    trace = Open({group: ["p1", "p2"] for group in groups or ("orders",)})
    for process in ("p1", "p2"):
        trace.start(process)
        for group in trace.groups:
            trace.join(process, group, **({"apart": True} if apart else {}))
    for group in trace.groups:
        trace.form(FIRST, ["p1"], ["p2"], group=group)
    return trace


def test_liveness_and_silence_are_not_judged_and_the_verdict_says_why() -> None:
    trace = together()
    trace.send("p1")  # no member delivers it
    trace.time += 10**12
    events = trace.close()
    assert violated(events) == set()
    for property_id in ("L2", "L3", "L10"):
        found = verdict(events, property_id, "orders")
        assert (found.outcome, found.opportunities) == ("vacuous", 0)
        assert found.note is not None
        assert "no row says that the run was quiet" in found.note


@pytest.mark.parametrize(("apart", "expected"), [(False, {"O3", "O8"}), (True, set())])
def test_groups_that_are_read_apart_have_no_common_order(apart: bool, expected: set[str]) -> None:
    trace = together("orders", "other", apart=apart)
    first, second = trace.send("p1"), trace.send("p1", "other")
    for process in ("p1", "p2"):
        trace.receive(process, first, second) if process == "p2" else None
        trace.deliver(process, second)
        trace.deliver(process, first)
    assert violated(trace.close()) >= expected
    assert bool(violated(trace.table())) == bool(expected)


def test_in_one_group_the_order_is_judged_although_groups_are_read_apart() -> None:
    trace = together("orders", "other", apart=True)
    first, second = trace.send("p1"), trace.send("p1")
    trace.deliver("p1", first, second)
    trace.receive("p2", first, second)
    trace.deliver("p2", second, first)
    assert {"O1", "O3"} <= violated(trace.close())


def joining() -> Open:
    """p3 joins p1 and p2."""
    trace = together()
    trace.start("p3")
    trace.join("p3")
    return trace


def test_a_state_may_be_handed_over_by_a_process_whose_application_never_reads_the_view() -> None:
    trace = joining()
    trace.told("p1", "snapshot", 7, SECOND, **{"class": 0})
    trace.form(SECOND, ["p1", "p2"], ["p3"], only=["p2", "p3"])
    trace.told("p3", "installed", 7, SECOND, **{"class": 0})
    trace.told("p3", "merged", 7, SECOND)
    assert violated(trace.close()) == set()


def test_a_state_that_differs_from_it_is_noticed() -> None:
    trace = joining()
    trace.told("p1", "snapshot", 7, SECOND, **{"class": 0})
    trace.form(SECOND, ["p1", "p2"], ["p3"], only=["p2", "p3"])
    trace.told("p3", "installed", 8, SECOND, **{"class": 0})
    trace.told("p3", "merged", 8, SECOND)
    assert "differs from the one that the class handed over" in sentence(trace.close(), "D12", "orders")


@pytest.mark.parametrize("streamed", [False, True])
def test_a_streamed_state_is_told_when_all_of_it_has_left(streamed: bool) -> None:
    trace = joining()
    trace.form(SECOND, ["p1", "p2"], ["p3"])
    mid = trace.send("p1")
    trace.deliver("p1", mid)
    detail: dict[str, Any] = {"class": 0} | ({"streamed": True} if streamed else {})
    trace.told("p1", "snapshot", 7, SECOND, **detail)
    trace.told("p3", "installed", 7, SECOND, **{"class": 0})
    trace.told("p3", "merged", 7, SECOND)
    assert violated(trace.close()) == (set() if streamed else {"D12"})


@pytest.mark.parametrize("unread", [False, True])
def test_an_application_that_has_not_read_all_may_lack_a_state_that_no_process_could_tell(unread: bool) -> None:
    trace = joining()
    trace.form(SECOND, ["p1", "p2"], ["p3"])
    trace.told("p3", "merged", 0, SECOND)  # p1 and p2 are gone by then, in views that the application has not read
    trace.leave("p3")
    if unread:
        trace.rows[-1]["detail"] = json.dumps({"graceful": True, "unread": True})
    assert violated(trace.close()) == (set() if unread else {"D12"})
