"""The four classic multicasts under the worst schedules that Hypothesis finds, judged by their definitions.

The model knows what each process sent and delivered, in which order (`tests.support.classic_cluster.faults`). Safety is
checked after every step, agreement and liveness when all frames have arrived and all losses are told.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from antiphon.protocols.classic.settings import Service
from tests.support.classic_cluster import SERVICES, ClassicCluster, faults, safety_faults


class Machine(RuleBasedStateMachine):
    """Members and outsiders send and crash; frames arrive in any order and twice; losses are told at any time."""

    @initialize(
        service=st.sampled_from(SERVICES),
        members=st.integers(1, 4),
        outside=st.integers(0, 1),
        clocks=st.lists(st.integers(0, 9), min_size=4, max_size=4),
        streams=st.booleans(),
    )
    def begin(self, service: Service, members: int, outside: int, clocks: list[int], streams: bool) -> None:
        names = [f"p{number}" for number in range(members)]
        self.streams = streams
        self.sent = 0
        self.cluster = ClassicCluster(
            *names,
            service=service,
            outside=["s"] * outside,
            clocks=dict(zip(names, clocks, strict=False)),
            streams=streams,
        )

    @rule(data=st.data())
    def send(self, data: st.DataObject) -> None:
        self.cluster.send(data.draw(st.sampled_from(self.cluster.living)), b"%d" % self.sent)
        self.sent += 1

    @precondition(lambda self: any(self.cluster.links.values()))
    @rule(data=st.data(), copied=st.booleans())
    def move(self, data: st.DataObject, copied: bool) -> None:
        sender, receiver = data.draw(
            st.sampled_from(sorted(pair for pair, frames in self.cluster.links.items() if frames))
        )
        which = 0 if self.streams else data.draw(st.integers(0, len(self.cluster.links[sender, receiver]) - 1))
        self.cluster.move(sender, receiver, which, again=copied and not self.streams)

    @precondition(lambda self: len(self.cluster.crashed) < 2)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        victim = data.draw(st.sampled_from(self.cluster.living))
        if self.cluster.survivors == [victim]:
            return
        reached = data.draw(st.dictionaries(st.sampled_from(self.cluster.names), st.integers(0, 3)))
        left = dict.fromkeys(self.cluster.names, 0) | reached

        def keep(receiver: str, _: object) -> bool:
            left[receiver] -= 1
            cut = left[receiver] < 0 if self.streams else left[receiver] % 2 == 0
            return not cut

        self.cluster.crash(victim, keep)

    @precondition(lambda self: any(map(self.cluster.untold, self.cluster.living)))
    @rule(data=st.data())
    def tell(self, data: st.DataObject) -> None:
        self.cluster.tell_next(
            data.draw(st.sampled_from([name for name in self.cluster.living if self.cluster.untold(name)]))
        )

    @invariant()
    def nothing_wrong_was_delivered(self) -> None:
        if hasattr(self, "cluster"):
            assert not safety_faults(self.cluster)

    def teardown(self) -> None:
        """Liveness after the faults: when all frames have arrived, all live processes agree, and hold nothing."""
        if hasattr(self, "cluster"):
            self.cluster.tell()
            self.cluster.move_all()
            assert not faults(self.cluster)


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
