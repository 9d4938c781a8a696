"""A scenario under other protocols: kept settings, replaced settings, and refusals."""

import pytest
from msgspec.structs import replace

from antiphon.errors import ConfigurationError
from antiphon.protocols.classic.options import ClassicOptions
from antiphon.protocols.newtop.options import NewtopOptions
from antiphon.scenario.model import Crash, Scenario
from antiphon.scenario.options import every_option
from antiphon.scenario.read import parse_scenario, scenario_toml
from antiphon.scenario.units import Duration
from antiphon.scenario.variants import changes, variant, variants

PLAIN = """
name = "plain"
seed = 4
[[group]]
name = "g"
members = 3
[[group]]
name = "h"
members = ["p2", "p3", "p4"]
[network]
latency = { kind = "fixed", value = "3ms" }
bandwidth = "10Mbit"
[hosts]
count = 2
[[workload]]
group = "g"
messages = 5
interval = "10ms"
[[fault]]
at = "10ms"
until = "30ms"
kind = "stall"
process = "p2"
"""


def scenario(text: str = "", **options: object) -> Scenario:
    told = "".join(f"{name} = {value}\n" for name, value in options.items())
    return parse_scenario(PLAIN.replace("[[group]]", f"[options]\n{told}[[group]]", 1) + text)


