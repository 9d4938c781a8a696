"""Random runs of `group.ask` in virtual time, with the trouble of `api_runs.py`; judged from outside and by the trace.

Applications ask with every number of answers and with short and long deadlines; some requests are cancelled. They
answer most requests, some late, some in order, some twice. Checked, from what applications saw:

- `unended`, `late`: each request ends, and not after its time.
- `invented`: an answer that its sender never gave, or two of one sender.
- `too few`: fewer answers than asked for, in the view in which the asker read its own request; of `All()` a member is
  missing only if the asker read a later view without it.
- `error`: an error that is not one of those of `ask`.
- `trace`: a property that the trace of the run violates, D14 among them. Primary views are judged by `api_runs.py`: a
  group that was founded again uses their numbers again.
"""

import asyncio
import random
import tempfile
from collections import defaultdict
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from antiphon import (
    All,
    Answer,
    AnswersLate,
    AntiphonError,
    AskerLeft,
    Available,
    Event,
    First,
    FlowBlocked,
    Group,
    Majority,
    Message,
    NotAMember,
    Request,
    TooFewMembers,
    Total,
    View,
)
from antiphon import Any as AnyOne
from antiphon.api.answers import Answers
from antiphon.properties.judge import judge as judge_trace
from antiphon.properties.promises import VOTED
from antiphon.testing import run
from antiphon.trace.collect import tables
from antiphon.trace.journal import JournalReader
from antiphon.trace.members import JOURNALS
from antiphon.types import ProcessId
from tools.lab.api_history import Ending, Judgement, Stay, Violation
from tools.lab.api_runs import Application, Trouble

_MODES: Final[tuple[Answers, ...]] = (First(), Majority(), All(), Available(), AnyOne())
_WITHIN_S: Final = (0.02, 0.5, 5.0, 20.0)
_ASK_S: Final = 0.4
"""Mean pause between two requests of one application."""
_ENDED_S: Final = 30.0
"""More than the longest deadline."""
_ERRORS: Final = (AnswersLate, TooFewMembers, AskerLeft, FlowBlocked, NotAMember)


@dataclass(slots=True)
class Asked:
    """One call of `ask`."""

    stay: Stay
    mode: Answers
    within_s: float
    began_s: float
    took_s: float = -1.0
    """-1: it has not ended."""
    cancelled: bool = False
    answers: tuple[Answer, ...] | None = None
    error: BaseException | None = None
    voters: frozenset[ProcessId] = frozenset()
    """The members when the asker read its own request."""
    later: list[frozenset[ProcessId]] = field(default_factory=list)
    """The views that the asker read after it."""


