"""What each protocol family promises (docs/spec/properties.md 8), and what its rows mean, in one table.

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
from antiphon.properties import other_systems
from antiphon.trace import promise_words

GROUP: Final = "antiphon.promises"
"""Entry points of other packages."""

SENDING: Final = promise_words.SENDING
"""The service of a process that only sends in a group: nothing is delivered to it there."""

# -------------------------------------------------------------------------------- Newtop

_N: Final = frozenset(
    "W M1 M2 M3 M4 M5 M6e M7 M8 M9 M10 D1 D2 D3 D4 D5w D8 D9 D10 D12 O1 O2 O3 O4 O5 O5x O6 O8 S1 S2 S4 F1 F2 F3 "
    "L1 L2 L3 L4 L5 L6 L7 L8 L9 L10 R2 M12 L11 D14".split()
)
"""Class N of docs/spec/properties.md 8: Newtop's symmetric total order; views are installed at a cut or by a remove."""

_NV: Final = frozenset("M6 M11 D5 D6 D7".split())
"""The additional promises of class NV: views are installed on the last remove, while no member sends (`closed`).

Only there are concurrent views disjoint, so at most one of two can hold a majority. So only there is M11 promised.
"""

CLOSED: Final = ("closed", "halted")
"""The ways to change views that keep messages within the view in which they were sent."""

_SAFE: Final = _N | frozenset("S3 D11 M13".split())
"""Class N with safe delivery: nothing is delivered before it is known to be stable (docs/spec/newtop.md 14).

As its rule 5 says, D11 and S1 cover the members about which a delivery makes a claim. Members whose failure was agreed
and announced before are not among them (`notices.py`, `receipts.py`).
"""

_SC: Final = _N - frozenset("O5 O5x O6 O8 M12 L11".split())
"""Class SC of docs/spec/properties.md 8: Newtop's slow causal order.

The entries of the table for the Newtop membership count, because the causal groups run over it. F1, F2 and F3 are our
addition: flow control belongs to the group core that all services share.
"""

_FC: Final = _SC
"""Class FC, fast causal order: the same in the table; the exceptions of O4 across groups differ (`reliable.py`)."""

_RC: Final = _SC
"""Class RC, relative causal order: the same."""

_VF: Final = _SC - frozenset("O3 O4".split())
"""Class VF: FIFO order over the Newtop membership (our addition)."""

_VR: Final = _VF - frozenset("O1 O2".split())
"""Class VR: the same messages in each view, in any order (our addition)."""

# -------------------------------------------------------------------------------- the lecture notes

_RM: Final = frozenset("W D1 D2 D3 D13 D14 L2 L3 L8".split())
"""Class RM: reliable multicast. D13 (the agreement of the notes' definition) and D14 (answers) are our names.

The table promises L2 and L3 while membership does not change. Here they hold with crashes too, because lost processes
are no longer waited for.
"""

_FM: Final = _RM | frozenset("O1 O2".split())
"""Class FM: FIFO multicast."""

_CM: Final = _FM | frozenset("O3 O4".split())
"""Class CM: causal multicast, for each group by itself."""

_TP: Final = _RM | frozenset("O5 O6 O7".split())
"""Class TP: two-phase total order, for each group by itself. O5 holds with crashes too.

`alive` and `unchanged` below say when O6 and O7 hold.
"""

_FT: Final = _TP | _FM
"""Class FT: two-phase total order that keeps the order of each sender."""

_CT: Final = _TP | _CM | frozenset(["O8"])
"""Class CT: two-phase total order that keeps causal order."""

_SR: Final = _CM | frozenset("O5 O6 O7 O8".split())
"""Class SR: synchronous rounds, for each group by itself. They need delays and clocks within known bounds.

Without these, order still holds; D13, L2, O4 and O7 do not.
"""

# -------------------------------------------------------------------------------- acknowledgments

_TA: Final = frozenset("W D1 D2 D3 O1 O2 S1 S2 S4 S5 S6 L2 L3 L6 L8 L10".split())
"""Class TA: stability by acknowledgments. S6 (the connection rules of Berket98 §6) is our name.

F1 of the table is left out, because nothing is bounded there in this version.
"""

# -------------------------------------------------------------------------------- InterGroup

_UU: Final = frozenset("W D1 D3 L8".split())
"""Class UU: whatever the network delivers."""

_ALF: Final = _UU | frozenset(["D2"])
"""Application framed: whatever arrives, and requested messages that still exist, each once."""

_USO: Final = _UU | frozenset("D2 O1".split())
"""Unreliable source order (our name): the messages of each sender in its order, with gaps, none twice."""

