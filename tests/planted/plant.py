"""The search for runs that show a planted bug (`tests/planted/newtop.py`), and what it found.

    python -m tests.planted.plant search [name ...] [--runs 1500] [--seconds 60] [--rig membership]

prints a table: for each bug, rig by rig, the first seed that shows it and what that seed violates; then the entries of
`SHOWN` to paste. After a change of the random draws (a family, `tests/support/schedules.py`), search
again.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count, islice
from typing import Final

import pytest

from antiphon.campaign.families import FAMILIES, Family
from antiphon.properties.judge import judge
from antiphon.protocols.newtop.options import NewtopOptions
from antiphon.protocols.newtop.scenarios.changes import draw_symmetric_changes
from antiphon.scenario.model import Scenario, Stall, Suspect
from antiphon.sim.guarded import limited
from antiphon.sim.run import simulate
from antiphon.trace.table import events_table
from tests.planted import formation as planted_formation
from tests.planted import intergroup as planted_intergroup
from tests.planted import modes as planted_modes
from tests.planted import newtop as planted_bugs
from tests.planted import orders as planted_orders
from tests.planted import primary as planted_primary
from tests.planted.newtop import Bug, Plant, Traits
from tests.support import schedules
from tests.support.schedules import BrokenError, Draw

BUGS: Final = (
    *planted_bugs.BUGS,
    *planted_formation.BUGS,
    *planted_orders.BUGS,
    *planted_modes.BUGS,
    *planted_primary.BUGS,
    *planted_intergroup.BUGS,
)
RUN_SECONDS_MAX: Final = 10
"""CPU seconds. A bug may make a run endless; all other runs take less than half of this."""
REPLAY_SECONDS_MAX: Final = 2
"""The search skips slower runs, because the tests play the runs that it finds."""
ENDLESS: Final = "endless"
CRASHED: Final = "assertion"
UNSETTLED: Final = "unsettled"
"""Names for a run that never ends, that an exception stops, or that is not settled at the end."""
_UNNAMED: Final = frozenset({ENDLESS, CRASHED, UNSETTLED})
"""The search goes on: a name of docs/spec/properties.md says more."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A run in which a bug shows."""

    rig: str
    seed: int
    """Of a short run; the search may have found a longer one first."""
    property: str
    runs: int
    """Number of runs that the search needed, among those where the rule acts."""


# -------------------------------------------------------------------------------- rigs


@dataclass(frozen=True, slots=True)
class Rig:
    """A source of runs, and the judge of them."""

    traits: Callable[[int], Traits]
    violated: Callable[[int], list[str]]
    """The properties that the run of a seed violates, with the planted bug."""


def _of_scenario(scenario: Scenario) -> Traits:
    options = scenario.options if isinstance(scenario.options, NewtopOptions) else NewtopOptions()
    return Traits(
        service=scenario.group[0].service,
        view_change=options.view_change,
        flow_control=options.flow_control,
        datagrams=scenario.network.transport == "datagram",
        groups=len(scenario.group),
        by_block=scenario.group[0].numbering == "block",
        suspicions=sum(isinstance(fault, Suspect) for fault in scenario.fault),
        stalls=any(isinstance(fault, Stall) for fault in scenario.fault),
        changes=frozenset(type(fault).__name__.lower() for fault in scenario.fault),
        merges=options.merge_every > 0,
    )


SYMMETRIC_CHANGES = Family("changes", "", draw_symmetric_changes)
"""The family `changes` without its sequencers: the rules of formation are the same with them."""


def _family(name: str) -> Rig:
    draw = (SYMMETRIC_CHANGES if name == "changes" else FAMILIES[name]).draw

    def violated(seed: int) -> list[str]:
        run = simulate(draw(seed), "frames")  # the codec would refuse some of these frames
        verdicts = judge(events_table(run.id, run.histories))
        broken = [verdict.property for verdict in verdicts if verdict.outcome == "violated"]
        return broken if run.quiet else [*broken, UNSETTLED]

    return Rig(lambda seed: _of_scenario(draw(seed)), violated)


def _schedules(draw: Callable[[int], Draw]) -> Rig:
    def violated(seed: int) -> list[str]:
        try:
            schedules.run(draw(seed))
        except BrokenError as broken:
            return [broken.property]
        return []

    return Rig(lambda seed: _of_draw(draw(seed)), violated)


def _of_draw(drawn: Draw) -> Traits:
    return Traits(
        drawn.service,
        drawn.view_change,
        drawn.flow_control,
        drawn.datagrams,
        len(drawn.groups),
        drawn.by_block,
        drawn.suspicions,
        stalls=False,
    )


