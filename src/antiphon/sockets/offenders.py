"""Which processes break a rule of the transport, for `health` and for the log.

Both are bounded: a process that floods us must not fill the log, and an address costs nothing to invent.
"""

from dataclasses import dataclass
from typing import Final

from antiphon.limited_log import LimitedLog

_REMEMBERED_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Offence:
    """What one address did, and how often."""

    address: str
    claimed: str
    """The name that the process gave last; empty if it gave none."""
    what: str
    """A sentence without its subject."""
    count: int


class Offenders:
    """What one process has recorded. Invariant: at most `_REMEMBERED_MAX` offences, the latest ones."""

    def __init__(self, logger: str) -> None:
        self._log = LimitedLog(logger)
        self._found: dict[tuple[str, str], Offence] = {}

    def note(self, address: str, what: str, claimed: str = "", *, detail: str = "") -> None:
        """Record an offence. `what` is one of a few fixed sentences; `detail` appears only in the log."""
        key = address, what
        before = self._found.pop(key, None)
        if before is not None:
            claimed = claimed or before.claimed
        self._found[key] = Offence(address, claimed, what, 1 if before is None else before.count + 1)
        if len(self._found) > _REMEMBERED_MAX:
            del self._found[next(iter(self._found))]
        name, reason = f" ({claimed})" if claimed else "", f": {detail}" if detail else ""
        self._log.warn(f"{address} {what}", "%s%s %s%s", address, name, what, reason)

    @property
    def recent(self) -> tuple[Offence, ...]:
        """The recorded offences, the latest first."""
        return tuple(reversed(self._found.values()))
