"""What each protocol family promises (docs/spec/properties.md 8), and what its rows mean: the one table of the judges.

Judges never import protocols, so a family has its entry here and its cores elsewhere; a test verifies that every
family has one. A family of another package brings its entry as an entry point in the group `antiphon.promises`, named
like the protocol, in a module that need not import its cores.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import Final, Literal

from antiphon.errors import ConfigurationError

GROUP: Final = "antiphon.promises"
"""Entry points of other packages."""

SENDING: Final = "sending"
"""The service of a process that only sends in a group: nothing is delivered to it there."""

# -------------------------------------------------------------------------------- Newtop

_N: Final = frozenset(
    "W M1 M2 M3 M4 M5 M6e M7 M8 M9 M10 D1 D2 D3 D4 D5w D8 D9 D10 D12 O1 O2 O3 O4 O5 O5x O6 O8 S1 S2 S4 F1 F2 F3 "
    "L1 L2 L3 L4 L5 L6 L7 L8 L9 L10 R2".split()
)
"""Class N of properties.md 8: Newtop's symmetric total order, where a view is installed at a cut or by a remove."""

_NV: Final = frozenset("M6 M11 D5 D6 D7".split())
"""What class NV has besides: views that are installed on the last remove, while nobody sends (`closed`).

Only there concurrent views are disjoint, so that of two at most one can hold a majority: hence M11 is promised there
alone.
"""

_SAFE: Final = _N | frozenset("S3 D11".split())
"""Class N with safe delivery: nothing is delivered before it is known to be stable (docs/spec/newtop.md 14).

D11 and S1 are asked, as its rule 5 says, of those for whom a delivery speaks: members whose failure was agreed and
told before are not among them (`notices.py`, `receipts.py`).
"""

_SC: Final = _N - frozenset("O5 O5x O6 O8".split())
"""Class SC of docs/spec/properties.md 8: Newtop's slow causal order.

What the table marks as promised over the Newtop membership counts, for the causal groups run over it. F1, F2 and F3,
which the table does not promise, are ours: flow control belongs to the group core that all services share.
"""

_FC: Final = _SC
"""Class FC, fast causal order: in the table the same; what O4 excuses across groups differs (`reliable.py`)."""

_RC: Final = _SC
"""Class RC, relative causal order, likewise."""

# -------------------------------------------------------------------------------- the lecture notes

_RM: Final = frozenset("W D1 D2 D3 D13 D14 L2 L3 L8".split())
"""Class RM: reliable multicast. D13, the agreement of the notes' definition, and D14, answers, are ours to name.

L2 and L3, which the table promises while membership does not change, hold here with crashes too: who is lost drops out
of what is waited for.
"""

_FM: Final = _RM | frozenset("O1 O2".split())
"""Class FM: FIFO multicast."""

_CM: Final = _FM | frozenset("O3 O4".split())
"""Class CM: causal multicast, of each group by itself."""

_TP: Final = _RM | frozenset("O5 O6 O7".split())
"""Class TP: two-phase total order, of each group by itself. O5 too holds with crashes.

When O6 and O7 do, `_ALIVE` and `_UNCHANGED` say.
"""

# -------------------------------------------------------------------------------- acknowledgments

_TA: Final = frozenset("W D1 D2 D3 O1 O2 S1 S2 S4 S5 S6 L2 L3 L6 L8 L10".split())
"""Class TA: stability by acknowledgments. S6, that the connection rules of Berket98 §6 are kept, is ours to name.

F1, which the table has too, is left out: nothing is bounded there in this version.
"""

# -------------------------------------------------------------------------------- InterGroup

_UU: Final = frozenset("W D1 D3 L8".split())
"""Class UU: whatever the network brings."""

_ALF: Final = _UU | frozenset(["D2"])
"""Application framed: whatever comes, and what was asked for and is still there, once."""

_USO: Final = _UU | frozenset("D2 O1".split())
"""Unreliable source order, ours to name: of each sender in its order, with gaps, nothing twice."""

_UGTO: Final = _USO | frozenset("O3 O6 O8".split())
"""Unreliable group timestamp order, ours to name: one order everywhere, with gaps."""

