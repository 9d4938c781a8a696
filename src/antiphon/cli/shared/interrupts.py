"""How an interrupted command ends that keeps results."""

from antiphon.trace.places import Place


class Interrupted(SystemExit):
    """Ends an interrupted command that keeps results; `main` says what is kept."""


def interrupted(done: int, total: int, place: Place) -> Interrupted | KeyboardInterrupt:
    """What to raise when a command is interrupted after so many runs."""
    if not done:
        return KeyboardInterrupt()
    return Interrupted(f"{done:,} of {total:,} runs are kept in {place}; run the same command again to do the rest")
