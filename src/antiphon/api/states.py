"""States on their way: what a donor tells piece by piece, and how much of it those who come new have."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from antiphon.errors import ConfigurationError

State = bytes | Iterable[bytes]
"""All of it, or its pieces in order: those are asked for when they may leave, and then let go."""

Snapshot = Callable[[], State]
"""Gives the application's state, as of the last event that it took."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a state is on its way, or several that are merged."""

    done: int
    """Bytes that the donor has let go, or that have come from it."""
    total: int | None
    """Bytes of all of it; None: the donor makes it while it leaves, or has not said yet."""


class Failure(NamedTuple):
    """The application cannot go on: what is raised where it reads."""

    error: BaseException


class Digester(Protocol):
    """Computes the digest of a state for a trace while the state leaves."""

    def take(self, piece: bytes, *, ended: bool) -> None:
        """The next piece; `ended`: no other one follows."""


class Supply:
    """The application's state at one place in the order, as far as it has not been read (`StateSource`).

    Of pieces it holds one at a time. The core asks for them in the middle of its work, so no error of the application
    gets out of here: it is told of, and the state ends without its end.
    """

    def __init__(
        self,
        group: str,
        state: State,
        failed: Callable[[BaseException], None],
        digester: Digester | None = None,
    ) -> None:
        self._group = group
        self._failed = failed
        self._digester = digester
        self.total = len(state) if isinstance(state, bytes) else 0
        """How many bytes it has; 0 if that is not known."""
        self._pieces = iter((state,) if isinstance(state, bytes) else state)
        self._rest = memoryview(b"")
        self._read_bytes = 0
        self._broken = self._closed = False

    @property
    def progress(self) -> Progress | None:
        """How far it is; None if nobody has asked for it, or will any more."""
        if self._closed or not self._read_bytes:
            return None
        return Progress(self._read_bytes, self.total or None)

    def read(self, size: int) -> bytes | None:
        """The next so many bytes, fewer only at the end; None once the application has failed to give them."""
        parts: list[memoryview] = []
        while size and (self._rest or self._advance()):
            parts.append(self._rest[:size])
            self._rest = self._rest[size:]
            size -= len(parts[-1])
        if self._broken:
            return None
        found = b"".join(parts)
        if self._digester is not None:
            self._digester.take(found, ended=size > 0)
        self._read_bytes += len(found)
        return found

    def close(self) -> None:
        """Nobody will read on: let go of what the application holds for it."""
        if self._closed:
            return
        self._closed = True
        self._rest = memoryview(b"")
        pieces, self._pieces = self._pieces, iter(())
        try:
            getattr(pieces, "close", bytes)()
        except BaseException as error:  # whatever the application does, SystemExit among it
            self._failed(error)

    def _advance(self) -> bool:
        """Get to the next piece that is not empty; False if there is none."""
        try:
            for piece in self._pieces:
                self._rest = memoryview(_require_piece(self._group, piece))
                if self._rest:
                    return True
        except BaseException as error:  # whatever the application does, SystemExit among it
            self._broken = True
            self._failed(error)
        return False


def require_state(group: str, state: object) -> State:
    """What a snapshot has given, if that can be a state."""
    if isinstance(state, bytes) or (
        isinstance(state, Iterable) and not isinstance(state, str | bytearray | memoryview)
    ):
        return state
    raise ConfigurationError(
        f"the snapshot of {group} is to be bytes, or an iterable of bytes, not {type(state).__name__}"
    )


def whole(group: str, state: State) -> bytes:
    """All of it at once."""
    return state if isinstance(state, bytes) else b"".join(_require_piece(group, piece) for piece in state)


def received(incoming: list[tuple[int, int]]) -> Progress | None:
    """How far the states are of which so many bytes have come, of so many (0: unknown)."""
    if not incoming:
        return None
    known = all(total for _, total in incoming)
    return Progress(sum(come for come, _ in incoming), sum(total for _, total in incoming) if known else None)


def _require_piece(group: str, piece: object) -> bytes:
    if isinstance(piece, bytes):
        return piece
    raise ConfigurationError(f"a piece of the snapshot of {group} is to be bytes, not {type(piece).__name__}")
