"""Clusters whose groups are formed, joined, left and merged, with applications that have a state."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from antiphon.core.effects import Deliver, Effect, InstallState, InstallView, Left, Reach
from antiphon.protocols.newtop.as_printed import printed
from antiphon.protocols.newtop.process import NewtopProcess
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId, ProcessId, View, name_of
from tests.support.cluster import GROUP, OMEGA_NS, Cluster

STATE = "state of "


class Forming(Cluster):
    """As a cluster; processes may be in no group at first. The state of an application is its list of deliveries."""

    def __init__(
        self,
        *names: str,
        strangers: Sequence[str] = (),
        groups: Mapping[str, Sequence[str]] | None = None,
        **settings: Any,
    ) -> None:
        self.states: dict[tuple[str, GroupId], list[str]] = defaultdict(list)
        """By process and name of a group."""
        self.reached: dict[tuple[str, GroupId], View] = {}
        self.left: dict[str, list[Left]] = defaultdict(list)
        chosen = {"suspect_after_ns": OMEGA_NS, "form_within_ns": 4 * OMEGA_NS, **settings}
        self._chosen = NewtopSettings(**{"tracing": True, **chosen})
        super().__init__(*names, groups=groups, **chosen)
        for name in strangers:
            self.start(name)

    def start(self, name: str, **other: Any) -> None:
        """A process that is in no group, perhaps with other settings than the rest."""
        settings = replace(self._chosen, **other)
        self.cores[ProcessId(name)] = NewtopProcess(ProcessId(name), {}, settings, printed(()))
        self.add(name)

    def join(self, name: str, *contacts: str, group: str = GROUP) -> None:
        self.core(name).join(GroupId(group), tuple(map(ProcessId, contacts)), self.now)
        self.wait(0)

    def leave(self, name: str, group: str = GROUP) -> None:
        self.core(name).leave(GroupId(group), self.now)
        self.settle(name)

    def form(self, name: str, *members: str, group: str) -> None:
        self.core(name).form(GroupId(group), tuple(map(ProcessId, members)), self.now)
        self.wait(0)

    def merge(self, name: str, *others: str, group: str = GROUP) -> None:
        self.core(name).merge(GroupId(group), tuple(map(ProcessId, others)), self.now)
        self.settle(name)

    def heal(self) -> None:
        """All directions work again, for groups that are formed from now on."""
        self.cuts.clear()

    def named(self, name: str, group: str = GROUP) -> list[bytes | str]:
        """The events of a group at the application, over all its formations: payloads, views, states."""
        seen: list[bytes | str] = []
        for effect in self.effects[name]:
            if isinstance(effect, Deliver) and name_of(effect.frame.group) == group:
                seen += effect.frame.payloads
            elif isinstance(effect, InstallView) and name_of(effect.view.group) == group:
                seen.append(" ".join(effect.view.members))
            elif isinstance(effect, InstallState) and name_of(effect.group) == group:
                seen.append(STATE + ",".join(str(place) for place, _ in effect.states))
        return seen

    def in_view(self, name: str, group: str = GROUP) -> tuple[ProcessId, ...]:
        """By identity of the group, or by name the latest."""
        views = [view for view in self.views[name] if view.group == group]
        reached = self.reached.get((name, GroupId(group)))
        return reached.members if reached is not None else views[-1].members

    def last_view(self, name: str, group: str = GROUP) -> str:
        """The members of the last view under that name."""
        return " ".join(next(view.members for view in reversed(self.views[name]) if name_of(view.group) == group))

    def _carry_out(self, name: str, effect: Effect) -> None:
        match effect:
            case Reach(view=view):
                self.reached[name, view.group] = view
            case InstallState(group=group, states=states, own=own):
                self._merge(name, name_of(group), dict(states), own)
            case Left():
                self.left[name].append(effect)
            case Deliver(frame=frame):
                group = name_of(frame.group)
                self.states[name, group] += [payload.decode() for payload in frame.payloads]
        super()._carry_out(name, effect)
        if isinstance(effect, InstallView):
            self.reached[name, effect.view.group] = effect.view
            if effect.snapshot:
                state = self.states[name, name_of(effect.view.group)]
                self.core(name).state(effect.view, json.dumps(state).encode(), self.now)

    def _merge(self, name: str, group: GroupId, states: dict[int, bytes], own: int | None) -> None:
        parts = {place: json.loads(state) for place, state in states.items()}
        if own is not None:
            parts[own] = self.states[name, group]
        self.states[name, group] = [each for _, part in sorted(parts.items()) for each in part]
