"""The bodies of the frames by which groups are formed, joined and merged: few of them travel, each to one process.

    kind 10, refuse:  [settings]
    kind 24, propose: count, of each member a name and the group it is in, or nothing; [settings]
    kind 25, vote:    largest epoch heard of; 0 for no; or 1, and a number
    kind 26, base:    a number
    kind 27, ready:   view or nothing, primary, members of the view
    kind 28, install: base, count, of each company its members, view or nothing, size of the view, primary
    kind 29, abort:   nothing
    kind 30, probe:   whether the sender wants to be taken in; [settings]
    kind 31, found:   members
    kind 37, inquire:  round, presence (1 byte), zeros: as many bytes as a name of 200 has more than the sender's
    kind 38, presence: round, presence (1 byte)

Every body begins with the identity of its frame (`names.py`). Members are a count and their names, sorted, each once.
What may be nothing is a text with a length byte before it; nothing is a text of no bytes. Settings are there if they
are not empty: a count (1 byte), of each a name and a value (`settings.py`). The zeros of `inquire` make its answer no
longer than the question, for any names: so a process cannot be abused to send more bytes than it received.
Primary is 0 or 1; or, where views are voted on, 2 and the number of the last primary view known. Plus 4 if a digest
of what was delivered follows.
"""

import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from antiphon.core.contract import Presence
from antiphon.errors import ProtocolViolation
from antiphon.protocols.newtop.frames import (
    AbortFrame,
    BaseFrame,
    FormationFrame,
    FoundFrame,
    InquireFrame,
    InstallFrame,
    PresenceFrame,
    ProbeFrame,
    ProposeFrame,
    ReadyFrame,
    RefuseFrame,
    VoteFrame,
)
from antiphon.protocols.newtop.wire.settings import encode_settings, read_settings
from antiphon.types import Company, GroupId, ProcessId, name_of, split_process_id
from antiphon.wire.names import NAME_BYTES_MAX, encode_identity, encode_name
from antiphon.wire.reader import Reader

_REFUSE: Final = 10
_PROPOSE: Final = 24
_VOTE: Final = 25
_BASE: Final = 26
_READY: Final = 27
_INSTALL: Final = 28
_ABORT: Final = 29
_PROBE: Final = 30
_FOUND: Final = 31
_INQUIRE: Final = 37
_PRESENCE: Final = 38

_COUNT: Final = struct.Struct(">I")
_NUMBER: Final = struct.Struct(">q")
_FLAG: Final = (b"\0", b"\1")
_VOTED: Final = 2
_TELLS_HISTORY: Final = 4


def _identity(frame: FormationFrame) -> bytes:
    return encode_identity(frame.group, frame.sender)


def _propose(frame: ProposeFrame) -> bytes:
    members = [part for member, group in frame.members for part in (encode_name(member), encode_name(group or ""))]
    settings = encode_settings(frame.settings)
    return b"".join((_identity(frame), _COUNT.pack(len(frame.members)), *members, settings))


def _read_propose(reader: Reader) -> ProposeFrame:
    group, sender = _to_be_formed(reader)
    members = tuple((reader.process(), reader.group_or_none()) for _ in range(reader.count()))
    _require_members([member for member, _ in members], sender)
    for _, before in members:
        if before is not None and (name_of(before) != name_of(group) or before == group):
            raise ProtocolViolation("body", f"{group} cannot be formed of members of {before}")
    return ProposeFrame(group, sender, members, read_settings(reader))


def _vote(frame: VoteFrame) -> bytes:
    number = b"" if frame.number is None else _NUMBER.pack(frame.number)
    return b"".join((_identity(frame), _NUMBER.pack(frame.epoch), _FLAG[frame.number is not None], number))


def _read_vote(reader: Reader) -> VoteFrame:
    group, sender = _to_be_formed(reader)
    epoch = reader.number()
    return VoteFrame(group, sender, reader.number() if reader.flag() else None, epoch)


