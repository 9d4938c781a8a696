"""Every order over overlapping groups against a naive model, under the worst schedules that Hypothesis finds.

The model is the definition (docs/spec/newtop.md 1): the past of a message are the messages that its sender sent or
delivered before, and their past. It comes from the effects of the processes, in their order. It ignores numbers, blocks
and stamps.
"""

from itertools import combinations
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from antiphon.core.effects import Deliver, Effect, Transmit
from antiphon.protocols.newtop.frames import BlockFrame
from tests.support.cluster import Cluster

SHAPES: Final = (
    {"g": "abc", "h": "bcd"},
    {"g": "ab", "h": "bc", "k": "ca"},
    {"g": "abc", "h": "cd", "k": "dea"},
    {"g": "abc", "h": "ab"},
    {"g": "ab", "h": "cd", "k": "abcd"},
)
"""Two groups that share two members; a ring; a longer ring; one inside another; two disjoint groups."""
SERVICES: Final = ("total", "causal-slow", "causal-fast", "causal-relative", "causal-vector")
FLOWS: Final[tuple[dict[str, Any], ...]] = (
    {"flow_control": 0},
    {"flow_control": 3, "window": 2},
    {"flow_control": 2, "window": 2},
    {"flow_control": 1, "window": 3},
    {"flow_control": 3, "window": 2, "window_bytes": 8},
)

MessageId = tuple[str, str, int]


class Past:
    """The sends and deliveries of each process, in order."""

    def __init__(self, groups: dict[str, str]) -> None:
        self.groups = groups
        members = sorted(set("".join(groups.values())))
        self.delivered: dict[str, list[MessageId]] = {name: [] for name in members}
        self._before: dict[MessageId, frozenset[MessageId]] = {}
        self._known: dict[str, frozenset[MessageId]] = dict.fromkeys(members, frozenset())

    def note(self, name: str, effect: Effect) -> None:
        """A message leaves with its last fragment, and is delivered under that fragment's number."""
        match effect:
            case Transmit(frame=BlockFrame(more=False, payloads=[_, *_]) as frame):
                self._before[_id(frame)] = self._known[name]
                self._known[name] |= {_id(frame)}
            case Deliver(frame=BlockFrame() as frame):
                self._deliver(name, _id(frame))

    def _deliver(self, name: str, message: MessageId) -> None:
        before = self._before[message]
        assert message not in self.delivered[name], f"{name} delivers {message} twice"
        missing = {each for each in before if name in self.groups[each[0]]} - {*self.delivered[name]}
        assert not missing, f"{name} delivers {message} before {sorted(missing)}, which happened before it"
        self.delivered[name].append(message)
        self._known[name] |= before | {message}


def _id(frame: BlockFrame) -> MessageId:
    return frame.group, frame.sender, frame.block


