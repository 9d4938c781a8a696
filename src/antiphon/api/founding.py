"""When a process founds a group instead of joining it, so that a group that exists is never founded again.

A process that does not answer may be in the group. So a process that was given peers founds only if it reaches all of
them, or as many as the user says, and each process that it reaches has said that it is in no group of that name
(docs/spec/newtop.md 11.2 rule 8). If several processes want the group, the lowest of those that may found it proposes
one formation of all. Any other process waits, asks again, and reports which addresses it does not reach.

A founded group may become primary if its founder was entitled to found. `found="anyway"` founds alone without that; the
process is entitled later, once it reaches enough others and none of them is in another group of that name.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from antiphon.api.group import Group
from antiphon.core.contract import Answer, Changing, Presence
from antiphon.errors import ConfigurationError, NotJoined
from antiphon.limited_log import LimitedLog
from antiphon.sockets.driver import Driver
from antiphon.sockets.transports.contract import Seed
from antiphon.types import GroupId, ProcessId

Found = Literal["together", "never", "anyway"]
"""When to found a group: when enough processes are reached; never; or alone, if no member is found for some time."""

_FOREVER_S: Final = 1e9
_WARNING_S: Final = 10.0
"""Pause between two warnings about the same address, while a process waits."""
_FRESH_ROUNDS: Final = 3
"""An answer expires after this number of rounds: a process that stopped answering must not delay a formation."""
_PROPOSALS_MAX: Final = 3
"""How often a formation of all is proposed. If they cannot form a group together, one process begins alone."""
_OPEN: Final = (None, Presence.FORMING)
"""Answers of processes that may be in the group, or be in it soon; None: no answer."""
_PHRASES: Final = {
    None: "is connected and has not answered",
    Presence.FORMING: "takes part in a formation of the group",
    Presence.MEMBER: "is in the group and has not admitted us yet",
}


@dataclass(frozen=True, slots=True)
class Policy:
    """The user's choice for one process. It may differ between members of a group."""

    found: Found = "together"
    """Whether to found a group: `together` with enough others, `never`, or `anyway`, alone but not primary."""
    least_members: int | None = None
    """How many processes, this one included, are enough to found a group; None: all given addresses."""
    join_within: float | None = None
    """Seconds after which `join` raises `NotJoined`; None: wait."""

    def __post_init__(self) -> None:
        if self.found not in get_args(Found):
            raise ConfigurationError(f"found must be one of {', '.join(get_args(Found))}, not {self.found!r}")
        least, within = self.least_members, self.join_within
        if least is not None and (not isinstance(least, int) or isinstance(least, bool) or least < 1):
            raise ConfigurationError(f"least_members must be a whole number from 1, or None, not {least!r}")
        number = isinstance(within, int | float) and not isinstance(within, bool)
        if within is not None and not (number and 0 < within < _FOREVER_S):
            raise ConfigurationError(f"join_within must be a number of seconds above 0, or None, not {within!r}")

    def but(self, found: Found | None, least_members: int | None, join_within: float | None) -> "Policy":
        """A copy with the values that are given; None keeps a value."""
        return Policy(
            self.found if found is None else found,
            self.least_members if least_members is None else least_members,
            self.join_within if join_within is None else join_within,
        )


