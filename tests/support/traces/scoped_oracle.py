"""Naive checkers of order in the scopes of docs/spec/properties.md 4: lists of views, walked back."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import pyarrow as pa

from tests.support.traces.order_oracle import Naive

MEMBERS = ["p1", "p2", "p3", "p4"]


class Scoped(Naive):
    """Scopes as docs/spec/properties.md 4 words them: lists of views, walked back."""

    def __init__(self, events: pa.Table) -> None:
        super().__init__(events)
        order = [("process", "ascending"), ("index", "ascending")]
        self.rows: dict[str, list[dict[str, Any]]] = {}
        for row in events.sort_by(order).to_pylist():
            self.rows.setdefault(row["process"], []).append(row)
        self.quiet = '"quiet": true' in self.rows["world"][-1]["detail"]
        self.fast = any(row["service"] == "causal-fast" for rows in self.rows.values() for row in rows)

    def deliveries(self, process: str) -> Iterable[tuple[int, Any]]:
        """First deliveries with their place in the log."""
        seen = set()
        for at, row in enumerate(self.rows.get(process, ())):
            if row["kind"] == "deliver" and as_key(row) not in seen:
                seen.add(as_key(row))
                yield at, as_key(row)

    def run_of_views(self, process: str, group: str, sender: str, at: int) -> list[int]:
        """Places of the views of the group, back from a moment, that all have the sender; none if it has left."""
        found: list[int] = []
        for place in range(at, -1, -1):
            row = self.rows[process][place]
            if row["group"] != group or row["kind"] not in ("view", "leave"):
                continue
            if row["kind"] == "leave" or sender not in row["members"]:
                break
            found.insert(0, place)
        return found

    def first_view(self, process: str, group: str) -> int | None:
        rows = self.rows[process]
        return next((at for at, row in enumerate(rows) if row["kind"] == "view" and row["group"] == group), None)

    def entered(self, process: str, group: str, view: str) -> int | None:
        rows = enumerate(self.rows[process])
        return next((at for at, row in rows if (row["kind"], row["group"], row["view"]) == ("view", group, view)), None)

    def first_number(self, process: str, place: int, sender: str) -> int | None:
        """The number of messages that the sender had sent when it entered the view installed at that place."""
        row = self.rows[process][place]
        entered = self.entered(sender, row["group"], row["view"])
        if entered is None:
            return None
        sends = [each for each in self.rows[sender][:entered] if each["kind"] == "send"]
        return len([each for each in sends if each["group"] == row["group"]])

    def gaps(self, group: str) -> tuple[int, int]:
        """O2: violations and opportunities."""
        owed = missing = 0
        for process in MEMBERS:
            log = list(self.deliveries(process))
            for at, (place, sender, number) in log:
                views = self.run_of_views(process, place, sender, at)
                if place != group or number == 0 or not views:
                    continue
                due_from = self.first_number(process, views[0], sender)
                lower = [n for t, (g, s, n) in log if views[0] < t < at and (g, s) == (place, sender)]
                if any(n < number for n in lower) or (due_from is not None and number - 1 >= due_from):
                    owed += 1
                    missing += not any(t < at and mid == (place, sender, number - 1) for t, mid in log)
        return missing, owed

    def losses(self) -> set[tuple[str, Any]]:
        """O4: which process never delivered which cause of a message that it delivered."""
        return {
            (process, cause)
            for process in MEMBERS
            for at, effect in self.deliveries(process)
            for cause in self.sent
            if all(cause != mid for _, mid in self.deliveries(process))
            and self.causes(cause, effect)
            and self.owes(process, cause, effect, at)
        }

    def owes(self, process: str, cause: Any, effect: Any, at: int) -> bool:
        group, sender, number = cause
        views = self.run_of_views(process, group, sender, at)
        if not views or self.excused(process, cause, effect, at):
            return False
        due_from = self.first_number(process, views[0], sender)
        if due_from is None or number < due_from:
            return False
        view = next(row["view"] for row in self.rows[sender] if row["kind"] == "send" and as_key(row) == cause)
        since = self.entered(process, group, view)
        beside = self.run_of_views(process, effect[0], effect[1], at)
        if not beside:
            return False
        return since is None or since > at or beside[0] <= since or beside[0] == self.first_view(process, effect[0])

    def excused(self, process: str, cause: Any, effect: Any, at: int) -> bool:
        confirmed = any(
            (row["kind"], row["group"], row["peer"]) == ("confirm", cause[0], cause[1])
            for row in self.rows[process][:at]
        )
        return self.fast and confirmed and cause[0] != effect[0]

    def shared(self, process: str) -> dict[Any, Any]:
        """For each message that a process delivered, the view and the next one, if it went on."""
        rows, found = self.rows[process], {}
        for at, mid in self.deliveries(process):
            views = [row["view"] for row in rows if row["kind"] == "view" and row["group"] == mid[0]]
            here = rows[at]["view"]
            following = [*views[views.index(here) + 1 :], None][0]
            members = next(
                row["members"]
                for row in rows
                if row["kind"] == "view" and row["view"] == here and row["group"] == mid[0]
            )
            left = any(row["kind"] == "leave" and row["group"] == mid[0] for row in rows)
            if following is not None or (self.quiet and process in members and not left):
                found[mid] = here, following
        return found

    def disputes(self, *, across: bool) -> set[Any]:
        """O5 and O5x: pairs of processes that disagree, for O5 by group and view."""
        found = set()
        for one, other in combinations(MEMBERS, 2):
            mine, yours = self.shared(one), self.shared(other)
            common = [mid for mid in mine if mid in yours and mine[mid] == yours[mid]]
            places = list(yours)
            for first, second in combinations(common, 2):
                apart = first[0] != second[0]
                if apart == across and places.index(first) > places.index(second):
                    found.add((one, other) if across else (one, other, first[0], mine[first]))
        return found

    def cyclic_with_causes(self) -> bool:
        """O8: deliveries and causes together put some message before itself."""
        before = {mid: {other for other in self.sent if self.causes(mid, other)} for mid in self.sent}
        for log in map(self.delivered, self.logs):
            for first, second in combinations(log, 2):
                before[first].add(second)
        for middle, later in before.items():
            for reached in before.values():
                if middle in reached:
                    reached.update(later)
        return any(mid in later for mid, later in before.items())


def as_key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["group"], row["sender"], row["number"]