def _base(frame: BaseFrame) -> bytes:
    return _identity(frame) + _NUMBER.pack(frame.base)


def _read_base(reader: Reader) -> BaseFrame:
    return BaseFrame(*_to_be_formed(reader), reader.number())


def _ready(frame: ReadyFrame) -> bytes:
    return _identity(frame) + encode_name(frame.view or "") + _origin(frame) + _members(frame.members)


def _read_ready(reader: Reader) -> ReadyFrame:
    group, sender = _to_be_formed(reader)
    view, origin, members = reader.view_or_none(), _read_origin(reader), _read_members(reader)
    if view is not None:
        _require_members(members, sender)
    elif members:
        raise ProtocolViolation("body", f"{sender} names members of a view, but no view")
    return ReadyFrame(group, sender, view, members, *origin)


def _origin(told: ReadyFrame | Company) -> bytes:
    """Whether the view is primary; or, where views are voted on, the last primary view known. Then the history."""
    flag = _VOTED if told.last else int(told.primary)
    last = _NUMBER.pack(told.last) if told.last else b""
    if not told.history:
        return bytes((flag,)) + last
    return bytes((flag | _TELLS_HISTORY,)) + last + _NUMBER.pack(told.history)


def _read_origin(reader: Reader) -> tuple[bool, int, int]:
    (flag,) = reader.part(1)
    primary = flag & ~_TELLS_HISTORY
    if primary > _VOTED:
        raise ProtocolViolation("body", f"{flag} found instead of a primary flag, 0 to 2, or 4 more")
    last = reader.number() if primary == _VOTED else 0
    if primary == _VOTED and not last:
        raise ProtocolViolation("body", "primary views count from 1")
    history = reader.number() if flag & _TELLS_HISTORY else 0
    if flag & _TELLS_HISTORY and not history:
        raise ProtocolViolation("body", "a history of 0 stands for none")
    return primary == 1, last, history


def _install(frame: InstallFrame) -> bytes:
    parts = [_identity(frame), _NUMBER.pack(frame.base), _COUNT.pack(len(frame.companies))]
    for company in frame.companies:
        parts += [_members(company.members), encode_name(company.view or "")]
        parts += [_COUNT.pack(company.size), _origin(company)]
    return b"".join(parts)


def _read_install(reader: Reader) -> InstallFrame:
    group, sender = _to_be_formed(reader)
    base = reader.number()
    companies = tuple(_read_company(reader) for _ in range(reader.count()))
    if any(one.members >= other.members for one, other in pairwise(companies)):
        raise ProtocolViolation("body", "the companies of an install frame are not sorted")
    _require_members(sorted(member for company in companies for member in company.members), sender)
    return InstallFrame(group, sender, base, companies)


def _read_company(reader: Reader) -> Company:
    company = Company(_read_members(reader), reader.view_or_none(), reader.count(), *_read_origin(reader))
    if not company.members or (company.view is None and len(company.members) > 1):
        raise ProtocolViolation("body", f"a company without a view has {len(company.members)} members instead of one")
    if company.view is not None and company.size < len(company.members):
        raise ProtocolViolation(
            "body", f"a company has {len(company.members)} members, but its view has {company.size}"
        )
    return company


def _abort(frame: AbortFrame) -> bytes:
    return _identity(frame)


def _read_abort(reader: Reader) -> AbortFrame:
    return AbortFrame(*_to_be_formed(reader))


def _probe(frame: ProbeFrame) -> bytes:
    return _identity(frame) + _FLAG[frame.joins] + encode_settings(frame.settings)


def _read_probe(reader: Reader) -> ProbeFrame:
    return ProbeFrame(*reader.identity(), reader.flag(), read_settings(reader))


def _found(frame: FoundFrame) -> bytes:
    return _identity(frame) + _members(frame.members)


def _read_found(reader: Reader) -> FoundFrame:
    group, sender = reader.identity()
    members = _read_members(reader)
    _require_members(members, sender)
    return FoundFrame(group, sender, members)