_RSO: Final = frozenset("W M1 M2 M3 D1 D2 D3 D4 O1 O2 S1 S2 S4 F1 F3 L2 L3 L6 L7 L8 L9 L10".split())
"""Class RSO. M1 is M1s: of senders. L7 is ours: flow control belongs to the sender, whatever is delivered to it.

Left out while the sender group does not change: L5, and of senders L9. That there is one view means of a receiver that
it begins once: its sources answer one after the other, and none is lost.
"""

_RGTO: Final = _RSO | frozenset("M4 D8 O3 O4 O5 O6 O8 S5 L4".split())
"""Class RGTO. Left out while the sender group does not change: M6e, M7, M8, M10, D5w, D9, L1, L5, S3."""

# -------------------------------------------------------------------------------- the table

Codes = Mapping[str, frozenset[str]]
"""Properties by service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """One family: its promises, when they hold, and what its views, groups and `discard` rows mean."""

    services: Codes
    """By service, what is promised; `SENDING` stands for processes that only send."""
    closed: Codes = field(default_factory=dict)
    """Promised in addition by a process that was started with `view_change = "closed"`."""
    alive: Codes = field(default_factory=dict)
    """Promised only among processes that do not crash."""
    unchanged: Codes = field(default_factory=dict)
    """Promised only while the membership of the group does not change (the circles of docs/spec/properties.md 8)."""
    moving: frozenset[str] = frozenset()
    """Promised of views that change: nothing where members never suspect each other, for there none does."""
    cuts: bool = False
    """A change of views is a cut: what was sent before it is owed only to those that go on together, in that view.

    Otherwise views only say which processes are there: each that was addressed and stays owes the delivery, in
    whatever view.
    """
    apart: bool = True
    """Each group keeps its order by itself: nothing is promised about messages of two groups."""
    frees: Literal["everything", "own", "nothing"] = "nothing"
    """What a process holds until it is stable and frees then, as its `discard` rows tell.

    Processes that only receive hold something only if they get the order of all.
    """
    onlookers: bool = False
    """Some processes only receive, and are in no view: their own views name the senders that they hear."""


BUILT_IN: Final[Mapping[str, Promised]] = {
    "newtop": Promised(
        services={
            "total": _N,
            "total-safe": _SAFE,
            "causal-slow": _SC,
            "causal-fast": _FC,
            "causal-relative": _RC,
            "causal-vector": _FC,
        },
        closed={"total": _NV},
        moving=frozenset("M2 M6 M7 M8 M9 M10 M11 D5 D5w D6 D7 D9 D10 D11 L5 L10".split()),
        cuts=True,
        apart=False,
        frees="everything",
    ),
    "classic": Promised(
        services={
            "reliable": _RM,
            "fifo": _FM,
            "causal": _CM,
            "total": _TP,
            SENDING: frozenset("W D1 D14 L2 L8".split()),
        },
        # A site that crashes may have delivered alone, in an order that those that take over cannot know. These agree.
        alive={"total": frozenset(["O6"])},
        # Each process enters the next view in its own time. So a message may be delivered in one view here and in
        # another there: as if it were left out.
        unchanged={"total": frozenset(["O7"])},
    ),
    "acks": Promised(
        services={"fifo": _TA, SENDING: frozenset("W D1 S1 S2 S4 S5 S6 L2 L6 L8".split())},
        frees="own",
    ),
    "intergroup": Promised(
        services={
            "total": _RGTO,
            "fifo": _RSO,
            "unreliable": _UU,
            "unreliable-fifo": _USO,
            "unreliable-total": _UGTO,
            "framed": _ALF,
        },
        cuts=True,
        frees="everything",
        onlookers=True,
    ),
}
"""By protocol."""

_UNKNOWN: Final = Promised(services={}, cuts=True, apart=False, frees="everything")
"""Of a protocol without an entry: it promises nothing, and what is required of it is asked as of Newtop."""

PROMISES: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    (protocol, service): codes
    for protocol, promised in BUILT_IN.items()
    for service, codes in promised.services.items()
}
"""All promises of this package, by protocol and service."""


@cache
def promised_by(protocol: str) -> Promised:
    """The entry of a protocol."""
    if protocol in BUILT_IN:
        return BUILT_IN[protocol]
    for point in entry_points(group=GROUP, name=protocol):
        entry = point.load()
        if not isinstance(entry, Promised):
            raise ConfigurationError(f"entry point {point.value} of group {GROUP} is not a Promised")
        return entry
    return _UNKNOWN