_FAMILIES: Final = ("membership", "halted", "changes", "causal-changes", "primary", "sequencer", "safe", "intergroup")

RIGS: Final[Mapping[str, Rig]] = {
    **{name: _family(name) for name in _FAMILIES},
    "schedules": _schedules(schedules.draw),
    "safe-schedules": _schedules(schedules.draw_safe),
}
"""Families, simulated and judged; and the adversarial schedules with their oracle."""


def violations(rig: str, seed: int) -> list[str]:
    """The properties that the run of a seed violates; endless runs and assertions of a core are listed too."""
    try:
        with limited(RUN_SECONDS_MAX):
            return RIGS[rig].violated(seed)
    except TimeoutError:
        return [ENDLESS]
    except Exception as error:  # a planted bug may cause any exception in a core
        return [ENDLESS if "never" in str(error) or "for ever" in str(error) else CRASHED]


@cache
def without_bugs(rig: str, seed: int) -> list[str]:
    """What the run of a seed violates before any bug is planted; several bugs show in the same run."""
    return violations(rig, seed)


# -------------------------------------------------------------------------------- what the search found

SHOWN: Final[Mapping[str, tuple[Shown, ...]]] = {
    "messages_do_not_count": (Shown("changes", 32, "D12", 22),),
    "phantoms_vote": (Shown("primary", 0, "M12", 1),),
    "numbers_stand_still": (Shown("primary", 0, "M12", 1),),
    "restarted_members_are_voters": (Shown("primary", 333, "M12", 58),),
    "deliveries_are_not_safe": (Shown("primary", 93, "M13", 43),),
    "only_the_first_view_votes": (Shown("primary", 7, "L11", 8),),
    "failed_members_pass_their_votes_on": (Shown("primary", 3, "M12", 4),),
    "leavers_forget_their_votes": (Shown("primary", 1, "M12", 2),),
    "removed_member_holds_stability": (Shown("membership", 0, "L8", 1), Shown("schedules", 1, "L8", 2),),
    "failed_one_by_one": (Shown("membership", 187, "O4", 95), Shown("schedules", 219, "O4", 93),),
    "nothing_discarded_at_confirm": (Shown("membership", 6, "D4", 3), Shown("schedules", 4, "D4", 1),),
    "closed_at_the_first_remove": (Shown("membership", 10, "D6", 3),),
    "closed_without_blocking": (Shown("membership", 10, "D6", 3),),
    "halted_only_by_agreement": (Shown("halted", 0, "D15", 1),),
    "halted_until_the_agreement": (Shown("halted", 0, "D6", 1),),
    "refuted_suspicions_halt": (Shown("halted", 0, "F3", 1),),
    "no_nulls": (Shown("membership", 0, "L2", 1), Shown("schedules", 70, "L2", 71),),
    "excluded_and_content": (Shown("membership", 10, "S1", 11),),
    "views_overtake_messages": (Shown("membership", 10, "D8", 11), Shown("schedules", 12, "D8", 13),),
    "messages_overtake_views": (Shown("membership", 10, "D8", 11), Shown("schedules", 9, "D8", 10),),
    "the_removed_still_heard": (Shown("membership", 187, "D4", 188), Shown("schedules", 58, "D4", 59),),
    "buffers_of_the_removed_kept": (Shown("membership", 59, "L8", 60), Shown("schedules", 16, "L8", 17),),
    "suspects_accuse_in_vain": (Shown("schedules", 643, "M6e", 316),),
    "accusations_read_once": (Shown("schedules", 2398, "L5", 1199),),
    "words_cancel_in_any_view": (Shown("membership", 131, "M6e", 48), Shown("schedules", 26, "L2", 13),),
    "pending_before_news": (Shown("membership", 10, "M6e", 4), Shown("schedules", 5, "L2", 2),),
    "pending_dropped": (Shown("membership", 19, "M5", 8), Shown("schedules", 19, "L5", 8),),
    "gaps_taken": (Shown("membership", 43, "D8", 20), Shown("schedules", 22, "O2", 10),),
    "counter_behind_the_cut": (Shown("membership", 70, "D4", 71),),
    "duties_to_the_failed_go": (Shown("schedules", 97, "L5", 98),),
    "silent_groups_keep_the_cut_away": (Shown("membership", 361, "M6e", 130),),
    "votes_kept": (Shown("schedules", 2, "L1", 1),),
    "removes_install_their_own": (Shown("schedules", 369, "O4", 57),),
    "new_connections": (Shown("membership", 69, "M6e", 47),),
    "new_connections_unnoticed": (Shown("membership", 69, "D8", 47),),
    "duties_go_with_rows": (Shown("schedules", 1717, "L5", 1718),),
    "nulls_freed_by_flow_number": (Shown("membership", 69, "M6e", 53), Shown("schedules", 187, "L5", 99),),
    "accused_only_if_silent": (Shown("schedules", 10317, "L5", 5096),),
    "accused_only_if_silent_and_no_null": (Shown("schedules", 1212, "L5", 573),),
    "never_adopted": (Shown("schedules", 10317, "L5", 5096),),
    "blocking_is_no_charge": (Shown("schedules", 82, "L5", 48),),
    "no_announcements": (Shown("membership", 9, "L6", 10), Shown("schedules", 1, "L8", 2),),
    "slow_cut_one_too_low": (Shown("membership", 1032, "D5w", 131), Shown("schedules", 218, "D8", 32),),
    "flush_counts_unagreed": (Shown("schedules", 1084, "D8", 464),),
    "flush_of_the_failed_awaited": (Shown("membership", 2, "F3", 1), Shown("schedules", 2, "L5", 3),),
    "blocks_named_elsewhere_not_answered": (Shown("membership", 597, "D8", 40), Shown("schedules", 1157, "L2", 102),),
    "orphans_kept": (Shown("membership", 364, "M6e", 125), Shown("schedules", 43, "L5", 23),),
    "control_in_no_order": (Shown("membership", 28, "S1", 8), Shown("schedules", 51, "L2", 13),),
    "refused_nulls_never_step": (Shown("membership", 8, "M6e", 1), Shown("schedules", 904, "M6e", 35),),
    "unseen_views_sent_in": (Shown("membership", 4032, "D6", 65),),
    "leaves_at_once": (Shown("changes", 11, "L3", 8),),
    "leaves_in_order": (Shown("changes", 542, "M5", 154),),
    "contradictions_ignored": (Shown("changes", 130, "M7", 131),),
    "ready_before_the_flush": (Shown("changes", 6, "O2", 7),),
    "sends_go_on": (Shown("changes", 14, "O2", 15),),
    "held_sends_lost": (Shown("changes", 14, "O2", 15),),
    "state_before_its_place": (Shown("changes", 11, "D12", 12),),
    "nothing_waits_for_a_state": (Shown("changes", 6, "D12", 7),),
    "other_groups_go_on": (Shown("changes", 140, "O3", 87),),
    "the_waiting_take_part": (Shown("changes", 62, "D8", 63),),
    "open_agreements_take_part": (Shown("changes", 1106, "D8", 603),),
    "install_told_once": (Shown("changes", 3, "L1", 4),),
    "newcomers_never_suspected": (Shown("changes", 167, "L1", 168),),
    "recovered_under_the_old_name": (Shown("changes", 34, "D2", 9),),
    "ready_before_all_is_delivered": (Shown("causal-changes", 218, "D8", 176),),
    "slow_is_ready_one_too_early": (Shown("causal-changes", 212, "D8", 43),),
    "views_overtake_own_messages": (Shown("causal-changes", 2033, "D8", 413),),
    "members_send_while_the_group_changes": (Shown("causal-changes", 11, "O2", 12),),
    "joiners_do_not_wait": (Shown("causal-changes", 3, "D12", 4),),
    "joiners_hold_one_group_back": (Shown("causal-changes", 52, "O3", 27),),
    "messages_overtake_flushes": (Shown("causal-changes", 72, "D5w", 14),),
    "late_messages_of_the_removed_count": (Shown("causal-changes", 88, "D4", 19),),
    "counter_behind_the_return": (Shown("sequencer", 34, "O3", 35),),
    "out_of_turn": (Shown("sequencer", 34, "O3", 26),),
    "needs_are_not_asked": (Shown("sequencer", 1, "D8", 1),),
    "members_send_no_keep_alives": (Shown("sequencer", 0, "L9", 1),),
    "silence_is_no_charge": (Shown("sequencer", 2, "D8", 3),),
    "nothing_submitted_again": (Shown("sequencer", 15, "L2", 16),),
    "places_not_counted": (Shown("sequencer", 2, "D2", 3),),
    "needs_are_asked_once": (Shown("sequencer", 57, "M6e", 43),),
    "views_lost_with_their_sequencer": (Shown("sequencer", 24, "M6e", 25),),
    "vanished_rows_relied_on": (Shown("sequencer", 93, "M6e", 67),),
    "deliver_when_complete": (Shown("safe", 0, "S3", 1), Shown("safe-schedules", 2, "D11", 3),),
    "acknowledge_the_own_number": (Shown("safe", 0, "D11", 1), Shown("safe-schedules", 9, "D11", 10),),
    "cut_before_it_is_stable": (Shown("safe", 41, "D4", 42), Shown("safe-schedules", 6, "D4", 7),),
    "nothing_acknowledged": (Shown("safe", 3, "L8", 4), Shown("safe-schedules", 1, "L3", 2),),
    "the_largest_is_acknowledged": (Shown("intergroup", 1, "S1", 1),),
    "one_is_missing_from_the_acknowledgment": (Shown("intergroup", 1, "S1", 2),),
    "one_is_missing_from_the_minimum": (Shown("intergroup", 4, "S1", 5),),
    "freed_on_receipt": (Shown("intergroup", 1, "S4", 1),),
    "stable_when_delivered": (Shown("intergroup", 1, "S1", 1),),
    "newcomers_not_held_for": (Shown("intergroup", 416, "L1", 1),),
    "receivers_do_not_count": (Shown("intergroup", 75, "L9", 8),),
    "the_stalled_count": (Shown("intergroup", 8, "L6", 9),),
    "the_departed_count": (Shown("intergroup", 42, "L2", 44),),
    "listeners_claim_everything": (Shown("intergroup", 74, "L9", 76),),
    "arrival_breaks_ties": (Shown("intergroup", 8, "O6", 9),),
    "keep_alives_overtake": (Shown("intergroup", 4, "O6", 1),),
    "late_ones_taken": (Shown("intergroup", 5, "O1", 7),),
    "late_ones_ordered": (Shown("intergroup", 0, "O6", 1),),
    "no_keep_alives": (Shown("intergroup", 1, "L10", 1),),
    "no_repairs": (Shown("intergroup", 70, "L2", 2),),
    "requests_not_repeated": (Shown("intergroup", 95, "L6", 4),),
    "window_one_too_large": (Shown("intergroup", 75, "F1", 8),),
    "gaps_skipped": (Shown("intergroup", 6, "O2", 8),),
    "resets_untold": (Shown("intergroup", 0, "L10", 2),),
    "lost_sources_untold": (Shown("intergroup", 43, "L5", 45),),
    "late_for_what_was_begun": (Shown("intergroup", 128, "L2", 1),),
}  # fmt: skip
"""By the name of a bug, the first run of each rig that shows it."""


