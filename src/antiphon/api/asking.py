"""Requests of an application to its group, and its answers to requests of others (docs/spec/interfaces.md 4).

The core decides when a request has its answers. Here are the deadline, the error, and the rows of the trace.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from antiphon.api.answers import Answer, Answers
from antiphon.api.arguments import require_seconds
from antiphon.core.contract import AnsweringInOrder, Changing, is_answering_in_order
from antiphon.core.effects import Answered, Frame, Query, Unanswered
from antiphon.core.query_room import QueryRoom
from antiphon.errors import (
    AnswersLate,
    AskerLeft,
    ConfigurationError,
    FlowBlocked,
    NotAMember,
    RequestFailed,
    TooFewMembers,
)
from antiphon.types import GroupId, ProcessId

if TYPE_CHECKING:
    from antiphon.api.outgoing import Outgoing
    from antiphon.api.process import LocalProcess
    from antiphon.sockets.driver import Driver
    from antiphon.trace.journal import JournalRecorder

OUTSTANDING_MAX: Final = 4_096
"""Requests of a process to one group that may wait for answers."""
APART_BYTES_MAX: Final = 65_536
"""A request or an answer outside the order is one frame: nothing else arrives while it is written. A large one would
delay what others wait for, and on datagrams it would be lost again and again."""

_Answers = tuple[tuple[ProcessId, bytes], ...]


class Asker:
    """The requests and answers of one process, for its core and its trace."""

    def __init__(self, core: Changing, driver: "Driver", recorder: "JournalRecorder | None") -> None:
        self._asking = core if is_answering_in_order(core) else None
        self._driver = driver
        self._recorder = recorder
        self.is_request: Callable[[Frame], bool] = _never if self._asking is None else self._asking.is_request
        """Whether a delivered frame brings a request; without a call in between, because many frames are asked."""

    @property
    def _core(self) -> AnsweringInOrder:
        if self._asking is None:
            raise ConfigurationError("the protocol of this process has no requests to groups")
        return self._asking

    def ask(self, group: GroupId, payload: bytes, mode: str) -> tuple[int, int | None]:
        """The application asks; returns the number of the request, and its label if it is a message."""
        core, now = self._core, self._driver.clock()  # without requests nothing is numbered
        label = None if mode == "any" else self._number(group, payload, now)
        request = core.ask(group, payload, mode, now, label or 0)
        if self._recorder is not None:
            self._recorder.asked(group, request, mode, now)
        return request, label

    def answer(self, frame: Frame, payload: bytes) -> None:
        """The application answers, to the asker alone."""
        now = self._driver.clock()
        self._core.answer(frame, payload, now)
        self._driver.hurry(now)

    def answer_in_order(self, group: GroupId, frame: Frame, payload: bytes) -> None:
        """The application answers by a message to the group."""
        now = self._driver.clock()
        self._core.answer_in_order(frame, payload, now, self._number(group, payload, now))
        self._driver.hurry(now)

    def withdraw(self, group: GroupId, request: int, label: int | None, reason: str | None) -> _Answers:
        """The application no longer waits; returns the answers so far. `reason`: None if they are all that it needs."""
        answers = self._core.withdraw(group, request, self._driver.clock())
        if reason is None:
            self.ended(Answered(group, request, answers, label))
        else:
            self.ended(Unanswered(group, request, reason, answers, label))
        return answers

    def ended(self, effect: Answered | Unanswered) -> None:
        """A request has ended."""
        if self._recorder is not None:
            self._recorder.request_ended(effect, self._driver.clock())

    def _number(self, group: GroupId, payload: bytes, now: int) -> int:
        if self._recorder is not None:
            self._recorder.requested(group, (payload,), now)
        return self._driver.labels.take(group)


def _never(_: Frame) -> bool:
    return False


class _Waiting:
    """A call of `ask`. Its outcome counts even if the call was cancelled in the same turn."""

    def __init__(self) -> None:
        self.label: int | None = None
        """Of the request, if it is a message."""
        self.outcome: _Answers | RequestFailed | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(self, outcome: _Answers | RequestFailed) -> None:
        self.outcome = outcome
        if not self.ended.done():
            self.ended.set_result(None)


class Asking:
    """The requests of one process to one group. Invariant: `_open` has those that have not ended."""

    def __init__(self, member: "LocalProcess", group: GroupId, outgoing: "Outgoing") -> None:
        self._member = member
        self._group = group
        self._outgoing = outgoing
        self._open: dict[int, _Waiting] = {}
        self._admitted = 0
        """Requests that have not ended, also those that wait for room."""
        self._unread = QueryRoom()

    async def ask(self, payload: bytes, answers: Answers, within: float) -> tuple[Answer, ...]:
        """Send a request, and wait for its answers."""
        if not isinstance(answers, Answers):
            raise ConfigurationError(
                f"answers must be First(), Majority(), All(), Available() or Any(), not {answers!r}"
            )
        require_seconds(within, "within")
        self._require_size(payload, "a request of Any()" if answers.mode == "any" else None, "First()")
        if self._admitted >= OUTSTANDING_MAX:
            raise FlowBlocked(f"{self._admitted:,} requests to {self._group} wait for answers; wait for some of them")
        self._admitted += 1
        try:
            found = await self._answers(payload, answers, within)
        finally:
            self._admitted -= 1
        return tuple(Answer(*each) for each in found)

    async def _answers(self, payload: bytes, answers: Answers, within: float) -> _Answers:
        waiting, number = _Waiting(), None
        try:
            async with asyncio.timeout(within):
                await self._admit(payload)
                number, waiting.label = self._member.asker.ask(self._group, payload, answers.mode)
                self._open[number] = waiting
                self._member.hurry()
                await waiting.ended
        except TimeoutError:
            if waiting.outcome is None:  # else it came at the last moment
                return self._expire(number, answers, within)
        finally:
            if number in self._open:
                self._withdraw(number, "cancelled")
        assert waiting.outcome is not None
        if isinstance(waiting.outcome, RequestFailed):
            raise waiting.outcome
        return waiting.outcome

    async def _admit(self, payload: bytes) -> None:
        try:
            await self._outgoing.admit(payload)
        except NotAMember as left:
            raise AskerLeft(str(left)) from None

    def _require_size(self, payload: bytes, apart: str | None, instead: str) -> None:
        """Refuse what cannot be sent. `apart`: what it is, if it does not go in order; `instead`: what does."""
        self._outgoing.require_size(payload)
        if apart is not None and len(payload) > APART_BYTES_MAX:
            raise ConfigurationError(
                f"{apart} with {len(payload):,} bytes is larger than {APART_BYTES_MAX:,}, the most outside the order; "
                f"use {instead}"
            )

    def _expire(self, number: int | None, answers: Answers, within: float) -> _Answers:
        """The time is over: what has arrived, if that is enough, or an error."""
        if number is None:
            by = f" because it waits for {self._outgoing.blocked_by}" if self._outgoing.blocked_by else ""
            raise AnswersLate(f"a request to {self._group} could not be sent within {within:g} seconds{by}", ())
        suffices = answers.mode == "available"
        found = self._withdraw(number, None if suffices else "deadline")
        if suffices:
            return found
        raise AnswersLate(
            f"{len(found)} members of {self._group} have answered within {within:g} seconds; "
            f"the request waited for {answers.mode}",
            tuple(Answer(*each) for each in found),
        )

    def _withdraw(self, number: int, reason: str | None) -> _Answers:
        label = self._open.pop(number).label
        return self._member.asker.withdraw(self._group, number, label, reason)

    async def answer(self, frame: Frame, payload: bytes, *, ordered: bool) -> None:
        """Answer the request that this frame brought.

        `NotAMember` once the process leaves: the application may still read what came before, but the process may be
        in the group again by then, and would answer for a stay in which it has not delivered the request.
        """
        if ordered:
            await self._outgoing.admit(payload)
            self._member.asker.answer_in_order(self._group, frame, payload)
            return
        self._require_size(payload, "an answer", "ordered=True")
        self._outgoing.require_open()
        self._member.asker.answer(frame, payload)

    def show(self, effect: Answered | Unanswered) -> None:
        """A request has ended in the core; perhaps it had ended here before, because its time was over."""
        waiting = self._open.pop(effect.request, None)
        if waiting is None:
            return
        self._member.asker.ended(effect)
        if isinstance(effect, Answered):
            waiting.end(effect.answers)
            return
        found = tuple(Answer(*each) for each in effect.answers)
        waiting.end(
            TooFewMembers(
                f"too few members of {self._group} are left for a majority of the view in which the request was "
                f"delivered; {len(found)} have answered",
                found,
            )
        )

    def admits(self, query: Query) -> bool:
        """False if too many requests outside the order are unread."""
        return self._unread.take(query.frame)

    def read_query(self, query: Query) -> None:
        """The application reads a request outside the order."""
        self._unread.free(query.frame)

    def close(self, reason: str = "") -> None:
        """The process leaves the group: every request ends."""
        open_, self._open = self._open, {}
        for number, waiting in open_.items():
            self._member.asker.ended(Unanswered(self._group, number, "left", (), waiting.label))
            waiting.end(AskerLeft(reason or f"this process has left {self._group} before the answers came"))
