"""Votes on primary views as a pure decision: processes that meet in views, by hand or at random (newtop.md 15)."""

import random
from collections import defaultdict
from collections.abc import Iterable

from antiphon.protocols.newtop.primary.lineage import Lineage, Outcome, PrimaryView, decide
from antiphon.types import ProcessId, ViewId, split_process_id


def ids(*names: str) -> frozenset[ProcessId]:
    return frozenset(map(ProcessId, names))


class Group:
    """Processes that meet in views; each view decides, and everybody or only some hear the outcome.

    `states`: by process, the formed views whose deliveries its application has. Members of a view that votes have
    exchanged their states.
    """

    def __init__(self, *names: str) -> None:
        self.lineages = {ProcessId(name): Lineage() for name in names}
        self.states: dict[ProcessId, set[ViewId]] = defaultdict(set)
        self._views = 0

    def entitle(self, name: str) -> None:
        self.lineages[ProcessId(name)].entitled = True

    def restart(self, name: str, incarnation: int = 2) -> None:
        for process in [each for each in self.lineages if split_process_id(each)[0] == name]:
            del self.lineages[process]
            self.states.pop(process, None)
        self.lineages[ProcessId(f"{name}#{incarnation}")] = Lineage()

    def leave(self, name: str, *survivors: str) -> None:
        for process in (name, *survivors):
            self.lineages[ProcessId(process)].pass_on(ProcessId(name))
        self.lapse(name)

    def lapse(self, *names: str) -> None:
        """These leave without passing their votes on."""
        for name in names:
            self.lineages[ProcessId(name)].lapse()
            self.states[ProcessId(name)].clear()

    def meet(
        self, *members: str, attempted: Iterable[str] | None = None, formed: Iterable[str] | None = None
    ) -> Outcome:
        """A view of these. `attempted`: by which, if not by all; `formed`: which of them hear all attempts."""
        self._views += 1
        view, processes = ViewId(f"view {self._views}"), ids(*members)
        merged = set[ViewId]().union(*(self.states[process] for process in processes))
        for process in processes:
            self.lineages[process].meet(processes)
            self.states[process] |= merged
        outcome = decide({process: self.lineages[process].claim for process in sorted(processes)})
        for process in processes:
            self.lineages[process].learn(outcome)
        if outcome.rule is None:
            return outcome
        tried = PrimaryView(outcome.number, view, processes)
        trying = processes if attempted is None else ids(*attempted)
        for process in trying:
            self.lineages[process].attempt(tried)
        if trying == processes:
            for process in processes:
                self.states[process].add(view)
            for process in processes if formed is None else ids(*formed):
                self.lineages[process].form(tried)
        return outcome


class Schedule:
    """Views, attempts and leaves at random, without restarts."""

    def __init__(self, seed: int, *, lapses: bool) -> None:
        """`lapses`: some leave without passing their votes on."""
        self._rng = rng = random.Random(seed)
        self._names = [chr(97 + place) for place in range(rng.randint(2, 6))]
        self._lapses = lapses
        self._after: dict[ViewId, set[ViewId]] = {}
        self._formed: dict[ViewId, int] = {}
        self.group = Group(*self._names)
        self.group.entitle("a")

    def breaks(self) -> set[str]:
        """What goes wrong.

        `fork`: a formed view does not follow an earlier one. `lost`: it has not the state of the last one, and a
        process elsewhere has it. `untold`: nobody has it, and the rule does not say so.
        """
        return set[str]().union(*map(self._turn, range(1, 41)))

    def _turn(self, turn: int) -> set[str]:
        rng, view = self._rng, ViewId(f"view {turn}")
        members = rng.sample(self._names, rng.randint(1, len(self._names)))
        whole, heard = rng.random() < 0.7, rng.sample(members, rng.randint(1, len(members)))
        attempted = members if whole else rng.sample(members, rng.randint(0, len(members) - 1))
        outcome = self.group.meet(*members, attempted=attempted, formed=heard)
        self._after[view] = {*outcome.after}.union(*(self._after[each] for each in outcome.after))
        found = self._judge(view, outcome, members) if outcome.rule is not None and whole else set()
        if rng.random() < 0.2:
            self.group.leave(rng.choice(members), *members)
        if self._lapses and rng.random() < 0.3:
            self.group.lapse(*rng.sample(members, rng.randint(1, len(members))))
        return found

    def _judge(self, view: ViewId, outcome: Outcome, members: list[str]) -> set[str]:
        """A view is formed: what is wrong with it."""
        found = set()
        if not self._formed.keys() <= self._after[view] or any(n >= outcome.number for n in self._formed.values()):
            found.add("fork")
        last = max(self._formed, key=self._formed.__getitem__, default=None)
        holders = {process for process, state in self.group.states.items() if last in state}
        if last is not None and not holders & ids(*members):
            if holders:
                found.add("lost")
            elif outcome.rule != "lost":
                found.add("untold")
        self._formed[view] = outcome.number
        return found


def breaks(seed: int, *, lapses: bool) -> set[str]:
    """What goes wrong in the schedule of this seed."""
    return Schedule(seed, lapses=lapses).breaks()
