"""The printed rules that are wrong, each in a class of its own: evidence, for the simulator only (errata-newtop.md).

Nothing else in the product knows of them. `scenarios/errata/` has a scenario for each, in which the printed rule
breaks a promise that the adopted one keeps; docs/design/errata.md tells the story.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from antiphon.core.newtop.flow import FlowControl
from antiphon.core.newtop.frames import BlockFrame, RelativeStamp
from antiphon.core.newtop.group import NewtopGroup
from antiphon.core.newtop.orders.blocks import SlowOrder, TotalOrder
from antiphon.core.newtop.orders.contract import Order
from antiphon.core.newtop.orders.relative import RelativeOrder
from antiphon.core.newtop.orders.vectors import FastOrder, Key, Known, VectorOrder
from antiphon.core.newtop.rules import ADOPTED, Rules
from antiphon.core.newtop.settings import Service
from antiphon.core.newtop.silence import Silence
from antiphon.types import GroupId, ProcessId


class ReversedVectorTest(VectorOrder):
    """E-1, Macedo94 §2.6.3: deliver m of i at j if `vc_j[i] = vc(m)[i] + 1`."""

    def _lacking(self, frame: BlockFrame, past: Known) -> Key | None:
        own = frame.group, frame.sender
        return None if self._known.get(own, 0) == past[own] + 1 else own


class RepeatingSilence(Silence):
    """E-6, Macedo94 §7.2.8: only nulls with a number *smaller* than the last one sent are dropped.

    So a message does not pay the duty for the very number it bears, and a null repeats it.
    """

    def __init__(self, timeout_ns: int) -> None:
        super().__init__(timeout_ns)
        self._answering = False

    def due(self, now: int) -> bool:
        """Whoever asks sends the null at once; that one pays."""
        self._answering = super().due(now)
        return self._answering

    def spoke(self, block: int) -> None:
        """A null pays all duties up to it, any other message those below it."""
        super().spoke(block if self._answering else block - 1)
        self._answering = False


class TotalWithoutCrossNulls(TotalOrder):
    """E-9: the extra nulls of Macedo94 §4.4 left out."""

    crosses: ClassVar[bool] = False


class SlowWithoutCrossNulls(SlowOrder):
    """E-9, for the Slow order."""

    crosses: ClassVar[bool] = False


class ReversedRelativeTest(RelativeOrder):
    """E-11, Macedo94 Fig. 5.5: deliver when `m.ldv >= LDV`; no second condition and no updates."""

    def _may_go(self, frame: BlockFrame) -> bool:
        assert isinstance(frame.stamp, RelativeStamp)
        delivered = self._delivered[frame.group]
        return all(told >= reached for told, reached in zip(frame.stamp.delivered, delivered, strict=True))

    def _deliver(self, frame: BlockFrame) -> None:
        self._undelivered[frame.group].remove(frame.block)

    def sent(self, group: NewtopGroup, frame: BlockFrame, now: int) -> None:
        """Stamps are made as printed, so what others are told is not what was delivered here."""
        super().sent(group, frame, now)
        self._delivered[frame.group][group.my_rank] = 0


class KeyedByProcess(FastOrder):
    """E-13, Macedo94 §5.5: GLDV has one entry a process, whatever the group it sent in."""

    def _key(self, group: GroupId, process: ProcessId) -> Key:  # noqa: ARG002
        return GroupId(""), process

    def _concerns(self, key: Key) -> bool:
        return any(key[1] in group.view.ranks for group in self._groups.values())


class ForgetfulRelative(RelativeOrder):
    """E-15, Macedo94 §5.6: GBN is assigned on delivery, and the second condition looks at one row only."""

    def _deliver(self, frame: BlockFrame) -> None:
        super()._deliver(frame)
        self._blocks[frame.group] = frame.block

    def _passed(self, name: GroupId, block: int) -> bool:
        row = any(frame.block == block for held in self._held.values() for frame in held if frame.group == name)
        return self._groups[name].complete_block >= block and not row


class TakenIsStable(FlowControl):
    """E-18, Macedo95 §3.5: `SV_i[i] := Δ_i`, which declares stable what others may not have."""

    def settle(self) -> None:
        """As adopted, then as printed."""
        super().settle()
        self.stable = max(self.stable, self.complete)


_ORDERS: Final[Mapping[str, Mapping[Service, type[Order]]]] = {
    "E-1": {"causal-vector": ReversedVectorTest},
    "E-9": {"total": TotalWithoutCrossNulls, "causal-slow": SlowWithoutCrossNulls},
    "E-11": {"causal-relative": ReversedRelativeTest},
    "E-13": {"causal-fast": KeyedByProcess},
    "E-15": {"causal-relative": ForgetfulRelative},
}
_OTHERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "E-6": {"silence": RepeatingSilence},
    "E-14": {"one_counter": False},
    "E-18": {"flow": TakenIsStable},
    "E-19b": {"announces": False},
}
_WITH_FLOW_CONTROL: Final = frozenset({"E-18", "E-19b"})
ERRATA: Final = tuple(sorted({*_ORDERS, *_OTHERS}, key=lambda erratum: int(erratum[2:].rstrip("b"))))
"""The errata whose printed rule can be followed."""


def concerns(erratum: str, services: frozenset[str], flow_control: int) -> bool:
    """Whether the printed rule acts at all under these services."""
    if erratum == "E-14":
        return "causal-relative" in services
    if erratum in _WITH_FLOW_CONTROL:
        return flow_control > 0
    return bool(services & _ORDERS[erratum].keys()) if erratum in _ORDERS else True


def printed(errata: tuple[str, ...]) -> Rules:
    """The adopted rules with the printed ones in place of those named."""
    rules = ADOPTED
    for erratum in errata:
        rules = replace(rules, orders={**rules.orders, **_ORDERS.get(erratum, {})}, **_OTHERS.get(erratum, {}))
    return rules
