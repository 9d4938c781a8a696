"""antiphon: group communication for Python, with every run judged from its trace.

This module is the public surface. It loads no Spark, no Arrow and nothing of the command line.
"""

from antiphon.errors import (
    AntiphonError,
    ConfigurationError,
    FlowBlocked,
    NotAMember,
    ProtocolViolation,
    TraceError,
)
from antiphon.runtime.events import Blocked, Event, Message, Reset, Transitional, View
from antiphon.runtime.group import Group, Health
from antiphon.runtime.member import Member, join
from antiphon.types import GroupId, ProcessId, ViewId

__version__ = "0.1.0"

__all__ = [
    "AntiphonError",
    "Blocked",
    "ConfigurationError",
    "Event",
    "FlowBlocked",
    "Group",
    "GroupId",
    "Health",
    "Member",
    "Message",
    "NotAMember",
    "ProcessId",
    "ProtocolViolation",
    "Reset",
    "TraceError",
    "Transitional",
    "View",
    "ViewId",
    "__version__",
    "join",
]