class Founder:
    """One group that a process tries to be in, from `join` until the group has been primary, or was left."""

    def __init__(
        self, driver: Driver, core: Changing, me: ProcessId, group: Group, policy: Policy, round_s: float
    ) -> None:
        """`round_s`: how often others are asked. After two rounds the process has looked long enough."""
        self._driver = driver
        self._core = core
        self._me = me
        self._group = group
        self._name = GroupId(group.name)
        self._policy = policy
        self._round_s = round_s
        self._since_ns = driver.clock()
        self._heard: Mapping[ProcessId, Answer] = {}
        """The answers that were evaluated last."""
        self._asked: tuple[ProcessId, ...] = ()
        """The members that were asked to admit us."""
        self._proposals = 0
        self._propose_at_ns = 0

    def begin(self, contacts: tuple[ProcessId, ...]) -> None:
        """Start to look for the group, first at these contacts."""
        self._core.join(self._name, contacts, self._driver.clock())

    def ask(self) -> None:
        """A new round, or a new peer: ask all peers whether they are in the group."""
        self._core.inquire(self._name, self._peers, self._driver.clock(), founding=self._may_found)
        self._driver.stir()
        self._look()

    def turned(self) -> None:
        """Act on answers that have arrived; once we are a member, only in the next round."""
        answers = self._core.answers(self._name)
        if answers is not self._heard:
            self._heard = answers  # this runs in each turn, so one answer must not be looked at twice
            if not self._is_member:
                self._look()

    def troubles(self) -> list[str]:
        """Why we are not in the group yet: addresses not reached, peers that do not answer, or what the user chose."""
        said, seeds = self._said(), self._driver.transport.seeds
        lines = [f"{show(seed)}: {seed.reason}" for seed in seeds if seed.reason is not None and not seed.own]
        lines += [f"{peer} {_PHRASES[said.get(peer)]}" for peer in self._peers if not _is_settled(said.get(peer))]
        return lines or self._choices()

    def _choices(self) -> list[str]:
        least, reached = self._policy.least_members, len(self._peers) + 1
        if self._policy.found == "never":
            return ["no process that is reached is in the group, and found='never' forms none"]
        if least is not None and reached < least:
            return [f"{reached} processes are reached, this one included, and least_members is {least}"]
        return []

    @property
    def is_overdue(self) -> bool:
        """Whether to report that we are not in the group yet."""
        return self._has_looked_long and not self._is_member

    # What others say

    @property
    def _peers(self) -> tuple[ProcessId, ...]:
        return self._driver.transport.peers

    @property
    def _is_member(self) -> bool:
        return bool(self._group.health.members)

    def _said(self) -> dict[ProcessId, Presence]:
        """The answers of the last rounds, of peers that are connected."""
        oldest = self._driver.clock() - round(_FRESH_ROUNDS * self._round_s * 1e9)
        answers = self._core.answers(self._name)
        return {peer: answers[peer].presence for peer in self._peers if peer in answers and answers[peer].at >= oldest}

    def _members(self) -> tuple[ProcessId, ...]:
        """The peers that are in the group. A peer that has said so and is silent now may still be in it."""
        answers = self._core.answers(self._name)
        return tuple(peer for peer in self._peers if peer in answers and answers[peer].presence is Presence.MEMBER)

    # What the user permits

    @property
    def _has_looked_long(self) -> bool:
        return self._driver.clock() - self._since_ns >= round(2 * self._round_s * 1e9)

    @property
    def _is_anyway(self) -> bool:
        return self._policy.found == "anyway" and self._has_looked_long

    @property
    def _reaches_enough(self) -> bool:
        """Whether no group of that name can exist outside of our peers, or the user takes that risk."""
        least = self._policy.least_members
        all_reached = all(seed.peer is not None or seed.own for seed in self._driver.transport.seeds)
        if least is None:
            return all_reached
        return len(self._peers) + 1 >= least and (all_reached or self._has_looked_long)

    @property
    def _may_found(self) -> bool:
        return self._policy.found != "never" and (self._reaches_enough or self._is_anyway)

    # What follows

    def _look(self) -> None:
        """Join, found, or wait."""
        self._heard = self._core.answers(self._name)
        if self._is_member:
            self._become_entitled()
        elif members := self._members():
            self._ask_to_be_admitted(members)
        else:
            self._asked = ()
            self._found()

    def _ask_to_be_admitted(self, members: tuple[ProcessId, ...]) -> None:
        """Ask these members to admit us; the core asks them in turn until one does."""
        if members != self._asked:
            self._asked = members
            self._core.join(self._name, members, self._driver.clock())
            self._driver.stir()

    def _found(self) -> None:
        """Propose the group, if it is up to this process."""
        now, said = self._driver.clock(), self._said()
        if not self._may_found or now < self._propose_at_ns:
            return
        is_open = any(said.get(peer) in _OPEN for peer in self._peers)
        if is_open and not self._is_anyway:
            return
        if any(peer < self._me for peer, presence in said.items() if presence is Presence.FOUNDING):
            return
        others = [peer for peer, presence in said.items() if presence in (Presence.JOINING, Presence.FOUNDING)]
        if self._proposals >= _PROPOSALS_MAX:
            others = []
        if self._reaches_enough and not is_open:
            self._entitle()
        self._proposals += 1
        self._propose_at_ns = now + round(self._round_s * 1e9)
        self._core.form(self._name, (self._me, *others), now)
        self._driver.stir()

    def _become_entitled(self) -> None:
        """Our group was never primary. Entitle it, if no other group of that name can exist."""
        said, company = self._said(), self._group.health.members
        outside = [said.get(peer) for peer in self._peers if peer not in company]
        elsewhere = any(presence in _OPEN or presence is Presence.MEMBER for presence in outside)
        if self._policy.found != "never" and self._reaches_enough and not elsewhere:
            self._entitle()

    def _entitle(self) -> None:
        """Let this process found a primary lineage (docs/spec/newtop.md 15)."""
        self._core.entitle(self._name, self._driver.clock())
        self._driver.stir()


