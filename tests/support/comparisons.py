"""A comparison made by hand: one protocol of each family, one of each standing, names that try to be HTML."""

from dataclasses import replace

from antiphon.pipeline.figures.measures import Costs
from antiphon.report.comparison import Comparison, Contender, Finding, Judgement, Standing
from tests.support.report_pages import HOSTILE, LATENCY, TRAFFIC, run_statistics


def finding(standing: Standing, sentence: str | None = None) -> Finding:
    opportunities = 0 if standing == "no opportunity" else 4321
    return Finding(standing, opportunities, 3 if sentence else 0, sentence, "run-1" if sentence else None)


def promised(name: str, standing: Standing, sentence: str | None = None) -> Judgement:
    found = finding(standing, sentence)
    return Judgement(name, found, found)


def asked(name: str, standing: Standing, sentence: str | None = None) -> Judgement:
    return Judgement(name, None, finding(standing, sentence))


def comparison() -> Comparison:
    """Newtop keeps everything, the classic one keeps O6 in each group only, acks breaks O6 without a promise."""
    split = Judgement("O6", finding("kept"), finding("broken", "two groups disagree"))
    newtop = Contender(
        "newtop:total",
        ("first-newtop-total-1", "first-newtop-total-2"),
        (),
        run_statistics(None),
        (promised("W", "kept"), promised("O6", "kept"), asked("S5", "no opportunity")),
    )
    slower = replace(LATENCY, mean_ns=8e6, p99_ns=16e6)
    classic = replace(
        newtop,
        name="classic:total",
        figures=replace(run_statistics(None), latency=slower, stability_latency=None, unstable_max=12),
        judgements=(promised("W", "kept"), split, asked("S5", "no opportunity")),
    )
    acks = replace(
        newtop,
        name="acks:vector",
        notes=("on streams instead of datagrams",),
        figures=replace(run_statistics(None), costs=Costs(1200, 34), idle_copies_per_second=120.5),
        judgements=(
            promised("W", "kept"),
            asked("O6", "broken", "p1 delivered this before that"),
            promised("S5", "no opportunity"),
        ),
    )
    return Comparison(
        scenario="first",
        scenario_toml='name = "<first>"',
        seeds=(1, 2),
        antiphon_version="0.1.0",
        percentiles="exact",
        contenders=(newtop, classic, acks),
        skipped=(("acks:explicit", "options.stability: why"),),
    )


def broken_comparison() -> Comparison:
    """The same with a promise broken by the first of them."""
    made = comparison()
    first = replace(
        made.contenders[0], judgements=(promised("W", "kept"), promised("O6", "broken", "a delivered, b did not"))
    )
    return replace(made, contenders=(first, *made.contenders[1:]))


def hostile_comparison() -> Comparison:
    """Every text that can come from outside tries to leave its place."""
    made = comparison()
    hostile = Contender(
        f"{HOSTILE}:{HOSTILE}",
        (HOSTILE,),
        (HOSTILE,),
        replace(run_statistics(None), latency=None, stability_latency=None, traffic=replace(TRAFFIC, sent=0)),
        (Judgement("O6", None, replace(finding("broken", HOSTILE), run=HOSTILE)),),
    )
    return replace(
        made,
        scenario=HOSTILE,
        scenario_toml=HOSTILE,
        antiphon_version=HOSTILE,
        percentiles="approximate",
        contenders=(hostile, made.contenders[0]),
        skipped=((HOSTILE, HOSTILE),),
    )
