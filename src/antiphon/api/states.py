"""States in transfer: the pieces that a donor sends, and the progress of the transfer."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from antiphon.errors import ConfigurationError

State = bytes | Iterable[bytes]
"""The whole state, or its pieces in order. Each piece is requested when it can be sent, and then released."""

Snapshot = Callable[[], State]
"""Returns the application's state after the last event that it took."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a state transfer, or of several states that are merged."""

    done: int
    """Bytes that the donor has sent, or that the joiner has received."""
    total: int | None
    """Size in bytes; None: not known, because the donor produces it piece by piece or has not sent it yet."""


class Failure(NamedTuple):
    """An error that is raised where the application reads."""

    error: BaseException


class Digester(Protocol):
    """Computes the digest of a state for a trace while the state is sent."""

    def take(self, piece: bytes, *, ended: bool) -> None:
        """The next piece; `ended`: no other one follows."""


class Supply:
    """The unread rest of the application's state at one place in the order (`StateSource`).

    It holds one piece at a time. The core asks for pieces while it works, so errors of the application are not raised
    here. They are reported, and the state stays incomplete.
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
        """Size in bytes; 0 if not known."""
        self._pieces = iter((state,) if isinstance(state, bytes) else state)
        self._rest = memoryview(b"")
        self._read_bytes = 0
        self._broken = self._closed = False

    @property
    def progress(self) -> Progress | None:
        """The progress; None if the transfer has not begun, or is over."""
        if self._closed or not self._read_bytes:
            return None
        return Progress(self._read_bytes, self.total or None)

    def read(self, size: int) -> bytes | None:
        """The next `size` bytes, fewer only at the end; None once the application has failed to provide them."""
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
        """Stop reading, and release what the application holds for it."""
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
        """Advance to the next non-empty piece; False if there is none."""
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
    """The result of a snapshot; `ConfigurationError` if its type is wrong."""
    if isinstance(state, bytes) or (
        isinstance(state, Iterable) and not isinstance(state, str | bytearray | memoryview)
    ):
        return state
    raise ConfigurationError(
        f"the snapshot of {group} must be bytes, or an iterable of bytes, not {type(state).__name__}"
    )


def whole(group: str, state: State) -> bytes:
    """The whole state as one value."""
    return state if isinstance(state, bytes) else b"".join(_require_piece(group, piece) for piece in state)


def received(incoming: list[tuple[int, int]]) -> Progress | None:
    """The progress of states with (received bytes, size) each; size 0: unknown."""
    if not incoming:
        return None
    known = all(total for _, total in incoming)
    return Progress(sum(come for come, _ in incoming), sum(total for _, total in incoming) if known else None)


def _require_piece(group: str, piece: object) -> bytes:
    if isinstance(piece, bytes):
        return piece
    raise ConfigurationError(f"a piece of the snapshot of {group} must be bytes, not {type(piece).__name__}")
