"""Consensus from total order (Notes; docs/spec/multicast.md 4): multicast proposals, decide the first one delivered.

All members deliver in one order, so they decide the same. Members that fail are not waited for. A decision is *final*
once it stands at a place where the view is primary: with `Total(safe=True)` every later primary view has it, so no two
processes ever have different final decisions, whatever fails. Without a primary view nothing becomes final: no
protocol can decide on both sides of a partition (N4).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from antiphon.api.events import Event, Message, Primary, Reset
from antiphon.api.group import Group
from antiphon.errors import ConfigurationError
from antiphon.recipes.marks import body_of
from antiphon.recipes.order import require_total
from antiphon.recipes.waiting import Waiting

_MARK: Final = b"\0consensus "


@dataclass(frozen=True, slots=True)
class Decision:
    """The value that was proposed first for a topic."""

    topic: str
    value: bytes
    proposer: str
    final: bool
    """False: the view was not primary. Another side of a partition may have decided something else."""


class Consensus:
    """The decisions of one group, by topic. Use a group with `service=Total(safe=True)`."""

    def __init__(self, group: Group) -> None:
        require_total(group, "Consensus")
        self._group = group
        self._waiting = Waiting(group)
        self._decided: dict[str, Decision] = {}
        """In the order of the first proposals. Members that come from one view have the same ones."""

    @property
    def decisions(self) -> Mapping[str, Decision]:
        return self._decided

    async def propose(self, topic: str, value: bytes) -> Decision:
        """Propose a value, and return the final decision: of this proposal or of another one.

        It waits for a primary view. Put a timeout around it; after that the proposal may still be decided.
        """
        if not isinstance(topic, str) or type(value) is not bytes:
            raise ConfigurationError(f"a topic is a text and a value is bytes, not {topic!r} and {value!r}")
        while topic not in self._decided or not self._decided[topic].final:
            if topic not in self._decided:
                proposal = json.dumps({"topic": topic, "value": value.hex()})
                await self._group.send(_MARK + proposal.encode())
                await self._waiting.until(lambda: topic in self._decided)
            await self._waiting.until(lambda: topic not in self._decided or self._decided[topic].final)
        return self._decided[topic]

    def take(self, event: Event) -> bool:
        """Feed every event of the group; True if it was a proposal, readable or not. `Reset` needs `restore`."""
        body = body_of(event, _MARK)
        if isinstance(event, Primary):
            self._decided = {topic: _final(each) for topic, each in self._decided.items()}
        elif isinstance(event, Message) and body is not None:
            self._deliver(event.sender, body)
        self._waiting.step()
        return body is not None

    def state(self) -> bytes:
        """For `snapshot`, or a part of it."""
        return json.dumps([{**_fields(each)} for each in self._decided.values()]).encode()

    def restore(self, reset: Reset, states: tuple[bytes, ...] | None = None) -> None:
        """Take over states at a `Reset`. `states`: what `state` returned, if it was only a part of the snapshots.

        The state of the side that was primary counts alone. Without such a side the first proposals count, and none of
        them is final.
        """
        parts = reset.states if states is None else states
        chosen = parts if reset.primary is None else (parts[reset.primary],)
        merged: dict[str, Decision] = {}
        for part in chosen:
            for each in map(_read, json.loads(part)):
                known = merged.setdefault(each.topic, each)
                if each.final and not known.final:
                    merged[each.topic] = each
        self._decided = merged
        self._waiting.step()

    def _deliver(self, proposer: str, body: bytes) -> None:
        proposal = _proposal(body)
        if proposal is not None and proposal[0] not in self._decided:
            self._decided[proposal[0]] = Decision(*proposal, proposer, self._group.primary)


def _proposal(body: bytes) -> tuple[str, bytes] | None:
    """Topic and value; None if they cannot be read. All members ignore the same proposals."""
    try:
        fields = json.loads(body)
        topic, value = fields["topic"], bytes.fromhex(fields["value"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return (topic, value) if isinstance(topic, str) else None


def _final(decision: Decision) -> Decision:
    return Decision(decision.topic, decision.value, decision.proposer, final=True)


def _fields(decision: Decision) -> dict[str, Any]:
    value = decision.value.hex()
    return {"topic": decision.topic, "value": value, "proposer": decision.proposer, "final": decision.final}


def _read(fields: dict[str, Any]) -> Decision:
    return Decision(fields["topic"], bytes.fromhex(fields["value"]), fields["proposer"], fields["final"])
