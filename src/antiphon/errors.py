"""One tree of errors. A message says what happened, to which process or file, and what to do about it.

AntiphonError
├── ConfigurationError     a scenario or setting is wrong; names the key
├── TraceError             a run directory or trace cannot be read; names the file
├── FlowBlocked            a message would have to wait; names the member that it would wait for
├── NotAMember             the process is not in the group, or no longer
│   └── Excluded           it was excluded; says why
├── NameTaken              another process runs with the name of this one
├── SettingsMismatch       the members of a group have other settings than a joiner
├── NotJoined              a process could not join a group in time; names each address and why it failed
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


class Excluded(NotAMember):
    """The process was excluded from the group because its application did not read (`exclude_stalled_after`)."""


class NameTaken(AntiphonError):  # noqa: N818 - it is a state, not a fault
    """Raised by `join`: a process with the same name was started earlier, and it runs."""


class SettingsMismatch(AntiphonError):  # noqa: N818 - it is a state, not a fault
    """Raised by `join`: the group exists, and its members have other settings."""

    def __init__(self, message: str, differences: Sequence[tuple[str, str | None, str | None]]) -> None:
        super().__init__(message)
        self.differences = tuple(differences)
        """For each setting its name, our value and theirs; None: that process does not know the setting."""


class NotJoined(AntiphonError):  # noqa: N818
    """Raised by `join` after `join_within` seconds. The process has stopped trying to join."""


class ProtocolViolation(AntiphonError):  # noqa: N818 - the name says what the peer did
    """A frame cannot be decoded, or a number in it is implausible."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        """Short, stable name of the fault: `length`, `version`, `kind`, `checksum`, `body`, `number`."""


def abbreviated(names: Sequence[str], shown: int = 8) -> str:
    """A list of names for a message: all names if they are few, otherwise the first ones and the last."""
    if len(names) <= shown:
        return ", ".join(names)
    return f"{', '.join(names[: shown - 1])}, … {names[-1]}"
