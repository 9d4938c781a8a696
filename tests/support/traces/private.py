"""Traces of processes with private views, made by hand."""

from tests.support.traces.handmade import Trace


class Nodes(Trace):
    """Nodes of the group `orders`, each with its own views."""

    def connect(self, process: str, receivers: list[str], senders: list[str]) -> None:
        members = sorted({process, *receivers, *senders})
        count = int(self.views.get((process, "orders"), "0").split(".")[0]) + 1
        self.view(process, "orders", f"{count}.{process}", members, receivers=receivers, senders=senders)
