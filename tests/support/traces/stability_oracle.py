"""Naive checkers of stability and flow control."""

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from tests.support.traces.handmade import Mid

Message = tuple[str, str, int]
"""Group, sender, number."""


def some_prefixes(rng: random.Random, sent: list[Mid]) -> dict[str, int]:
    upto = {mid.sender: mid.number + (rng.random() < 0.03) for mid in rng.sample(sent, min(len(sent), 2))}
    return {sender: int(number) for sender, number in upto.items()}


class Naive:
    """Everything a row needs is searched for in the rows before it."""

    def __init__(self, events: pa.Table) -> None:
        self.rows: list[dict[str, Any]] = sorted(events.to_pylist(), key=lambda row: (row["process"], row["index"]))
        self.by_blocks = self._by_blocks()
        self.found: Counter[tuple[str, str]] = Counter()
        self.skipped: set[tuple[str, Message]] = set()
        for at, row in enumerate(self.rows):
            if row["kind"] == "stable":
                self._stable(at, row)
            elif row["kind"] == "discard":
                self._discard(at, row)
        for _, message in self.skipped:
            self.found["S2", message[0]] += 1

    def _by_blocks(self) -> bool:
        start = next(row["detail"] for row in self.rows if row["kind"] == "start")
        return '"block"' in start or '"flow_control": 3' not in start

    def _stable(self, at: int, row: dict[str, Any]) -> None:
        group, process = row["group"], row["process"]
        for sender, number in row["upto"]:
            before = self._mark("stable", at, process, group, sender)
            self.found["S2", group] += number < before
            added = [(group, sender, each) for each in range(before + 1, number + 1)]
            self.found["S1", group] += sum(
                not self._everywhere(at, message) for message in added if self._heard(message)
            )
            self.found["S1", group] += any(not self._heard(message) for message in added)
        if self.by_blocks:
            self._closed(at, process, group)

    def _closed(self, at: int, process: str, group: str) -> None:
        delivered: dict[Message, int] = {}
        for each in self.rows[:at]:
            if each["kind"] == "deliver" and each["process"] == process and each["group"] == group:
                delivered.setdefault((group, each["sender"], each["number"]), each["clock"])
        stable = {
            message for message in delivered if self._mark("stable", at + 1, process, group, message[1]) >= message[2]
        }
        for message in delivered.keys() - stable:
            if any(delivered[other] >= delivered[message] for other in stable):
                self.skipped.add((process, message))

    def _discard(self, at: int, row: dict[str, Any]) -> None:
        group, process = row["group"], row["process"]
        for sender, number in row["upto"]:
            before = self._mark("discard", at, process, group, sender)
            known = self._mark("stable", at, process, group, sender)
            if number <= before or number <= known:
                continue
            if row["detail"] is None:
                self.found["S4", group] += 1
                continue
            added = [(group, sender, each) for each in range(max(before, known) + 1, number + 1)]
            self.found["S4", group] += sum(not self._safe(at, message) for message in added if self._heard(message))
            self.found["S4", group] += any(not self._heard(message) for message in added)

    def _safe(self, at: int, message: Message) -> bool:
        row, others = self.rows[at], set(self._members(at)) - {self.rows[at]["process"]}
        claimed = any(
            each["kind"] == "stable"
            and each["process"] in others
            and each["group"] == message[0]
            and each["time"] <= row["time"]
            and dict(each["upto"]).get(message[1], -1) >= message[2]
            for each in self.rows
        )
        delivered = any(
            each["kind"] == "deliver" and each["process"] == row["process"] and self._message(each) == message
            for each in self.rows[:at]
        )
        return claimed and delivered and self._everywhere(at, message)

    def _everywhere(self, at: int, message: Message) -> bool:
        asked = {*self._asked(at, message), self.rows[at]["process"]}
        return all(self._arrived(at, member, message) for member in asked)

    def _asked(self, at: int, message: Message) -> Iterable[str]:
        """The processes that must have received it."""
        return self._members(at)

    def _arrived(self, at: int, member: str, message: Message) -> bool:
        row, log = self.rows[at], [each for each in self.rows if each["process"] == member]
        places = [each for each in log if each["kind"] in ("send", "receive") and self._message(each) == message]
        if places:
            own = member == row["process"]
            return any(each["index"] < row["index"] if own else each["time"] <= row["time"] for each in places)
        sent = [each["time"] for each in self.rows if each["kind"] == "send" and self._message(each) == message]
        if log[-1]["kind"] != "crash" or member == row["process"]:
            return False
        return bool(log[-2]["time"] <= row["time"] and all(time <= log[-1]["time"] for time in sent))

    def _members(self, at: int) -> list[str]:
        views = [row for row in self._own(at, at) if row["kind"] == "view"]
        members: list[str] = views[-1]["members"]
        return members

    def _own(self, at: int, end: int) -> list[dict[str, Any]]:
        place = self.rows[at]["process"], self.rows[at]["group"]
        return [row for row in self.rows[:end] if (row["process"], row["group"]) == place]

    def _mark(self, kind: str, end: int, process: str, group: str, sender: str) -> int:
        rows = [row for row in self.rows[:end] if (row["kind"], row["process"], row["group"]) == (kind, process, group)]
        return max((dict(row["upto"]).get(sender, -1) for row in rows), default=-1)

    def _heard(self, message: Message) -> bool:
        return any(row["kind"] in ("send", "receive") and self._message(row) == message for row in self.rows)

    def _message(self, row: dict[str, Any]) -> Message:
        return row["group"], row["sender"], row["number"]
