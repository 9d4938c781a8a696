"""Traces of other systems: what their words promise, and that nothing which the checkers need is lost on the way."""

import random
from itertools import chain, combinations
from pathlib import Path

import pyarrow as pa
import pytest

from antiphon.properties.families import BUILT_IN, PROMISES, promised_by
from antiphon.properties.judge import judge
from antiphon.properties.other_systems import SERVICES
from antiphon.properties.promises import JUDGED
from antiphon.properties.verdicts.summary import summarise
from antiphon.properties.verdicts.verdict import Verdict
from antiphon.scenario.read import read_scenario, with_seed
from antiphon.sim.run import simulate
from antiphon.trace.promise_words import NOTHING, PROTOCOL, SENDING, WORDS, parts_of, service_of
from antiphon.trace.table import events_table
from tests.support.traces.acks_traces import good_acks_trace
from tests.support.traces.classic_mutations import CLASSIC_FAULTS, Fault
from tests.support.traces.classic_traces import SERVICES as CLASSIC
from tests.support.traces.classic_traces import good_classic_trace
from tests.support.traces.handmade import trio, verdicts
from tests.support.traces.in_lines import as_known, events_of, exported, written
from tests.support.traces.mutations import Log

SCENARIOS = Path(__file__).parents[2] / "scenarios"
WORDS_OF = {
    "reliable": ["reliable"],
    "fifo": ["reliable", "fifo"],
    "causal": ["reliable", "causal"],
    "total": ["reliable", "total"],
}
"""What the services of the lecture notes are in words."""


# -------------------------------------------------------------------------------- words


def test_every_set_of_words_is_a_service_with_one_name() -> None:
    sets = [*chain.from_iterable(combinations(WORDS, count) for count in range(len(WORDS) + 1))]
    assert {service_of(words) for words in sets} | {SENDING} == {*SERVICES}
    for words in sets:
        assert service_of(reversed(words)) == service_of(words)
        assert parts_of(service_of(words).split("+") if words else ()) == parts_of(words)


def test_words_that_include_others_are_named_alone() -> None:
    assert service_of(["at-most-once", "total", "at-least-once"]) == "reliable+total"
    assert service_of(["fifo", "causal"]) == "causal"
    assert service_of([]) == NOTHING
    with pytest.raises(ValueError, match=r"'exactly-once' is no promise; the promises are reliable, at-most-once"):
        service_of(["exactly-once"])


def test_more_words_promise_more() -> None:
    for one, other in combinations([service for service in SERVICES if service not in (NOTHING, SENDING)], 2):
        if parts_of(one.split("+")) < parts_of(other.split("+")):
            assert SERVICES[one] <= SERVICES[other], (one, other)


def test_all_promises_have_a_checker() -> None:
    assert frozenset().union(*SERVICES.values()) <= {*JUDGED}
    assert SERVICES[NOTHING] == frozenset()
    assert PROTOCOL not in BUILT_IN
    assert promised_by(PROTOCOL).services is SERVICES


@pytest.mark.parametrize("service", CLASSIC)
def test_the_words_of_the_lecture_notes_promise_what_these_services_do(service: str) -> None:
    beyond = {"D14", "L8"}  # requests, and frames that a core holds
    assert SERVICES[service_of(WORDS_OF[service])] == PROMISES["classic", service] - beyond


# -------------------------------------------------------------------------------- nothing is lost


def judged(events: pa.Table) -> dict[tuple[str, str | None], Verdict]:
    found = verdicts(events)
    assert found["W", None].outcome == "pass", found["W", None].example
    return found


@pytest.mark.parametrize(
    "name", ["failures", "join", "overlapping", "restart", "real/sequencer", "real/intergroup-senders"]
)
def test_a_run_of_the_simulator_gets_the_same_verdicts(name: str, tmp_path: Path) -> None:
    run = simulate(with_seed(read_scenario(SCENARIOS / f"{name}.toml"), 3))
    events = events_table(run.id, run.histories)
    assert judged(exported(events, tmp_path)) == judged(events)


