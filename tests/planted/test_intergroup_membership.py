"""InterGroup with one rule of its changing sender groups left out: the judge must notice (docs/spec/intergroup.md 7).

Each run is played twice: without the bug nothing is violated, with it the named property is. Runs are those of
`tests/support/changing_senders.py`, or of the family `intergroup`. After a change of their draws, search again:

    python -m tests.planted.test_intergroup_membership [name ...] [--runs 100] [--family intergroup]
"""

import argparse
import sys
from collections.abc import Mapping
from itertools import count, islice
from typing import Final, NamedTuple

import pytest

from antiphon.campaign.families import FAMILIES, Family
from antiphon.properties.judge import judge
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from tests.planted import intergroup_membership, intergroup_roles
from tests.support.changing_senders import CHANGING_SENDERS

BUGS: Final = {bug.name: bug for bug in (*intergroup_membership.BUGS, *intergroup_roles.BUGS)}
_FAMILIES: Final[Mapping[str, Family]] = {"changing": CHANGING_SENDERS, "intergroup": FAMILIES["intergroup"]}


class Shown(NamedTuple):
    """A run in which a bug shows."""

    bug: str
    family: str
    seed: int
    property: str


SHOWN: Final = (
    Shown("announcements_are_not_repeated", "changing", 29, "L1"),
    Shown("proposals_of_old_epochs_restart", "changing", 29, "M6e"),
    Shown("epochs_do_not_count", "changing", 3, "ValueError"),
    Shown("the_last_messages_are_dropped", "changing", 0, "O4"),
    Shown("delivery_goes_on_in_a_repair", "changing", 154, "M7"),
    Shown("sends_go_on_in_a_repair", "changing", 8, "O2"),
    Shown("sends_of_a_repair_are_lost", "changing", 0, "L3"),
    Shown("no_change_takes_effect_at_the_end", "changing", 123, "M7"),
    Shown("all_changes_take_effect_at_the_end", "changing", 4, "M10"),
    Shown("everybody_comes_along", "changing", 0, "M8"),
    Shown("numbers_begin_again", "changing", 21, "KeyError"),
    Shown("the_window_stays_full", "changing", 0, "F3"),
    Shown("views_without_a_time", "changing", 0, "M2"),
    Shown("joiners_show_the_id_of_members", "changing", 1, "M4"),
    Shown("the_added_are_not_waited_for", "changing", 19, "D5w"),
    Shown("leavers_go_at_once", "changing", 13, "F1"),
    Shown("leavers_are_silent", "changing", 9, "L10"),
    Shown("leaving_before_sending", "changing", 24, "L3"),
    Shown("groups_are_left_at_once", "changing", 33, "F1"),
    Shown("idle_receivers_do_not_return", "intergroup", 19, "L3"),
    Shown("resets_without_a_view", "changing", 10, "D8"),
    Shown("no_watchdog", "changing", 1, "L5"),
    Shown("no_floor", "changing", 1, "M2"),
    Shown("members_forget_the_floor", "changing", 10, "M2"),
    Shown("joiners_begin_with_what_was_received", "intergroup", 180, "D8"),
    Shown("lost_sources_stay", "intergroup", 43, "L5"),
    Shown("sources_do_not_leave", "intergroup", 42, "OverflowError"),
    Shown("new_sources_are_not_asked", "intergroup", 115, "L2"),
)


def violations(family: str, seed: int) -> list[str]:
    """The properties that the run of a seed violates; an exception of a core is listed by its class."""
    try:
        run = simulate(_FAMILIES[family].draw(seed), "frames")  # the codec would refuse some of these frames
    except Exception as error:  # a planted bug may cause any exception in a core
        return [type(error).__name__]
    verdicts = judge(events_table(run.id, run.histories))
    return [verdict.property for verdict in verdicts if verdict.outcome == "violated"]


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: f"{shown.bug}-{shown.family}-{shown.seed}")
def test_a_planted_bug_is_found(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    assert violations(shown.family, shown.seed) == []
    BUGS[shown.bug].plant(monkeypatch)
    assert shown.property in violations(shown.family, shown.seed)


def main(arguments: list[str]) -> None:
    """For each bug, print the first run that shows it."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted.test_intergroup_membership")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--family", choices=[*_FAMILIES], default="changing")
    asked = parser.parse_args(arguments)
    for name in asked.names or BUGS:
        shown = "not shown"
        for seed in islice(count(), asked.runs):
            with pytest.MonkeyPatch.context() as patch:
                BUGS[name].plant(patch)
                found = violations(asked.family, seed)
            if found and not violations(asked.family, seed):
                shown = f"seed {seed}: {', '.join(found)}"
                break
        print(f"{BUGS[name].rule:10} {name:42} {shown}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
