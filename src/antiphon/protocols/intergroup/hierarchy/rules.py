"""The classes that implement the rules of the hierarchy: the adopted ones, unless a test replaces some."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from antiphon.protocols.intergroup.hierarchy.appropriateness import SelfDetermination
from antiphon.protocols.intergroup.hierarchy.peers import Peers
from antiphon.protocols.intergroup.hierarchy.search import RingSearch
from antiphon.protocols.intergroup.hierarchy.settings import HierarchySettings
from antiphon.protocols.intergroup.hierarchy.states import StateMachine
from antiphon.protocols.intergroup.repair.requests import Draw
from antiphon.types import ProcessId


@dataclass(frozen=True, slots=True)
class HierarchyRules:
    """The rules of a control process; the defaults are the adopted ones."""

    peers: type[Peers[Any]] = Peers
    search: type[RingSearch] = RingSearch
    determination: type[SelfDetermination] = SelfDetermination
    machine: type[StateMachine] = StateMachine


ADOPTED: Final = HierarchyRules()


class HierarchyContext(NamedTuple):
    """What all parts of one control process read and none of them changes."""

    me: ProcessId
    settings: HierarchySettings
    draw: Draw
    rules: HierarchyRules = ADOPTED
