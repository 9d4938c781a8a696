"""Services as values: how they are written, what does not exist, and what a core gets."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from antiphon import Causal, ConfigurationError, Fifo, Member, Reliable, Service, Total
from antiphon.api.settings import settings
from antiphon.core.services import GroupService

WRITTEN: dict[str, Service] = {
    "Total()": Total(),
    "Total(safe=True)": Total(safe=True),
    "Total(sequencer=True)": Total(sequencer=True),
    "Total(views='closed')": Total(views="closed"),
    "Causal('slow')": Causal("slow"),
    "Causal('fast')": Causal(),
    "Fifo()": Fifo(),
    "Reliable()": Reliable(),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_service_is_shown_as_it_is_written(text: str) -> None:
    assert repr(WRITTEN[text]) == text
    assert eval(text, {"Total": Total, "Causal": Causal, "Fifo": Fifo, "Reliable": Reliable}) == WRITTEN[text]
    assert len({WRITTEN[text], *WRITTEN.values()}) == len(WRITTEN)


def test_a_service_never_changes() -> None:
    with pytest.raises(FrozenInstanceError):
        Total().safe = True  # type: ignore[misc]


@pytest.mark.parametrize(
    ("impossible", "sentence"),
    [
        (lambda: Total(safe=True, sequencer=True), "safe=True, sequencer=True\\) does not exist"),
        (lambda: Total(sequencer=True, views="closed"), "Total\\(sequencer=True\\) has views='cut' only, not 'closed'"),
        (lambda: Total(safe=True, views="remove"), "Total\\(safe=True\\) has views='cut' only, not 'remove'"),
        (lambda: Total(accept=True), "accept=True needs views='closed', not 'cut'"),
        (lambda: Total(views="soon"), "views must be one of cut, remove, closed, not 'soon'"),  # type: ignore[arg-type]
        (lambda: Total(safe=1), "safe must be True or False, not 1"),  # type: ignore[arg-type]
        (lambda: Total("yes"), "safe must be True or False, not 'yes'"),  # type: ignore[arg-type]
        (lambda: Causal("late"), "order of Causal must be one of slow, fast, relative, vector, not 'late'"),  # type: ignore[arg-type]
        (lambda: Causal(views="remove"), "Causal has views='cut' only, not 'remove': others need Total"),
        (lambda: Fifo(views="closed"), "Fifo has views='cut' only"),
        (lambda: Reliable(views=None), "views must be one of"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_exist_is_refused_in_one_sentence(impossible: Callable[[], Service], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        impossible()


@pytest.mark.parametrize("value", ["total", "total-safe", None, Total, GroupService()])
def test_a_service_is_a_value_of_this_module(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="service must be a value such as Total"):
        Member(service=value)


def test_what_a_core_gets() -> None:
    assert Total(safe=True).core == GroupService("total-safe")
    assert Total(sequencer=True).core == GroupService("total", sequencer=True)
    assert Total(views="closed").core == GroupService("total", views="closed")
    assert Causal("relative").core == GroupService("causal-relative")
    assert [Fifo().core.name, Reliable().core.name] == ["fifo", "reliable"]


def test_primary_views_need_total_order() -> None:
    assert settings("lan", {}).core(datagrams=False, tracing=False).primary == "dynamic"
    with pytest.raises(ConfigurationError, match="primary needs Total"):
        settings("lan", {"service": Causal(), "primary": 3})
