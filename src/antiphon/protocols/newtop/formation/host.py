"""The interface of the process that the parts of a formation use; `passage.py` implements it."""

from typing import TYPE_CHECKING, Protocol

from antiphon.core.clocks import BlockCounter
from antiphon.core.effects import Refused
from antiphon.core.services import GroupService
from antiphon.protocols.newtop.bounds import Bounds
from antiphon.protocols.newtop.frames import FormationFrame, InstallFrame
from antiphon.types import GroupId, ProcessId

if TYPE_CHECKING:
    from antiphon.protocols.newtop.group import NewtopGroup


class FormationHost(Protocol):
    """The process, as formations see it."""

    @property
    def counter(self) -> BlockCounter: ...

    @property
    def bounds(self) -> Bounds: ...

    def current(self, name: GroupId) -> "NewtopGroup | None":
        """The group of that name that we are in."""

    def transmit(self, frame: FormationFrame, to: ProcessId) -> None:
        """Transmit a frame to one process."""

    def service(self, name: GroupId) -> GroupService:
        """What the group of that name asks for."""

    def last_primary(self, name: GroupId) -> int:
        """The number of the last primary view of that name that our state comes from; 0: none."""

    def history(self, group: GroupId) -> int:
        """A digest of all that we have delivered in that group; 0: not known."""

    def is_unread(self, name: GroupId) -> bool:
        """Whether our application is too far behind to enter another group of that name."""

    def viewed(self, group: GroupId) -> None:
        """Our application has read a view of that group."""

    def votes(self, group: "NewtopGroup") -> bool:
        """Whether a vote on the view in force is under way."""

    def reach(self, group: "NewtopGroup | None", number: int, now: int) -> None:
        """Send a null with this number, if it is not reached: in all groups that deliveries of this one wait for."""

    def passed(self, group: "NewtopGroup | None", number: int) -> bool:
        """True if everything up to that number is delivered that must be before we leave this group for another one.

        Every view up to there is installed.
        """

    def go_over(self, frame: InstallFrame, now: int) -> "NewtopGroup":
        """Leave the group of that name, if we are in one, and enter the new one."""

    def depart(self, name: GroupId, now: int, *, graceful: bool) -> None:
        """Stop being a member, or never become one."""

    def tell(self, effect: Refused) -> None:
        """Inform the application at once."""

    def stir(self) -> None:
        """Held effects may continue, in any group."""