def refused(chosen: Scenario, name: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        variant(chosen, name)
    return str(caught.value)


def test_every_family_and_service_has_a_name() -> None:
    assert [*variants()] == [
        "newtop:total",
        "newtop:total-safe",
        "newtop:causal-slow",
        "newtop:causal-fast",
        "newtop:causal-relative",
        "newtop:causal-vector",
        "newtop:fifo",
        "newtop:reliable",
        "classic:total",
        "classic:causal",
        "classic:fifo",
        "classic:reliable",
        "classic:fifo-total",
        "classic:causal-total",
        "classic:synchronous",
        "acks:timestamp",
        "acks:vector",
        "acks:explicit",
        "acks:transitive",
        "intergroup:total",
        "intergroup:fifo",
        "intergroup:unreliable",
        "intergroup:unreliable-fifo",
        "intergroup:unreliable-total",
        "intergroup:framed",
    ]


@pytest.mark.parametrize("name", variants())
def test_only_what_belongs_to_the_protocol_is_replaced(name: str) -> None:
    original = scenario()
    changed = variant(original, name)
    protocol, choice = name.split(":")
    assert (changed.name, changed.protocol) == (f"plain-{protocol}-{choice}", protocol)
    service = "fifo" if protocol == "acks" else choice
    assert changed.group == tuple(replace(group, service=service) for group in original.group)
    assert every_option(changed)["acks"] == (choice if protocol == "acks" else "timestamp")
    kept = "seed duration quiet member workload hosts fault".split()
    assert [getattr(changed, key) for key in kept] == [getattr(original, key) for key in kept]
    transport = "datagram" if protocol == "intergroup" else "stream"
    assert changed.network == replace(original.network, transport=transport)


@pytest.mark.parametrize("name", variants())
def test_a_variant_is_a_scenario_that_can_be_read_again(name: str) -> None:
    changed = variant(scenario(), name)
    assert parse_scenario(scenario_toml(changed)) == changed
    told = "on datagrams instead of streams, because intergroup needs them; latencies are the same"
    assert [*changes(scenario(), changed)] == ([told] if changed.protocol == "intergroup" else [])


def test_options_of_the_same_family_stay() -> None:
    original = scenario(window=8, packing="false", time_silence='"20ms"')
    assert variant(original, "newtop:causal-slow").options == original.options


def test_options_that_the_other_family_lacks_are_reset_and_told() -> None:
    original = scenario(window=8, packing="false", suspect_after='"200ms"')
    changed = variant(original, "classic:causal")
    assert changed.options == ClassicOptions(suspect_after=original.options.suspect_after)
    assert [*changes(original, changed)] == [
        "left out, because they have no effect there: options.packing, options.window"
    ]


def test_compression_stays_where_there_is_something_to_compress() -> None:
    original = variant(scenario(), "newtop:causal-fast")
    original = replace(original, options=replace(original.options, compression=True))
    assert variant(original, "newtop:causal-vector").options.compression
    changed = variant(original, "newtop:total")
    assert not changed.options.compression
    assert [*changes(original, changed)] == ["left out, because they have no effect there: options.compression"]


@pytest.mark.parametrize(
    ("name", "literal"),
    [
        ("newtop:total", ("E-6", "E-9", "E-18")),
        ("newtop:causal-relative", ("E-6", "E-18")),
        ("classic:total", ()),
        ("acks:timestamp", ()),
    ],
)
def test_printed_rules_stay_where_they_act(name: str, literal: tuple[str, ...]) -> None:
    original = scenario(literal='["E-6", "E-9", "E-18"]')
    assert variant(original, name).options.literal == literal


def test_printed_rules_of_a_family_stay_in_it() -> None:
    original = variant(scenario(), "acks:timestamp")
    original = replace(original, options=replace(original.options, literal=("T6",)))
    assert variant(original, "acks:vector").options.literal == ("T6",)
    assert variant(original, "classic:total").options.literal == ()


@pytest.mark.parametrize(
    ("printed", "options", "named", "literal"),
    [
        ("N1", {}, "classic:total", ("N1",)),
        ("N1", {}, "classic:causal", ()),
        ("N1", {}, "classic:fifo", ()),
        ("N1", {}, "classic:reliable", ()),
        ("T6", {"clock": "physical"}, "acks:explicit", ("T6",)),
        ("T9", {"clock": "logical"}, "acks:vector", ("T9",)),
        ("T12", {}, "acks:transitive", ("T12",)),
        ("T12", {}, "acks:timestamp", ()),
    ],
)
def test_a_printed_rule_without_effect_is_left_out_and_does_not_bar_the_protocol(
    printed: str, options: dict[str, str], named: str, literal: tuple[str, ...]
) -> None:
    original = variant(scenario(), "classic:total" if printed == "N1" else "acks:transitive")
    original = replace(original, options=replace(original.options, literal=(printed,), **options))
    changed = variant(original, named)
    assert changed.options.literal == literal
    note = "left out, because they have no effect there: options.literal"
    assert [*changes(original, changed)] == ([] if literal else [note])


def test_blocks_are_numbered_apart_where_there_is_no_flow_control() -> None:
    original = scenario()
    only = replace(original.group[0], numbering="block")
    original = replace(original, group=(only,))
    assert variant(original, "newtop:causal-slow").group[0].numbering == "block"
    changed = variant(original, "classic:fifo")
    assert changed.group[0].numbering == "separate"
    assert [*changes(original, changed)] == ["left out, because they have no effect there: numbering of g"]


def on_datagrams(**shares: float) -> Scenario:
    original = scenario()
    return replace(original, network=replace(original.network, transport="datagram", **shares))


def test_acknowledgments_take_streams_with_the_latency_of_datagrams() -> None:
    original = on_datagrams(duplicate=0.1)
    changed = variant(original, "acks:explicit")
    assert changed.network == replace(original.network, transport="stream")
    assert [*changes(original, changed)] == [
        "on streams instead of datagrams, because acks needs them; latencies are the same"
    ]
    assert variant(original, "classic:total").network == original.network


def test_datagrams_that_are_lost_have_no_counterpart() -> None:
    lossy = on_datagrams(loss=0.1)
    assert refused(lossy, "acks:vector") == (
        "plain cannot run under acks:vector: network.transport: must be stream: only acknowledgments are "
        "datagrams, which loss, duplicate and reorder affect"
    )
    assert "network.loss" in refused(lossy, "classic:total")
    assert variant(lossy, "newtop:total").network == lossy.network
    burst = parse_scenario(
        PLAIN.replace("[network]", '[network]\ntransport = "datagram"')
        + '[[fault]]\nat = "1ms"\nuntil = "9ms"\nkind = "loss"\nrate = 0.5\n'
    )
    assert "network.transport" in refused(burst, "acks:vector")


def test_lost_acknowledgments_have_no_counterpart_either() -> None:
    original = variant(scenario(), "acks:vector")
    lossy = replace(original, network=replace(original.network, loss=0.2))
    assert variant(lossy, "acks:timestamp").network.loss == 0.2
    assert "network.loss" in refused(lossy, "newtop:total")


def test_newtop_keeps_its_membership_where_a_process_crashes() -> None:
    crash = Crash(at=Duration(10**9), process="p1")
    original = replace(variant(scenario(), "classic:total"), fault=(crash,))
    assert variant(original, "acks:transitive").fault == (crash,)
    changed = variant(original, "newtop:total")
    assert (changed.fault, changed.options.suspect_after) == ((crash,), original.options.suspect_after)
    assert [*changes(original, changed)] == []


def test_without_failures_another_family_is_compared_with_newtop_without_membership() -> None:
    original = variant(scenario(), "classic:total")
    changed = variant(original, "newtop:total")
    assert changed.options == NewtopOptions(suspect_after=Duration(0))
    assert [*changes(original, changed)] == [
        "without membership (options.suspect_after = 0s), failures are not detected"
    ]


def test_without_membership_other_families_are_told_of_losses_as_ever() -> None:
    original = scenario(suspect_after='"0s"')
    assert variant(original, "newtop:causal-fast").options == original.options
    for name in ("classic:total", "acks:vector"):
        changed = variant(original, name)
        assert changed.options.suspect_after == NewtopOptions().suspect_after
        assert [*changes(original, changed)] == ["left out, because they have no effect there: options.suspect_after"]


def test_only_total_order_chooses_how_views_change() -> None:
    original = scenario(view_change='"closed"')
    assert variant(original, "newtop:total").options.view_change == "closed"
    changed = variant(original, "newtop:causal-slow")
    assert changed.options.view_change == "cut"
    assert [*changes(original, changed)] == ["left out, because they have no effect there: options.view_change"]


def test_partitions_and_false_suspicions_have_no_counterpart() -> None:
    original = scenario('[[fault]]\nat = "1s"\nkind = "partition"\nsides = [["p1"], ["p2", "p3"]]\n')
    assert variant(original, "newtop:causal-fast").fault == original.fault
    assert "'partition' is not available with classic" in refused(original, "classic:total")
    assert "'partition' is not available with acks" in refused(original, "acks:vector")


def test_requests_to_a_group_are_possible_in_classic_and_newtop_groups_only() -> None:
    original = variant(scenario(), "classic:total")
    asking = replace(original, workload=(replace(original.workload[0], answers="all"),))
    assert variant(asking, "classic:reliable").workload == asking.workload
    assert "requests to a group belong to the protocols classic and newtop" in refused(asking, "acks:timestamp")


def test_an_unknown_name_is_refused_with_a_list_of_the_known_ones() -> None:
    sentence = refused(scenario(), "newtop:causal")
    assert sentence.startswith("there is no protocol 'newtop:causal'; there are newtop:total, newtop:total-safe")


def test_a_name_that_grows_too_long_is_refused() -> None:
    assert "1 to 100" in refused(replace(scenario(), name="n" * 95), "newtop:total")