@pytest.mark.parametrize("stability", ["own", "all"])
def test_a_run_with_acknowledgments_gets_the_same_verdicts(stability: str, tmp_path: Path) -> None:
    events = good_acks_trace(1, stability)
    assert judged(exported(events, tmp_path)) == judged(events)


Counts = dict[tuple[str, str | None], tuple[str, int, int]]


def counts(events: pa.Table, service: str) -> Counts:
    """The verdicts on what the words promise."""
    promised = SERVICES[service_of(WORDS_OF[service])] - {"W"}
    return {
        place: (verdict.outcome, verdict.opportunities, verdict.violations)
        for place, verdict in judged(events).items()
        if place[0] in promised
    }


@pytest.mark.parametrize("service", CLASSIC)
def test_what_a_system_knows_is_enough_for_the_verdicts(service: str, tmp_path: Path) -> None:
    for seed in range(12):
        events = good_classic_trace(seed, service)
        found = counts(as_known(events, tmp_path / str(seed), WORDS_OF[service]), service)
        assert found == counts(events, service), seed
        assert not [place for place, (_, _, violations) in found.items() if violations]


UNTOLD = "forget a request of a sender outside"
"""No line tells that an application asked to send something that never left."""


@pytest.mark.parametrize(
    "fault", [each for each in CLASSIC_FAULTS if each.mutation.name != UNTOLD], ids=lambda fault: fault.mutation.name
)
def test_a_fault_is_found_from_what_a_system_knows(fault: Fault, tmp_path: Path) -> None:
    """In the first run that offers a place for it, with the same counts as in the complete trace."""
    for seed in range(1_500):
        service = fault.services[seed % len(fault.services)]
        mutant = fault.mutation.apply(Log(good_classic_trace(seed, service)), random.Random(seed))
        if mutant is not None:
            assert counts(as_known(mutant, tmp_path, WORDS_OF[service]), service) == counts(mutant, service)
            return
    pytest.fail("no trace offered a place for it")


# -------------------------------------------------------------------------------- planted by hand

Lines = dict[str, str]
"""By process its steps: `!` sends, `a0` delivers message 0 of a, `<` leaves, `.` stops, `x` is killed."""


def traced(directory: Path, promises: str, logs: Lines, members: str = "a b c") -> Path:
    groups = {"g": {"promises": promises.split(), "members": members.split()}}
    for process, steps in logs.items():
        lines: list[object] = [{"antiphon_trace": 1, "process": process, "groups": groups}]
        for step in steps.split():
            if step == "!":
                lines.append({"kind": "send", "group": "g"})
            elif step == "<":
                lines.append({"kind": "leave", "group": "g"})
            elif step == ".":
                lines.append({"kind": "stop", "quiet": True})
            elif step != "x":
                lines.append({"kind": "deliver", "group": "g", "sender": step[:-1], "number": int(step[-1])})
        written(directory, **{process: lines})
    return directory


def broken(directory: Path, *required: str) -> dict[str, str]:
    """The violated properties, with their sentences."""
    told = verdicts(events_of(directory), *required)
    return {name: each.example.sentence for (name, _), each in told.items() if each.example is not None}


