"""Hypothesis strategies for the frames of Newtop: every one is a frame that a correct peer could send."""

from itertools import pairwise

from hypothesis import strategies as st

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
    SequencedFrame,
    StatusFrame,
    SubmitFrame,
    SuspectFrame,
    Suspicion,
    VoteFrame,
    WantFrame,
)
from antiphon.types import WORLD, Company, GroupId, ProcessId, ViewId, group_id, name_of, process_id, split_group_id

numbers_up = st.integers(0, 2**62)
places = st.just(0) | numbers_up
letters = st.characters(codec="utf-8", exclude_categories=("Z", "Cc"), exclude_characters="#@/:")
names = st.text(letters, min_size=1, max_size=8).filter(lambda name: name != WORLD)
groups = st.builds(group_id, names, st.just(0) | st.integers(1, 2**64 - 1))
processes = st.builds(process_id, names, st.just(0) | st.integers(1, 2**32 - 1) | st.integers(2**32, 2**63 - 1))


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    number = draw(numbers_up)
    complete = draw(st.integers(0, number))
    return Flow(number, complete, stable := draw(st.integers(0, complete)), draw(st.integers(0, stable)))


maps = st.dictionaries(st.tuples(groups, processes), numbers_up, max_size=6).map(
    lambda entries: MapStamp(tuple(sorted((group, process, number) for (group, process), number in entries.items())))
)
relatives = st.builds(
    RelativeStamp,
    st.lists(numbers_up, max_size=4).map(tuple),
    st.dictionaries(groups, numbers_up, max_size=4).map(lambda blocks: tuple(sorted(blocks.items()))),
)
stamps = st.one_of(maps, relatives)


def others(sender: ProcessId) -> st.SearchStrategy[ProcessId]:
    return processes.filter(lambda process: process != sender)


def suspicions(sender: ProcessId) -> st.SearchStrategy[tuple[Suspicion, ...]]:
    failed = st.dictionaries(others(sender), numbers_up, min_size=1, max_size=4)
    return failed.map(lambda pairs: tuple(sorted(pairs.items())))


def notices(sender: ProcessId) -> st.SearchStrategy[Notice]:
    return st.builds(Notice, st.sampled_from(["remove", "flush"]), suspicions(sender))


def marks(sender: ProcessId) -> st.SearchStrategy[tuple[ProcessId, ...]]:
    return st.frozensets(others(sender), max_size=4).map(lambda excluded: tuple(sorted(excluded)))


asks = st.none() | st.builds(Ask, numbers_up, st.none() | processes)


@st.composite
def block_frames(
    draw: st.DrawFn, group: GroupId | None = None, sender: ProcessId | None = None, at: tuple[int, int] | None = None
) -> BlockFrame:
    sender = draw(processes) if sender is None else sender
    previous, block = sorted(draw(st.sets(numbers_up, min_size=2, max_size=2))) if at is None else at
    notice = draw(st.none() | notices(sender))
    payloads = tuple(draw(st.lists(st.binary(max_size=40), max_size=5))) if notice is None else ()
    state = draw(st.none() | st.integers(0, 2**32 - 1)) if len(payloads) == 1 else None
    return BlockFrame(
        draw(groups) if group is None else group,
        sender,
        block,
        previous,
        draw(st.integers(0, previous)),
        payloads,
        draw(numbers_up) if payloads else 0,  # a null has nothing to label
        draw(st.none() | flows()),
        draw(st.none() | stamps) if notice is None and state is None else None,
        more=len(payloads) == 1 and draw(st.booleans()),
        sequence=draw(places),
        excluded=draw(marks(sender)),
        notice=notice,
        state=state,
        ask=draw(asks) if len(payloads) == 1 and state is None else None,
    )


@st.composite
def alive_frames(draw: st.DrawFn, group: GroupId | None = None) -> AliveFrame:
    block = draw(numbers_up)
    return AliveFrame(
        draw(groups) if group is None else group,
        draw(processes),
        block,
        draw(st.integers(0, block)),
        draw(st.none() | flows()),
        stalled=draw(st.booleans()),
        blocked=draw(st.booleans()),
        sequence=draw(places),
    )


