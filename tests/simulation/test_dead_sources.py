"""A receiver in source order, and a source that dies (docs/spec/intergroup.md 6.2; T3)."""

from antiphon.scenario.read import parse_scenario
from antiphon.sim.run import simulate

DEAD = """
name = "dead-source"
protocol = "intergroup"
duration = "30s"
quiet = "6s"
network = { transport = "datagram", latency = { kind = "fixed", value = "5ms" } }
options = { suspect_after = "1s" }
group = [{ name = "prices", members = ["a", "b", "c", "f1"] }]
member = [{ process = "f1", group = "prices", role = "receiver", service = "fifo" }]
workload = [{ group = "prices", messages = 400, interval = "20ms" }]
[[fault]]
at = "1s"
kind = "crash"
process = "b"
"""


def test_stability_does_not_wait_for_the_answers_of_a_source_that_fell_silent() -> None:
    """The source is asked again, but nothing is kept for the place where it might begin.

    It was lost after two seconds of silence; RECV_STALL would be five seconds.
    """
    rows = next(history.rows for history in simulate(parse_scenario(DEAD)).histories if history.process == "a")
    freed_at = [row["time"] for row in rows if row["kind"] == "discard"]
    assert any(3_000_000_000 < at < 3_500_000_000 for at in freed_at)
