"""antiphon: group communication for Python, with every run judged from its trace.

This module is the public surface. It loads no Spark, no Arrow and nothing of the command line.
"""

from antiphon.errors import AntiphonError, ConfigurationError, ProtocolViolation, TraceError
from antiphon.types import GroupId, ProcessId, View, ViewId

__version__ = "0.1.0"

__all__ = [
    "AntiphonError",
    "ConfigurationError",
    "GroupId",
    "ProcessId",
    "ProtocolViolation",
    "TraceError",
    "View",
    "ViewId",
    "__version__",
]
