"""Scenario files: valid contents, and one sentence for each mistake."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import ConfigurationError
from antiphon.scenario.read import parse_scenario, read_scenario, run_id, scenario_toml, with_seed
from antiphon.scenario.units import Bandwidth, Duration

GOOD = """
name = "small"
[[group]]
name = "orders"
members = 3
"""
OFF = '[options]\nsuspect_after = "0s"\n'
SCENARIOS = Path(__file__).parents[3] / "scenarios"
SHIPPED = sorted({*SCENARIOS.rglob("*.toml")} - {*SCENARIOS.glob("sweep/*.toml")})


def refusal(text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parse_scenario(text)
    return str(caught.value)


def partition(sides: list[list[str]]) -> str:
    return f'[[fault]]\nat = "2s"\nkind = "partition"\nsides = {sides}\n'


def suspect(process: str, by: list[str]) -> str:
    return f'[[fault]]\nat = "1s"\nkind = "suspect"\nprocess = "{process}"\nby = {by}\n'


def crash(process: str) -> str:
    return f'[[fault]]\nat = "1s"\nkind = "crash"\nprocess = "{process}"\n'


@pytest.mark.parametrize(
    ("text", "nanoseconds"), [("50ms", 50_000_000), ("1.5s", 1_500_000_000), ("0us", 0), ("2h", 7_200_000_000_000)]
)
def test_durations_have_a_unit(text: str, nanoseconds: int) -> None:
    assert Duration.parse(text) == nanoseconds


@pytest.mark.parametrize(
    "text", ["50", "ms", "-1s", "5 s", "1e3s", "0.5ns", "5 parsecs", "", 5, None, "9999999h", "1." + "0" * 30 + "1s"]
)
def test_other_durations_are_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"duration|more digits|longer"):
        Duration.parse(text)


@given(st.integers(0, 10**18))
def test_a_duration_survives_being_written(value: int) -> None:
    assert Duration.parse(str(Duration(value))) == value


@given(st.integers(1, 10**13))
def test_a_bandwidth_survives_being_written(value: int) -> None:
    assert Bandwidth.parse(str(Bandwidth(value))) == value


def test_a_bandwidth_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="above zero"):
        Bandwidth.parse("0Mbit")


def test_defaults_are_filled_in_and_the_text_says_all() -> None:
    scenario = parse_scenario(GOOD + '[[workload]]\ngroup = "orders"\n')
    assert scenario.group[0].members == ("p1", "p2", "p3")
    assert scenario.workload[0].name == "w1"
    assert scenario.workload[0].senders == ("p1", "p2", "p3")
    assert parse_scenario(scenario_toml(scenario)) == scenario


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_are_valid_and_say_all_when_written(path: Path) -> None:
    scenario = read_scenario(path)
    assert parse_scenario(scenario_toml(scenario)) == scenario


def test_a_run_is_named_by_name_seed_and_content() -> None:
    scenario = parse_scenario(GOOD)
    assert run_id(scenario).startswith("small-1-")
    assert run_id(scenario) == run_id(parse_scenario(GOOD))
    assert run_id(with_seed(scenario, 2)).startswith("small-2-")
    assert run_id(parse_scenario(GOOD.replace("3", "4"))) != run_id(scenario)


@pytest.mark.parametrize(
    ("addition", "words"),
    [
        ("[network]\nlatenzy = 3", ["network", "unknown key", "latenzy"]),
        ("[options]\ntime_silence = 50", ["options.time_silence", "50 is not a duration"]),
        ('[options]\ntime_silence = "50 ms"', ["options.time_silence", "50 ms"]),
        ("[options]\nflow_control = 4", ["options.flow_control", "0 (off)", "1, 2 or 3"]),
        ("[options]\nflow_control = -1", ["options.flow_control"]),
        ('[options]\nflow_control = "3"', ["options.flow_control"]),
        ('[options]\nliteral = ["E-99"]', ["options.literal", "E-99", "E-1, E-6, E-9", "E-15", "E-19b"]),
        ('[options]\nliteral = ["E-15", "E-2"]', ["options.literal", "E-2"]),
        *(
            (f'[options]\nliteral = ["{erratum}"]', ["options.literal", erratum, "has no effect"])
            for erratum in ("E-1", "E-11", "E-13", "E-14", "E-15")
        ),
        ('[options]\nliteral = ["E-18"]\nflow_control = 0', ["options.literal", "E-18", "has no effect"]),
        ("[options]\ncompression = true", ["options.compression", "causal-fast"]),
        ('[options]\nsuspect_after = "79ms"', ["options.suspect_after", "80ms"]),
        ('[options]\nview_change = "never"', ["options.view_change", "never", "cut, remove, closed"]),
        ("[options]\nwindow = 0", ["options.window", "at least 2", "algorithm 3"]),
        ("[options]\nwindow = 1", ["options.window", "at least 2"]),
        ("[options]\nflow_control = 2\nwindow = 1", ["options.window", "at least 2", "algorithm 2"]),
        ("[options]\nflow_control = 1\nwindow = 2", ["options.window", "at least 3", "algorithm 1"]),
        ("[options]\nflow_control = 0\nwindow = 0", ["options.window"]),
        ("[options]\nwindow_bytes = 0", ["options.window_bytes", "above zero"]),
        ("[options]\nwindow_bytes = 65535", ["options.window_bytes", "options.frame_bytes"]),
        ("[options]\nframe_bytes = 0", ["options.frame_bytes"]),
        ('[options]\nview_change = "jump"', ["options.view_change", "jump"]),
        ('[network]\nlatency = { kind = "normal" }', ["network.latency", "normal", "fixed, uniform, lognormal"]),
        ('[network]\nlatency = { kind = "uniform", low = "2ms", high = "1ms" }', ["network.latency.low"]),
        ('[network]\ntransport = "pigeon"', ["network.transport", "pigeon"]),
        ('[network]\ntransport = "datagram"\nloss = 1.5', ["network.loss", "share"]),
        ("[network]\nloss = 0.1", ["network.loss", "datagram"]),
        ("[hosts]\ncount = 0", ["hosts.count"]),
        ('[[workload]]\ngroup = "ordres"', ["workload[0].group", "ordres", "orders"]),
        ('[[workload]]\ngroup = "orders"\nsenders = ["p9"]', ["workload[0].senders", "p9"]),
        ('[[workload]]\ngroup = "orders"\nsenders = []', ["workload[0].senders"]),
        ('[[workload]]\ngroup = "orders"\nmessages = -1', ["workload[0].messages"]),
        ('[[workload]]\ngroup = "orders"\npayload = 99999999', ["workload[0].payload"]),
        ('[[workload]]\ngroup = "orders"\njitter = 2.0', ["workload[0].jitter"]),
        ('[[fault]]\nat = "1s"\nkind = "pause"\nprocess = "p9"', ["fault[0].process", "p9", "p1, p2, p3"]),
        ('[[fault]]\nat = "1s"\nkind = "pause"', ["fault[0]", "missing key", "process"]),
        (OFF + '[[fault]]\nat = "1s"\nkind = "pause"\nprocess = "p1"', ["fault[0].until", "options.suspect_after"]),
        ("[options]\nframe_bytes = 1000000000", ["options.frame_bytes"]),
        ('[[workload]]\ngroup = "orders"\nmessages = 1000000000000', ["workload[0].messages"]),
        ('[options]\ntime_silence = "6s"', ["quiet", "time_silence"]),
        ('[network]\nbandwidth = "1' + "0" * 5000 + 'bit"', ["network.bandwidth", "this is not a bandwidth"]),
        ('"a\\nb" = 1', ["a b"]),
        ('[[fault]]\nat = "2s"\nuntil = "1s"\nkind = "pause"\nprocess = "p1"', ["fault[0].until"]),
        ('[[fault]]\nat = "1s"\nkind = "explode"\nprocess = "p1"', ["fault[0].kind", "explode", "pause, stall, slow"]),
        *(
            (OFF + f'[[fault]]\nat = "1s"\nkind = "{kind}"\n{keys}', ["fault[0].kind", kind, "membership"])
            for kind, keys in (
                ("crash", 'process = "p1"'),
                ("partition", 'sides = [["p1"], ["p2"]]'),
                ("cut", 'from = "p1"\nto = "p2"'),
                ("suspect", 'process = "p1"\nby = "p2"'),
            )
        ),
        (partition([["p1"], ["p9"]]), ["fault[0].sides", "p9", "p1, p2, p3"]),
        (partition([["p1"], ["p2", "p1"]]), ["fault[0].sides", "p1", "more than once"]),
        (partition([["p1", "p1"], ["p2"]]), ["fault[0].sides", "p1", "more than once"]),
        (partition([["p1"], []]), ["fault[0].sides", "empty"]),
        (partition([["p1", "p2"]]), ["fault[0].sides", "at least two"]),
        (partition([]), ["fault[0].sides", "at least two"]),
        (partition([["p1"], ["p2"]]) + 'until = "1s"', ["fault[0].until", "later than at"]),
        ('[[fault]]\nat = "1s"\nkind = "partition"', ["fault[0]", "missing key", "sides"]),
        ('[[fault]]\nat = "1s"\nkind = "cut"\nfrom = "p1"', ["fault[0]", "missing key", "to"]),
        ('[[fault]]\nat = "1s"\nkind = "cut"\nfrom = "p1"\nto = "p1"', ["fault[0].to", "another process than from"]),
        ('[[fault]]\nat = "1s"\nkind = "cut"\nfrom = "p1"\nto = "p9"', ["fault[0].to", "p9"]),
        ('[[fault]]\nat = "1s"\nkind = "cut"\nfrom = "p9"\nto = "p1"', ["fault[0].from", "p9"]),
        (suspect("p9", ["p1"]), ["fault[0].process", "p9"]),
        (suspect("p1", ["p9"]), ["fault[0].by", "p9", "p1, p2, p3"]),
        (suspect("p1", ["p2", "p1"]), ["fault[0].by", "p1 cannot suspect itself"]),
        (suspect("p1", []), ["fault[0].by", "at least one"]),
        (suspect("p1", ["p2", "p2"]), ["fault[0].by", "different"]),
        (suspect("p1", ["p2"]) + 'until = "2s"', ["fault[0]", "unknown key", "until"]),
        (suspect("p1", ["q"]) + '[[group]]\nname = "other"\nmembers = ["q"]', ["fault[0].by", "q", "share no group"]),
        ('[[fault]]\nat = "1s"\nkind = "merge"', ["fault[0]", "missing key", "process"]),
        (crash("p1") + crash("p1"), ["fault[1].process", "p1 has crashed before"]),
        (crash("p1") + '[options]\nsuspect_after = "501ms"', ["quiet", "8 times options.suspect_after"]),
        ('[options]\ntime_silence = "100ms"\nsuspect_after = "120ms"', ["options.suspect_after", "time_silence"]),
        (OFF + 'view_change = "closed"', ["options.view_change", "suspect_after = 0s"]),
        *(
            (
                f'service = "{service}"\n[options]\nview_change = "{mode}"',
                ["options.view_change", mode, "needs service total", "flush"],
            )
            for service in ("causal-slow", "causal-fast", "causal-relative", "causal-vector")
            for mode in ("remove", "closed")
        ),
        ('[[fault]]\nat = "1s"\nkind = "slow"\nprocess = "p1"\nfactor = 2.0', ["fault[0].kind", "hosts.service"]),
        ('[[fault]]\nat = "1s"\nkind = "loss"\nrate = 0.5', ["fault[0].kind", "datagram"]),
        ('[[fault]]\nat = "1s"\nkind = "delay"\nextra = "1s"\nfrom = "p1"', ["fault[0].from", "to"]),
        ('[[fault]]\nat = "1s"\nkind = "skew"\nprocess = "p1"\nrate = 0.0', ["fault[0].rate"]),
        ('[[group]]\nname = "orders"\nmembers = ["a"]', ["group[1].name"]),
        (
            '[[group]]\nname = "other"\nmembers = ["p1", "q"]\nservice = "causal-fast"',
            ["group[1].service", "p1", "orders", "total"],
        ),
        (
            '[[group]]\nname = "other"\nmembers = ["p3", "q"]\nnumbering = "block"',
            ["group[1].members", "p3", "orders", "numbering"],
        ),
        ('[[group]]\nname = "other"\nmembers = ["q"]\nnumbering = "blocks"', ["group[1].numbering", "blocks"]),
        ('[[group]]\nname = "other"\nmembers = ["a", "a"]', ["group[1].members"]),
        ('[[group]]\nname = "other"\nmembers = ["world"]', ["group[1].members", "world"]),
        ('[[group]]\nname = "other"\nmembers = 0', ["group[1].members"]),
        ('[[group]]\nname = "other"\nmembers = ["q"]\nservice = "causal"', ["group[1].service", "causal"]),
        (
            '[[group]]\nname = "other"\nmembers = ["q"]\nservice = "total-safe"\n[options]\nview_change = "closed"',
            ["options.view_change", "closed", "total-safe"],
        ),
        ('[[site]]\nname = "north"', ["site"]),
        ("[sweep]\nseeds = 10", ["sweep"]),
    ],
)
def test_an_invalid_file_is_refused_in_one_sentence_that_names_the_key(addition: str, words: list[str]) -> None:
    sentence = refusal(f"{GOOD}\n{addition}\n")
    assert "\n" not in sentence
    for word in words:
        assert word in sentence


@pytest.mark.parametrize(
    "addition",
    [
        *(f"[options]\nflow_control = {algorithm}" for algorithm in range(4)),
        "[options]\nflow_control = 0\nwindow = 1",
        "[options]\nflow_control = 1\nwindow = 3",
        "[options]\nflow_control = 2\nwindow = 2",
        "[options]\nflow_control = 3\nwindow = 2",
        "[options]\nwindow_bytes = 10\nframe_bytes = 10",
        "[options]\nflow_control = 0\nwindow_bytes = 1",
        *(f'[options]\nliteral = ["{erratum}"]' for erratum in ("E-6", "E-9", "E-18", "E-19b")),
        '[options]\nliteral = ["E-6", "E-9"]',
        OFF,
        OFF + 'time_silence = "4s"',
        '[options]\ntime_silence = "100ms"\nsuspect_after = "121ms"',
        '[options]\nidle_probe = "0s"',
        '[options]\nview_change = "closed"',
        '[options]\nview_change = "remove"',
        crash("p1"),
        partition([["p1"], ["p2"], ["p3"]]),
        partition([["p1"], ["p2"]]) + 'until = "4s"\n[[fault]]\nat = "3s"\nkind = "heal"',
        '[[fault]]\nat = "1s"\nuntil = "2s"\nkind = "cut"\nfrom = "p1"\nto = "p2"',
        suspect("p1", ["p2", "p3"]),
        '[[fault]]\nat = "1s"\nkind = "suspect"\nprocess = "p1"\nby = "p3"',
        '[[fault]]\nat = "1s"\nkind = "pause"\nprocess = "p1"',
        '[network]\ntransport = "datagram"',
        '[network]\ntransport = "datagram"\nloss = 0.2\nduplicate = 0.1\nreorder = 1.0',
        '[[fault]]\nat = "1s"\nkind = "loss"\nrate = 0.5\n[network]\ntransport = "datagram"',
        '[[group]]\nname = "other"\nmembers = ["p1", "q"]',
        '[[group]]\nname = "other"\nmembers = ["p1", "p2", "p3"]',
        '[[group]]\nname = "other"\nmembers = ["q"]\nnumbering = "block"',
        *(
            f'[[group]]\nname = "other"\nmembers = ["q", "r"]\nservice = "{service}"'
            for service in ("causal-slow", "causal-fast", "causal-relative", "causal-vector")
        ),
    ],
)
def test_valid_additions_are_kept_when_written(addition: str) -> None:
    scenario = parse_scenario(f"{GOOD}\n{addition}\n")
    assert parse_scenario(scenario_toml(scenario)) == scenario
    assert scenario != parse_scenario(GOOD) or "flow_control = 3" in addition


def test_groups_that_overlap_share_their_processes() -> None:
    scenario = parse_scenario(GOOD + '[[group]]\nname = "other"\nmembers = ["q", "p2", "p1"]\n')
    assert scenario.processes == ("p1", "p2", "p3", "q")


def test_a_group_with_block_numbering_refuses_those_that_come_later_too() -> None:
    text = GOOD + 'numbering = "block"\n[[group]]\nname = "other"\nmembers = ["p1", "q"]\n'
    assert "numbering" in refusal(text)
    assert "p1" in refusal(text)
    alone = text.replace('"p1", "q"', '"q"')
    assert parse_scenario(alone).group[0].numbering == "block"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", ["TOML"]),
        ("a = " + "[" * 3000 + "]" * 3000, ["TOML"]),
        ("seed = " + "1" * 5000, ["TOML"]),
        ('name = "small"', ["missing key", "group"]),
        ('name = "small"\ngroup = []', ["group"]),
        ('name = "small"\ngroup = 3', ["group"]),
        ('name = "../escape"\n[[group]]\nname="a"\nmembers=1', ["name", "escape"]),
        ('name = "small"\nprotocol = "isis"\n[[group]]\nname="a"\nmembers=1', ["protocol", "isis", "intergroup"]),
        ('name = "small"\nseed = -1\n[[group]]\nname="a"\nmembers=1', ["seed"]),
        ('name = "small"\nduration = "0s"\n[[group]]\nname="a"\nmembers=1', ["duration"]),
        ('name = "small"\ntrace = "sampled"\n[[group]]\nname="a"\nmembers=1', ["trace", "sampled"]),
    ],
)
def test_the_top_of_the_file_is_judged_too(text: str, words: list[str]) -> None:
    sentence = refusal(text)
    for word in words:
        assert word in sentence


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml: No such file"):
        read_scenario(tmp_path / "nowhere.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"binary\.toml: it is not UTF-8"):
        read_scenario(tmp_path / "binary.toml")
