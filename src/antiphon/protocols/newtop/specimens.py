"""One frame of each kind, with every part that it may have: for tests and benchmarks that play a hostile peer.

The frames fit a running group: its identity, its members, and a number that all of them know. A new kind of frame needs
an entry here; a test compares the table with the wire layout.
"""

from antiphon.core.contract import Presence
from antiphon.core.effects import Frame
from antiphon.protocols.newtop.frames import (
    AbortFrame,
    AckFrame,
    AliveFrame,
    AnsweredFrame,
    AnswerFrame,
    Ask,
    BaseFrame,
    BlockFrame,
    ConfirmedFrame,
    Flow,
    FoundFrame,
    InquireFrame,
    InstallFrame,
    LeavingFrame,
    MapStamp,
    NeedFrame,
    Notice,
    Ordering,
    PresenceFrame,
    ProbeFrame,
    ProposeFrame,
    QueryFrame,
    ReadyFrame,
    RefuseFrame,
    RefuteFrame,
    RelativeStamp,
    RepairFrame,
    RequestFrame,
    StatusFrame,
    SubmitFrame,
    SuspectFrame,
    VoteFrame,
    WantFrame,
)
from antiphon.types import Company, GroupId, ProcessId, View, epoch_of, formed_group, name_of


def specimens(view: View, sender: ProcessId, known: int) -> dict[str, Frame]:
    """By name, frames as `sender` could transmit them to the members of that view.

    `known`: a number that all members have received. The sender need not be a member.
    """
    group = view.group
    victim = next(member for member in view.members if member != sender)
    other = next((member for member in view.members if member not in (sender, victim)), victim)
    numbered = BlockFrame(group, sender, known + 1, known, known)
    flow = Flow(known, known, known, known)
    message = numbered._replace(payloads=(b"hostile",), label=1)
    placed = message._replace(sequence=known + 1, flow=flow)
    copy = BlockFrame(group, other, known + 1, known, known, (b"copied",), 1, sequence=known + 1)
    return {
        "null": numbered,
        "data": message,
        "data with flow and place": placed,
        "piece of a message": message._replace(more=True),
        "piece of a state": message._replace(state=0, more=True),
        "data with a map stamp": message._replace(stamp=MapStamp(((group, sender, known), (group, victim, known)))),
        "data with a relative stamp": message._replace(
            stamp=RelativeStamp((known,) * len(view.members), ((group, known), (_other_group(group), known)))
        ),
        "remove": numbered._replace(notice=Notice("remove", ((other, known),))),
        "ordered": message._replace(ordering=Ordering(sender, 1, known)),
        "alive": AliveFrame(group, sender, known, known),
        "alive with flow and place": AliveFrame(group, sender, known, known, flow, sequence=known + 1),
        "suspect": SuspectFrame(group, sender, known, other, known, sequence=known + 1),
        "refute": RefuteFrame(group, sender, known, other, known, (copy,), sequence=known + 1),
        "confirmed": ConfirmedFrame(group, sender, known, ((other, known),), sequence=known + 1),
        "leaving": LeavingFrame(group, sender, known, sequence=known + 1),
        "want": WantFrame(group, sender, known, known, sequence=known + 1),
        "status": StatusFrame(group, sender, known, known),
        "ack": AckFrame(group, sender, known),
        "request": RequestFrame(group, sender, victim, (known,)),
        "repair": RepairFrame(group, sender, (copy,)),
        "submit": SubmitFrame(group, sender, known, 1, known, (b"hostile",), 1),
        "need": NeedFrame(group, sender, known),
        "a request": message._replace(ask=Ask(known)),
        "an answer in order": message._replace(ask=Ask(known, victim)),
        "query": QueryFrame(group, sender, known, b"hostile"),
        "answer": AnswerFrame(group, sender, known, b"hostile"),
        "answered": AnsweredFrame(group, sender, known),
        **formation_specimens(view, sender, known),
    }


def formation_specimens(view: View, sender: ProcessId, known: int, formed: GroupId | None = None) -> dict[str, Frame]:
    """The frames by which groups are formed. `formed`: the group that is to be formed; by default one of the sender."""
    group, name = view.group, name_of(view.group)
    formed = formed or formed_group(name, epoch_of(group) + 1, sender, 1)
    members = tuple(sorted({*view.members, sender}))
    before = {member: group if member in view.ranks else None for member in members}
    strangers = tuple(Company((member,), None, 0, False) for member in members if member not in view.ranks)
    survivors = Company(view.members, view.id, len(view.members), view.primary)
    return {
        "propose": ProposeFrame(formed, sender, tuple(before.items())),
        "vote": VoteFrame(formed, sender, known, epoch_of(group)),
        "base": BaseFrame(formed, sender, known),
        "ready": ReadyFrame(formed, sender, view.id, members, view.primary),
        "install": InstallFrame(formed, sender, known, tuple(sorted((survivors, *strangers)))),
        "abort": AbortFrame(formed, sender),
        "probe": ProbeFrame(group, sender, joins=True),
        "found": FoundFrame(formed, sender, (sender,)),
        "inquire": InquireFrame(group, sender, 1, Presence.JOINING),
        "presence": PresenceFrame(group, sender, 1, Presence.MEMBER),
        "refuse": RefuseFrame(group, sender, (("service", "total"),)),
    }


def _other_group(group: GroupId) -> GroupId:
    return GroupId(f"beside-{name_of(group)}")
