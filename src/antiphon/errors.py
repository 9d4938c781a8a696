"""One tree of errors; a message says what happened, to whom, and what to do.

AntiphonError
├── ConfigurationError     a scenario or setting is wrong; names the key
├── TraceError             a run directory or trace cannot be read; names the file
├── FlowBlocked            a message would have to wait; names whom it would wait for
├── NotAMember             the process is not in the group, or not any more
└── ProtocolViolation      bytes of a peer that no correct peer sends; carries a code
"""

from collections.abc import Sequence


class AntiphonError(Exception):
    """Everything antiphon raises on purpose."""


class ConfigurationError(AntiphonError):
    """The question was wrong: a scenario, an option or an argument cannot be used."""


class TraceError(AntiphonError):
    """A run directory or a trace file is missing, damaged, or not what it should be."""


class FlowBlocked(AntiphonError):  # noqa: N818 - what happened, not what went wrong
    """`try_send`: flow control holds messages back. Nothing was sent."""


class NotAMember(AntiphonError):  # noqa: N818
    """The process has left the group, or was never in it."""


class ProtocolViolation(AntiphonError):  # noqa: N818 - the name says what the peer did
    """A frame that cannot be decoded."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        """Short, stable name of what was wrong: `length`, `version`, `kind`, `checksum`, `body`."""


def some(names: Sequence[str], shown: int = 8) -> str:
    """Names in a sentence: all of a few, the first and the last of many."""
    if len(names) <= shown:
        return ", ".join(names)
    return f"{', '.join(names[: shown - 1])}, … {names[-1]}"