def _refuse(frame: RefuseFrame) -> bytes:
    return _identity(frame) + encode_settings(frame.settings)


def _read_refuse(reader: Reader) -> RefuseFrame:
    return RefuseFrame(*reader.identity(), read_settings(reader))


def _inquire(frame: InquireFrame) -> bytes:
    return b"".join((_identity(frame), _NUMBER.pack(frame.round), bytes((frame.presence,)), _padding(frame.sender)))


def _read_inquire(reader: Reader) -> InquireFrame:
    frame = InquireFrame(*reader.identity(), reader.number(), _read_presence(reader))
    if reader.rest() != _padding(frame.sender):
        raise ProtocolViolation("body", "a question about a group is shorter or longer than it should be")
    return frame


def _presence(frame: PresenceFrame) -> bytes:
    return b"".join((_identity(frame), _NUMBER.pack(frame.round), bytes((frame.presence,))))


def _read_presence_frame(reader: Reader) -> PresenceFrame:
    return PresenceFrame(*reader.identity(), reader.number(), _read_presence(reader))


def _read_presence(reader: Reader) -> Presence:
    (value,) = reader.part(1)
    if value > max(Presence):
        raise ProtocolViolation("body", f"{value} found instead of a presence from 0 to {max(Presence):d}")
    return Presence(value)


def _padding(sender: ProcessId) -> bytes:
    return bytes(max(0, NAME_BYTES_MAX - len(split_process_id(sender)[0].encode())))


def _to_be_formed(reader: Reader) -> tuple[GroupId, ProcessId]:
    """The identity of a frame about a group that is not configured."""
    group, sender = reader.identity()
    if name_of(group) == group:
        raise ProtocolViolation("body", f"{group} is configured, so it cannot be formed")
    return group, sender


def _members(members: tuple[ProcessId, ...]) -> bytes:
    return b"".join((_COUNT.pack(len(members)), *map(encode_name, members)))


def _read_members(reader: Reader) -> tuple[ProcessId, ...]:
    members = tuple(reader.process() for _ in range(reader.count()))
    _require_sorted(members)
    return members


def _require_members(members: list[ProcessId] | tuple[ProcessId, ...], sender: ProcessId) -> None:
    _require_sorted(members)
    if sender not in members:
        raise ProtocolViolation("body", f"{sender} is not among the members that it names")


def _require_sorted(members: list[ProcessId] | tuple[ProcessId, ...]) -> None:
    if any(one >= other for one, other in pairwise(members)):
        raise ProtocolViolation("body", "the list of members is not sorted, or names a member twice")


WRITERS: Final[dict[type[Any], tuple[int, Callable[[Any], bytes]]]] = {
    ProposeFrame: (_PROPOSE, _propose),
    VoteFrame: (_VOTE, _vote),
    BaseFrame: (_BASE, _base),
    ReadyFrame: (_READY, _ready),
    InstallFrame: (_INSTALL, _install),
    AbortFrame: (_ABORT, _abort),
    ProbeFrame: (_PROBE, _probe),
    FoundFrame: (_FOUND, _found),
    RefuseFrame: (_REFUSE, _refuse),
    InquireFrame: (_INQUIRE, _inquire),
    PresenceFrame: (_PRESENCE, _presence),
}
"""By class: the kind of a frame, and the function that writes its body."""

READERS: Final[dict[int, Callable[[Reader], Any]]] = {
    _PROPOSE: _read_propose,
    _VOTE: _read_vote,
    _BASE: _read_base,
    _READY: _read_ready,
    _INSTALL: _read_install,
    _ABORT: _read_abort,
    _PROBE: _read_probe,
    _FOUND: _read_found,
    _REFUSE: _read_refuse,
    _INQUIRE: _read_inquire,
    _PRESENCE: _read_presence_frame,
}
"""By kind: the function that reads a body, except for the check of its end."""
