"""The delivery services of groups, as values: `Total()`, `Causal("fast")`, `Fifo()`, `Reliable()`.

A member has one order over all its groups, so the *kind* of the service (total, one of the causal orders, FIFO,
reliable) is the same in all of them. Within total order each group chooses for itself: `safe`, `sequencer`, `views`.
docs/guide/services.md says what each service promises, and when to use it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, get_args

from antiphon.core.services import GroupService
from antiphon.errors import ConfigurationError

CausalOrder = Literal["slow", "fast", "relative", "vector"]
"""The causal orders of Macedo94 chapter 5, and vector clocks, to which it compares them."""

Views = Literal["cut", "remove", "closed"]
"""How a view without failed members begins (docs/spec/newtop.md 9.6)."""


class _Service(ABC):
    """What all services have in common."""

    __slots__ = ()

    @property
    @abstractmethod
    def kind(self) -> str:
        """Groups of one member have services of one kind."""

    @property
    def core(self) -> GroupService:
        """The same value for a core."""
        return GroupService(self.kind)

    def __repr__(self) -> str:
        """As it is written, without the defaults."""
        said = []
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.name == "order":
                said.append(repr(value))
            elif value != field.default:
                said.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(said)})"


@dataclass(frozen=True, slots=True, repr=False)
class Total(_Service):
    """One order: all members deliver the same messages in the same order, over all their groups."""

    safe: bool = False
    """Nothing is delivered before every member of the view has it."""
    sequencer: bool = False
    """One member numbers the messages of all. It saves frames and time if few members send."""
    views: Views = "cut"
    """How a view without failed members begins: `cut`, `remove` or `closed` (docs/spec/newtop.md 9.6)."""
    accept: bool = False
    """With `closed`: such a view begins only when every application has accepted it (`Transitional.accept`)."""

    def __post_init__(self) -> None:
        _require_flag("safe", self.safe)
        _require_flag("sequencer", self.sequencer)
        _require_flag("accept", self.accept)
        _require_word("views", self.views, get_args(Views))
        if self.safe and self.sequencer:
            raise ConfigurationError("Total(safe=True, sequencer=True) does not exist: choose one of the two")
        if self.views != "cut" and (self.safe or self.sequencer):
            with_what = "safe=True" if self.safe else "sequencer=True"
            raise ConfigurationError(f"Total({with_what}) has views='cut' only, not {self.views!r}")
        if self.accept and self.views != "closed":
            raise ConfigurationError(f"accept=True needs views='closed', not {self.views!r}")

    @property
    def kind(self) -> str:
        """Total order, safe or not, is one order."""
        return "total"

    @property
    def core(self) -> GroupService:
        """The same value for a core."""
        return GroupService("total-safe" if self.safe else "total", self.sequencer, self.views, self.accept)


@dataclass(frozen=True, slots=True, repr=False)
class Causal(_Service):
    """A message is delivered after all messages that its sender had sent or delivered before, over all groups."""

    order: CausalOrder = "fast"
    """`fast`: as early as possible. `relative`: smaller stamps. `slow`: no stamps. `vector`: vector clocks."""
    views: Views = "cut"

    def __post_init__(self) -> None:
        _require_word("the order of Causal", self.order, get_args(CausalOrder))
        _require_cut(self, self.views)

    @property
    def kind(self) -> str:
        """Each causal order is a kind of its own: stamps of one mean nothing to another."""
        return f"causal-{self.order}"


@dataclass(frozen=True, slots=True, repr=False)
class Fifo(_Service):
    """The messages of each sender in the order in which it sent them; nothing is promised between senders."""

    views: Views = "cut"

    def __post_init__(self) -> None:
        _require_cut(self, self.views)

    @property
    def kind(self) -> str:
        """FIFO order is a kind of its own."""
        return "fifo"


@dataclass(frozen=True, slots=True, repr=False)
class Reliable(_Service):
    """Members that go from one view to the next together deliver the same messages, in any order."""

    views: Views = "cut"

    def __post_init__(self) -> None:
        _require_cut(self, self.views)

    @property
    def kind(self) -> str:
        """A kind of its own."""
        return "reliable"


Service = Total | Causal | Fifo | Reliable
"""What a group promises about deliveries."""


def require_service(value: Any) -> Service:
    """A service; `ConfigurationError` if it is something else."""
    if not isinstance(value, Service):
        examples = "Total(), Total(safe=True), Causal('fast'), Fifo() or Reliable()"
        raise ConfigurationError(f"service must be a value such as {examples}, not {value!r}")
    return value


def require_same_kind(value: Any, default: Service, group: str) -> Service:
    """The service of a group within the kind of its member; `ConfigurationError` if it is of another kind."""
    chosen = require_service(value)
    if chosen.kind != default.kind:
        raise ConfigurationError(
            f"{group} cannot have {chosen!r} here: this member has {default!r}, and the groups of a member share one "
            f"order; join it with another Member(service={chosen!r})"
        )
    return chosen


def _require_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} must be True or False, not {value!r}")


def _require_word(what: str, value: object, words: tuple[str, ...]) -> None:
    if value not in words:
        raise ConfigurationError(f"{what} must be one of {', '.join(words)}, not {value!r}")


def _require_cut(service: _Service, views: object) -> None:
    _require_word("views", views, get_args(Views))
    if views != "cut":
        raise ConfigurationError(f"{type(service).__name__} has views='cut' only, not {views!r}: others need Total()")


TOTAL: Final = Total()
"""The default."""
