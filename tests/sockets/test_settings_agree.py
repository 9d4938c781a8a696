"""Members with different settings: a mismatch that matters is refused and explained at both ends."""

import asyncio
import logging
from dataclasses import fields
from typing import Any

import pytest

from antiphon import ConfigurationError, Group, Member, Message, SettingsMismatch, Total
from antiphon.api.settings import AGREED, MAY_DIFFER, MemberSettings, settings
from antiphon.testing import run
from tests.support.loopback import FAST, members, name, on_loopback, take_each, until
from tests.support.mixed import mixed

OTHER: dict[str, Any] = {
    "flow_control": 0,
    "window": 8,
    "suspect_after": 1.5,
    "time_silence": 0.1,
    "primary": 5,
}
"""For each setting that must agree, a value that is not the default."""
LOOSE: dict[str, Any] = {
    "idle_probe": 7.0,
    "merge_every": 30.0,
    "exclude_stalled_after": 60.0,
    "state_from": "messages",
    "window_bytes": 400_000,
    "frame_bytes": 1_000,
    "datagram_bytes": 1_400,
}


def text(setting: str, value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_it_is_decided_of_each_setting_whether_it_must_agree() -> None:
    """A new setting must be entered in one of the two lists."""
    assert sorted((*AGREED, *MAY_DIFFER, "service")) == sorted(field.name for field in fields(MemberSettings))
    assert {*OTHER} == {*AGREED}
    assert {*LOOSE} == {*MAY_DIFFER}


def test_equal_values_are_told_alike() -> None:
    one, other = (settings("lan", {"suspect_after": value, "merge_every": 2}) for value in (1, 1.0))
    assert one.agreed(datagrams=False) == other.agreed(datagrams=False)
    assert one.agreed(datagrams=False) != one.agreed(datagrams=True)


async def refused_join(member: Member) -> SettingsMismatch:
    with pytest.raises(SettingsMismatch) as caught:
        await member.join("orders")
    return caught.value


@pytest.mark.parametrize("setting", OTHER)
def test_a_joiner_with_another_value_is_refused_and_both_ends_know_why(setting: str) -> None:
    ours, theirs = text(setting, getattr(MemberSettings(), setting)), text(setting, OTHER[setting])

    async def scenario() -> None:
        async with mixed(("p1", {}), ("p2", {}), ("p3", {setting: OTHER[setting]})) as (one, two, three):
            group = await one.join("orders")
            await two.join("orders")
            await group.ready(2)
            error = await refused_join(three)
            assert error.differences == ((setting, theirs, ours),)
            assert f"{setting} is {theirs} here and {ours} there" in str(error)
            assert three._process.find("orders") is None or three._process.group("orders").leaving
            reasons = [each for member in (one, two) for each in member._process.group("orders").health.refused]
            assert {name(each.process) for each in reasons} == {"p3"}
            assert {each.reason for each in reasons} == {f"{setting} is {ours} here and {theirs} there"}
            await group.send(b"on")  # the group is well
            while not isinstance(await anext(group), Message):
                pass
            assert len(group.health.members) == 2

    run(scenario())


@pytest.mark.parametrize("setting", LOOSE)
def test_the_other_settings_may_differ(setting: str) -> None:
    async def scenario() -> None:
        async with mixed(("p1", {}), ("p2", {}), ("p3", {setting: LOOSE[setting]})) as found:
            groups = [await member.join("orders") for member in found]
            for group in groups:
                await group.ready(3)

            async def send(group: Group) -> None:
                for number in range(200):
                    await group.send(b"%d" % number * 700)

            sending = [asyncio.create_task(send(group)) for group in groups]
            seen = await take_each(groups, 600)
            await asyncio.gather(*sending)
            assert seen[0] == seen[1] == seen[2]
            await asyncio.sleep(20)  # during silence no member is suspected
            assert all(len(group.health.members) == 3 for group in groups)
            assert not any(group.health.refused for group in groups)

    run(scenario())


def test_sides_with_different_settings_do_not_merge_and_say_so(caplog: pytest.LogCaptureFixture) -> None:
    """Both sides have founded the group separately. The log has a line now and then, not one for each attempt."""

    async def scenario() -> None:
        async with mixed(("p1", {}), ("p2", {"flow_control": 0})) as (one, two):
            groups = one._process.expect("orders"), two._process.expect("orders")
            for member in (one, two):
                await member._process.form("orders", (member.id,))
            one._process.look_for("orders", (two.id,))
            await asyncio.sleep(20)  # ten attempts
            refused = [[(each.process, each.reason) for each in group.health.refused] for group in groups]
            assert refused == [
                [(two.id, "flow_control is 3 here and 0 there")],
                [(one.id, "flow_control is 0 here and 3 there")],
            ]
            assert [len(group.health.members) for group in groups] == [1, 1]

    with caplog.at_level(logging.WARNING, "antiphon"):
        run(scenario())
    lines = [record.getMessage() for record in caplog.records if "flow_control" in record.getMessage()]
    assert sorted(lines) == [
        "no group orders with p1: flow_control is 0 here and 3 there",
        "no group orders with p2: flow_control is 3 here and 0 there",
    ]


def test_a_peer_that_comes_back_with_the_right_settings_is_refused_no_longer() -> None:
    async def scenario() -> None:
        async with mixed(("p1", {}), ("p2", {"window": 8}), ("p2#1", {}), started=2) as (one, wrong, right):
            group = await one.join("orders")
            await refused_join(wrong)
            assert [name(each.process) for each in group.health.refused] == ["p2"]
            await wrong.abort()
            async with right:
                await right.join("orders")
                await group.ready(2)
                assert not group.health.refused

    run(scenario())


def test_forming_a_group_of_processes_with_different_settings_is_an_error() -> None:
    async def scenario() -> None:
        async with mixed(("p1", {}), ("p2", {"service": Total(safe=True)})) as (one, two):
            await asyncio.sleep(0.1)
            joining = asyncio.create_task(two.join("orders"))
            with pytest.raises(SettingsMismatch, match="service is total here and total-safe there"):
                await one._process.form("orders", (one.id, two.id))
            with pytest.raises(SettingsMismatch, match="service is total-safe here and total there"):
                await joining

    run(scenario())


def test_a_silence_that_would_be_suspected_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="time_silence must be below suspect_after"):
        settings("lan", {"time_silence": 0.5})


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_on_sockets_a_mismatch_is_refused_at_both_ends(transport: str) -> None:
    @on_loopback
    async def scenario() -> None:
        async with members(2, transport=transport) as found:
            first = await found[0].join("orders")
            await found[1].join("orders")
            await first.ready(2)
            chosen = {**FAST, "flow_control": 0, "transport": transport}
            async with Member(name="p3", peers=[found[0].address], **chosen) as third:
                error = await refused_join(third)
                assert error.differences == (("flow_control", "0", "3"),)
                await until(lambda: any(found[place]._process.group("orders").health.refused for place in range(2)))
            assert len(first.health.members) == 2

    scenario()


@on_loopback
async def test_on_udp_the_size_of_datagrams_may_differ() -> None:
    async with members(2, transport="udp", datagram_bytes=1_400) as found:
        chosen = {**FAST, "transport": "udp", "datagram_bytes": 30_000}
        async with Member(name="p3", peers=[found[0].address], **chosen) as third:
            groups = [await member.join("orders") for member in (*found, third)]
            for group in groups:
                await group.ready(3)
            for group in groups:
                await group.send(group.name.encode() * 4_000)
            seen = await take_each(groups, 3)
            assert seen[0] == seen[1] == seen[2]
