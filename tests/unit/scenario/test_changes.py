"""Groups that change, in a scenario: possible changes, defaults, and one sentence for each mistake."""

import pytest

from antiphon.errors import ConfigurationError
from antiphon.protocols.assembly import facts_of
from antiphon.protocols.newtop.options import form_within, options_of
from antiphon.scenario.changes import returns_at
from antiphon.scenario.model import Form, Join, Merge, Recover, absent_at_first
from antiphon.scenario.read import parse_scenario, scenario_toml

TOP = 'name = "c"\nquiet = "20s"\n'
GROUPS = """
[[group]]
name = "g"
members = ["p1", "p2", "p3"]
[[group]]
name = "h"
members = ["p2", "p3", "p4"]
"""
LATER = GROUPS + "formed = true\n"
CAUSAL = '[[group]]\nname = "g"\nmembers = 3\nservice = "causal-fast"\n'


def fault(kind: str, process: str, at: int = 1, **keys: object) -> str:
    told = "".join(f"{key.rstrip('_')} = {value!r}\n" for key, value in keys.items())
    return f'[[fault]]\nat = "{at}s"\nkind = "{kind}"\nprocess = "{process}"\n{told}'


def refusal(text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parse_scenario(TOP + text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (GROUPS + fault("join", "p1", group="h"), "fault[0].process: unknown process 'p1' in group 'h'"),
        (GROUPS + fault("join", "p1", group="x"), "fault[0].process: unknown process 'p1' in group 'x'"),
        (GROUPS + fault("leave", "p9", group="g"), "fault[0].process: unknown process 'p9'"),
        (
            GROUPS + fault("join", "p1", 1, group="g") + fault("join", "p1", 2, group="g"),
            "fault[1].process: p1 is in group g at that time",
        ),
        (
            GROUPS + fault("leave", "p1", 1, group="g") + fault("leave", "p1", 2, group="g"),
            "fault[1].process: p1 is not in group g at that time",
        ),
        (
            GROUPS + fault("leave", "p1", 1, group="g") + fault("merge", "p1", 2, group="g"),
            "fault[1].process: p1 is not in group g at that time",
        ),
        (GROUPS + fault("join", "p1", group="g", via=["p4"]), "fault[0].via: unknown process 'p4' in group g"),
        (GROUPS + fault("join", "p1", group="g", via=["p1"]), "fault[0].via: p1 cannot ask itself"),
        (GROUPS + fault("join", "p1", group="g", via=[]), "fault[0].via: must be different processes, at least one"),
        (GROUPS + fault("merge", "p1", group="g", with_=["p2", "p2"]), "fault[0].with: must be different processes"),
        (
            GROUPS + "".join(fault("join", f"p{i}", group="g") for i in (1, 2, 3)),
            "group[0].members: must have a member at the start",
        ),
        # crashes and restarts
        (GROUPS + fault("recover", "p1"), "fault[0].process: p1 has not crashed at that time"),
        (GROUPS + fault("crash", "p1") + fault("leave", "p1", 2, group="g"), "fault[1].process: p1 has crashed before"),
        (
            GROUPS + fault("crash", "p1") + fault("recover", "p1", 2, joins=["h"]),
            "fault[1].joins: unknown process 'p1' in group 'h'",
        ),
        (
            GROUPS + fault("crash", "p1") + fault("recover", "p1", 2, joins=["g", "g"]),
            "fault[1].joins: must be different groups",
        ),
        (
            GROUPS + fault("crash", "p1") + fault("recover", "p1", 2) + fault("join", "p1", 3, group="g"),
            "fault[2].process: p1 is in group g at that time",
        ),
        (
            GROUPS + fault("crash", "p1") + fault("recover", "p1", 2, joins=[]) + fault("leave", "p1", 3, group="g"),
            "fault[2].process: p1 is not in group g at that time",
        ),
        (
            '[[group]]\nname = "g"\nmembers = ["p1"]\n' + fault("crash", "p1") + fault("recover", "p1", 2),
            "fault[1].joins: group g never has another member that it could ask",
        ),
        # formations
        (LATER, "group[1].formed: the group is never formed: a fault of kind form is missing"),
        (GROUPS + fault("form", "p1", group="g"), "fault[0].group: g already exists"),
        (
            LATER + fault("form", "p2", 1, group="h") + fault("form", "p3", 2, group="h"),
            "fault[1].group: h already exists",
        ),
        (LATER + fault("form", "p1", group="h"), "fault[0].process: unknown process 'p1' in group 'h'"),
        (
            LATER + fault("form", "p2", group="h", members=["p2", "p1"]),
            "fault[0].members: unknown process 'p1' in group",
        ),
        (
            LATER + fault("form", "p2", group="h", members=["p3", "p4"]),
            "fault[0].members: must be different processes and include p2",
        ),
        (LATER + fault("form", "p2", group="h", members=["p2", "p2"]), "fault[0].members: must be different processes"),
        (
            LATER + fault("crash", "p3") + fault("form", "p2", 2, group="h"),
            "fault[1].members: p3 has crashed before",
        ),
        # requirements
        (
            GROUPS + fault("leave", "p1", group="g") + '[options]\nsuspect_after = "0s"\n',
            "fault[0].kind: 'leave' needs membership",
        ),
        (
            GROUPS + '[options]\nmerge_every = "1s"\nsuspect_after = "0s"\n',
            "options.merge_every: 'merging' needs membership",
        ),
        (
            GROUPS.replace("p4", "p5") + 'service = "causal-slow"\n[[group]]\nname = "i"\nmembers = ["p6"]\n',
            "group[1].service: p2 is also in group g",
        ),
        (
            CAUSAL + '[options]\nmerge_every = "1s"\ncompression = true\n',
            "options.compression: is not possible with groups that are formed",
        ),
        (GROUPS + '[options]\nmerge_every = "499ms"\n', "options.merge_every: must be at least options.suspect_after"),
        (GROUPS + '[options]\nform_within = "1s"\n', "options.form_within: has no effect"),
        (
            GROUPS + '[options]\nmerge_every = "1s"\nform_within = "400ms"\n',
            "options.form_within: must be at least options.suspect_after",
        ),
        (GROUPS + "state_bytes = 23\n", "group[1].state_bytes: must be between 24 and"),
        ('[[group]]\nname = "g@1"\nmembers = 3\n', "group[0].name: 'g@1' must be unique"),
        ('[[group]]\nname = "g"\nmembers = ["p@1"]\n', "group[0].members: 'p@1' cannot be the name of a process"),
    ],
)
def test_impossible_changes_are_refused_in_one_sentence(text: str, sentence: str) -> None:
    assert refusal(text).startswith(sentence)


