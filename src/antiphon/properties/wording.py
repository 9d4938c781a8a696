"""Each property in words, for people: the statements of properties.md, told for a reader who has not read it."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Promise:
    """One property, for people."""

    name: str
    sentence: str


PROMISES: Final = {
    "W": Promise("well-formed trace", "Every history is complete and consistent in itself, so that it can be judged."),
    "D1": Promise("delivery integrity", "Whatever is delivered was sent before, in that group and with that content."),
    "D2": Promise("no duplication", "No process delivers a message twice."),
    "D8": Promise(
        "virtual synchrony", "Processes that go on together from one view delivered the same messages in that view."
    ),
    "O1": Promise("FIFO order", "Messages of one sender are delivered in the order in which it sent them."),
    "O3": Promise("causal order", "No message is delivered before one that could have caused it."),
    "O6": Promise(
        "strong total order", "One order of all messages exists that every process keeps, over all groups and views."
    ),
    "L2": Promise(
        "multicast liveness", "By the end of a quiet run, all members that remain have delivered what one of them sent."
    ),
    "L3": Promise("self delivery", "A process that does not crash delivers its own messages."),
}
"""By property id, in the order in which they are judged."""


def promise(property_id: str) -> Promise:
    """The wording of a property; one that has none yet goes by its id."""
    return PROMISES.get(property_id, Promise("", f"Property {property_id}."))
