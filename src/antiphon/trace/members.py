"""Directories that members write their traces to by themselves (docs/reference/trace.md).

Several processes may share one. `members.json` says which run this is, and how the clocks of its members relate to its
time. `journals/` has a journal for each process. Commands that read the directory turn the journals of ended processes
into event files (`trace/collect.py`).
"""

import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import msgspec

from antiphon.errors import ConfigurationError, TraceError
from antiphon.trace.journal import JournalFile
from antiphon.trace.records import VERSION, Head
from antiphon.types import ProcessId, split_process_id

IDENTITY: Final = "members.json"
JOURNALS: Final = "journals"
Clock = Literal["wall", "virtual"]


class Identity(msgspec.Struct, kw_only=True, frozen=True):
    """What all members of a directory have in common."""

    run: str
    clock: Clock
    began_ns: int
    """Time 0 of the run, in nanoseconds since 1970; 0 if its time is virtual."""
    epoch_ns: int
    """What the members' clocks show at time 0."""
    machine: str
    """The machine and its boot; clocks of other machines or boots are not comparable."""


def journal_path(directory: Path, process: ProcessId) -> Path:
    return directory / JOURNALS / f"{_file_name(process)}.journal"


def events_path(directory: Path, process: ProcessId) -> Path:
    return directory / "events" / f"{_file_name(process)}.parquet"


def _file_name(process: ProcessId) -> str:
    """A file name that is unique per process; it does not begin with a dot, which would hide the file."""
    return "member-{}.{}".format(*split_process_id(process))


def require_usable(directory: Path, process: ProcessId, clock: Clock = "wall") -> None:
    """Refuse a directory to which this process cannot write its trace, before anything is written."""
    if directory.exists() and not directory.is_dir():
        raise ConfigurationError(f"trace: {directory} is a file; name a directory")
    there = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigurationError(f"trace: {there} is not writable")
    identity = read_identity(directory)
    if identity is None:
        if directory.exists() and any(not each.name.startswith(f".{IDENTITY}") for each in directory.iterdir()):
            raise ConfigurationError(f"trace: {directory} holds something other than traces of members")
        return
    if (identity.clock, identity.machine) != (clock, _machine(clock)):
        raise ConfigurationError(
            f"trace: {directory} was started with another clock, or before this machine was booted: its times cannot "
            "be compared with ours; name a new directory"
        )
    if journal_path(directory, process).exists() or events_path(directory, process).exists():
        raise ConfigurationError(f"trace: {directory} already holds a trace of {process}")


def read_identity(directory: Path) -> Identity | None:
    """None if no member has written there."""
    path = directory / IDENTITY
    try:
        return msgspec.json.decode(path.read_bytes(), type=Identity)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise TraceError(f"{path} does not identify the run: {error}") from error


def create_journal(directory: Path, process: ProcessId, service: str, clock: Clock = "wall") -> JournalFile:
    """Begin the journal of a process; `service`: the delivery service of all its groups."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        identity = _join(directory, clock)
        (directory / JOURNALS).mkdir(exist_ok=True)
        head = Head(version=VERSION, process=process, run=identity.run, epoch_ns=identity.epoch_ns, service=service)
        return JournalFile(journal_path(directory, process), head)
    except FileExistsError as error:
        raise ConfigurationError(f"trace: {directory} already holds a trace of {process}") from error
    except OSError as error:
        raise ConfigurationError(f"trace: cannot write to {directory}: {error.strerror}") from error


def _join(directory: Path, clock: Clock) -> Identity:
    """The existing identity, or a new one; if several members are first, one of them creates it."""
    found = read_identity(directory)
    if found is not None:
        return found
    virtual = clock == "virtual"
    own = Identity(
        run=f"members-{secrets.token_hex(4)}",
        clock=clock,
        began_ns=0 if virtual else time.time_ns(),
        epoch_ns=0 if virtual else time.monotonic_ns(),
        machine=_machine(clock),
    )
    aside = directory / f".{IDENTITY}-{secrets.token_hex(4)}"
    aside.write_bytes(msgspec.json.format(msgspec.json.encode(own)) + b"\n")
    try:
        with suppress(FileExistsError):
            os.link(aside, directory / IDENTITY)
    finally:
        aside.unlink()
    given = read_identity(directory)
    assert given is not None
    return given


def _machine(clock: Clock) -> str:
    """The identity of machine and boot: clocks can be compared only within one boot."""
    if clock == "virtual":
        return ""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return os.uname().nodename
