"""When a process sends its next null, and when it acknowledges next (Berket98 §3; docs/spec/stability.md 3)."""

from antiphon.protocols.acks.settings import AcksSettings, Role, receives, sends


class Schedule:
    """Both times are None while the process is not in the group, or never sends or acknowledges."""

    def __init__(self, settings: AcksSettings, role: Role, *, piggybacks: bool) -> None:
        self._settings, self._role = settings, role
        self._transmits = piggybacks or sends(role)
        self._acknowledges = receives(role) and not piggybacks
        self.silence_ns = self._longest_silence(piggybacks=piggybacks)
        self.send_at: int | None = None
        self.ack_at: int | None = None
        self.started = False
        """False until the first time is known in this session."""

    def _longest_silence(self, *, piggybacks: bool) -> int:
        """t_send; but an idle process whose acknowledgments are piggybacked transmits every t_ack."""
        settings = self._settings
        if not piggybacks:
            return settings.send_every_ns
        return min(settings.send_every_ns, settings.ack_every_ns) if sends(self._role) else settings.ack_every_ns

    @property
    def deadline(self) -> int | None:
        send_at, ack_at = self.send_at, self.ack_at
        if send_at is None or (ack_at is not None and ack_at < send_at):
            return ack_at
        return send_at

    def reset(self) -> None:
        """A session begins; `start` is called when the time is known."""
        self.started = False

    def start(self, now: int) -> None:
        settings = self._settings
        self.started = True
        first_ns = settings.first_send_ns if sends(self._role) else settings.first_ack_ns
        self.send_at = now + first_ns if self._transmits else None
        self.ack_at = now + settings.first_ack_ns if self._acknowledges else None

    def stop(self) -> None:
        """The session ends."""
        self.send_at = self.ack_at = None

    def sent(self, now: int) -> None:
        """A message or null leaves."""
        self.send_at = now + self.silence_ns

    def acknowledged(self, now: int) -> None:
        """An acknowledgment leaves; those that a paused process has missed are skipped."""
        assert self.ack_at is not None
        self.ack_at += self._settings.ack_every_ns
        if self.ack_at <= now:
            self.ack_at = now + self._settings.ack_every_ns
