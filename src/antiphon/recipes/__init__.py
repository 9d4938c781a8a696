"""Recipes: what applications build on a group, ready to use (docs/guide/recipes.md).

Each recipe is fed with the events of its group, so an application may read the group itself and use several recipes:
`if not consensus.take(event): …`. A recipe uses the public API only.
"""

from antiphon.recipes.barrier import Barrier
from antiphon.recipes.consensus import Consensus, Decision
from antiphon.recipes.migration import Movable

__all__ = ["Barrier", "Consensus", "Decision", "Movable"]
