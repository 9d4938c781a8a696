"""A replicated application for tests: a log that takes over states and merges them."""

import json

from antiphon import Event, Group, Message, Reset, View


class Replica:
    """A list of messages; two states are merged to their union, each message once.

    `ordered`: the state depends on the order of messages. Members of a group without total order would differ.
    """

    def __init__(self, *, ordered: bool = True) -> None:
        self._ordered = ordered
        self.words: list[str] = []
        self.view: View | None = None

    def snapshot(self) -> bytes:
        return json.dumps(self.words if self._ordered else sorted(self.words)).encode()

    async def follow(self, group: Group, *, batches: bool) -> None:
        if batches:
            while events := await group.receive():
                for event in events:
                    self.take(event)
        else:
            async for event in group:
                self.take(event)

    def take(self, event: Event) -> None:
        match event:
            case Message(payload=word):
                self.words.append(word.decode())
            case Reset(states=states):
                self.words = [*dict.fromkeys(word for state in states for word in json.loads(state))]
            case View():
                self.view = event
