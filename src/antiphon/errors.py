"""One tree of errors. A message says what happened, to which process or file, and what to do about it.

AntiphonError
├── ConfigurationError     a scenario or setting is wrong; names the key
├── TraceError             a run directory or trace cannot be read; names the file
│   └── NotShared          a worker of a cluster does not see it
├── FlowBlocked            a message would have to wait; names the member that it would wait for
├── NotAMember             the process is not in the group, or no longer
│   └── Excluded           it was excluded; says why
├── RequestFailed          a request to a group ends without the answers that it asked for; has those that came
│   ├── AnswersLate        its time is over
│   ├── TooFewMembers      the members that are left are no majority
│   └── AskerLeft          the process has left the group; also a NotAMember
├── NameTaken              another process runs with the name of this one
├── SettingsMismatch       the members of a group have other settings than a joiner
├── Unconfirmed            it is not known whether a sent message has reached the members
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


class NotShared(TraceError):  # noqa: N818
    """A worker of a cluster does not see a file or a folder that the driver sees."""

    def __init__(self, path: str, host: str) -> None:
        super().__init__(f"{path} does not exist on {host}: all workers must share it")


class FlowBlocked(AntiphonError):  # noqa: N818 - it is a state, not a fault
    """Raised by `try_send`: flow control holds messages back. Nothing was sent."""


class NotAMember(AntiphonError):  # noqa: N818
    """The process has left the group, or was never in it."""


class Excluded(NotAMember):
    """The process was excluded from the group because its application did not read (`exclude_stalled_after`)."""


class RequestFailed(AntiphonError):  # noqa: N818
    """Raised by `ask`: the request ends without the answers that it asked for. Members may have acted on it."""

    def __init__(self, message: str, answers: Sequence[tuple[str, bytes]] = ()) -> None:
        super().__init__(message)
        self.answers = tuple(answers)
        """The answers that have arrived, each with its sender."""


class AnswersLate(RequestFailed):
    """Too few members have answered in time."""


class TooFewMembers(RequestFailed):
    """Members of the view in which the request was delivered have failed or left; the others are no majority of it."""


class AskerLeft(RequestFailed, NotAMember):
    """The process has left the group, or was excluded, before it had its answers."""


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


class Unconfirmed(AntiphonError):  # noqa: N818 - it is a state, not a fault
    """Raised by a receipt: the process has left the group before the message was confirmed. Others may deliver it."""


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
