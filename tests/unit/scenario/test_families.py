"""The requirements of each family on a scenario, and one sentence for each mistake."""

import pytest

from antiphon.errors import ConfigurationError
from antiphon.protocols.intergroup.options import InterGroupOptions
from antiphon.protocols.registry import BUILT_IN, built_in
from antiphon.scenario.model import absent_at_first, role_of
from antiphon.scenario.read import parse_scenario, scenario_toml
from antiphon.scenario.validate import concerns

CLASSIC = """
name = "c"
protocol = "classic"
[[group]]
name = "g"
members = ["p1", "p2", "p3"]
"""
ACKS = CLASSIC.replace("classic", "acks")
NEWTOP = CLASSIC.replace("classic", "newtop")
INTERGROUP = CLASSIC.replace("classic", "intergroup") + '[network]\ntransport = "datagram"\n'


def refusal(text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parse_scenario(text)
    return str(caught.value)


def member(process: str, *lines: str) -> str:
    return "\n".join(("[[member]]", f'process = "{process}"', 'group = "g"', *lines, ""))


def fault(kind: str, at: str, process: str, group: str | None = "g") -> str:
    named = f'group = "{group}"\n' if group else ""
    return f'[[fault]]\nat = "{at}"\nkind = "{kind}"\nprocess = "{process}"\n{named}'


def suspicion(process: str, by: str) -> str:
    return f'[[fault]]\nat = "1s"\nkind = "suspect"\nprocess = "{process}"\nby = "{by}"\n'


@pytest.mark.parametrize(("text", "service"), [(NEWTOP, "total"), (CLASSIC, "total"), (ACKS, "fifo")])
def test_a_group_that_names_no_service_gets_the_first_of_its_family(text: str, service: str) -> None:
    scenario = parse_scenario(text)
    assert scenario.group[0].service == service
    assert parse_scenario(scenario_toml(scenario)) == scenario


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (ACKS + 'service = "total"\n', "group[0].service: acks offers fifo, not 'total'"),
        (NEWTOP + 'service = "causal"\n', "group[0].service: newtop offers total, total-safe"),
        (CLASSIC + 'numbering = "block"\n', "group[0].numbering: is an option of flow control"),
        (
            NEWTOP + '[options]\nexcluded_count = true\nsuspect_after = "0s"\n',
            "options.excluded_count: has no effect: with options.suspect_after = 0s no member is excluded",
        ),
        (CLASSIC + '[options]\nround = "1s"\n', "options.round: has no effect: no group has service synchronous"),
        (
            CLASSIC + 'service = "synchronous"\n' + '[options]\nround = "0s"\n',
            "options.round: must be more than 0s",
        ),
        (CLASSIC + "[options]\nwindow = 5\n", "options.window: has no effect: classic has no such option"),
        (NEWTOP + '[options]\nacks = "vector"\n', "options.acks: has no effect: newtop has no such option"),
        (
            CLASSIC + '[options]\nliteral = ["T6"]\n',
            "options.literal: 'T6' is not an erratum with a printed form (there are N1)",
        ),
        (
            CLASSIC + '[network]\ntransport = "datagram"\nloss = 0.1\n',
            "network.loss: must be 0: the classic algorithms need",
        ),
        (CLASSIC + fault("leave", "1s", "p1"), "fault[0].kind: 'leave' is not available with classic"),
        (
            CLASSIC + fault("crash", "1s", "p1", None) + fault("recover", "2s", "p1", None),
            "fault[1].kind: 'recover' is not available with classic: its groups",
        ),
        (ACKS + fault("merge", "1s", "p1"), "fault[0].kind: 'merge' is not available with acks: its groups"),
        (ACKS + "formed = true\n" + fault("form", "1s", "p1"), "fault[0].kind: 'form' is not available with acks"),
        (ACKS + "state_bytes = 99\n", "group[0].state_bytes: is for groups that are formed"),
        (ACKS + fault("join", "1s", "p1") + 'via = ["p2"]\n', "fault[0].via: has no effect"),
        (CLASSIC + '[options]\nmerge_every = "1s"\n', "options.merge_every: has no effect: classic has no"),
        (CLASSIC + suspicion("p1", "p2"), "fault[0].kind: 'suspect' is not available with classic"),
        (ACKS + suspicion("p1", "p2"), "fault[0].kind: 'suspect' is not available with acks"),
        (CLASSIC + '[options]\nsuspect_after = "0s"\n', "options.suspect_after: must be at least 80ms"),
        (ACKS + '[options]\nview_change = "closed"\n', "options.view_change: has no effect: acks has no such option"),
        (CLASSIC + '[options]\nidle_probe = "2s"\n', "options.idle_probe: has no effect: classic has no such option"),
        (NEWTOP + member("p1"), "member: every member of a newtop group sends and receives"),
        (CLASSIC + member("p1", 'role = "receiver"'), "member[0]: all members of a classic group receive"),
        (CLASSIC + member("p9"), "member[0].process: unknown process 'p9' in group g"),
        (CLASSIC + member("p1") + member("p1"), "member[1]: p1 has two entries for group"),
        (CLASSIC + fault("crash", "1s", "p1", None) * 2, "fault[1].process: p1 has crashed before"),
        (ACKS + fault("join", "1s", "p1") * 2, "fault[1].process: p1 is in group g at that time"),
        (ACKS + fault("leave", "1s", "p1") * 2, "fault[1].process: p1 is not in group g at that time"),
        (ACKS + fault("leave", "1s", "p1", "h"), "fault[0].process: unknown process 'p1' in group 'h'"),
        (ACKS + '[network]\ntransport = "datagram"\n', "network.transport: must be stream: only acknowledgments"),
        (ACKS + '[options]\nack_every = "0s"\n', "options.ack_every: must be above zero"),
        (ACKS + '[options]\nsend_every = "10s"\n', "quiet: must be longer than twice"),
        (
            ACKS + '[options]\nliteral = ["T9"]\n',
            "options.literal: T9 has no effect here: it is about logical clocks",
        ),
        (
            ACKS + '[options]\nclock = "logical"\nliteral = ["T6"]\n',
            "options.literal: T6 has no effect here: it is about physical clocks",
        ),
        (
            ACKS + '[options]\nliteral = ["T12"]\n',
            "options.literal: T12 has no effect here: it is about transitive acknowledgments",
        ),
        (
            CLASSIC + 'service = "causal"\n[options]\nliteral = ["N1"]\n',
            "options.literal: N1 has no effect here: its rule applies to no group of this scenario",
        ),
        (
            NEWTOP + '[options]\nliteral = ["E-1"]\n',
            "options.literal: E-1 has no effect here: its rule applies to no group of this scenario",
        ),
        (ACKS + '[options]\nstability = "all"\nacks = "explicit"\n', "options.stability: explicit acknowledgments"),
        (ACKS + '[options]\nstability = "all"\n' + member("p1", 'role = "sender"'), "options.stability: needs members"),
        (
            ACKS + '[options]\nstability = "all"\n' + fault("leave", "1s", "p1"),
            "options.stability: needs a group without",
        ),
        (
            ACKS + member("p1", 'role = "sender"', 'sources = ["p2"]'),
            "member[0].sources: a sender receives from nobody",
        ),
        (ACKS + member("p1", 'sources = ["p1"]'), "member[0].sources: 'p1' is not another sender"),
        (
            ACKS + "".join(member(f"p{i}", 'role = "sender"') for i in (1, 2, 3)),
            "group[0].members: at least one member must",
        ),
        (
            ACKS + member("p1", 'role = "receiver"') + '[[workload]]\ngroup = "g"\nsenders = ["p1"]\n',
            "workload[0].senders: p1 is a receiver",
        ),
        (ACKS + '[[workload]]\ngroup = "g"\nanswers = "all"\n', "workload[0].answers: requests to a group belong"),
        (
            CLASSIC + '[[workload]]\ngroup = "g"\nanswers = "all"\nreplies = true\n',
            "workload[0].replies: is for messages",
        ),
    ],
)
def test_keys_that_a_family_does_not_support_are_refused_by_name(text: str, sentence: str) -> None:
    assert refusal(text).startswith(sentence)


