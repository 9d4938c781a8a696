"""Which processes send and which only receive, where processes change between both (InterGroup)."""

from antiphon.properties.tables.columns import KIND, BoolArray
from antiphon.properties.tables.history import History


class Roles:
    """Roles by view and over the whole run. In families without such roles, no process only receives."""

    def __init__(self, history: History, receivers: BoolArray, senders: BoolArray, family: BoolArray) -> None:
        """By process and group: it receives, or sends, by its `start` row. By process: its family has roles."""
        stays = history.stays
        self.receiving: BoolArray = _receiving(history, receivers, family)
        """By stay: the process only receives in it, and is none of its members."""
        self.onlooking: BoolArray = receivers.copy()
        """By process and group: it only receives there all the time."""
        self.onlooking[stays.process[~self.receiving], stays.group[~self.receiving]] = False
        self.receives_last: BoolArray = receivers.copy()
        """By process and group: it only receives there at the end."""
        last = stays.final
        self.receives_last[stays.process[last], stays.group[last]] = self.receiving[last]
        self.wishing: BoolArray = _wishing(history, senders & family[:, None])
        """By process and group: it wants to send at the end."""


def _receiving(history: History, receivers: BoolArray, family: BoolArray) -> BoolArray:
    """The row of the view says so. In a trace without such rows, the `start` row does, for all views."""
    stays = history.stays
    if stays.receiving.any() or len(history.of_kind("promote", "demote")):
        told: BoolArray = stays.receiving & family[stays.process]
        return told
    by_start: BoolArray = receivers[stays.process, stays.group]
    return by_start


def _wishing(history: History, senders: BoolArray) -> BoolArray:
    """What the last `promote` or `demote` row says; without one, the role at the start."""
    rows, wishing = history.of_kind("promote", "demote"), senders.copy()
    for row in rows[history.rows.group[rows] >= 0].tolist():
        place = history.rows.process[row], history.rows.group[row]
        wishing[place] = history.rows.kind[row] == KIND["promote"]
    return wishing