@dataclass(slots=True)
class Requests:
    """All requests of one run, by payload."""

    asked: dict[bytes, Asked] = field(default_factory=dict)
    given: defaultdict[bytes, set[ProcessId]] = field(default_factory=lambda: defaultdict(set))
    """The processes that have answered."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def judge(self, ended: Container[Stay]) -> Judgement:
        """`ended`: the stays whose application may not have read everything."""
        found = Judgement()
        for payload, each in self.asked.items():
            flaws = self._flaws(payload, each, is_over=each.stay in ended)
            found.violations += [Violation(kind, f"{payload!r} {each}") for kind in flaws]
            found.counts[f"{type(each.mode).__name__.lower()}: {_end(each)}"] += 1
        return found

    def _flaws(self, payload: bytes, each: Asked, *, is_over: bool) -> list[str]:
        if each.took_s < 0:
            return ["unended"]
        flaws = ["late"] if each.took_s > each.within_s + 1e-3 else []
        if each.error is not None and not isinstance(each.error, _ERRORS):
            flaws.append("error")
        answers = each.answers or ()
        senders = {answer.sender for answer in answers}
        invented = len(senders) < len(answers) or not senders <= self.given[payload]
        if invented or any(answer.payload != b"a" + payload for answer in answers):
            flaws.append("invented")
        if each.answers is not None and not _suffice(each, senders, is_over=is_over):
            flaws.append("too few")
        return flaws


def _end(each: Asked) -> str:
    if each.cancelled:
        return "cancelled"
    return "answered" if each.error is None else type(each.error).__name__


def _suffice(each: Asked, senders: set[ProcessId], *, is_over: bool) -> bool:
    if isinstance(each.mode, AnyOne | First):
        return len(senders) == 1 and (not each.voters or senders <= each.voters)
    if not each.voters:
        return True  # the asker ended before it read its own request
    missing = each.voters - senders
    if not senders <= each.voters:
        return False
    if isinstance(each.mode, Majority):
        return 2 * len(senders) > len(each.voters)
    if isinstance(each.mode, Available) or is_over:
        return True
    return all(any(one not in view for view in each.later) for one in missing)


class AskingApplication(Application):
    """Asks now and then, and answers most requests."""

    def __init__(self, requests: Requests, *application: Any, merges: bool) -> None:
        super().__init__(*application, merges=merges)
        self._requests = requests
        self._own: list[Asked] = []
        """Its requests that it has read."""
        self._answers = self._chance.choice([0.0, 0.7, 1.0, 1.0])

    async def follow(self, group: Group) -> None:
        async for event in group:
            if isinstance(event, Request):
                await self._respond(event, group)
            else:
                self._take(event, group)
            await self.awake.wait()

    async def write(self, group: Group, numbers: Callable[[], int]) -> None:
        while not group.leaving:
            await asyncio.sleep(self._chance.random() * 2 * _ASK_S)
            await self.awake.wait()
            for _ in range(self._chance.choice([1, 1, 1, 5])):
                self._ask(group, b"%d" % numbers())

    def _ask(self, group: Group, payload: bytes) -> None:
        chance, now_s = self._chance, asyncio.get_running_loop().time()
        asked = Asked(self.stay, chance.choice(_MODES), chance.choice(_WITHIN_S), now_s)
        self._requests.asked[payload] = asked
        cancel_s = chance.random() * asked.within_s if chance.random() < 0.1 else None
        task = asyncio.create_task(_ask(group, payload, asked, cancel_s))
        self._requests.tasks.add(task)
        task.add_done_callback(self._requests.tasks.discard)

    async def _respond(self, request: Request, group: Group) -> None:
        chance, own = self._chance, self._requests.asked[request.payload]
        if request.sender == self.stay.process and request.in_order:
            assert group.view is not None
            own.voters = frozenset(group.view.members)
            self._own.append(own)
        if chance.random() >= self._answers:
            return
        if chance.random() < 0.1:
            await asyncio.sleep(chance.random() * 0.5)
        self._requests.given[request.payload].add(self.stay.process)
        try:
            for _ in range(chance.choice([1, 1, 1, 2])):
                await request.answer(b"a" + request.payload, ordered=chance.random() < 0.25)
        except NotAMember:
            return  # the process leaves

    def _take(self, event: Event, group: Group) -> None:
        if isinstance(event, Message) and event.payload.startswith(b"a"):
            return  # an answer in order
        if isinstance(event, View):
            for own in self._own:
                own.later.append(frozenset(event.members))
        super()._take(event, group)


async def _ask(group: Group, payload: bytes, asked: Asked, cancel_s: float | None) -> None:
    clock = asyncio.get_running_loop().time
    asking = asyncio.create_task(group.ask(payload, answers=asked.mode, within=asked.within_s))
    if cancel_s is not None:
        await asyncio.wait([asking], timeout=cancel_s)
        asked.cancelled = asking.cancel()
    try:
        asked.answers = await asking
    except asyncio.CancelledError:
        if not asked.cancelled:
            raise
    except AntiphonError as error:
        asked.error = error
    asked.took_s = clock() - asked.began_s


class AskingTrouble(Trouble):
    """One run."""

    def __init__(self, seed: int, directory: Path) -> None:
        super().__init__(seed)
        self.requests = Requests()
        self._directory = directory
        self._sequenced = not self.history.safe and random.Random(f"sequenced {seed}").random() < 0.5

    def _settings(self) -> dict[str, Any]:
        chosen: dict[str, Any] = {"trace": self._directory, **super()._settings()}
        return {**chosen, "service": Total(sequencer=True)} if self._sequenced else chosen

    def _application(self, process: ProcessId) -> Application:
        plain = super()._application(process)
        return AskingApplication(self.requests, plain.stay, self.history, self._chance, merges=self._merges)

    async def _end(self) -> Ending:
        ending = await super()._end()
        if self.requests.tasks:
            await asyncio.wait(self.requests.tasks, timeout=_ENDED_S)
        return ending

    def _judge(self, ending: Ending) -> Judgement:
        found = self.requests.judge(self.history.ended)
        together = {frozenset(view) for view in ending.views.values()}
        if len(together) > 1:
            found.violations.append(Violation("not together", str(together)))
        return found


def play(seed: int) -> tuple[Judgement, list[str]]:
    """Play one run; return its judgement and its actions."""
    judgement, log = Judgement(), list[str]()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run"

        async def scenario() -> None:
            nonlocal judgement, log
            trouble = AskingTrouble(seed, path)
            log = trouble.log
            judgement = await trouble.run()

        try:
            run(scenario())
            _judge_trace(path, judgement)
        except Exception as error:  # the run itself is what is judged
            judgement.violations.append(Violation("error", repr(error)))
    return judgement, log


def _judge_trace(directory: Path, judgement: Judgement) -> None:
    journals = sorted((directory / JOURNALS).glob("*.journal"))
    rows = [table for journal in journals for table in tables(JournalReader(journal), ended=True)]
    for verdict in judge_trace(pa.concat_tables(rows)):
        judgement.counts["requests judged by D14"] += verdict.opportunities if verdict.property == "D14" else 0
        if verdict.violations and verdict.property not in VOTED:
            judgement.violations.append(Violation("trace", f"{verdict.property}: {verdict.example}"))
