"""One tree of errors. A message says what happened, to which process or file, and what to do about it.

AntiphonError
├── ConfigurationError     a scenario or setting is wrong; names the key
├── TraceError             a run directory or trace cannot be read; names the file
├── FlowBlocked            a message would have to wait; names the member that it would wait for
├── NotAMember             the process is not in the group, or no longer
└── ProtocolViolation      a peer sent bytes that no correct peer sends; carries a code
"""

from collections.abc import Sequence


class AntiphonError(Exception):
    """The root of all errors that antiphon raises on purpose."""


class ConfigurationError(AntiphonError):
    """A scenario, an option or an argument cannot be used."""


class TraceError(AntiphonError):
    """A run directory or a trace file is missing, damaged, or of another kind."""


class FlowBlocked(AntiphonError):  # noqa: N818 - it is a state, not a fault
    """Raised by `try_send`: flow control holds messages back. Nothing was sent."""


class NotAMember(AntiphonError):  # noqa: N818
    """The process has left the group, or was never in it."""


class ProtocolViolation(AntiphonError):  # noqa: N818 - the name says what the peer did
    """A frame cannot be decoded."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        """Short, stable name of the fault: `length`, `version`, `kind`, `checksum`, `body`."""


def abbreviated(names: Sequence[str], shown: int = 8) -> str:
    """A list of names for a message: all names if they are few, otherwise the first ones and the last."""
    if len(names) <= shown:
        return ", ".join(names)
    return f"{', '.join(names[: shown - 1])}, … {names[-1]}"
