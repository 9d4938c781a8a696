"""A page made by hand: two members, three messages, one of each outcome, names that try to be HTML."""

from dataclasses import replace

from antiphon.pipeline.figures.histograms import LatencyHistogram, MessagesOverTime
from antiphon.pipeline.figures.measures import (
    Experiment,
    Flow,
    GroupStatistics,
    Latency,
    MemberStatistics,
    RunStatistics,
    Statistics,
    Traffic,
)
from antiphon.properties.verdicts.summary import PropertySummary
from antiphon.properties.verdicts.verdict import Outcome
from antiphon.report.model import About, Page, RunVerdict
from antiphon.report.spacetime import Arrow, Happening, Lifeline, Mark, Scene

MS = 1_000_000
HOSTILE = "<script>alert('x')</script>&\"$"

LATENCY = Latency(count=4, mean_ns=2.5e6, p50_ns=2.25e6, p90_ns=3.5e6, p99_ns=3.875e6, max_ns=4 * MS)
STABILITY = Latency(count=2, mean_ns=7.5e6, p50_ns=7.5e6, p90_ns=9e6, p99_ns=9.5e6, max_ns=10 * MS)
TRAFFIC = Traffic(
    sent=1234,
    delivered=2468,
    frames={"data": 617, "null": 55},
    null_share=0.125,
    nulls_per_message=0.045,
    header_bytes_per_message=61.5,
    header_ratio=0.625,
    stamp_bytes_per_message=8.25,
    stamp_bytes_per_data_frame=90.5,
    announcements_per_message=0.375,
    repairs_per_message=1.25,
    messages_per_data_frame=2.0,
    copies_per_message=5.75,
    wire_bytes_per_message=512.25,
    acknowledgments_per_message=0.625,
)
BUSY = replace(TRAFFIC, copies_per_message=4.5, wire_bytes_per_message=256.25, header_bytes_per_message=30.5)
FLOW = Flow(blocked_times=3, blocked_ns=4_500_000, unstable_blocks_max=48, buffers_max=69)
EXPERIMENT = Experiment(delay_overhead_ns=1.5e6, nulls=55, nulls_per_inactive_member=None, first_sender_per_second=97.5)


def statistics(*runs: str) -> Statistics:
    members = tuple(MemberStatistics(name, 617, 1234, 99.5, LATENCY, 1.5e6, 17, 27, FLOW) for name in ("a", "b"))
    group = GroupStatistics("orders", 98.5, LATENCY, STABILITY, 0, None, TRAFFIC, BUSY, 17, FLOW, EXPERIMENT, members)
    overall = run_statistics(None, replace(group, members=()))
    return Statistics("exact", overall, tuple(run_statistics(run, group) for run in runs), len(runs))


def run_statistics(run: str | None, *groups: GroupStatistics) -> RunStatistics:
    return RunStatistics(
        run, 20.0, 0, LATENCY, STABILITY, 0, None, TRAFFIC, BUSY, None, 17, FLOW, None, EXPERIMENT, groups
    )


def entry(property_id: str, outcome: Outcome, group: str | None = None) -> PropertySummary:
    return {
        "property": property_id,
        "group": group,
        "outcome": outcome,
        "opportunities": 0 if outcome in ("vacuous", "not promised") else 4321,
        "violations": 3 if outcome == "violated" else 0,
        "example": None,
        "runs": 1,
        "note": None,
    }


def violated(property_id: str, sentence: str) -> PropertySummary:
    example = {
        "run": "run-1",
        "sentence": sentence,
        "processes": ("a", "b"),
        "messages": ("orders/a:0", "orders/b:0"),
        "indexes": (11, 12, 21, 22),
        "views": ("view-7",),
    }
    return {**entry(property_id, "violated"), "example": example}


def scene() -> Scene:
    """a sends one frame with two messages and b a null; both deliver both messages."""
    return Scene(
        window_ns=(0, 10 * MS),
        lifelines=(Lifeline("a", 0, 20 * MS), Lifeline("b", 0, 20 * MS)),
        arrows=(
            Arrow("orders/a/1", "data", "a", "b", 1 * MS, 3 * MS),
            Arrow("orders/b/1", "null", "b", "a", 4 * MS, 6 * MS),
        ),
        marks=(
            Mark("a", 1, 1 * MS, "send", "a", 0),
            Mark("a", 2, 1 * MS, "send", "a", 1),
            Mark("b", 3, 3 * MS, "deliver", "a", 0),
            Mark("b", 4, 3 * MS, "deliver", "a", 1),
            Mark("a", 5, 6 * MS, "deliver", "a", 0),
            Mark("a", 6, 6 * MS, "deliver", "a", 1),
        ),
        arrows_total=2,
        processes_total=2,
    )


def page() -> Page:
    """One run in which everything holds."""
    about = About("run-1", "orders-scenario", 7, "0.1.0", "virtual", finished=True, scenario_toml='name = "<orders>"')
    return Page(
        shown=about,
        runs=(RunVerdict(about, "hold", ()),),
        overall="hold",
        properties=(entry("W", "pass"), entry("D8", "vacuous", "orders"), entry("O6", "pass")),
        statistics=statistics("run-1"),
        histograms=(LatencyHistogram("orders", [0, 2 * MS, 4 * MS], [3, 1]),),
        course=MessagesOverTime([0, 5 * MS, 10 * MS], [2, 0], [0, 4], [1, 0]),
        happenings=(Happening(2 * MS, "pause of b begins"),),
        scene=scene(),
        window_reason="its first messages",
    )


def broken_page() -> Page:
    """The same with a violation of O6 that has a witness."""
    about = page().shown
    return replace(
        page(),
        runs=(RunVerdict(about, "violated", ("O6",)),),
        overall="violated",
        properties=(entry("W", "pass"), violated("O6", "a delivered this before that, yet b did not")),
        scene=replace(scene(), witness=frozenset({("a", 5)})),
    )


def hostile_page() -> Page:
    """Every text that can come from outside tries to leave its place."""
    about = About(HOSTILE, HOSTILE, 7, HOSTILE, HOSTILE, finished=False, scenario_toml=HOSTILE)
    member = MemberStatistics(HOSTILE, 1, 1, 1.0, None, None, None, 0, FLOW)
    group = GroupStatistics(HOSTILE, None, None, None, 0, None, TRAFFIC, BUSY, None, FLOW, EXPERIMENT, (member,))
    figures = replace(run_statistics(HOSTILE, group), latency=None, traffic=replace(TRAFFIC, frames={HOSTILE: 1}))
    drawn = Scene(
        window_ns=(0, MS),
        lifelines=(Lifeline(HOSTILE, 0, MS), Lifeline("b", 0, MS)),
        arrows=(Arrow(HOSTILE, HOSTILE, HOSTILE, "b", 0, MS),),
        marks=(Mark(HOSTILE, 0, 0, "send", HOSTILE, 0, HOSTILE), Mark("b", 0, MS, HOSTILE)),
        happenings=(Happening(0, HOSTILE),),
    )
    return replace(
        page(),
        shown=about,
        runs=(RunVerdict(about, "violated", (HOSTILE,)), RunVerdict(replace(about, run="other"), "hold", ())),
        overall="violated",
        properties=({**violated(HOSTILE, HOSTILE), "group": HOSTILE, "note": HOSTILE},),
        statistics=Statistics("approximate", replace(figures, run=None), (figures,), 1),
        histograms=(LatencyHistogram(HOSTILE, [0, MS], [1]),),
        happenings=(Happening(0, HOSTILE),),
        scene=drawn,
        window_reason=HOSTILE,
    )
