"""All algorithms without timers under random schedules: reordering, copies, crashes that lose any frames in transit.

The judge looks from outside: agreement among survivors, no duplicates, FIFO without gaps, causal order, one total
order, everything delivered that survivors sent, nothing held at the end. It must also find wrong rules.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pytest

from antiphon.protocols.classic.as_printed import printed
from antiphon.protocols.classic.frames import ClassicFrame, Known, MessageName
from antiphon.protocols.classic.inquiries import Inquiries
from antiphon.protocols.classic.ordering.combined import FifoTotal
from antiphon.protocols.classic.ordering.commits import Commits
from antiphon.protocols.classic.ordering.two_phase import TwoPhase
from antiphon.protocols.classic.relaying.causal import Causal
from antiphon.protocols.classic.rules import ADOPTED
from antiphon.protocols.classic.settings import Service
from antiphon.protocols.classic.site import Site
from antiphon.types import ProcessId
from tests.support.classic_cluster import SERVICES, Shape, faults, run_schedule

SEEDS: Final = 120
PLANTED_SEEDS: Final = 600
"""Each planted bug is found within this number of schedules."""


def _only_data(site: Site, frame: ClassicFrame) -> None:
    if frame.kind == "data":
        _MULTICAST(site, frame)


def _those_so_far(inquiries: Inquiries, message: MessageName) -> Mapping[ProcessId, Known]:
    return inquiries._open[message]


_MULTICAST: Final = Site.multicast


@pytest.mark.parametrize("streams", [False, True], ids=["datagrams", "streams"])
@pytest.mark.parametrize("service", SERVICES)
def test_every_promise_is_kept(service: Service, streams: bool) -> None:
    for seed in range(SEEDS):
        assert not faults(run_schedule(seed, Shape(service, streams=streams))), seed


def test_the_schedules_reach_what_they_are_for() -> None:
    """Takeovers that hand messages over, that find commits, after a second loss; and gaps that never close."""
    seen = dict.fromkeys(("handed", "found", "again", "gap"), 0)
    for seed in range(SEEDS):
        cluster = run_schedule(seed, Shape("total"))
        frames = cluster.travelled
        seen["handed"] += any(frame.kind == "inquiry" and frame.copies for frame in frames)
        reports = [known for frame in frames for known in getattr(frame, "known", ())]
        seen["found"] += any(known.committed for known in reports)
        seen["again"] += any(getattr(frame, "losses", 0) > 1 for frame in frames)
        seen["gap"] += "inquiry" in run_schedule(seed, Shape("fifo")).kinds()
    assert min(seen.values()) > SEEDS // 100, seen


@pytest.mark.parametrize(
    ("shape", "within"),
    [
        (Shape("total", rules=printed(("N1",))), 20),
        (Shape("total", rules=printed(("N1",)), crashes=False), 100),
        (Shape("total", rules=replace(ADOPTED, refuses_the_lost=False)), 200),
        (Shape("fifo", rules=replace(ADOPTED, refuses_the_lost=False)), 450),
    ],
    ids=["N1", "N1 without crashes", "total is_current the lost", "fifo is_current the lost"],
)
def test_wrong_rules_are_found(shape: Shape, within: int) -> None:
    assert any(faults(run_schedule(seed, shape)) for seed in range(within))
    right = replace(shape, rules=ADOPTED)
    assert not any(faults(run_schedule(seed, right)) for seed in range(min(within, SEEDS)))


PLANTED: Final[tuple[tuple[str, Service, type[object], str, object], ...]] = (
    ("a message is not relayed", "reliable", Site, "multicast", _only_data),
    ("a gap is given up at the first no", "fifo", Inquiries, "answers", _those_so_far),
    ("a gap is never given up", "fifo", Inquiries, "answers", lambda *_: None),
    ("a message travels without its context", "causal", Causal, "_context", lambda self: self._previous.clear() or ()),
    ("a stamp is forgotten at delivery", "total", Commits, "get", lambda *_: None),
    ("an inquiry is answered in any epoch", "total", Inquiries, "admits", lambda *_: True),
    ("nothing is asked again after a further loss", "total", Inquiries, "restart", lambda *_: []),
    ("a floor is ignored", "fifo-total", FifoTotal, "_propose", TwoPhase._propose),
    ("a lost site is waited for", "total", TwoPhase, "lost", lambda *_: None),
)
"""The service, the planted bug, and the method that it replaces."""


@pytest.mark.parametrize(
    ("service", "owner", "name", "bug"), [row[1:] for row in PLANTED], ids=[row[0] for row in PLANTED]
)
def test_planted_bugs_are_found(
    monkeypatch: pytest.MonkeyPatch, service: Service, owner: type[object], name: str, bug: object
) -> None:
    monkeypatch.setattr(owner, name, bug)
    assert any(faults(run_schedule(seed, Shape(service))) for seed in range(PLANTED_SEEDS))