@st.composite
def suspect_frames(draw: st.DrawFn, group: GroupId | None = None) -> SuspectFrame:
    sender = draw(processes)
    return SuspectFrame(
        draw(groups) if group is None else group,
        sender,
        draw(numbers_up),
        draw(others(sender)),
        draw(numbers_up),
        sequence=draw(places),
    )


@st.composite
def refute_frames(draw: st.DrawFn, group: GroupId | None = None) -> RefuteFrame:
    group = draw(groups) if group is None else group
    suspect = draw(processes)
    blocks = sorted(draw(st.sets(numbers_up, min_size=2, max_size=4)))
    kind = draw(st.sampled_from([block_frames, ordered_frames]))
    messages = tuple(draw(kind(group, suspect, at)) for at in pairwise(blocks))
    sender = draw(others(suspect))
    return RefuteFrame(group, sender, draw(numbers_up), suspect, blocks[0], messages, sequence=draw(places))


@st.composite
def confirmed_frames(draw: st.DrawFn, group: GroupId | None = None) -> ConfirmedFrame:
    sender = draw(processes)
    named = draw(groups) if group is None else group
    return ConfirmedFrame(named, sender, draw(numbers_up), draw(suspicions(sender)), sequence=draw(places))


def leaving_frames(group: GroupId | None = None) -> st.SearchStrategy[LeavingFrame]:
    named = groups if group is None else st.just(group)
    return st.builds(LeavingFrame, named, processes, numbers_up, st.booleans(), st.booleans(), sequence=places)


def want_frames(group: GroupId | None = None) -> st.SearchStrategy[WantFrame]:
    named = groups if group is None else st.just(group)
    return st.builds(WantFrame, named, processes, numbers_up, numbers_up, sequence=places)


def sequenced(group: GroupId) -> st.SearchStrategy[SequencedFrame]:
    kinds = (
        block_frames,
        ordered_frames,
        alive_frames,
        suspect_frames,
        refute_frames,
        confirmed_frames,
        leaving_frames,
        want_frames,
    )
    return st.one_of(*(kind(group) for kind in kinds))


@st.composite
def repairs(draw: st.DrawFn) -> RepairFrame:
    group = draw(groups)
    return RepairFrame(group, draw(processes), tuple(draw(st.lists(sequenced(group), max_size=3))))


@st.composite
def ordered_frames(
    draw: st.DrawFn, group: GroupId | None = None, sender: ProcessId | None = None, at: tuple[int, int] | None = None
) -> BlockFrame:
    sender = draw(processes) if sender is None else sender
    previous, block = sorted(draw(st.sets(numbers_up, min_size=2, max_size=2))) if at is None else at
    below = st.integers(0, block - 1)
    notice = draw(st.none() | st.builds(Notice, st.just("view"), suspicions(sender)))
    payloads = tuple(draw(st.lists(st.binary(max_size=40), max_size=5))) if notice is None else ()
    return BlockFrame(
        draw(groups) if group is None else group,
        sender,
        block,
        previous,
        draw(below),
        payloads,
        draw(numbers_up) if payloads else 0,
        more=len(payloads) == 1 and draw(st.booleans()),
        sequence=draw(places),
        excluded=draw(marks(sender)),
        notice=notice,
        state=draw(st.none() | st.integers(0, 2**32 - 1)) if len(payloads) == 1 else None,
        ordering=Ordering(draw(processes), draw(st.integers(1, 2**62)), draw(below))
        if payloads
        else Ordering(sender, 0, draw(below)),
    )


# Formation


formed = groups.filter(lambda group: name_of(group) != group)
crowds = st.frozensets(processes, min_size=1, max_size=5).map(lambda crowd: tuple(sorted(crowd)))
views = st.from_regex(r"\A[0-9]{4}\.[0-9]{6}\.[0-9a-f]{16}\Z").map(ViewId)


told_settings = st.dictionaries(
    st.from_regex(r"\A[a-z][a-z0-9_]{0,31}\Z"), st.from_regex(r"\A[!-~]{1,64}\Z"), max_size=32
).map(lambda told: tuple(sorted(told.items())))


