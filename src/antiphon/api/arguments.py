"""Checks the arguments that a user passes to the API, so that an error names the wrong value in one sentence."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from antiphon.errors import ConfigurationError
from antiphon.wire.names import NAME_BYTES_MAX, is_name

_FOREVER_S: Final = 1e9


def require_name(name: object, owner: str) -> str:
    """The name of `owner`, such as "a group"."""
    if not isinstance(name, str) or not is_name(name):
        shown = repr(name) if len(repr(name)) <= 60 else f"{repr(name)[:57]}..."
        raise ConfigurationError(
            f"{shown} is not a name for {owner}: a name is a text of 1 to {NAME_BYTES_MAX} bytes without white space, "
            "#, @, / and :"
        )
    return name


def require_directory(trace: object) -> Path:
    """The directory for a trace."""
    if not isinstance(trace, str | Path) or "\0" in str(trace):
        raise ConfigurationError(f"trace must be the path of a directory, not {trace!r}")
    return Path(trace)


def require_count(members: object) -> int:
    """A number of members to wait for."""
    if not isinstance(members, int) or isinstance(members, bool):
        raise ConfigurationError(f"the number of members to wait for must be a whole number, not {members!r}")
    return members


def require_seconds(seconds: object, name: str) -> None:
    """A time to wait."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < _FOREVER_S:
        raise ConfigurationError(f"{name} must be a number of seconds above 0 and below a billion, not {seconds!r}")


def peer_addresses(peers: object) -> list[str]:
    """One address, or several."""
    if isinstance(peers, str):
        return [peers]
    if isinstance(peers, Iterable) and not isinstance(peers, bytes):
        return [*peers]
    raise ConfigurationError(f"peers must be addresses such as ['10.0.0.5:7400'], not {peers!r}")
