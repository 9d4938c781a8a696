"""Newtop's core in one group against a naive model, under the worst schedules that Hypothesis finds.

The model knows every frame ever sent, and orders all data by (block, sender). A member must have delivered exactly the
prefix of that order up to which the frames of every member have reached it. Flow control may hold messages back; those
that have left obey the same order.
"""

from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.cluster import GROUP, Cluster

FLOWS: Final[tuple[dict[str, Any], ...]] = (
    {"flow_control": 0},
    {"flow_control": 1, "window": 3},
    {"flow_control": 2, "window": 2},
    {"flow_control": 3, "window": 2},
    {"flow_control": 3, "window": 4, "window_bytes": 1},
)


class Machine(RuleBasedStateMachine):
    """Members send, frames move on FIFO channels in any interleaving, applications stall, time passes."""

    @initialize(
        members=st.integers(1, 4),
        silence=st.sampled_from([0, 10]),
        packing=st.booleans(),
        flow=st.sampled_from(FLOWS),
        by_block=st.booleans(),
    )
    def begin(self, members: int, silence: int, packing: bool, flow: dict[str, Any], by_block: bool) -> None:
        self.names = [f"p{number}" for number in range(members)]
        flow = {**flow, "block_numbered": frozenset({GROUP} if by_block else ())}
        self.cluster = Cluster(*self.names, silence_timeout_ns=silence, packing=packing, **flow)
        self.last_received = {(name, other): 0 for name in self.names for other in self.names}
        self.sent = 0

    @rule(data=st.data(), count=st.integers(1, 3))
    def send(self, data: st.DataObject, count: int) -> None:
        name = data.draw(st.sampled_from(self.names))
        self.cluster.send(name, *(b"%d" % (self.sent + i) for i in range(count)))
        self.sent += count

    @precondition(lambda self: any(self.cluster.channels.values()))
    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        pairs = sorted(pair for pair, frames in self.cluster.channels.items() if frames)
        sender, receiver = data.draw(st.sampled_from(pairs))
        self.last_received[receiver, sender] = self.cluster.channels[sender, receiver][0].clock
        self.cluster.move(sender, receiver)

    @rule(duration=st.integers(1, 15))
    def wait(self, duration: int) -> None:
        self.cluster.wait(duration)

    @rule(data=st.data())
    def stall_or_wake(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.names))
        if name in self.cluster.stalled:
            self.cluster.wake(name)
        else:
            self.cluster.stalled.add(name)

    @invariant()
    def everyone_has_delivered_the_complete_beginning_of_one_order(self) -> None:
        frames = [frame for sent in self.cluster.transmitted.values() for frame in sent if frame.payloads]
        frames.sort(key=lambda frame: (frame.block, frame.sender))
        for name in self.names:
            own = max((frame.block for frame in self.cluster.transmitted[name]), default=0)
            complete = min(own if other == name else self.last_received[name, other] for other in self.names)
            expected = [payload for frame in frames if frame.block <= complete for payload in frame.payloads]
            assert self.cluster.delivered[name] == expected

    @invariant()
    def own_numbers_strictly_increase(self) -> None:
        for sent in self.cluster.transmitted.values():
            blocks = [frame.block for frame in sent]
            assert blocks == sorted(set(blocks))
            assert [frame.previous_block for frame in sent] == [0, *blocks][: len(sent)]

    def teardown(self) -> None:
        """Liveness after the faults: when all frames have arrived, every member has every message."""
        if not hasattr(self, "cluster"):
            return
        for name in self.names:
            self.cluster.wake(name)
        self.cluster.rest()
        assert all(len(delivered) == self.sent for delivered in self.cluster.delivered.values())


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
