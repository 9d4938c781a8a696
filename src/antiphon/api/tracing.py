"""The rows that a member writes to its journal, in addition to those of its driver.

The trace records what the application has read, with two exceptions. An application that has joined is in its first
view at once, because it may send there before it reads. A process that joins a group again, or ends, has left it,
even if its application has not read that.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import xxhash

from antiphon.api.services import Service
from antiphon.api.settings import MemberSettings
from antiphon.core.effects import Left
from antiphon.scenario.units import Duration
from antiphon.trace.journal import JournalRecorder
from antiphon.trace.members import Clock, create_journal, require_usable
from antiphon.trace.recorder import compact_json
from antiphon.trace.records import signed
from antiphon.types import GroupId, ProcessId, name_of, short_id


def member_journal(directory: Path, me: ProcessId, settings: MemberSettings, clock: Clock = "wall") -> JournalRecorder:
    """The recorder of a member that traces itself; `ConfigurationError` if the directory is not usable."""
    traced = short_id(me)
    require_usable(directory, traced, clock)
    return JournalRecorder(me, lambda: create_journal(directory, traced, settings.service.core.name, clock))


def start_detail(settings: MemberSettings, *, datagrams: bool) -> str:
    """The detail of the `start` row: what the checkers must know. Groups are named when they are joined."""
    core = settings.core(datagrams=datagrams, tracing=True)
    options: Mapping[str, object] = {
        "flow_control": core.flow_control,
        "form_within": str(Duration(core.form_within_ns)),
        "frame_bytes": core.frame_bytes_max,
        "idle_probe": str(Duration(core.idle_probe_ns)),
        "merge_every": str(Duration(core.merge_every_ns)),
        "primary": core.primary,
        "suspect_after": str(Duration(core.suspect_after_ns)),
        "time_silence": str(Duration(core.silence_timeout_ns)),
        "window": core.window,
        "window_bytes": core.window_bytes,
    }
    return compact_json({"groups": {}, "open": True, "options": options, "protocol": "newtop"})


class Departures:
    """Groups that the process has left while the application has not read that yet."""

    def __init__(self, recorder: JournalRecorder) -> None:
        self._recorder = recorder
        self._unread: dict[GroupId, Left] = {}

    def happened(self, effect: Left) -> None:
        self._unread[name_of(effect.group)] = effect

    def read(self, group: GroupId, now: int) -> None:
        """The application has read that the process left."""
        effect = self._unread.pop(group, None)
        if effect is not None:
            self._recorder.left(effect, now)

    def skip(self, group: GroupId, now: int) -> None:
        """The process joins the group again, or ends, before the application has read that it left."""
        effect = self._unread.pop(group, None)
        if effect is not None:
            self._recorder.left(effect, now, unread=True)

    def joins(
        self,
        group: GroupId,
        now: int,
        asked: tuple[ProcessId, ...],
        service: Service | None,
        *,
        apart: bool,
    ) -> None:
        """The process asks these to join a group; `service`: None if a scenario is played."""
        self.skip(group, now)
        if service is None:
            self._recorder.moved("join", group, now, asked)
        else:
            self._recorder.moved("join", group, now, asked, apart=apart, service=service.core)

    def skip_all(self, now: int) -> None:
        for group in [*self._unread]:
            self.skip(group, now)


class StateDigester:
    """The digest of a state that is sent piece by piece. Satisfies `Digester`."""

    def __init__(self, done: Callable[[int], None]) -> None:
        self._hash = xxhash.xxh3_64()
        self._done: Callable[[int], None] | None = done

    def take(self, piece: bytes, *, ended: bool) -> None:
        self._hash.update(piece)
        if ended and self._done is not None:
            self._done(signed(self._hash.intdigest()))
            self._done = None
