"""On-line migration of a replica (Macedo94 Fig. 2.2): a service moves to another group while requests go on.

    form g2 = g1 and C        every member of g1 joins g2, the least one founds it; C arrives there by itself
    forward g1's traffic      what is still delivered in g1 is sent on to g2, and applied where g2 delivers it
    close g1                  each member says in g1 that it sends there no more; then all leave g1
    rename                    the service goes on in g2; applications do not notice
    B leaves                  `leave` of the old replica

A process applies what the last group that it is in delivers, so all replicas have one order. Requests of g1 after the
decision to move are counted for each sender, and the state says how many of them are applied. So a request that is
forwarded twice is applied once, and another member forwards what a failed one has not.

A group that is founded together has no state to transfer. So a process that arrives asks in the order of the group for
the state at that place; the least member that has it sends it, and the process holds what is delivered meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

from antiphon.api.arguments import require_name
from antiphon.api.events import Event, Message, Reset, View
from antiphon.api.founding import Found
from antiphon.api.group import Group
from antiphon.api.member import Member
from antiphon.errors import ConfigurationError, NotAMember
from antiphon.recipes import moves
from antiphon.recipes.moves import Old
from antiphon.recipes.order import require_total
from antiphon.recipes.waiting import Waiting

_log: Final = logging.getLogger("antiphon")


class Movable:
    """One process of a replicated service that can move from group to group. It reads all groups of its member.

    If a function of the application raises, the process leaves the service, and every call gets the first such error.
    """

    def __init__(
        self,
        member: Member,
        apply: Callable[[str, bytes], None],
        snapshot: Callable[[], bytes],
        restore: Callable[[bytes], None],
    ) -> None:
        """`apply`: a request of a process. `snapshot` and `restore`: the state; one that is restored replaces it."""
        self._member = member
        self._application = apply, snapshot, restore
        self._groups: list[Group] = []
        """Those that the service is in, in their order; the last one is in force. Two while the service moves."""
        self._expected = ""
        """The name of the group that this process is about to enter."""
        self._entering: asyncio.Task[None] | None = None
        """Enters the new group of a move."""
        self._moving_from = ""
        """The name of the old group of the last move; `_applied` counts its requests."""
        self._applied: dict[str, int] = {}
        self._log: list[Old] = []
        """Requests of the old group that this process has delivered, and that the new group may not have applied."""
        self._seen: dict[str, int] = {}
        """By sender, the count of its last request in the log."""
        self._closed: set[str] = set()
        """Members of the old group that send there no more."""
        self._held: list[Event] | None = []
        """Messages that wait for the state; None: this process has it."""
        self._needing: dict[str, int] = {}
        """Processes that have asked for the state and have not got it, each with the number of its last question."""
        self._questions = 0
        self._forwards: asyncio.Queue[tuple[Group, bytes]] = asyncio.Queue()
        self._forwarding = False
        """Whether this process has forwarded all of the log."""
        self._waiting = Waiting()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def group(self) -> Group:
        """The group in force."""
        if not self._groups:
            raise NotAMember("this process is in no group of the service")
        return self._groups[-1]

    @property
    def address(self) -> str:
        """Where other processes find this one."""
        return self._member.address

    async def join(self, name: str, **how: Any) -> None:
        """Become a member of the service, which is in the group of this name; `how` as for `Member.join`."""
        self._held = None
        await self._start(name, **how)

    async def arrive(self, name: str) -> None:
        """Become a member in a group to which the service moves, now or later. Returns when it has the state."""
        await self._start(name, found="never")
        await self._waiting.until(lambda: self._held is None)

    async def _start(self, name: str, **how: Any) -> None:
        self._waiting.require()
        if not self._tasks:  # else this is another attempt
            self._run(self._read())
            self._run(self._forward())
        await asyncio.sleep(0)  # all groups are read in one order before the first is joined
        try:
            await self._enter(name, **how)
        except NotAMember:
            self._waiting.require()  # the process has left because of another error
            raise
        await self._waiting.until(lambda: bool(self._groups))

    async def ended(self) -> None:
        """Wait until this process is no longer a member of the service; raises the error that ended it, if any."""
        with suppress(NotAMember):
            await self._waiting.until(lambda: False)

    async def send(self, payload: bytes) -> None:
        """Send a request to all replicas. While the service moves it may wait, so that requests keep their order."""
        if type(payload) is not bytes:
            raise ConfigurationError(f"a request is bytes, not {type(payload).__name__}")
        await self._waiting.until(self._may_send)
        await self.group.send(moves.REQUEST + payload)

    async def move(self, name: str) -> None:
        """Move the service to the group of another name. Returns when this process is in that group alone.

        `ConfigurationError` if another process has moved it to another group first.
        """
        require_name(name, "a group")
        await self._waiting.until(self._may_send)
        old = self.group.name
        if old == name:
            return
        await self.group.send(moves.MOVE + name.encode())
        await self._waiting.until(lambda: len(self._groups) == 1 and self.group.name != old)
        if self.group.name != name:
            raise ConfigurationError(f"the service has moved to {self.group.name} first, not to {name}")

    async def leave(self) -> None:
        """Leave the service; every remaining member has what this process sent."""
        await self._fail(NotAMember("this process has left the service"))
        for task in [*self._tasks]:
            task.cancel()

    # Reading

    async def _read(self) -> None:
        try:
            async for group, event in self._member.events():
                self._step(group, event)
        except NotAMember as gone:  # the process was excluded
            await self._fail(gone)
        else:
            await self._fail(NotAMember("this process has ended"))

    def _step(self, group: Group, event: Event) -> None:
        if group.name == self._expected:
            self._expected = ""
            self._groups.append(group)
            group.on_leaving(partial(self._gone, group))
            require_total(group, "Movable")
        if group in self._groups:
            self._take(group, event)
            self._go_on()
        self._waiting.step()

    def _take(self, group: Group, event: Event) -> None:
        match event:
            case Message(sender=sender, payload=payload) if payload[:1] == moves.NEED:
                self._need(group, sender, moves.read_need(payload[1:]))
            case Message(payload=payload) if payload[:1] == moves.STATE:
                self._bring(group, payload[1:])
            case Message() if self._held is not None:
                self._held.append(event)
            case Reset(states=states, primary=primary) if group is self._groups[-1]:
                self._reset(states[primary or 0])
            case View():
                self._forwarding = False  # the member that forwarded may be gone
                if self._entering is not None and group.name == self._moving_from:
                    self._found_if_least(group)
                if self._held is not None:
                    self._questions += 1
                    self._forwards.put_nowait((group, moves.need(self._questions)))
            case Message(sender=sender, payload=payload):
                self._deliver(group, sender, payload)
            case _:
                pass

    def _deliver(self, group: Group, sender: str, payload: bytes) -> None:
        is_new, kind, body = group is self._groups[-1], payload[:1], payload[1:]
        if kind == moves.REQUEST:
            self._request(group, sender, body, is_new=is_new)
        elif kind == moves.FORWARD:
            self._forwarded(body)
        elif kind == moves.MOVE and is_new and len(self._groups) == 1:
            name = moves.read_move(body)
            if name is not None and name != group.name:
                self._begin(group, name)
        elif kind == moves.CLOSE and not is_new:
            self._closed.add(sender)

    def _need(self, group: Group, sender: str, question: int | None) -> None:
        """A process asks for the state at this place. The least member that has it answers."""
        if question is None:
            return
        self._needing[sender] = question
        if self._held is not None:
            self._held = [] if sender == group.me else self._held
            return
        if group.me == min({*_members(group)} - {*self._needing}, default=None):
            self._forwards.put_nowait((group, moves.state_for(sender, question, self._state())))

    def _bring(self, group: Group, payload: bytes) -> None:
        """The state for a process, at the place where it asked for it last."""
        target, question, state = moves.read_state_for(payload) or ("", 0, b"")
        found = moves.read_snapshot(state)
        if found is None or self._needing.get(target) != question:
            return  # it has asked again since
        del self._needing[target]
        if target == group.me and self._held is not None:
            held = self._held
            self._take_over(found)
            for event in held:
                self._take(group, event)

    def _request(self, group: Group, sender: str, body: bytes, *, is_new: bool) -> None:
        apply, _, _ = self._application
        if group.name == self._moving_from:
            self._seen[sender] = count = self._seen.get(sender, 0) + 1
            self._log.append(Old(sender, count, body))
            self._forwarding = False
            if is_new:
                self._applied[sender] = count
        if is_new:
            apply(sender, body)

    def _forwarded(self, payload: bytes) -> None:
        """A request of the old group has its place in the new one, perhaps for the second time."""
        apply, _, _ = self._application
        old, (sender, place, body) = moves.read_forward(payload) or ("", Old("", 0, b""))
        if old == self._moving_from and place == self._applied.get(sender, 0) + 1:
            self._applied[sender] = place
            apply(sender, body)

    def _reset(self, state: bytes) -> None:
        found = moves.read_snapshot(state)
        if found is None:
            raise ConfigurationError("the state of this group is not that of a service that can move")
        self._take_over(found)

    def _take_over(self, found: moves.Snapshot) -> None:
        _, _, restore = self._application
        self._moving_from, self._applied = found.moving_from, found.applied
        restore(found.state)
        self._held = None

    def _state(self) -> bytes:
        _, snapshot, _ = self._application
        return moves.snapshot(moves.Snapshot(self._moving_from, self._applied, snapshot()))

    # Moving

    def _begin(self, group: Group, name: str) -> None:
        """All members of the old group are at this place in its order: the least one founds the new group."""
        self._moving_from = group.name
        self._applied, self._seen, self._log = {}, {}, []
        self._closed.clear()
        found: Found = "anyway" if group.me == min(_members(group)) else "never"
        self._entering = self._run(self._enter_and_close(group, name, found))

    def _found_if_least(self, old: Group) -> None:
        """The member that was to found the new group may be gone before it did."""
        assert self._entering is not None
        if self._expected and old.me == min(_members(old), default=None):
            self._entering.cancel()
            self._entering = self._run(self._enter_and_close(old, self._expected, "anyway"))

    async def _enter(self, name: str, **how: Any) -> None:
        self._expected = name
        await self._member.join(name, snapshot=self._state, **how)

    async def _enter_and_close(self, old: Group, name: str, found: Found) -> None:
        await self._enter(name, found=found)
        await self._waiting.until(lambda: self.group.name == name)
        self._entering = None
        await old.send(moves.CLOSE)

    def _go_on(self) -> None:
        """Forward what the new group lacks, and leave the old one when nothing more comes there."""
        if len(self._groups) < 2:
            return
        old, new = self._groups
        self._log = [each for each in self._log if each.place > self._applied.get(each.sender, 0)]
        members = _members(old)
        if self._log and not self._forwarding and new.me == min({*members} & {*_members(new)}, default=None):
            self._forwarding = True
            for each in self._log:
                self._forwards.put_nowait((new, moves.forward(old.name, each)))
        if members and {*members} <= self._closed and not self._log:
            del self._groups[0]
            self._run(_left(old))

    async def _forward(self) -> None:
        """Send on, apart from the reader: a reader that waits for flow control would wait for itself."""
        while True:
            group, payload = await self._forwards.get()
            with suppress(NotAMember):  # this process has left that group since
                await group.send(payload)

    def _may_send(self) -> bool:
        if len(self._groups) < 2:
            return bool(self._groups)
        me = self.group.me
        return me in self._closed and not any(each.sender == me for each in self._log)

    # Ending

    def _gone(self, group: Group) -> None:
        """The process leaves a group, perhaps because it was excluded."""
        if group in self._groups:  # else the service has moved on
            self._run(self._fail(NotAMember(f"this process has left {group.name}")))

    async def _fail(self, error: Exception) -> None:
        """Nothing more happens here: every call that waits gets the first error. Leave all groups."""
        groups, self._groups = self._groups, []
        self._waiting.end(error)
        for group in groups:
            await group.leave()

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(self._guard(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            with suppress(NotAMember):  # of a group that was left; `_gone` knows whether the service goes on
                await work
        except Exception as error:  # of the application: every call gets it
            _log.exception("a service that can move has failed; this process leaves it")
            await self._fail(error)


def _members(group: Group) -> tuple[str, ...]:
    """At the application's place in the stream."""
    return () if group.view is None else group.view.members


async def _left(group: Group) -> None:
    await group.leave()
