"""The states of a process in the group timestamp order, and the changes between them (Berket00 Figs 5.1 to 5.7)."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from antiphon.protocols.intergroup.membership.steps import RepairSteps


class State(Enum):
    ABSENT = "absent"
    BOOTSTRAP = "bootstrap receiver"
    RECEIVER = "receiver"
    TO_SENDER = "to sender"
    SENDER = "sender"
    TO_RECEIVER = "to receiver"
    REPAIR = "membership repair"
    WAIT = "wait for membership change"
    RECOVER = "recover"


class Event(Enum):
    JOIN = "join"
    CONFIGURED = "configured as sender"
    ADMITTED = "admitted"
    ALONE = "no sender answers"
    WISH = "ToSender"
    ADDED = "PAdd delivered"
    LEAVE = "ToReceiver"
    LEFT = "PLeave stable"
    REPAIR = "repair begins"
    PROPOSED = "PJoin heard"
    CHANGED = "MC heard"
    INSTALLED = "view installed"
    REJOINED = "view installed, wish to send"
    RESET = "RESET"
    END = "leave the group"


_FOLLOWS: Final = (State.RECEIVER, State.TO_SENDER, State.WAIT, State.RECOVER)
TABLE: Final[Mapping[tuple[State, Event], State]] = {
    # Fig. 5.1: bootstrap
    (State.ABSENT, Event.JOIN): State.BOOTSTRAP,
    (State.ABSENT, Event.CONFIGURED): State.SENDER,
    (State.BOOTSTRAP, Event.ADMITTED): State.RECEIVER,
    (State.BOOTSTRAP, Event.ALONE): State.REPAIR,
    # Fig. 5.2: receivers
    (State.RECEIVER, Event.WISH): State.TO_SENDER,
    (State.TO_SENDER, Event.ADDED): State.SENDER,
    (State.RECEIVER, Event.ADDED): State.SENDER,  # it has asked, and begun again since; if it must, it leaves at once
    (State.TO_SENDER, Event.REPAIR): State.REPAIR,
    # Fig. 5.3: senders
    (State.SENDER, Event.LEAVE): State.TO_RECEIVER,
    (State.SENDER, Event.REPAIR): State.REPAIR,
    (State.TO_RECEIVER, Event.REPAIR): State.REPAIR,
    (State.TO_RECEIVER, Event.LEFT): State.RECEIVER,
    (State.TO_RECEIVER, Event.RESET): State.BOOTSTRAP,
    # Figs 5.4 to 5.6: the end of a repair
    (State.REPAIR, Event.INSTALLED): State.SENDER,
    # Fig. 5.7: receivers follow a repair
    (State.RECEIVER, Event.PROPOSED): State.WAIT,
    (State.TO_SENDER, Event.PROPOSED): State.WAIT,
    (State.WAIT, Event.REPAIR): State.REPAIR,
    (State.RECEIVER, Event.CHANGED): State.RECOVER,
    (State.TO_SENDER, Event.CHANGED): State.RECOVER,
    (State.WAIT, Event.CHANGED): State.RECOVER,
    (State.RECOVER, Event.INSTALLED): State.RECEIVER,
    (State.RECOVER, Event.REJOINED): State.TO_SENDER,
    **{(state, Event.RESET): State.BOOTSTRAP for state in _FOLLOWS},
    # A process leaves the group when it is no sender, or the only one
    **{(state, Event.END): State.ABSENT for state in (State.BOOTSTRAP, State.RECEIVER, State.SENDER)},
}


class Standing:
    """The state of one process in one group; every change is in the table."""

    def __init__(self) -> None:
        self.state = State.ABSENT
        self.taken: dict[tuple[State, Event], int] = {}
        """How often each change was made."""
        self.repair = RepairSteps()

    def go(self, event: Event) -> None:
        step = self.state, event
        self.taken[step] = self.taken.get(step, 0) + 1
        self.state = TABLE[step]

    @property
    def is_sending(self) -> bool:
        """True if the process transmits keep-alives: it is a sender for others."""
        return self.state in (State.SENDER, State.TO_RECEIVER, State.REPAIR)

    @property
    def is_halted(self) -> bool:
        """True if nothing is delivered until a view is installed."""
        return self.state in (State.REPAIR, State.WAIT, State.RECOVER)