PLANTED: list[tuple[str, str, Lines, set[str], str]] = [
    (
        "two orders",
        "total",
        {"a": "! a0 b0 .", "b": "! b0 a0 .", "c": "a0 b0 ."},
        {"O5", "O6"},
        "but b delivered g/b:0 (index 3) before g/a:0 (index 4)",
    ),
    (
        "an order with gaps",
        "reliable total",
        {"a": "! a0 b0 .", "b": "! b0 .", "c": "a0 b0 ."},
        {"O7", "L2", "D13"},
        "a sent g/a:0 (index 2) in view initial, but b, to which it sent",
    ),
    (
        "overtaken by the same sender",
        "at-most-once fifo",
        {"a": "! ! a0 a1 .", "b": "a1 a0 .", "c": "a1 ."},
        {"O1"},
        "b delivered g/a:1 (index 2) before g/a:0 (index 3)",
    ),
    (
        "a gap",
        "reliable fifo",
        {"a": "! ! a0 a1 .", "b": "a1 .", "c": "a0 a1 ."},
        {"O2", "L2", "D13"},
        "had not delivered g/a:0",
    ),
    (
        "an answer before its question",
        "at-most-once causal",
        {"a": "! a0 b0 .", "b": "a0 ! b0 .", "c": "b0 a0 ."},
        {"O3"},
        "c delivered g/b:0 (index 2) before g/a:0 (index 3), but g/a:0 happened before g/b:0",
    ),
    (
        "an answer before its question, in one order",
        "reliable causal total",
        {"a": "! a0 .", "b": "a0 !", "c": "b0 a0 ."},
        {"O3", "O8", "D13"},
        "happened before",
    ),
    (
        "twice",
        "at-most-once",
        {"a": "! a0 .", "b": "a0 a0 .", "c": "."},
        {"D2"},
        "b delivered g/a:0 twice (index 2 and index 3)",
    ),
    ("twice, permitted", "at-least-once", {"a": "! a0 .", "b": "a0 a0 .", "c": "a0 ."}, set(), ""),
    ("made up", "at-most-once", {"a": "! a0 .", "b": "a0 a1 .", "c": "."}, {"D1"}, "but a never sent such a message"),
    ("of nobody", "fifo", {"a": ".", "b": "z0 .", "c": "."}, {"D1"}, "but z never sent such a message in that group"),
    ("before it was sent", "fifo", {"a": "a0 ! .", "b": ".", "c": "."}, {"D1"}, "it was delivered before it was sent"),
    (
        "to a sender outside",
        "fifo",
        {"a": "! a0 .", "b": "a0 .", "c": ".", "z": "a0 ."},
        {"D3"},
        "z delivered g/a:0 (index 2) although it only sends in g",
    ),
    (
        "after it left",
        "fifo",
        {"a": "! a0 .", "b": "< a0 .", "c": "."},
        {"D3"},
        "b delivered g/a:0 (index 3) although it had left g",
    ),
    ("lost in the end", "reliable", {"a": "! a0 .", "b": "a0 .", "c": "."}, {"L2", "D13"}, "c"),
    ("not by its sender", "reliable", {"a": "! .", "b": "a0 .", "c": "a0 ."}, {"L2", "L3", "D13"}, ""),
    ("lost, and nothing says the end", "reliable", {"a": "! a0 .", "b": "a0 .", "c": "x"}, set(), ""),
    ("lost by a sender outside", "reliable", {"a": "z0 .", "b": ".", "c": "z0 .", "z": "! ."}, {"L2", "D13"}, "b"),
    ("alone before a crash", "reliable total", {"a": "! a0 b0 x", "b": "! b0 a0 .", "c": "b0 a0 ."}, set(), ""),
    (
        "alone before a crash, uniform",
        "reliable total uniform",
        {"a": "! a0 b0 x", "b": "! b0 a0 .", "c": "b0 a0 ."},
        {"O6", "O7"},
        "",
    ),
    ("beyond the log of a crashed sender", "reliable fifo", {"a": "! a0 x", "b": "a0 a1 .", "c": "a0 a1 ."}, set(), ""),
    (
        "again after a restart",
        "reliable total",
        {"a": "! a0 b0 x", "a#1": "a0 b0 ! a#10 .", "b": "! a0 b0 a#10 .", "c": "a0 b0 a#10 ."},
        set(),
        "",
    ),
    (
        "a restart in another order",
        "reliable total",
        {"a": "! x", "a#1": "b0 a0 .", "b": "! a0 b0 .", "c": "a0 b0 ."},
        {"O6"},
        "a#1 delivered",
    ),
    (
        "no message is repeated, and one restarted",
        "reliable total uniform",
        {"a": "! a0 b0 x", "a#1": "c0 .", "b": "! a0 b0 c0 .", "c": "a0 b0 ! c0 ."},
        set(),
        "",
    ),
]


