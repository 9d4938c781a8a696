"""The defaults of the `Frame` protocol (`core/effects.py`), for the frame classes of all families.

A frame class declares its fields and overrides only what differs. A frame that travels rarely is a frozen dataclass:

    @dataclass(frozen=True, slots=True)
    class StatusFrame(FrameDefaults): ...

A frame that travels in millions is a named tuple, which is built faster. Python allows no other base beside
`NamedTuple`, so its fields come from a class of their own. They stand first and hide the defaults of the same name:

    class _DataFields(NamedTuple): ...
    class DataFrame(_DataFields, FrameDefaults):
        __slots__ = ()
"""

import re
from functools import cache

from antiphon.core.effects import Frame
from antiphon.types import GroupId, ProcessId


class FrameDefaults:
    """A frame of its sender that carries nothing for the application and no copies of other frames."""

    __slots__ = ()

    group: GroupId
    sender: ProcessId

    @property
    def author(self) -> ProcessId:
        return self.sender

    @property
    def payloads(self) -> tuple[bytes, ...]:
        return ()

    @property
    def label(self) -> int:
        return 0

    @property
    def clock(self) -> int:
        return 0

    @property
    def orderer(self) -> ProcessId | None:
        return None

    @property
    def serial(self) -> int | None:
        return None

    @property
    def copies(self) -> tuple[Frame, ...]:
        return ()

    @property
    def flow(self) -> tuple[int, ...] | None:
        return None

    @property
    def kind(self) -> str:
        """The name of the class in lower case: `status` for StatusFrame, `join-request` for JoinRequestFrame."""
        return _kind(type(self).__name__)


@cache
def _kind(class_name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", class_name.removesuffix("Frame")).lower()
