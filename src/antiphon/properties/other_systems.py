"""What each word promises in the trace of a system that is not ours (docs/reference/trace-lines.md).

A system says its promises in words, and every set of words is a service. Only properties that a trace of sends,
deliveries and views can decide are promised, and none that compares the clocks of two machines.
"""

from collections.abc import Mapping
from itertools import chain, combinations
from typing import Final

from antiphon.trace.promise_words import NOTHING, SENDING, WORDS, parts_of, service_of


def _some(codes: str) -> frozenset[str]:
    return frozenset(codes.split())


_ALWAYS: Final = _some("W D1 D3")
"""Promised with any word: nothing is made up, altered, or delivered where it does not belong."""

_WORDS: Final[Mapping[frozenset[str], frozenset[str]]] = {
    _some("at-most-once"): _some("D2"),
    _some("at-least-once"): _some("D13 L2 L3"),
    _some("fifo"): _some("O1"),
    _some("causal"): _some("O3"),
    _some("total"): _some("O5 O6"),
    _some("uniform"): _some("D11"),
    _some("views"): _some("M1 M4 M7 D4 D5w D8"),
    # Order without gaps, if nothing is left out.
    _some("fifo at-least-once"): _some("O2"),
    _some("causal at-least-once"): _some("O4"),
    _some("total at-least-once"): _some("O7"),
    _some("causal total"): _some("O8"),
}
"""What words promise together: each entry counts if all its words are given."""

_AMONG_SURVIVORS: Final = _some("O6 O8")
"""Without `uniform`, a process that crashes may have delivered alone, in an order that others never see."""
_WHILE_UNCHANGED: Final = _some("O7")
"""So the others may lack what it delivered, and processes may enter a view with different messages delivered."""


def _promised(words: frozenset[str]) -> frozenset[str]:
    found = [codes for needed, codes in _WORDS.items() if needed <= words]
    return _ALWAYS.union(*found) if words else frozenset()


_SETS: Final = {
    service_of(words): parts_of(words)
    for words in chain.from_iterable(combinations(WORDS, count) for count in range(len(WORDS) + 1))
}

SERVICES: Final[Mapping[str, frozenset[str]]] = {
    **{service: _promised(words) for service, words in _SETS.items()},
    SENDING: _some("W D1 D3 L2"),
}
"""What is promised, by service."""

ALIVE: Final[Mapping[str, frozenset[str]]] = {
    service: SERVICES[service] & _AMONG_SURVIVORS for service, words in _SETS.items() if "uniform" not in words
}
"""Promised only among processes that do not crash."""

UNCHANGED: Final[Mapping[str, frozenset[str]]] = {
    service: SERVICES[service] & _WHILE_UNCHANGED for service, words in _SETS.items() if "uniform" not in words
}
"""Promised only while the membership of the group does not change."""

assert SERVICES[NOTHING] == frozenset()
