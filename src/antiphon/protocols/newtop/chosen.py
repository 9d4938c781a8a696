"""The service of each group of a process: as its application chose it, else as the settings say."""

from antiphon.core.services import GroupService
from antiphon.protocols.newtop.settings import NewtopSettings
from antiphon.types import GroupId


class ChosenServices:
    """Invariant: a name has one service as long as the process is in a group of that name, or wants to be."""

    __slots__ = ("_by_name", "_settings")

    def __init__(self, settings: NewtopSettings) -> None:
        self._settings = settings
        self._by_name: dict[GroupId, GroupService] = {}

    def choose(self, name: GroupId, service: GroupService) -> None:
        """The application wants to be in a group of that name, with this service."""
        self._by_name[name] = service

    def of(self, name: GroupId) -> GroupService:
        """The service of a group, by its name."""
        chosen = self._by_name.get(name)
        return self._settings.service_of(name) if chosen is None else chosen
