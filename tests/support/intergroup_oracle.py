"""What a run of changing sender groups must satisfy, judged from what applications saw (docs/spec/intergroup.md 2)."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from antiphon.core.effects import Left, Reset
from antiphon.types import ProcessId, View
from tests.support.intergroup_world import Got, World


def faults(world: World) -> list[str]:
    """Everything that is wrong with a run, at any time."""
    return [
        fault
        for process in world.cores
        for check in (_keys_rise, _no_gaps, _ids_rise)
        for fault in check(world, process)
    ] + [*_one_membership(world), *_virtual_synchrony(world), *_successors(world), *_causal_holes(world)]


def _keys_rise(world: World, process: ProcessId) -> Iterator[str]:
    """1.3: one order by (timestamp, sender), and nothing twice."""
    got = [each for each in world.log[process] if isinstance(each, Got)]
    for before, after in pairwise(got):
        if (before.stamp, before.sender) >= (after.stamp, after.sender):
            yield f"order: {process} delivered {before} before {after}"


def _no_gaps(world: World, process: ProcessId) -> Iterator[str]:
    """1.1, 1.2: no message of a sender is left out while the sender is in all views."""
    last: dict[ProcessId, int] = {}
    for each in world.log[process]:
        if isinstance(each, View):
            last = {sender: seq for sender, seq in last.items() if sender in each.members}
        elif isinstance(each, Got):
            if each.sender in last and numbers_between(world, each.sender, last[each.sender], each.seq):
                yield f"gap: {process} delivered {each} after {each.sender}#{last[each.sender]}"
            last[each.sender] = each.seq
        else:
            last.clear()


def numbers_between(world: World, sender: ProcessId, after: int, before: int) -> bool:
    """True if the sender sent application messages with numbers in between: others are for the membership."""
    return any(after < seq < before for seq in world.numbers[sender])


def _ids_rise(world: World, process: ProcessId) -> Iterator[str]:
    for before, after in pairwise(world.views(process)):
        if before.id >= after.id:
            yield f"ids: {process} installed {before.id} before {after.id}"


def _one_membership(world: World) -> Iterator[str]:
    known: dict[str, View] = {}
    for process in world.cores:
        for view in world.views(process):
            if known.setdefault(view.id, view).members != view.members:
                yield f"id: {view.id} has the members {view.members} and {known[view.id].members}"


def stays(world: World, process: ProcessId) -> Iterator[tuple[View, list[Got], View | None]]:
    """Each view of a process, what it delivered there, and the next view."""
    view: View | None = None
    got: list[Got] = []
    for each in world.log[process]:
        if isinstance(each, View):
            if view is not None:
                yield view, got, each
            view, got = each, []
        elif isinstance(each, Got):
            got.append(each)
        elif isinstance(each, Left) and view is not None:
            yield view, got, None
            view, got = None, []
    if view is not None:
        yield view, got, None


def _virtual_synchrony(world: World) -> Iterator[str]:
    """Processes that go from one view to the same next one deliver the same in the first."""
    seen: dict[tuple[str, str], tuple[ProcessId, list[bytes]]] = {}
    for process in world.cores:
        for view, got, after in stays(world, process):
            if after is None:
                continue
            payloads = [each.payload for each in got]
            other, theirs = seen.setdefault((view.id, after.id), (process, payloads))
            if theirs != payloads:
                yield (
                    f"synchrony: from {view.id} to {after.id}, {other} delivered {theirs[-3:]} ({len(theirs)}) and "
                    f"{process} {payloads[-3:]} ({len(payloads)})"
                )


def _successors(world: World) -> Iterator[str]:
    """A sender that comes along from our view into the next comes from our view."""
    before = {(process, after.id): view for process in world.cores for view, _, after in stays(world, process) if after}
    for process in world.cores:
        for view, _, after in stays(world, process):
            for other in after.transitional if after is not None else ():
                assert after is not None
                theirs = before.get((other, after.id))
                if theirs is not None and theirs.id != view.id and _is_base(theirs) and _is_base(view):
                    yield f"successors: {process} came from {view.id} to {after.id}, {other} from {theirs.id}"


def _is_base(view: View) -> bool:
    """True for views that were not joined in the middle."""
    return ".3." not in view.id and ".4." not in view.id


def _causal_holes(world: World) -> Iterator[str]:
    """1.4: whoever delivers a message has delivered what its sender had delivered before, of senders in its views."""
    for process in world.cores:
        last: dict[ProcessId, int] = {}
        for each in world.log[process]:
            if isinstance(each, View):
                last = {sender: seq for sender, seq in last.items() if sender in each.members}
            elif isinstance(each, Reset | Left):
                last.clear()
            else:
                for sender, seq in world.causes.get(each.payload, {}).items():
                    if sender in last and last[sender] < seq and sender != process:
                        yield f"cause: {process} delivered {each} without {sender}#{seq}"
                last[each.sender] = each.seq


def unsettled(world: World, senders: set[ProcessId], receivers: set[ProcessId]) -> list[str]:
    """What is wrong at the end of a quiet time in which these are connected, and nobody else is."""
    found = []
    views: dict[str, list[ProcessId]] = defaultdict(list)
    for process in sorted(senders | receivers):
        state = world.standing(process).state.value
        expected = "sender" if process in senders else "receiver"
        if state != expected:
            found.append(f"state: {process} is {state}, not {expected}")
        if process in senders:
            views[world.views(process)[-1].id if world.views(process) else "none"].append(process)
        members = world.members(process) if world.views(process) else ()
        if {*members} != senders:
            found.append(f"view: {process} has {members}, the senders are {sorted(senders)}")
        if world.cores[process].unstable(world.group):
            found.append(f"drained: {process} holds {world.cores[process].unstable(world.group)}")
    return found