@st.composite
def proposals(draw: st.DrawFn) -> ProposeFrame:
    group, members = draw(formed), draw(crowds)
    name, formation = split_group_id(group)
    others = st.builds(group_id, st.just(name), st.integers(0, 2**64 - 1).filter(lambda other: other != formation))
    return ProposeFrame(
        group,
        draw(st.sampled_from(members)),
        tuple((member, draw(st.none() | others)) for member in members),
        draw(told_settings),
    )


@st.composite
def submissions(draw: st.DrawFn) -> SubmitFrame:
    sender = draw(processes)
    payloads = tuple(draw(st.lists(st.binary(max_size=40), min_size=1, max_size=5)))
    state = draw(st.none() | st.integers(0, 2**32 - 1)) if len(payloads) == 1 else None
    counts = st.integers(1, 2**62)
    return SubmitFrame(
        draw(groups),
        sender,
        draw(counts),
        draw(counts),
        draw(numbers_up),
        payloads,
        draw(numbers_up),
        len(payloads) == 1 and draw(st.booleans()),
        draw(marks(sender)),
        state,
        draw(asks) if len(payloads) == 1 and state is None else None,
    )


@st.composite
def readies(draw: st.DrawFn) -> ReadyFrame:
    view, members = draw(st.none() | views), draw(crowds)
    sender = draw(st.sampled_from(members))
    history = draw(numbers_up)
    return ReadyFrame(draw(formed), sender, view, () if view is None else members, draw(st.booleans()), 0, history)


@st.composite
def installs(draw: st.DrawFn) -> InstallFrame:
    members = draw(crowds)
    classes: dict[int, list[ProcessId]] = {}
    for member in members:
        classes.setdefault(draw(st.integers(0, 2)), []).append(member)
    companies = [draw(companies_of(tuple(each))) for each in classes.values()]
    return InstallFrame(draw(formed), draw(st.sampled_from(members)), draw(numbers_up), tuple(sorted(companies)))


@st.composite
def companies_of(draw: st.DrawFn, members: tuple[ProcessId, ...]) -> Company:
    view = draw(views if len(members) > 1 else st.none() | views)
    size = draw(st.integers(len(members), 2**32 - 1))
    return Company(members, view, size, draw(st.booleans()), 0, draw(numbers_up))


@st.composite
def founds(draw: st.DrawFn) -> FoundFrame:
    members = draw(crowds)
    return FoundFrame(draw(groups), draw(st.sampled_from(members)), members)


KINDS: dict[str, st.SearchStrategy[Frame]] = {
    "block": block_frames(),
    "alive": alive_frames(),
    "status": st.builds(StatusFrame, groups, processes, numbers_up),
    "ack": st.builds(AckFrame, groups, processes, numbers_up),
    "request": st.builds(RequestFrame, groups, processes, processes, st.lists(numbers_up, max_size=6).map(tuple)),
    "repair": repairs(),
    "suspect": suspect_frames(),
    "refute": refute_frames(),
    "confirmed": confirmed_frames(),
    "leaving": leaving_frames(),
    "want": want_frames(),
    "propose": proposals(),
    "vote": st.builds(VoteFrame, formed, processes, st.none() | numbers_up, numbers_up),
    "base": st.builds(BaseFrame, formed, processes, numbers_up),
    "ready": readies(),
    "install": installs(),
    "abort": st.builds(AbortFrame, formed, processes),
    "probe": st.builds(ProbeFrame, groups, processes, st.booleans(), told_settings),
    "refuse": st.builds(RefuseFrame, groups, processes, told_settings),
    "found": founds(),
    "inquire": st.builds(InquireFrame, groups, processes, numbers_up, st.sampled_from(Presence)),
    "presence": st.builds(PresenceFrame, groups, processes, numbers_up, st.sampled_from(Presence)),
    "ordered": ordered_frames(),
    "submit": submissions(),
    "need": st.builds(NeedFrame, groups, processes, numbers_up),
    "query": st.builds(QueryFrame, groups, processes, numbers_up, st.binary(max_size=40)),
    "answer": st.builds(AnswerFrame, groups, processes, numbers_up, st.binary(max_size=40)),
    "answered": st.builds(AnsweredFrame, groups, processes, numbers_up),
}
frames = st.one_of(*KINDS.values())