def test_omitted_keys_are_filled_in() -> None:
    scenario = parse_scenario(
        TOP
        + LATER
        + fault("leave", "p3", 1, group="g")
        + fault("form", "p2", 2, group="h")
        + fault("crash", "p3", 3)
        + fault("recover", "p3", 4)
        + fault("merge", "p1", 5, group="g")
        + fault("join", "p3", 6, group="g")
    )
    form, recover, merge, join = (each for each in scenario.fault if isinstance(each, Form | Recover | Merge | Join))
    assert isinstance(form, Form)
    assert form.members == ("p2", "p3", "p4")
    assert isinstance(recover, Recover)
    assert recover.joins == ("h",)  # which it was in when it crashed
    assert isinstance(merge, Merge)
    assert merge.with_ == ("p2", "p3")
    assert isinstance(join, Join)
    assert join.via == ("p1", "p2")
    assert parse_scenario(scenario_toml(scenario)) == scenario
    assert returns_at(scenario.fault) == {"p3": 4_000_000_000}


def test_a_process_that_crashes_before_it_joins_was_present_from_the_start() -> None:
    moves = fault("crash", "p1") + fault("recover", "p1", 2, joins=[]) + fault("join", "p1", 3, group="g")
    assert absent_at_first(parse_scenario(TOP + GROUPS + moves), "g") == frozenset()


def test_a_group_has_no_members_before_it_is_formed() -> None:
    scenario = parse_scenario(TOP + LATER + fault("form", "p2", group="h", members=["p2", "p3"]))
    assert absent_at_first(scenario, "h") == {"p2", "p3", "p4"}
    assert absent_at_first(scenario, "g") == frozenset()


def test_a_group_is_formed_within_four_suspicions_unless_it_says_otherwise() -> None:
    assert form_within(options_of(parse_scenario(TOP + GROUPS))) == 2_000_000_000
    told = parse_scenario(TOP + GROUPS + '[options]\nmerge_every = "1s"\nform_within = "700ms"\n')
    assert form_within(options_of(told)) == 700_000_000


@pytest.mark.parametrize(
    ("text", "changing"),
    [
        (GROUPS, False),
        (GROUPS + fault("crash", "p1"), False),
        (GROUPS + fault("leave", "p1", group="g"), True),
        (GROUPS + fault("crash", "p1") + fault("recover", "p1", 2), True),
        (GROUPS + '[options]\nmerge_every = "1s"\n', True),
        ('protocol = "acks"\n' + GROUPS + fault("leave", "p1", group="g"), False),
    ],
)
def test_groups_change_where_a_process_joins_leaves_or_merges(text: str, changing: bool) -> None:
    assert facts_of(parse_scenario(TOP + text)).changing is changing
