"""The columns of `gold/runs` are the parameters that scenarios have."""

from typing import Any, get_args

import msgspec
import pytest

from antiphon.pipeline.tables.parameters import FAULT_KINDS, PARAMETERS, RUNS, column_name, values
from antiphon.protocols.registry import BUILT_IN, built_in
from antiphon.scenario.model import Fault, Hosts, Network
from antiphon.scenario.read import parse_scenario, parse_table, scenario_toml

PATHS = {each.path for each in PARAMETERS}

EVERYTHING = """
name = "much"
protocol = "newtop"
[options]
suspect_after = "250ms"
primary = 2
view_change = "cut"
[[group]]
name = "x"
members = 3
service = "total"
[[group]]
name = "y"
members = ["p2", "p4"]
service = "total-safe"
[network]
latency = { kind = "uniform", low = "1ms", high = "4ms" }
bandwidth = "10Mbit"
[[workload]]
group = "x"
messages = 4
payload = 100
[[workload]]
group = "y"
senders = ["p4"]
messages = 2
payload = 1
[[fault]]
at = "1s"
kind = "crash"
process = "p1"
[[fault]]
at = "2s"
kind = "partition"
sides = [["p2"], ["p4"]]
"""


def of(text: str) -> dict[str, Any]:
    return values(parse_table(scenario_toml(parse_scenario(text))))


def test_every_option_of_every_family_is_a_column() -> None:
    named = {f"options.{name}" for family in BUILT_IN for name in built_in(family).options.__struct_fields__}
    assert named == {path for path in PATHS if path.startswith("options.")}


@pytest.mark.parametrize("table", [Network, Hosts], ids=lambda table: table.__name__)
def test_every_setting_of_network_and_hosts_is_a_column(table: type[msgspec.Struct]) -> None:
    assert {f"{table.__name__.lower()}.{name}" for name in table.__struct_fields__} <= PATHS


def test_every_kind_of_fault_is_counted() -> None:
    assert {str(kind.__struct_config__.tag) for kind in get_args(Fault)} == {*FAULT_KINDS}


def test_names_need_no_quotes_and_durations_carry_their_unit() -> None:
    assert all(name.isidentifier() for name in RUNS.columns.names)
    assert len({*RUNS.columns.names}) == len(RUNS.columns)
    assert column_name("group.my-orders.members") == "group_my_orders_members"


def test_a_scenario_becomes_typed_values() -> None:
    found = of(EVERYTHING)
    assert found.keys() <= {*RUNS.columns.names}
    expected = {
        "groups": 2,
        "processes": 4,
        "members": 5,
        "service": "mixed",
        "mode": "symmetric",
        "workloads": 2,
        "messages": 3 * 4 + 2,
        "message_bytes": 3 * 4 * 100 + 2,
        "faults": 2,
        "fault_crash": 1,
        "fault_partition": 1,
        "fault_cut": 0,
        "duration_ns": 60_000_000_000,
        "network_latency_kind": "uniform",
        "network_latency_median_ns": 2_500_000,
        "network_latency_low_ns": 1_000_000,
        "network_latency_high_ns": 4_000_000,
        "network_latency_sigma": None,
        "network_bandwidth_bits_per_second": 10_000_000,
        "hosts_count": None,
        "option_suspect_after_ns": 250_000_000,
        "option_primary": "2",
        "option_round_ns": None,
        "option_packing": True,
        "option_literal": [],
        "option_keep_alive_low_ns": 25_000_000,
        "option_keep_alive_high_ns": 75_000_000,
    }
    assert {name: found[name] for name in expected} == expected


def test_values_of_other_types_are_missing_and_unknown_options_are_kept() -> None:
    found = values({"options": {"window": "many", "colour": 3}, "network": 7, "group": "none", "workload": [4]})
    assert (found["option_window"], found["network_loss"], found["groups"], found["service"]) == (None, None, 0, None)
    assert found["option_others"] == [("colour", "3")]
