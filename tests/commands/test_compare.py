"""`antiphon compare`: one workload under several protocols, judged and measured in the Spark session of the tests."""

import json
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import typer
from pyspark.sql import SparkSession

from antiphon.cli.commands.compare import compare
from antiphon.cli.commands.simulate import simulate_one
from antiphon.pipeline.figures.statistics import statistics_of_parts
from antiphon.scenario.model import Scenario
from antiphon.trace.directory import read_index
from tests.support.console import Console

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SCENARIO = """
name = "small"
seed = 3
[[group]]
name = "g"
members = 3
[network]
transport = "datagram"
latency = { kind = "uniform", low = "0ms", high = "20ms" }
[[workload]]
group = "g"
messages = 8
interval = "4ms"
jitter = 1.0
payload = 10
"""
NAMES = ["newtop:total", "newtop:causal-fast", "classic:reliable", "classic:total", "acks:vector"]
pytestmark = pytest.mark.usefixtures("spark")


def written(directory: Path, text: str = SCENARIO) -> Path:
    path = directory / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    assert spark is not None
    place = tmp_path_factory.mktemp("compare")
    with pytest.raises(typer.Exit) as stop:
        compare(written(place), place / "out", protocols=",".join(NAMES), seeds="3..4")
    assert stop.value.exit_code == 0
    return place / "out"


@pytest.fixture(scope="module")
def document(compared: Path) -> dict[str, Any]:
    text: dict[str, Any] = json.loads((compared / "compare.json").read_text(encoding="utf-8"))
    return text