@pytest.mark.parametrize(
    ("promises", "logs", "violated", "part"), [each[1:] for each in PLANTED], ids=[each[0] for each in PLANTED]
)
def test_a_planted_violation_is_found(
    promises: str, logs: Lines, violated: set[str], part: str, tmp_path: Path
) -> None:
    sentences = broken(traced(tmp_path, promises, logs))
    assert {*sentences} == violated
    assert part in " ".join(sentences.values())


def test_nothing_is_judged_that_is_not_promised(tmp_path: Path) -> None:
    wrong = {"a": "! ! a1 a0 a0 .", "b": "! b0 a0 a1 .", "c": "z0 ."}
    told = verdicts(events_of(traced(tmp_path, "", wrong)))
    assert {name for (name, _), each in told.items() if each.outcome != "not promised"} == {"W"}
    assert broken(tmp_path, "O1", "D1", "D2").keys() == {"O1", "D1", "D2"}


def test_a_protocol_that_nobody_knows_is_not_fine() -> None:
    trace = trio(protocol="of a package that is not installed")
    trace.deliver_everywhere(trace.send("p1"))
    events = trace.end()
    assert summarise(judge(events)) == "unknown"
    assert summarise(judge(events, frozenset(["D1"]))) == "hold"


def test_a_process_that_its_group_names_must_have_a_trace(tmp_path: Path) -> None:
    (sentence,) = broken(traced(tmp_path, "total", {"a": ".", "b": "."})).values()
    assert sentence == "W7: a installs a view with c at index 1, but the trace has no log of c"


def test_a_delivery_in_a_group_that_was_never_entered(tmp_path: Path) -> None:
    traced(tmp_path, "total", {"a": "! a0 .", "b": "a0 .", "c": "a0 ."})
    stray = {"kind": "deliver", "group": "g", "sender": "a", "number": 0}
    written(tmp_path, z=[{"antiphon_trace": 1, "process": "z", "groups": {}}, stray])
    assert broken(tmp_path) == {"D3": "z delivered g/a:0 (index 2) although it had not entered g"}


def test_an_altered_message(tmp_path: Path) -> None:
    groups = {"g": {"promises": ["fifo"], "members": ["a"]}}
    lines: list[dict[str, object]] = [{"kind": "send", "group": "g", "digest": "one"}]
    lines += [{"kind": "deliver", "group": "g", "sender": "a", "number": 0, "digest": "two"}]
    written(tmp_path, a=[{"antiphon_trace": 1, "process": "a", "groups": groups}, *lines])
    assert "with a different digest than a sent" in broken(tmp_path)["D1"]


def test_views_are_judged_if_they_are_promised(tmp_path: Path) -> None:
    def log(process: str, *steps: tuple[str, str]) -> None:
        lines: list[object] = [
            {"antiphon_trace": 1, "process": process, "groups": {"g": {"promises": ["views", "at-most-once"]}}}
        ]
        for kind, what in steps:
            line: dict[str, object] = {"kind": kind, "group": "g"}
            if kind == "view":
                line |= {"view": what.split()[0], "members": what.split()[1:]}
            if kind == "deliver":
                line |= {"sender": what[0], "number": int(what[1])}
            lines.append(line)
        written(tmp_path, **{process: [*lines, {"kind": "stop"}]})

    log("a", ("view", "1 a b c"), ("send", ""), ("deliver", "a0"), ("view", "2 a b"), ("deliver", "c0"))
    log("b", ("view", "1 a b c"), ("view", "2 a b"), ("deliver", "a0"))
    log("c", ("view", "1 a b c"), ("send", ""), ("view", "3 a c"))
    sentences = broken(tmp_path)
    assert {*sentences} == {"D4", "D5w", "D8"}
    assert "a delivered g/a:0 (index 3) in view 1, but b delivered it in view 2 instead" in sentences["D8"]
    assert "but c is not a member of it: its members are a, b" in sentences["D4"]


def test_a_stamp_is_a_certificate_and_no_stamp_is_no_flaw(tmp_path: Path) -> None:
    directory = traced(tmp_path, "total", {"a": "! a0 b0 .", "b": "! a0 b0 .", "c": "a0 b0 ."})
    assert verdicts(events_of(directory))["O6", None].note is None
