import json
from pathlib import Path

import pytest

from antiphon.bench import services
from antiphon.bench.worker import SERVICES
from tests.support.console import Console

SHORT = ("bench", "--quick", "--rounds", "1", "--seconds", "0.2")


def test_ordered_messages_are_measured_beside_bare_sockets(antiphon: Console, tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    done = antiphon(*SHORT, "--bytes", "64", "--json", "--out", file)
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document == json.loads(file.read_text())
    (throughput,) = document["throughput"]
    assert (throughput["members"], throughput["bytes"]) == (3, 64)
    rates = throughput["messages_per_second"]
    assert all(
        rates[name]["median"] > 0
        for name in ("bare_unpacked", "bare_packed", "bare_one_active", "all_active", "one_active")
    )
    ratio = throughput["ratios"]["all_active_to_bare_packed"]["median"]
    assert ratio == pytest.approx(rates["all_active"]["median"] / rates["bare_packed"]["median"])
    assert [each["messages_per_second_and_member"] for each in document["latency"]] == [10, 100]
    assert all(each["microseconds"]["ordered"]["median"] > 0 for each in document["latency"])


def test_services_are_measured_side_by_side(antiphon: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them, and one rate: the others differ only in their names."""
    monkeypatch.setattr(services, "SERVICES", {name: SERVICES[name] for name in ("total", "sequencer")})
    monkeypatch.setattr(services, "RATES", (100,))
    done = antiphon(*SHORT, "--bytes", "64", "--services", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    (throughput,) = document["throughput"]
    rates = throughput["messages_per_second"]
    assert {name: figure["median"] > 0 for name, figure in rates.items()} == {"total": True, "sequencer": True}
    assert throughput["ratios"]["total_to_total"]["median"] == 1
    (latency,) = document["latency"]
    assert latency["microseconds"].keys() == rates.keys()


def test_a_profile_says_where_the_time_goes(antiphon: Console) -> None:
    done = antiphon(*SHORT, "--profile", "--json")
    assert done.code == 0, done.err
    assert any(each["function"].startswith("api/group") for each in json.loads(done.out))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--members", "2"), "--members: 2 is not between 3 and 64"),
        (("--bytes", "many"), "--bytes must be a list of whole numbers, such as 3,4; not 'many'"),
        (("--transport", "pigeon"), "--transport must be tcp or udp, not 'pigeon'"),
    ],
)
def test_impossible_measurements_are_refused(antiphon: Console, options: tuple[str, str], sentence: str) -> None:
    assert antiphon.refused("bench", *options) == f"antiphon: {sentence}"
