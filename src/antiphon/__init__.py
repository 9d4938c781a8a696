"""antiphon: group communication for Python, with every run judged from its trace.

This module is the public surface. It loads neither Spark nor Arrow nor the command line. What runs on sockets is
loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from antiphon.errors import (
    AntiphonError,
    ConfigurationError,
    Excluded,
    FlowBlocked,
    NameTaken,
    NotAMember,
    NotJoined,
    ProtocolViolation,
    SettingsMismatch,
    TraceError,
)
from antiphon.types import GroupId, ProcessId, ViewId

if TYPE_CHECKING:
    from antiphon.api.events import Blocked, Degraded, Event, Message, Primary, Reset, Transitional, View
    from antiphon.api.group import Group, Health
    from antiphon.api.joining import join
    from antiphon.api.member import Member
    from antiphon.api.refusals import Refusal
    from antiphon.api.states import Progress, Snapshot

__version__ = "0.1.0"

_RUNTIME = {
    "events": ("Blocked", "Degraded", "Event", "Message", "Primary", "Reset", "Transitional", "View"),
    "group": ("Group", "Health"),
    "joining": ("join",),
    "member": ("Member",),
    "refusals": ("Refusal",),
    "states": ("Progress", "Snapshot"),
}

__all__ = [
    "AntiphonError",
    "Blocked",
    "ConfigurationError",
    "Degraded",
    "Event",
    "Excluded",
    "FlowBlocked",
    "Group",
    "GroupId",
    "Health",
    "Member",
    "Message",
    "NameTaken",
    "NotAMember",
    "NotJoined",
    "Primary",
    "ProcessId",
    "Progress",
    "ProtocolViolation",
    "Refusal",
    "Reset",
    "SettingsMismatch",
    "Snapshot",
    "TraceError",
    "Transitional",
    "View",
    "ViewId",
    "__version__",
    "join",
]


def __getattr__(name: str) -> Any:
    for module, names in _RUNTIME.items():
        if name in names:
            found = getattr(import_module(f"antiphon.api.{module}"), name)
            globals()[name] = found  # looked up once: an application matches every event against these
            return found
    raise AttributeError(f"module 'antiphon' has no attribute {name!r}")