def test_a_printed_rule_concerns_no_family_but_its_own() -> None:
    concerned = {
        text: {each for own in BUILT_IN for each in built_in(own).errata.names if concerns(each, parse_scenario(text))}
        for text in (NEWTOP, CLASSIC, ACKS)
    }
    assert concerned == {
        NEWTOP: {*"E-6 E-9 E-18 E-19 E-19b E-20 E-22 E-23 E-24 E-25 E-27 E-29 E-31 E-45".split()},
        CLASSIC: {"N1"},
        ACKS: {"T6", "T8", "FIG-4"},
    }


def test_acknowledgments_may_be_lost_though_messages_travel_on_streams() -> None:
    assert parse_scenario(ACKS + "[network]\nloss = 0.2\nreorder = 0.1\n").network.loss == 0.2


def test_a_process_that_joins_first_is_absent_before() -> None:
    moves = fault("leave", "1s", "p1") + fault("join", "2s", "p1") + fault("join", "1s", "p2")
    assert absent_at_first(parse_scenario(ACKS + moves), "g") == {"p2"}


def test_all_processes_that_may_send_do_so_by_default() -> None:
    scenario = parse_scenario(ACKS + member("p2", 'role = "receiver"') + '[[workload]]\ngroup = "g"\n')
    assert scenario.workload[0].senders == ("p1", "p3")
    assert role_of(scenario, "g", "p2").role == "receiver"
    assert role_of(scenario, "g", "p1").role == "both"


ASYMMETRIC = 'name = "x"\n[[group]]\nname = "g"\nmembers = 3\nmode = "asymmetric"\n'


