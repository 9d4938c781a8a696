"""What a control process asks its driver to do besides transmitting."""

from typing import NamedTuple

from antiphon.core.effects import Transmit
from antiphon.types import ProcessId


class Listen(NamedTuple):
    """From now on, these addresses are listened to and no others (docs/spec/intergroup.md 3.3)."""

    local_groups: tuple[ProcessId, ...]
    """The coordinators of the local groups, sorted."""
    coordinators: bool


HierarchyEffect = Transmit | Listen