def recorded(bugs: Iterable[Bug]) -> list[tuple[Plant, Shown]]:
    """The recorded runs that tests play."""
    return [(bug.plant, shown) for bug in bugs for shown in SHOWN.get(bug.name, ())]


# -------------------------------------------------------------------------------- the search


def search(bug: Bug, rig: str, runs: int, seconds: float) -> tuple[Shown | None, int]:
    """The first run that shows a bug, among runs where its rule acts; and the number of tries."""
    end, tried = time.monotonic() + seconds, 0
    fitting = (seed for seed in count() if bug.fits(RIGS[rig].traits(seed)))
    for seed in islice(fitting, runs):
        tried += 1
        begin = time.process_time()
        with pytest.MonkeyPatch.context() as patch:
            bug.plant(patch)
            found = violations(rig, seed)
        cheap = time.process_time() < begin + REPLAY_SECONDS_MAX
        named = [property_ for property_ in bug.wanted or found if property_ in found and property_ not in _UNNAMED]
        if named and cheap and not without_bugs(rig, seed):
            return Shown(rig, seed, named[0], tried), tried
        if time.monotonic() > end:
            break
    return None, tried


def main(arguments: list[str]) -> None:
    """Redo the search and print what it found."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted.plant")
    parser.add_argument("command", choices=["search"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runs", type=int, default=1_500)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rig", choices=[*RIGS])
    asked = parser.parse_args(arguments)
    lines = []
    for bug in BUGS:
        if not asked.names or bug.name in asked.names:
            found = {shown.rig: shown for shown in SHOWN.get(bug.name, ())}
            for rig in bug.rigs if not asked.rig else {asked.rig} & {*bug.rigs}:
                found.pop(rig, None)
                shown, tried = search(bug, rig, asked.runs, asked.seconds)
                told = f"{shown.property} seed {shown.seed}" if shown else "not shown"
                found |= {rig: shown} if shown else {}
                print(f"{bug.rule:14} {bug.name:36} {rig:11} {told:22} {tried:5} runs", flush=True)  # noqa: T201
            lines.append(_line(bug, [found[rig] for rig in bug.rigs if rig in found]))
    print("", *filter(None, lines), sep="\n")  # noqa: T201


def _line(bug: Bug, found: list[Shown]) -> str:
    """An entry of `SHOWN`, to be put in its place."""
    entries = [f'Shown("{each.rig}", {each.seed}, "{each.property}", {each.runs}),' for each in found]
    return f'    "{bug.name}": ({" ".join(entries)}),' if found else ""


if __name__ == "__main__":
    main(sys.argv[1:])