class Machine(RuleBasedStateMachine):
    """Members send, frames move on FIFO channels in any interleaving, applications stall, time passes."""

    datagrams = False

    @initialize(
        groups=st.sampled_from(SHAPES),
        service=st.sampled_from(SERVICES),
        flow=st.sampled_from(FLOWS),
        silence=st.sampled_from([0, 10]),
        packing=st.booleans(),
        compression=st.booleans(),
    )
    def begin(
        self,
        groups: dict[str, str],
        service: str,
        flow: dict[str, Any],
        silence: int,
        packing: bool,
        compression: bool,
    ) -> None:
        self.service, self.past, self.noted = service, Past(groups), 0
        self.asked: dict[str, list[bytes]] = {group: [] for group in groups}
        self.pairs = sorted((name, group) for group, members in groups.items() for name in members)
        self.cluster = Cluster(
            groups=groups,
            service=service,
            silence_timeout_ns=silence,
            packing=packing,
            compression=compression and service == "causal-fast",
            frame_bytes_max=8,
            datagrams=self.datagrams,
            **flow,
        )

    @rule(data=st.data(), count=st.integers(1, 3), size=st.sampled_from([3, 3, 20]))
    def send(self, data: st.DataObject, count: int, size: int) -> None:
        name, group = data.draw(st.sampled_from(self.pairs))
        payloads = [b"%0*d" % (size, len(self.asked[group]) + each) for each in range(count)]
        self.asked[group] += payloads
        self.cluster.send(name, *payloads, group=group)

    @precondition(lambda self: any(self.cluster.channels.values()))
    @rule(data=st.data(), frames=st.integers(1, 4))
    def move(self, data: st.DataObject, frames: int) -> None:
        sender, receiver = self.draw_channel(data)
        self.cluster.move(sender, receiver, min(frames, len(self.cluster.channels[sender, receiver])))

    def draw_channel(self, data: st.DataObject) -> tuple[str, str]:
        """A channel with frames in transit."""
        return data.draw(st.sampled_from(sorted(pair for pair, frames in self.cluster.channels.items() if frames)))

    @rule(duration=st.integers(1, 15))
    def wait(self, duration: int) -> None:
        self.cluster.wait(duration)

    @rule()
    def wait_for_announcements(self) -> None:
        self.cluster.wait(10_000_000)

    @rule(data=st.data())
    def stall_or_wake(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.cluster.cores)))
        if name in self.cluster.stalled:
            self.cluster.wake(name)
        else:
            self.cluster.stalled.add(name)

    @invariant()
    def no_process_delivers_a_message_before_its_past(self) -> None:
        for name, effect in self.cluster.history[self.noted :]:
            self.past.note(name, effect)
        self.noted = len(self.cluster.history)

    @invariant()
    def common_messages_are_delivered_in_one_order(self) -> None:
        if self.service != "total":
            return
        for one, other in combinations(self.past.delivered.values(), 2):
            assert [each for each in one if each in other] == [each for each in other if each in one]

    @invariant()
    def own_numbers_strictly_increase_in_each_group(self) -> None:
        for name, group in self.pairs:
            frames = [frame for frame in self.cluster.transmitted[name] if frame.group == group]
            blocks = [frame.block for frame in frames]
            assert blocks == sorted(set(blocks))
            assert [frame.previous_block for frame in frames] == [0, *blocks][: len(frames)]

    def teardown(self) -> None:
        """Liveness after the faults: when all frames have arrived and are consumed, every member has every message."""
        if not hasattr(self, "cluster"):
            return
        for name in self.cluster.cores:
            self.cluster.wake(name)
        self.cluster.rest()
        self.no_process_delivers_a_message_before_its_past()
        self.common_messages_are_delivered_in_one_order()
        for member, messages in self.payloads().items():
            for group, members in self.past.groups.items():
                assert sorted(messages.get(group, [])) == (sorted(self.asked[group]) if member in members else [])

    def payloads(self) -> dict[str, dict[str, list[bytes]]]:
        """The deliveries, by process and group."""
        found: dict[str, dict[str, list[bytes]]] = {name: {} for name in self.cluster.cores}
        for name, effect in self.cluster.history:
            if isinstance(effect, Deliver):
                found[name].setdefault(effect.frame.group, []).extend(effect.frame.payloads)
        return found


class LossyMachine(Machine):
    """The same on datagrams, which are also lost, duplicated and reordered."""

    datagrams = True

    @precondition(lambda self: any(self.cluster.channels.values()))
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        self.cluster.channels[self.draw_channel(data)].popleft()

    @precondition(lambda self: any(self.cluster.channels.values()))
    @rule(data=st.data())
    def duplicate(self, data: st.DataObject) -> None:
        channel = self.cluster.channels[self.draw_channel(data)]
        channel.append(channel[0])

    @precondition(lambda self: any(self.cluster.channels.values()))
    @rule(data=st.data(), places=st.integers(1, 4))
    def reorder(self, data: st.DataObject, places: int) -> None:
        self.cluster.channels[self.draw_channel(data)].rotate(places)


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestLossyMachine = LossyMachine.TestCase
TestLossyMachine.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
