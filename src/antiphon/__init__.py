"""antiphon: group communication for Python, with every run judged from its trace.

This module is the public surface. It loads neither Spark nor Arrow nor the command line. What runs on sockets is
loaded when it is first used.
"""

import typing
from importlib import import_module
from typing import TYPE_CHECKING

from antiphon.errors import (
    AnswersLate,
    AntiphonError,
    AskerLeft,
    ConfigurationError,
    Excluded,
    FlowBlocked,
    NameTaken,
    NotAMember,
    NotJoined,
    ProtocolViolation,
    RequestFailed,
    SettingsMismatch,
    TooFewMembers,
    TraceError,
    Unconfirmed,
)
from antiphon.types import GroupId, ProcessId, ViewId

if TYPE_CHECKING:
    from antiphon.api.answers import All, Answer, Any, Available, First, Majority
    from antiphon.api.events import Blocked, Degraded, Event, Message, Primary, Request, Reset, Transitional, View
    from antiphon.api.group import Group, Health
    from antiphon.api.joining import join
    from antiphon.api.member import Member
    from antiphon.api.receipts import Receipt
    from antiphon.api.refusals import Refusal
    from antiphon.api.services import Causal, Fifo, Reliable, Service, Total
    from antiphon.api.states import Progress, Snapshot

__version__ = "0.1.0"

_RUNTIME = {
    "answers": ("All", "Answer", "Any", "Available", "First", "Majority"),
    "events": ("Blocked", "Degraded", "Event", "Message", "Primary", "Request", "Reset", "Transitional", "View"),
    "group": ("Group", "Health"),
    "joining": ("join",),
    "member": ("Member",),
    "receipts": ("Receipt",),
    "refusals": ("Refusal",),
    "services": ("Causal", "Fifo", "Reliable", "Service", "Total"),
    "states": ("Progress", "Snapshot"),
}

__all__ = [
    "All",
    "Answer",
    "AnswersLate",
    "AntiphonError",
    "Any",
    "AskerLeft",
    "Available",
    "Blocked",
    "Causal",
    "ConfigurationError",
    "Degraded",
    "Event",
    "Excluded",
    "Fifo",
    "First",
    "FlowBlocked",
    "Group",
    "GroupId",
    "Health",
    "Majority",
    "Member",
    "Message",
    "NameTaken",
    "NotAMember",
    "NotJoined",
    "Primary",
    "ProcessId",
    "Progress",
    "ProtocolViolation",
    "Receipt",
    "Refusal",
    "Reliable",
    "Request",
    "RequestFailed",
    "Reset",
    "Service",
    "SettingsMismatch",
    "Snapshot",
    "TooFewMembers",
    "Total",
    "TraceError",
    "Transitional",
    "Unconfirmed",
    "View",
    "ViewId",
    "__version__",
    "join",
]


def __getattr__(name: str) -> typing.Any:
    for module, names in _RUNTIME.items():
        if name in names:
            found = getattr(import_module(f"antiphon.api.{module}"), name)
            globals()[name] = found  # looked up once: an application matches every event against these
            return found
    raise AttributeError(f"module 'antiphon' has no attribute {name!r}")