class Founding:
    """All groups that one process looks for."""

    def __init__(self, driver: Driver, core: Changing, me: ProcessId, policy: Policy, round_s: float) -> None:
        self.policy = policy
        self._driver = driver
        self._core = core
        self._me = me
        self._round_s = round_s
        self.founders: dict[GroupId, Founder] = {}
        """By group; until the group is primary."""
        self._timers: dict[GroupId, asyncio.TimerHandle] = {}
        self._log = LimitedLog("antiphon", pause_s=_WARNING_S, clock=lambda: driver.clock() / 1e9)

    async def join(self, group: Group, policy: Policy, contacts: tuple[ProcessId, ...] | None) -> None:
        """Wait until the process is in the group; asks `contacts` first, by default all peers."""
        name = GroupId(group.name)
        self.founders[name] = founder = Founder(self._driver, self._core, self._me, group, policy, self._round_s)
        founder.begin(contacts or self._driver.transport.peers)
        self._ring(name)
        try:
            async with asyncio.timeout(policy.join_within):
                await group.ready()
        except TimeoutError:
            trouble = "; ".join(founder.troubles()) or "no process is known that is in the group"
            message = f"{self._me} could not join {name} in {policy.join_within:g} seconds: {trouble}"
            raise NotJoined(message) from None

    def end(self, name: GroupId) -> None:
        """Stop looking for a group: it is founded, by us or by others, or we leave it."""
        if self.founders.pop(name, None) is not None:
            self._timers.pop(name).cancel()

    def end_all(self) -> None:
        """The process ends."""
        for name in [*self.founders]:
            self.end(name)

    def met(self) -> None:
        """A peer is connected: it may be in the groups that we look for."""
        for founder in self.founders.values():
            founder.ask()

    def turned(self) -> None:
        """Answers may have arrived."""
        for founder in self.founders.values():
            founder.turned()

    def _ring(self, name: GroupId) -> None:
        """A round begins."""
        self._timers[name] = asyncio.get_running_loop().call_later(self._round_s, self._ring, name)
        founder = self.founders[name]
        founder.ask()
        if founder.is_overdue:
            for trouble in founder.troubles():
                self._log.warn(trouble, "%s cannot join yet: %s", self._me, trouble)


def unreached(seeds: tuple[Seed, ...]) -> dict[str, str]:
    """By address, why no process was reached there."""
    return {show(seed): str(seed.reason) for seed in seeds if seed.reason is not None and not seed.own}


def show(seed: Seed) -> str:
    """An address as the user writes it."""
    host, port = seed.address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_settled(presence: Presence | None) -> bool:
    """Whether that answer leaves nothing to wait for."""
    return presence in (Presence.ABSENT, Presence.JOINING, Presence.FOUNDING)