_UGTO: Final = _USO | frozenset("O3 O6 O8".split())
"""Unreliable group timestamp order (our name): one order everywhere, with gaps."""

_RSO: Final = frozenset("W M1 M2 M3 D1 D2 D3 D4 O1 O2 S1 S2 S4 F1 F3 L2 L3 L5 L6 L7 L8 L9 L10 R2".split())
"""Class RSO. M1 is M1s: for senders. L7 is our addition: flow control belongs to the sender, whatever it receives.

L9 is not promised to senders. For a receiver, one view means that it begins once: its sources answer one after another,
and none is lost.
"""

_RGTO: Final = _RSO | frozenset("M4 M6e M7 M8 M10 D5w D8 D9 O3 O4 O5 O6 O8 S5 L1 L4".split())
"""Class RGTO. M6e, M7 and M8 are for senders."""

# -------------------------------------------------------------------------------- the table

Codes = Mapping[str, frozenset[str]]
"""Properties by service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """One family: its promises, when they hold, and what its views, groups and `discard` rows mean."""

    services: Codes
    """By service, what is promised; `SENDING` stands for processes that only send."""
    closed: Codes = field(default_factory=dict)
    """Promised in addition where `view_change`, of the process or of the group that it joined, is one of `CLOSED`."""
    halted: Codes = field(default_factory=dict)
    """Promised in addition to these by a process that was started with `view_change = "halted"`."""
    alive: Codes = field(default_factory=dict)
    """Promised only among processes that do not crash."""
    unchanged: Codes = field(default_factory=dict)
    """Promised only while the membership of the group does not change (the circles of docs/spec/properties.md 8)."""
    moving: frozenset[str] = frozenset()
    """Promises about changing views. They do not apply if members never suspect each other."""
    cuts: bool = False
    """A view change is a cut: what was sent before it is owed only by processes that go on together, in that view.

    Otherwise views only tell which processes are present: each addressed process that stays owes the delivery, in
    whatever view.
    """
    apart: bool = True
    """Each group is ordered independently: nothing is promised about messages of two groups."""
    frees: Literal["everything", "own", "nothing"] = "nothing"
    """What a process holds until it is stable, and then frees by `discard` rows.

    Processes that only receive hold something only if they get the order of all.
    """
    leaves: bool = False
    """A process that left a group delivers nothing there until its next view; so it is also where `cuts` holds."""
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
            "fifo": _VF,
            "reliable": _VR,
        },
        closed={"total": _NV},
        halted={"total": frozenset(["D15"])},
        moving=frozenset("M2 M6 M7 M8 M9 M10 M11 M12 M13 D5 D5w D6 D7 D9 D10 D11 D15 L5 L10 L11".split()),
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
            "fifo-total": _FT,
            "causal-total": _CT,
            "synchronous": _SR,
            SENDING: frozenset("W D1 D14 L2 L8".split()),
        },
        # A site that crashes may have delivered alone, in an order that those that take over cannot know. These agree.
        alive={
            "total": frozenset(["O6"]),
            "fifo-total": frozenset(["O6"]),
            "causal-total": frozenset("O6 O8".split()),
        },
        # Each process enters the next view in its own time. So a message may be delivered in one view here and in
        # another there: as if it were left out.
        unchanged=dict.fromkeys(("total", "fifo-total", "causal-total", "synchronous"), frozenset(["O7"])),
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

_OTHER_SYSTEMS: Final[Mapping[str, Promised]] = {
    promise_words.PROTOCOL: Promised(
        services=other_systems.SERVICES,
        alive=other_systems.ALIVE,
        unchanged=other_systems.UNCHANGED,
        leaves=True,
    )
}
"""Systems that are not ours, by the protocol in their traces: they have no cores here."""

_UNKNOWN: Final = Promised(services={}, cuts=True, apart=False, frees="everything")
"""A protocol without an entry promises nothing; required properties are judged as for Newtop."""

PROMISES: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    (protocol, service): codes
    for protocol, promised in BUILT_IN.items()
    for service, codes in promised.services.items()
}
"""All promises of this package, by protocol and service."""


@cache
def promised_by(protocol: str) -> Promised:
    """The entry of a protocol."""
    known = BUILT_IN.get(protocol) or _OTHER_SYSTEMS.get(protocol)
    if known is not None:
        return known
    for point in entry_points(group=GROUP, name=protocol):
        entry = point.load()
        if not isinstance(entry, Promised):
            raise ConfigurationError(f"entry point {point.value} of group {GROUP} is not a Promised")
        return entry
    return _UNKNOWN