def test_a_group_may_have_a_sequencer() -> None:
    assert [group.mode for group in parse_scenario(ASYMMETRIC).group] == ["asymmetric"]
    other = '[[group]]\nname = "h"\nmembers = ["p1", "q"]\n'
    assert [group.mode for group in parse_scenario(ASYMMETRIC + other).group] == ["asymmetric", "symmetric"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('service = "causal-fast"\n', "group[0].mode: a sequencer needs service total"),
        ('numbering = "block"\n', 'group[0].numbering: "block" is for symmetric groups'),
        ('[options]\nview_change = "remove"\n', "options.view_change: 'remove' is for symmetric groups"),
        ('[options]\nview_change = "closed"\n', "options.view_change: 'closed' is for symmetric groups"),
        ("[options]\nflow_control = 1\n", "options.flow_control: 1 is for symmetric groups; use 3 or 0"),
        ("[options]\nflow_control = 2\n", "options.flow_control: 2 is for symmetric groups; use 3 or 0"),
    ],
)
def test_settings_that_exclude_a_sequencer_are_refused(more: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_scenario(ASYMMETRIC + more)
    assert says in str(caught.value)


def test_other_families_have_no_sequencer() -> None:
    with pytest.raises(ConfigurationError, match=r"group\[0\].mode: only newtop has a sequencer"):
        parse_scenario(ASYMMETRIC.replace("\n", '\nprotocol = "classic"\n', 1))


@pytest.mark.parametrize("timers", ["default", "intergroup", "srm", "distances", "round-trips"])
def test_timers_of_repair_have_names(timers: str) -> None:
    """R3, R7: the timers that a sweep may vary."""
    text = INTERGROUP + f'[options]\nrepair_timers = "{timers}"\n'
    assert parse_scenario(text).options.repair_timers == timers


def test_other_timers_are_refused_with_those_that_there_are() -> None:
    named = "(there are default, intergroup, srm, distances, round-trips)"
    text = INTERGROUP + '[options]\nrepair_timers = "seconds"\n'
    assert refusal(text) == f"options.repair_timers: Invalid enum value 'seconds' {named}"


RECEIVER = member("p2", 'role = "receiver"')
WAITS = INTERGROUP.replace("protocol", 'quiet = "4s"\noptions = { suspect_after = "500ms" }\nprotocol', 1)


@pytest.mark.parametrize(
    "faults",
    [
        fault("crash", "1s", "p1", None),
        fault("crash", "1s", "p1", None) + fault("recover", "2s", "p1", None),
        suspicion("p1", "p2"),
        fault("promote", "1s", "p2"),
        fault("promote", "1s", "p2") + fault("demote", "2s", "p2"),
        fault("demote", "1s", "p1"),
        fault("leave", "1s", "p1") + fault("join", "2s", "p1"),
        '[[fault]]\nat = "1s"\nkind = "cut"\nfrom = "p1"\nto = "p2"\n',
        '[[fault]]\nat = "1s"\nkind = "pause"\nprocess = "p1"\n',
    ],
)
def test_senders_of_intergroup_change_fail_and_come_back(faults: str) -> None:
    assert parse_scenario(WAITS + RECEIVER + faults).fault


@pytest.mark.parametrize("text", [NEWTOP, CLASSIC, ACKS])
@pytest.mark.parametrize("kind", ["promote", "demote"])
def test_roles_change_in_intergroup_only(text: str, kind: str) -> None:
    why = "only intergroup has processes that change between sending and receiving"
    assert why in refusal(text + fault(kind, "1s", "p1"))


@pytest.mark.parametrize("kind", ["promote", "demote"])
def test_a_process_outside_of_a_group_has_no_role_there(kind: str) -> None:
    away = fault("leave", "1s", "p1") + fault(kind, "2s", "p1")
    assert "fault[1]" in refusal(WAITS + away)


def test_a_receiver_of_intergroup_may_have_messages_to_send() -> None:
    workload = '[[workload]]\ngroup = "g"\nsenders = ["p2"]\ninterval = "1s"\n'
    assert parse_scenario(INTERGROUP + RECEIVER + workload).workload
    assert "p2 is a receiver in group g" in refusal(ACKS + RECEIVER + workload)


def test_intergroup_refuses_formations_and_broken_connections() -> None:
    assert "its groups exist from the start" in refusal(WAITS + fault("merge", "1s", "p1"))
    gone = '[[fault]]\nat = "1s"\nkind = "gone"\nprocess = "p1"\nby = "p2"\n'
    assert "its datagrams have no connection that could be refused" in refusal(WAITS + gone)


def test_a_group_of_intergroup_needs_a_sender_at_the_start() -> None:
    nobody = "".join(member(f"p{number}", 'role = "receiver"') for number in (1, 2, 3))
    assert "at least one member must send" in refusal(INTERGROUP + nobody)


def test_an_idle_sender_of_intergroup_may_step_down() -> None:
    scenario = parse_scenario(INTERGROUP + '[options]\nidle_after = "2s"\n')
    assert isinstance(scenario.options, InterGroupOptions)
    assert scenario.options.idle_after == 2_000_000_000


def test_only_the_simulator_tells_how_many_processes_were_excluded() -> None:
    sockets = built_in("newtop").sockets
    assert sockets is not None
    ((key, _),) = sockets.problems(parse_scenario(NEWTOP + "[options]\nexcluded_count = true\n"))
    assert key == "options.excluded_count"
    assert not [*sockets.problems(parse_scenario(NEWTOP))]
