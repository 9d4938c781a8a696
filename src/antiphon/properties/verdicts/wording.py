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
    "M1": Promise("self inclusion", "Whoever installs a view is a member of it."),
    "M2": Promise("growing views", "The views that a process installs have ids that grow."),
    "M3": Promise(
        "initial view", "A process begins in the view that was configured, or that it joined, and does nothing before."
    ),
    "M4": Promise("view identity", "One id of a view means one membership, whoever installs it."),
    "M5": Promise(
        "one history of views",
        "Two that never suspect each other install the same views, one perhaps behind the other.",
    ),
    "M6": Promise("disjoint successors", "Two different successors of one view have no member in common."),
    "M6e": Promise("disjoint at last", "By the end of a quiet run, last views are equal or have no member in common."),
    "M7": Promise("agreed successors", "Members of both a view and the next come from the same view, if they come."),
    "M8": Promise("transitional set", "A process knows who came along with it from one view to the next."),
    "M9": Promise("shrinking views", "Until a group is formed anew, a view has fewer members than that before."),
    "M10": Promise("no capricious change", "Nobody is missing from a view whom none of its members ever suspected."),
    "M11": Promise("primary chain", "The views that call themselves primary follow one another in one chain."),
    "D1": Promise("delivery integrity", "Whatever is delivered was sent before, in that group and with that content."),
    "D2": Promise("no duplication", "No process delivers a message twice."),
    "D3": Promise("right place", "A process delivers only in groups that it is in, with the service it chose there."),
    "D4": Promise("validity", "The sender of what is delivered is a member of the view in which it is delivered."),
    "D5": Promise("same view delivery", "All who deliver a message deliver it in the same view."),
    "D5w": Promise(
        "same view delivery together",
        "Processes that go on together from one view deliver no message in different views.",
    ),
    "D6": Promise("sending view delivery", "A message is delivered in the view in which it was sent."),
    "D7": Promise("blocked while flushing", "Nobody sends between the agreement on a failure and the view after it."),
    "D8": Promise(
        "virtual synchrony", "Processes that go on together from one view delivered the same messages in that view."
    ),
    "D9": Promise("same cut", "Processes that go on together without a member had the same last message of it."),
    "D10": Promise("nothing after the cut", "Of a member that was removed nothing is delivered any more."),
    "D11": Promise(
        "uniform agreement", "What anybody delivers in a view, all who go on from that view delivered in it."
    ),
    "D12": Promise(
        "state transfer",
        "Who comes to a group takes over the state that its members had then, once, and delivers nothing before.",
    ),
    "D13": Promise(
        "agreement", "By the end of a quiet run, what one member that remains delivered, all that remain delivered."
    ),
    "D14": Promise("answers", "A request to a group is answered, by as many members as it asked for."),
    "O1": Promise("FIFO order", "Messages of one sender are delivered in the order in which it sent them."),
    "O2": Promise("reliable FIFO order", "No message of a sender that stays in view is left out before a later one."),
    "O3": Promise("causal order", "No message is delivered before one that could have caused it."),
    "O4": Promise("reliable causal order", "No message is left out that could have caused one that is delivered."),
    "O5": Promise(
        "weak total order", "Processes that go on together from one view delivered in the same order in that view."
    ),
    "O5x": Promise(
        "weak total order over groups",
        "Processes that go on together in two groups delivered the messages of both in the same order.",
    ),
    "O6": Promise(
        "strong total order", "One order of all messages exists that every process keeps, over all groups and views."
    ),
    "O7": Promise(
        "reliable total order", "No message is left out in a view before a later one of the order that all keep."
    ),
    "O8": Promise("causal total order", "One such order exists that also puts every cause before its effect."),
    "S1": Promise("safe indication", "What a process calls stable has been received by everybody whom it was for."),
    "S2": Promise("safe prefix", "What is stable stays stable, and nothing before it in the order is left behind."),
    "S3": Promise("safe delivery", "A process delivers a message only when it knows that everybody has it."),
    "S4": Promise("no early discard", "A process frees a message only when everybody is known to have it."),
    "S5": Promise("known senders", "An acknowledgment is counted only if it speaks for the sender that counts it."),
    "S6": Promise("connected", "Sender and receiver count each other from when both are there until one of them goes."),
    "F1": Promise("bounded buffers", "No process holds more unstable messages than its window allows."),
    "F2": Promise("send condition", "A message leaves only when flow control allows it."),
    "F3": Promise("no loss by pressure", "A sender that had to wait loses nothing: all it was given is delivered."),
    "L1": Promise(
        "membership precision",
        "By the end of a quiet run, members that remain connected are in views without anybody else, and of one mind.",
    ),
    "L2": Promise(
        "multicast liveness", "By the end of a quiet run, all members that remain have delivered what one of them sent."
    ),
    "L3": Promise("self delivery", "A process that does not crash delivers its own messages."),
    "L4": Promise(
        "termination of delivery",
        "What a process sends, all of its view deliver in the end, or it moves to another view.",
    ),
    "L5": Promise("exclusion", "Who crashes or is cut off for good is out of the views of the others before long."),
    "L6": Promise(
        "stability liveness",
        "By the end of a quiet run, all members that remain know what one of them sent to be stable.",
    ),
    "L7": Promise("release", "By the end of a quiet run, nobody is held back from sending."),
    "L8": Promise("drained", "By the end of a quiet run, every message is freed from the buffers."),
    "L9": Promise("no false exclusion", "Where nothing breaks, nobody is excluded, and nobody begins anew."),
    "L10": Promise("no long silence", "Whoever is alive is heard of at least every so often."),
    "R2": Promise("new incarnations", "A process that recovered uses no message and no view of its earlier life."),
}
"""By property id, in the order in which they are judged."""


def promise(property_id: str) -> Promise:
    """The wording of a property; one that has none yet goes by its id."""
    return PROMISES.get(property_id, Promise("", f"Property {property_id}."))
