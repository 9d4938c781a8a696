"""Random runs of requests; `benchmarks.request_runs` plays many more."""

import pytest

from antiphon.protocols.newtop.asking.requests import Outcome, Request
from tools.lab.request_runs import play


@pytest.mark.parametrize("seed", [0, 1, 6, 41, 490, 100_210, 102_304])
def test_every_request_ends_with_its_answers_or_with_a_clear_error(seed: int) -> None:
    judgement, log = play(seed)
    assert not judgement.violations, "\n".join(log)
    assert judgement.counts["requests judged by D14"]


def test_a_bug_in_the_count_of_answers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome(self: Request) -> Outcome:
        return "answered" if self.voters and self.got else "waits"

    monkeypatch.setattr(Request, "outcome", property(outcome))
    assert {"too few", "trace"} <= {violation.kind for violation in play(1)[0].violations}
