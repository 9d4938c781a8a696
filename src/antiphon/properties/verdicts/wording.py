"""Each property in words, for people who have not read docs/spec/properties.md."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Promise:
    """The name and the statement of one property."""

    name: str
    sentence: str


PROMISES: Final = {
    "W": Promise("well-formed trace", "Every log is complete and consistent, so that the trace can be judged."),
    "M1": Promise("self inclusion", "A process that installs a view is a member of it."),
    "M2": Promise("growing views", "The ids of the views that a process installs grow."),
    "M3": Promise(
        "initial view", "A process begins in the configured view or in a view that it joined, and does nothing before."
    ),
    "M4": Promise("view identity", "One view id means one membership, whichever process installs the view."),
    "M5": Promise(
        "one history of views",
        "Two processes that never suspect each other install the same views; one may be behind the other.",
    ),
    "M6": Promise("disjoint successors", "Two different successors of one view have no member in common."),
    "M6e": Promise(
        "disjoint last views", "At the end of a quiet run, the last views are equal or have no member in common."
    ),
    "M7": Promise(
        "agreed successors", "Members of two successive views that install the later one come from the same view."
    ),
    "M8": Promise("transitional set", "A process knows which members came along with it from one view to the next."),
    "M9": Promise("shrinking views", "Until a group is formed again, each view has fewer members than the one before."),
    "M10": Promise(
        "no capricious change", "No member is missing from a view unless a member of the view suspected it."
    ),
    "M11": Promise("primary chain", "The views that call themselves primary form one chain."),
    "M12": Promise("one primary view", "Primary views that were voted on form one chain with rising numbers."),
    "M13": Promise("primary deliveries last", "What is delivered in a primary view is in every later primary view."),
    "D1": Promise("delivery integrity", "Each delivered message was sent before, in that group and with that content."),
    "D2": Promise("no duplication", "No process delivers a message twice."),
    "D3": Promise(
        "right place", "A process delivers only in groups that it is in, and with the service that it chose there."
    ),
    "D4": Promise("validity", "The sender of a delivered message is a member of the view in which it is delivered."),
    "D5": Promise("same view delivery", "All processes that deliver a message deliver it in the same view."),
    "D5w": Promise(
        "same view delivery together",
        "Processes that go on together from a view deliver no message in different views.",
    ),
    "D6": Promise("sending view delivery", "A message is delivered in the view in which it was sent."),
    "D7": Promise("blocked while flushing", "No member sends between the agreement on a failure and the next view."),
    "D8": Promise(
        "virtual synchrony", "Processes that go on together from a view delivered the same messages in that view."
    ),
    "D9": Promise(
        "same cut", "Processes that go on together without a member delivered the same last message from it."
    ),
    "D10": Promise("nothing after the cut", "Nothing from a removed member is delivered after its removal."),
    "D11": Promise(
        "uniform agreement",
        "What any process delivers in a view, all processes that go on from that view delivered in it.",
    ),
    "D12": Promise(
        "state transfer",
        "A joiner takes over the current state of the group exactly once, and delivers nothing before.",
    ),
    "D13": Promise("agreement", "At the end of a quiet run, all remaining members have delivered the same messages."),
    "D14": Promise("answers", "A request to a group is answered by as many members as it asked for."),
    "D15": Promise("halted", "No process sends in a group while it suspects a member of it."),
    "O1": Promise("FIFO order", "Messages of one sender are delivered in the order in which it sent them."),
    "O2": Promise(
        "reliable FIFO order", "No earlier message of a sender that stays in view is left out before a later one."
    ),
    "O3": Promise("causal order", "No message is delivered before one that could have caused it."),
    "O4": Promise("reliable causal order", "No message is left out that could have caused a delivered one."),
    "O5": Promise(
        "weak total order", "Processes that go on together from a view delivered in the same order in that view."
    ),
    "O5x": Promise(
        "weak total order over groups",
        "Processes that go on together in two groups delivered the messages of both in the same order.",
    ),
    "O6": Promise("strong total order", "All processes deliver in one common order, over all groups and views."),
    "O7": Promise("reliable total order", "No message is left out in a view before a later one of the common order."),
    "O8": Promise(
        "causal total order", "All processes deliver in one common order that puts every cause before its effect."
    ),
    "S1": Promise(
        "safe indication",
        "A message that a process calls stable has been received by all processes it was addressed to.",
    ),
    "S2": Promise("safe prefix", "A stable message stays stable, and no earlier message of the order is unstable."),
    "S3": Promise(
        "safe delivery", "A process delivers a message only when it knows that all members have received it."
    ),
    "S4": Promise("no early discard", "A process frees a message only when all members are known to have received it."),
    "S5": Promise("known senders", "An acknowledgment counts only if it covers the sender that counts it."),
    "S6": Promise(
        "connected", "Sender and receiver count each other from when both are present until one of them goes."
    ),
    "F1": Promise("bounded buffers", "No process holds more unstable messages than its window allows."),
    "F2": Promise("send condition", "A message leaves only when flow control allows it."),
    "F3": Promise(
        "no loss by pressure", "A sender that flow control blocked loses nothing: all its messages are delivered."
    ),
    "L1": Promise(
        "membership precision",
        "At the end of a quiet run, connected members have the same view, without any other process.",
    ),
    "L2": Promise(
        "multicast liveness", "At the end of a quiet run, all remaining members have delivered what any of them sent."
    ),
    "L3": Promise("self delivery", "A process that does not crash delivers its own messages."),
    "L4": Promise(
        "termination of delivery", "All members of the view deliver what a process sends, or it moves to another view."
    ),
    "L5": Promise("exclusion", "A process that crashes or is cut off for good is soon out of the views of the others."),
    "L6": Promise(
        "stability liveness",
        "At the end of a quiet run, all remaining members know that what any of them sent is stable.",
    ),
    "L7": Promise("release", "At the end of a quiet run, no sender is blocked."),
    "L8": Promise("drained", "At the end of a quiet run, every message is freed from the buffers."),
    "L9": Promise("no false exclusion", "If nothing fails, no process is excluded and no receiver starts again."),
    "L10": Promise("no long silence", "Every live process transmits something within a bound."),
    "L11": Promise("primary returns", "A last view with most members of all views that it comes from is primary."),
    "R2": Promise("new incarnations", "A recovered process reuses no message and no view of its earlier life."),
}
"""By property id, in the order in which they are judged."""


def promise(property_id: str) -> Promise:
    """Return the wording of a property; one without a wording goes by its id."""
    return PROMISES.get(property_id, Promise("", f"Property {property_id}."))
