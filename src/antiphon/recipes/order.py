"""What recipes ask of a group."""

from antiphon.api.group import Group
from antiphon.api.services import Total
from antiphon.errors import ConfigurationError


def require_total(group: Group, recipe: str) -> None:
    """All members must deliver in one order, or they would differ without notice."""
    if group.service is not None and not isinstance(group.service, Total):
        raise ConfigurationError(f"{recipe} needs a group with service=Total(); {group.name} has {group.service}")