def entry(document: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [each for each in document["protocols"] if each["protocol"] == name]
    return dict(found)


def standing(document: dict[str, Any], name: str, property_id: str) -> tuple[bool, str]:
    [found] = [each for each in entry(document, name)["properties"] if each["property"] == property_id]
    return found["promised"], found["standing"]


def test_every_run_is_kept_with_its_trace(compared: Path, document: dict[str, Any]) -> None:
    runs = [run for each in document["protocols"] for run in each["runs"]]
    assert [record.run for record, _ in read_index(compared)] == runs
    assert sorted(path.stem for path in (compared / "events").iterdir()) == sorted(runs)
    assert [(record.scenario, record.seed) for record, _ in read_index(compared)][:3] == [
        ("small-newtop-total", 3),
        ("small-newtop-total", 4),
        ("small-newtop-causal-fast", 3),
    ]
    assert sorted(path.name for path in compared.iterdir()) == [
        "compare.html",
        "compare.json",
        "events",
        "runs.parquet",
    ]


def test_every_protocol_had_the_same_workload(compared: Path, document: dict[str, Any]) -> None:
    assert [each["protocol"] for each in document["protocols"]] == NAMES
    for each in document["protocols"]:
        assert (each["figures"]["traffic"]["sent"], each["figures"]["traffic"]["delivered"]) == (48, 144)
    requests = [
        sorted(
            (row["process"], row["number"], row["requested"])
            for row in pq.read_table(compared / f"events/{each['runs'][0]}.parquet").to_pylist()
            if row["kind"] == "send"
        )
        for each in document["protocols"]
    ]
    assert all(own == requests[0] for own in requests)


def test_kept_and_broken_properties_of_each_protocol(document: dict[str, Any]) -> None:
    assert (document["verdict"], document["skipped"], document["seeds"]) == ("hold", [], [3, 4])
    assert standing(document, "newtop:total", "O6") == (True, "kept")
    assert standing(document, "classic:total", "O6") == (True, "kept")
    assert standing(document, "newtop:causal-fast", "O6") == (False, "broken")
    assert standing(document, "newtop:causal-fast", "O3") == (True, "kept")
    assert standing(document, "classic:reliable", "O1") == (False, "broken")
    assert standing(document, "acks:vector", "S1") == (True, "kept")
    assert standing(document, "classic:reliable", "S1") == (False, "no opportunity")
    [broken] = [each for each in entry(document, "classic:reliable")["properties"] if each["property"] == "O1"]
    assert broken["promise"] is None
    assert "but" in broken["worded"]["sentence"]
    assert broken["worded"]["run"] in entry(document, "classic:reliable")["runs"]


def test_figures_of_each_protocol(document: dict[str, Any]) -> None:
    """Relayed by all, a message of three members is 3 · 2 copies; agreed on in two phases, 3 rounds of 2."""
    figures = {name: entry(document, name)["figures"] for name in NAMES}
    assert figures["classic:reliable"]["traffic"]["copies_per_message"] == 6
    assert figures["classic:total"]["traffic"]["copies_per_message"] == 6
    assert figures["newtop:total"]["latency"]["mean_ns"] > figures["newtop:causal-fast"]["latency"]["mean_ns"]
    assert figures["newtop:total"]["stability_latency"]["count"] == 48
    assert figures["acks:vector"]["costs"]["sender_work"] > 0
    assert figures["classic:reliable"]["stability_latency"] is None
    assert all(figures[name]["traffic"]["wire_bytes_per_message"] > 0 for name in NAMES)


def test_idle_traffic_of_each_protocol(document: dict[str, Any]) -> None:
    """Each of three members tells two others something every 50 ms and acknowledges as often; the rest fall silent."""
    idle = {name: entry(document, name)["figures"]["idle_copies_per_second"] for name in NAMES}
    assert idle.pop("acks:vector") == pytest.approx(3 * 2 * (20 + 20), rel=0.02)
    assert set(idle.values()) == {None}


def test_acknowledgments_run_on_streams_and_say_so(compared: Path, document: dict[str, Any]) -> None:
    assert entry(document, "acks:vector")["notes"] == [
        "on streams instead of datagrams, because acks needs them; latencies are the same"
    ]
    texts = {record.scenario: text for record, text in read_index(compared)}
    assert 'transport = "stream"' in texts["small-acks-vector"]
    assert 'transport = "datagram"' in texts["small-classic-total"]


def test_the_figures_are_those_of_the_directory(compared: Path, document: dict[str, Any], spark: SparkSession) -> None:
    runs = {each["protocol"]: each["runs"] for each in document["protocols"]}
    again = statistics_of_parts(spark, compared, runs)
    latency = again["newtop:total"].overall.latency
    assert latency is not None
    assert entry(document, "newtop:total")["figures"]["latency"]["p99_ns"] == latency.p99_ns


def test_the_page_tells_it_all(compared: Path) -> None:
    page = (compared / "compare.html").read_text(encoding="utf-8")
    assert all(name in page for name in NAMES)
    assert "Every protocol keeps its promises" in page
    assert "classic:reliable</strong>, which does not promise it:" in page
    assert "<script" not in page


def test_any_run_can_be_replayed(antiphon: Console, compared: Path, document: dict[str, Any]) -> None:
    run = entry(document, "newtop:total")["runs"][1]
    assert antiphon("simulate", "--from", compared, "--run", run, "--check").code == 0


def test_by_default_those_that_cannot_run_it_are_left_out_with_the_reason(antiphon: Console, tmp_path: Path) -> None:
    lossy = SCENARIO.replace("[[workload]]", "loss = 0.05\n[[workload]]")
    result = antiphon("compare", written(tmp_path, lossy), "--out", tmp_path / "out", "--no-page")
    assert result.code == 0
    for expected in (
        "│ newtop:total ",
        "│ newtop:causal-vector ",
        "\nnewtop:causal-slow ",
        "O6 strong total order, not promised, is broken by newtop:causal-slow",
        "skipped classic:total, classic:causal, classic:fifo, classic:reliable, ",
        "classic:synchronous: network.loss: must be 0",
        "skipped acks:timestamp, acks:vector, acks:explicit, acks:transitive: network.transport: must be",
        "hold: every protocol keeps its promises",
    ):
        assert expected in result.out
    assert "│ classic" not in result.out
    assert not (tmp_path / "out/compare.html").exists()


def test_idle_traffic_and_what_had_no_receivers_are_told(antiphon: Console, tmp_path: Path) -> None:
    """p1 sends before p2, which only receives, has joined: those messages have no receivers."""
    late = """
name = "late"
protocol = "acks"
[[group]]
name = "g"
members = 2
[network]
latency = { kind = "fixed", value = "3ms" }
[[workload]]
group = "g"
senders = ["p1"]
messages = 10
interval = "10ms"
[[fault]]
at = "45ms"
kind = "join"
group = "g"
process = "p2"
"""
    names = ["--protocols", "acks:vector"]
    result = antiphon("compare", written(tmp_path, late), *names, "--out", tmp_path / "out")
    figures = entry(json.loads((tmp_path / "out/compare.json").read_text(encoding="utf-8")), "acks:vector")["figures"]
    unheard = figures["sent_to_nobody"]
    assert 0 < unheard < 10
    assert figures["stability_latency"]["count"] == 10 - unheard
    note = f"{unheard} messages were sent without receivers; the stability latency leaves them out"
    assert f"acks:vector: {note}" in result.out
    assert note in (tmp_path / "out/compare.html").read_text(encoding="utf-8")


def test_the_protocol_whose_core_fails_is_named(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(scenario: Scenario, **options: Any) -> Any:
        assert scenario.protocol != "classic"
        return simulate_one(scenario, **options)

    monkeypatch.setattr("antiphon.cli.commands.compare.simulate_one", failing)
    in_this_process = "antiphon.cli.commands.compare.map_parallel"
    monkeypatch.setattr(in_this_process, lambda work, tasks: (work(task) for task in tasks))
    names = ["--protocols", "newtop:total,classic:fifo,acks:vector", "--seeds", "3..4"]
    result = antiphon("compare", written(tmp_path), *names, "--out", tmp_path / "out")
    assert result.code == 70
    assert "\nantiphon: classic:fifo failed under seed 3: run small-classic-fifo-3-" in result.err
    assert not (tmp_path / "out").exists()


def test_a_broken_promise_is_a_no(antiphon: Console, tmp_path: Path) -> None:
    """Erratum E-14 as printed: two messages wait for each other forever."""
    names = "newtop:causal-relative,newtop:total"
    result = antiphon(
        "compare", SCENARIOS / "errata/E-14.toml", "--protocols", names, "--out", tmp_path / "out", "--json"
    )
    document = json.loads(result.out)
    assert (result.code, document["verdict"]) == (1, "violated")
    assert standing(document, "newtop:causal-relative", "L2") == (True, "broken")
    assert standing(document, "newtop:total", "L2") == (True, "kept")
    assert entry(document, "newtop:total")["notes"] == ["left out, because they have no effect there: options.literal"]
    assert "Broken promises:" in (tmp_path / "out/compare.html").read_text(encoding="utf-8")
    assert (tmp_path / "out/compare.json").read_text(encoding="utf-8") == result.out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--protocols", "newtop:causal"], "there is no protocol 'newtop:causal'; there are newtop:total"),
        (["--protocols", "newtop:total,"], "there is no protocol ''"),
        (["--seeds", "9..1"], "is not a range such as 1..100"),
    ],
)
def test_a_wrong_question_is_said_in_a_sentence(
    antiphon: Console, tmp_path: Path, arguments: list[str], expected: str
) -> None:
    assert expected in antiphon.refused("compare", written(tmp_path), "--out", tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists()


def test_a_protocol_asked_for_by_name_must_be_able_to_run_it(antiphon: Console, tmp_path: Path) -> None:
    lossy = written(tmp_path, SCENARIO.replace("[[workload]]", "loss = 0.05\n[[workload]]"))
    sentence = antiphon.refused("compare", lossy, "--protocols", "newtop:total,acks:vector", "--out", tmp_path / "out")
    assert "small cannot run under acks:vector: network.transport" in sentence


def test_without_traces_there_is_nothing_to_compare(antiphon: Console, tmp_path: Path) -> None:
    silent = written(tmp_path, 'trace = "off"\n' + SCENARIO)
    assert 'trace = "off"' in antiphon.refused("compare", silent, "--out", tmp_path / "out")


def test_other_runs_are_not_replaced_unasked(antiphon: Console, compared: Path, tmp_path: Path) -> None:
    names = ["--protocols", "newtop:total"]
    assert "holds other runs" in antiphon.refused("compare", written(tmp_path), *names, "--out", compared)


@pytest.mark.parametrize(
    "where", ["antiphon.pipeline.figures.statistics.statistics_of_parts", "antiphon.cli.commands.compare.write_index"]
)
def test_an_interrupt_leaves_nothing(
    antiphon: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(where, lambda *_: signal.raise_signal(signal.SIGINT))
    scenario, place = written(tmp_path), tmp_path / "place"
    result = antiphon("compare", scenario, "--protocols", "newtop:total", "--out", place / "out")
    assert (result.code, result.out) == (130, "")
    assert result.err == "antiphon: interrupted; no unfinished files were left\n"
    assert list(place.iterdir()) == []
