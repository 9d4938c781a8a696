"""D3 to D7, D9 to D11 and D15: messages are delivered in the right group and view (docs/spec/properties.md 3)."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property, partial

import numpy as np

from antiphon.properties.families import SENDING
from antiphon.properties.promises import Promises
from antiphon.properties.tables.codes import distinct
from antiphon.properties.tables.columns import BoolArray, IntArray
from antiphon.properties.tables.delivered import Delivered
from antiphon.properties.tables.history import Deliveries, History
from antiphon.properties.tables.membership import Accusation, Membership
from antiphon.properties.tables.notices import Notices
from antiphon.properties.tables.survivors import end_of_stay, surviving_together, view_and_next
from antiphon.properties.verdicts.findings import Found, Violations, as_violations, no_opportunity, over_groups
from antiphon.properties.verdicts.phrases import names
from antiphon.properties.verdicts.verdict import Verdict, Violation


def _by_group(history: History, groups: IntArray) -> IntArray:
    return np.bincount(groups, minlength=len(history.groups))


# -------------------------------------------------------------------------------- D3


def check_right_place(history: History, promises: Promises) -> list[Verdict]:
    """D3: a process delivers only in groups that it is in, and with the service that it chose there.

    Its `start` row tells both. A group that is not named there was entered later, by a `join` or a first view. In
    families whose view changes are cuts, and in other systems, a process that left a group is not in it until it
    installs a view there again.
    """
    deliveries, rows = history.deliveries, history.rows
    asked = deliveries.where(promises.pairs("D3")[deliveries.process, deliveries.group])
    chosen, entered = _subscriptions(history)
    service = rows.service[asked.row]
    named = chosen[asked.process, asked.group]
    outside = (named == _NOT_NAMED) & (entered[asked.process, asked.group] > asked.row)
    other = (named >= _NOTHING_THERE) & (service >= 0) & (named != service)
    leaves = promises.of_family(lambda promised: promised.cuts or promised.leaves)[asked.process]
    after = leaves & (history.membership_at(asked.row) < 0)
    wrong = asked.row[outside | other | after | promises.sends_only[asked.process, asked.group]]

    def describe(position: int) -> Violation:
        return _describe_wrong_place(history, promises, int(wrong[position]))

    broken = Violations(wrong, rows.group[wrong], describe)
    return over_groups(history, promises, "D3", _by_group(history, asked.group), broken)


_NOT_NAMED, _NOTHING_THERE = -2, -1


def _subscriptions(history: History) -> tuple[IntArray, IntArray]:
    """For each process and group: the service that the `start` row names, and the row at which it entered later."""
    shape = len(history.processes), len(history.groups)
    chosen: IntArray = np.full(shape, _NOT_NAMED, np.int64)
    entered: IntArray = np.full(shape, np.iinfo(np.int64).max, np.int64)
    groups = {group: code for code, group in enumerate(history.groups)}
    # A service that no row carries gets a code of its own, above all others.
    services = {service: code for code, service in enumerate(history.services)} | {SENDING: _NOTHING_THERE}
    for row in history.of_kind("start").tolist():
        for group, entry in history.details[row]["groups"].items():
            if group in groups:
                code = services.get(entry["service"], len(services))
                chosen[history.rows.process[row], groups[group]] = code
    at = history.of_kind("join", "view")
    at = at[history.rows.group[at] >= 0][::-1]  # backwards, so that the first stays
    entered[history.rows.process[at], history.rows.group[at]] = at
    return chosen, entered


def _describe_wrong_place(history: History, promises: Promises, row: int) -> Violation:
    process, group = history.rows.process[row], history.rows.group[row]
    who, name, where = history.process_name(process), history.message_at(row), history.groups[group]
    service = promises.service(process, group)
    starts = [at for at in history.of_kind("start").tolist() if history.rows.process[at] == process]
    if history.membership_at(np.array([row]))[0] < 0:
        why = f"although it had left {where}"
    elif not any(where in history.details[at]["groups"] for at in starts):
        why = f"although it had not entered {where}"
    elif service == SENDING:
        why = f"although it only sends in {where}"
    else:
        why = f"as {history.services[history.rows.service[row]]}, although it chose {service} in {where}"
    return Violation(f"{who} delivered {history.located(row)} {why}", (who,), (name,), (history.index(row),))


# -------------------------------------------------------------------------------- D4 and D10


def check_sender_in_view(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """D4: the sender of a delivered message is a member of the view in which it is delivered."""
    deliveries = history.deliveries
    asked = deliveries.where(promises.pairs("D4")[deliveries.process, deliveries.group])
    stay, sender = history.stay_at(asked.row), history.rows.sender[asked.row]
    private = np.append(history.stays.private, False)[stay]
    foreign = np.flatnonzero(~membership.has(stay, sender) & ~private)

    def describe(position: int) -> Violation:
        row = int(asked.row[foreign[position]])
        here = int(stay[foreign[position]])
        who, source = (history.process_name(code) for code in (history.rows.process[row], history.rows.sender[row]))
        view = history.views[history.stays.view[here]]
        members = names(history, membership.members[here])
        sentence = (
            f"{who} delivered {history.located(row)} in view {view}, but {source} is not a member of it: "
            f"its members are {members}"
        )
        return Violation(sentence, (who,), (history.message_at(row),), (history.index(row),), (view,))

    broken = Violations(asked.row[foreign], asked.group[foreign], describe)
    return over_groups(history, promises, "D4", _by_group(history, asked.group[~private]), broken)


def check_nothing_after_removal(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """D10: when a process has installed a view that removes a member, it delivers nothing more from that member.

    This holds until a formation takes the member in again: a process that joins or merges is like any other.
    """
    removed: dict[tuple[int, int], int] = {}
    for before, stay in membership.passages("D10"):
        for member in membership.members[before] - membership.members[stay]:
            removed.setdefault((membership.root[stay], member), stay)
    if not removed:
        return no_opportunity(history, promises, "D10")
    deliveries, width = history.deliveries, len(history.processes)
    keys = {root * width + member: stay for (root, member), stay in removed.items()}
    codes = np.array(sorted(keys), np.int64)
    stays = np.array([keys[code] for code in codes.tolist()], np.int64)
    root = np.append(history.stays.root, -1)[history.stay_at(deliveries.row)]
    keys_of = root * width + history.rows.sender[deliveries.row]
    at = np.minimum(np.searchsorted(codes, keys_of), len(codes) - 1)
    after = (codes[at] == keys_of) & (history.stays.row[stays[at]] < deliveries.row)
    late = np.flatnonzero(after)

    def describe(position: int) -> Violation:
        row, stay = int(deliveries.row[late[position]]), int(stays[at[late[position]]])
        who, source = (history.process_name(code) for code in (history.rows.process[row], history.rows.sender[row]))
        view, index = history.views[membership.view[stay]], history.index(membership.row[stay])
        sentence = (
            f"{who} delivered {history.located(row)} after it had installed view {view} (index {index}) "
            f"without {source}"
        )
        return Violation(sentence, (who, who), (history.message_at(row),), (index, history.index(row)), (view,))

    opportunities = _by_group(history, np.array([membership.group[root] for root, _ in removed], np.int64))
    broken = Violations(deliveries.row[late], deliveries.group[late], describe)
    return over_groups(history, promises, "D10", opportunities, broken)


# -------------------------------------------------------------------------------- D5 and D6


def check_same_view(history: History, promises: Promises) -> list[Verdict]:
    """D5: all processes that deliver a message do so in the same view."""
    if not promises.groups("D5").any():
        return no_opportunity(history, promises, "D5")
    asked = _in_shared_views(history, promises.judged_deliveries("D5"))
    view, total = history.rows.view[asked.row], len(history.messages.number)
    first = np.full(total, -1, np.int64)
    order = np.lexsort((asked.row, history.rows.time[asked.row]))[::-1]
    first[asked.message[order]] = asked.row[order]
    reference = first[asked.message]
    other = np.flatnonzero(history.rows.view[reference] != view)

    def describe(position: int) -> Violation:
        rows = int(reference[other[position]]), int(asked.row[other[position]])
        return _describe_two_views(history, rows)

    shared = np.flatnonzero(np.bincount(asked.message, minlength=total) > 1)
    broken = Violations(asked.row[other], asked.group[other], describe)
    return over_groups(history, promises, "D5", _by_group(history, history.messages.group[shared]), broken)


def _in_shared_views(history: History, asked: Deliveries) -> Deliveries:
    return asked.where(~np.append(history.stays.private, False)[history.stay_at(asked.row)])


def _describe_two_views(history: History, rows: tuple[int, int]) -> Violation:
    who = [history.process_name(history.rows.process[row]) for row in rows]
    views, places = [history.views[history.rows.view[row]] for row in rows], [history.index(row) for row in rows]
    name = history.message_at(rows[0])
    sentence = (
        f"{who[0]} delivered {name} (index {places[0]}) in view {views[0]}, but {who[1]} (index {places[1]}) "
        f"in view {views[1]}"
    )
    return Violation(sentence, tuple(who), (name,), tuple(places), tuple(views))


def check_sending_view(history: History, promises: Promises) -> list[Verdict]:
    """D6: a message is delivered in the view in which it was sent."""
    if not promises.groups("D6").any():
        return no_opportunity(history, promises, "D6")
    asked = _in_shared_views(history, promises.judged_deliveries("D6"))
    send_row, view = history.messages.send_row[asked.message], history.rows.view
    asked, send_row = asked.where(send_row >= 0), send_row[send_row >= 0]
    other = np.flatnonzero(view[send_row] != view[asked.row])

    def describe(position: int) -> Violation:
        rows = int(send_row[other[position]]), int(asked.row[other[position]])
        who = [history.process_name(history.rows.process[row]) for row in rows]
        views, places = [history.views[view[row]] for row in rows], [history.index(row) for row in rows]
        name = history.message_at(rows[0])
        sentence = (
            f"{who[0]} sent {name} (index {places[0]}) in view {views[0]}, but {who[1]} delivered it "
            f"(index {places[1]}) in view {views[1]}"
        )
        return Violation(sentence, tuple(who), (name,), tuple(places), tuple(views))

    broken = Violations(asked.row[other], asked.group[other], describe)
    return over_groups(history, promises, "D6", _by_group(history, asked.group), broken)


# -------------------------------------------------------------------------------- D7 and D15


def check_blocked_while_flushing(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """D7: after the agreed failure of a member, a process sends nothing in that group until a view without the member.

    In this time the view change holds senders back (docs/spec/newtop.md 9.6). It is not judged by `block` rows: a
    sender that is wrongly not held back would not write them, and flow control writes them too.
    """
    spans = [
        (agreed, _until_removed(history, membership, agreed.row, agreed.peer)) for agreed in membership.confirmations
    ]
    return _without_sends(history, promises, "D7", spans, "the failure of {} was agreed")


def check_halted(history: History, promises: Promises, membership: Membership) -> list[Verdict]:
    """D15: while a process suspects a member of a group, it sends nothing there: until it takes that back, or the view.

    It is judged like D7. A suspicion ends with a `refute` row, or with a view without the member.
    """
    spans = [(each, _until_cleared(history, membership, each)) for each in membership.suspicions]
    return _without_sends(history, promises, "D15", spans, "it began to suspect {}")


def _without_sends(
    history: History, promises: Promises, property_id: str, spans: list[tuple[Accusation, int]], since: str
) -> list[Verdict]:
    """Nothing is sent from these rows on, until the rows given with them; `since` tells what happened there."""
    promised = promises.pairs(property_id)
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    sends = history.sends
    for began, end in spans:
        if not promised[began.process, began.group]:
            continue
        opportunities[began.group] += 1
        between = slice(*np.searchsorted(sends.row, [began.row, end]).tolist())
        for row in sends.row[between][sends.group[between] == began.group].tolist():
            found.append((row, began.group, partial(_describe_not_held, history, began, row, since)))
    return over_groups(history, promises, property_id, opportunities, as_violations(found))


def _until_cleared(history: History, membership: Membership, suspicion: Accusation) -> int:
    """The row at which the process takes a suspicion back; if it does not, as in `_until_removed`."""
    end = _until_removed(history, membership, suspicion.row, suspicion.peer)
    refuted = membership.refuted.get((suspicion.group, suspicion.process, suspicion.peer), [])
    following = refuted[bisect_right(refuted, suspicion.row) :][:1]
    return min([end, *following])


def _until_removed(history: History, membership: Membership, row: int, peer: int) -> int:
    """The row at which the process of that row installs a view without the peer, or no longer has such a duty.

    The duty ends when the process goes over to another formation, leaves the group, or its log ends.
    """
    stay = last = int(history.stay_at(np.array([row]))[0])
    while stay >= 0 and peer in membership.members[stay] and (stay == last or not membership.formed[stay]):
        last, stay = stay, membership.following[stay]
    return membership.row[stay] if stay >= 0 else int(history.over[last])


def _describe_not_held(history: History, began: Accusation, row: int, since: str) -> Violation:
    who, index = history.process_name(history.rows.process[row]), history.index(began.row)
    failed = history.process_name(began.peer)
    sentence = (
        f"{who} sent {history.located(row)} after {since.format(failed)} (index {index}) and before it "
        f"installed a view without {failed}"
    )
    return Violation(sentence, (who, who), (history.message_at(row),), (index, history.index(row)))


# -------------------------------------------------------------------------------- D5w and D9


def check_same_view_together(history: History, promises: Promises, delivered: Delivered) -> list[Verdict]:
    """D5w: processes that go on together from a view deliver no message in different views."""
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    for together in surviving_together(history, promises.pairs("D5w")):
        if history.stays.following[together[0]] >= 0 and delivered.count[together].any():
            opportunities[history.stays.group[together[0]]] += _pairs(len(together))
            if _differ(delivered, together):
                found += _elsewhere(history, delivered, together)
    return over_groups(history, promises, "D5w", opportunities, as_violations(found))


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def _differ(delivered: Delivered, together: list[int]) -> bool:
    return len({delivered.fingerprint(stay) for stay in together}) > 1


def _elsewhere(history: History, delivered: Delivered, together: list[int]) -> Iterable[Found]:
    """Messages that one of them delivered in that view, and another one in a different view."""
    first, stays = history.first, history.stays
    union = np.unique(np.concatenate([delivered.messages(stay) for stay in together]))
    for stay in together:
        own = (first.process == stays.process[stay]) & (history.first_stay != stay)
        for row in first.row[own & np.isin(first.message, union)].tolist():
            describe = partial(_describe_elsewhere, history, delivered, together, stay, row)
            yield row, int(stays.group[stay]), describe


def _describe_elsewhere(history: History, delivered: Delivered, together: list[int], stay: int, row: int) -> Violation:
    message = history.first.message[np.searchsorted(history.first.row, row)]
    holder = next(other for other in together if message in delivered.messages(other))
    there = int(delivered.rows(holder)[delivered.messages(holder) == message][0])
    pair = _describe_two_views(history, (there, row))
    views = view_and_next(history, stay)
    sentence = f"{pair.sentence}, although both went from view {views[0]} to view {views[1]}"
    return Violation(sentence, pair.processes, pair.messages, pair.indexes, pair.views)


def check_same_cut(history: History, promises: Promises, delivered: Delivered) -> list[Verdict]:
    """D9: processes that go on together without a member delivered the same last message from it before."""
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    stays = history.stays
    for together in surviving_together(history, promises.pairs("D9")):
        following = int(stays.following[together[0]])
        gone = {*stays.members[together[0]]}.difference(stays.members[following] if following >= 0 else ())
        if following >= 0 and gone:
            opportunities[stays.group[together[0]]] += _pairs(len(together)) * len(gone)
            if _differ(delivered, together):
                found += _cuts(history, delivered, together, gone)
    return over_groups(history, promises, "D9", opportunities, as_violations(found))


def _cuts(history: History, delivered: Delivered, together: list[int], gone: Iterable[int]) -> Iterable[Found]:
    """For each removed member, the processes whose last message from it differs from that of the largest camp."""
    for member in sorted(gone):
        camps: dict[int, list[int]] = defaultdict(list)
        for stay in together:
            camps[_last_of(history, delivered, stay, member)].append(stay)
        most = max(camps, key=lambda message: (len(camps[message]), message))
        for message, camp in camps.items():
            for stay in camp if message != most else ():
                describe = partial(_describe_cut, history, member, (camps[most][0], most), (stay, message))
                yield end_of_stay(history, stay), int(history.stays.group[stay]), describe


def _last_of(history: History, delivered: Delivered, stay: int, member: int) -> int:
    """The last message of that sender that was delivered during the stay, -1 if none was."""
    messages = delivered.messages(stay)
    own = messages[history.messages.sender[messages] == member]
    return int(own.max(initial=-1))


def _describe_cut(history: History, member: int, most: tuple[int, int], less: tuple[int, int]) -> Violation:
    (one, first), (other, second) = most, less
    who = [history.process_name(history.stays.process[stay]) for stay in (one, other)]
    last = ["none" if message < 0 else history.message_name(message) for message in (first, second)]
    path, source = view_and_next(history, one), history.process_name(member)
    sentence = (
        f"{who[0]} and {who[1]} went from view {path[0]} to view {path[1]}, which is without {source}, but the last "
        f"message of {source} that they delivered before is {last[0]} at {who[0]} and {last[1]} at {who[1]}"
    )
    places = [history.index(end_of_stay(history, stay)) for stay in (one, other)]
    shown = tuple(history.message_name(message) for message in (first, second) if message >= 0)
    return Violation(sentence, tuple(who), shown, tuple(places), path)


# -------------------------------------------------------------------------------- D11


def check_uniform_agreement(history: History, promises: Promises, delivered: Delivered) -> list[Verdict]:
    """D11: what any process delivers in a view, even one that crashes, all that go on from the view delivered in it.

    Where D11 is promised, members are excused if the application had been told of their failure before
    (docs/spec/newtop.md 14, rule 5). Where it is only required, no member is excused.
    """
    promised: BoolArray = promises.pairs("D11")
    if not promised.any():
        return no_opportunity(history, promises, "D11")
    stays, claims = history.stays, _Claims(history, promises.scoped("D11"), delivered)
    views: dict[tuple[int, int], list[int]] = defaultdict(list)
    for stay, (process, group) in enumerate(zip(stays.process.tolist(), stays.group.tolist(), strict=True)):
        if promised[process, group] and not stays.private[stay]:
            views[group, int(stays.view[stay])].append(stay)
    opportunities, found = np.zeros(len(history.groups), np.int64), list[Found]()
    for (group, _), together in views.items():
        onward = [stay for stay in together if stays.following[stay] >= 0]
        opportunities[group] += len(onward) * (np.count_nonzero(delivered.count[together]))
        if onward and _differ(delivered, together):
            found += _not_uniform(history, claims, together, onward)
    return over_groups(history, promises, "D11", opportunities, as_violations(found))


class _Claims:
    """The members that a delivery makes a claim about."""

    def __init__(self, history: History, scoped: BoolArray, delivered: Delivered) -> None:
        self.delivered = delivered
        self._history, self._scoped = history, scoped

    @cached_property
    def _notices(self) -> Notices:
        return Notices(self._history)

    def excused(self, stay: int, row: int) -> frozenset[int]:
        """The members that need not have delivered the message that was delivered at that row of the stay."""
        process, group = int(self._history.stays.process[stay]), int(self._history.stays.group[stay])
        return self._notices.excused(process, group, row) if self._scoped[process, group] else frozenset()


def _not_uniform(history: History, claims: _Claims, together: list[int], onward: list[int]) -> Iterable[Found]:
    """Each message delivered in the view, with each process that went on without it and was not excused."""
    delivered = claims.delivered
    everything = distinct(np.concatenate([delivered.messages(stay) for stay in together]))
    lacked = {stay: np.setdiff1d(everything, delivered.messages(stay), assume_unique=True) for stay in onward}
    missing = np.concatenate([*lacked.values()])
    holders: dict[int, dict[frozenset[int], int]] = defaultdict(dict)
    for stay in together:
        here = np.isin(delivered.messages(stay), missing)
        for message, row in zip(
            delivered.messages(stay)[here].tolist(), delivered.rows(stay)[here].tolist(), strict=True
        ):
            holders[message].setdefault(claims.excused(stay, row), row)
    for stay, messages in lacked.items():
        lacking = int(history.stays.process[stay])
        for message in messages.tolist():
            row = next((row for excused, row in holders[message].items() if lacking not in excused), None)
            if row is not None:
                describe = partial(_describe_not_uniform, history, row, stay)
                yield end_of_stay(history, stay), int(history.stays.group[stay]), describe


def _describe_not_uniform(history: History, row: int, stay: int) -> Violation:
    holder, lacking = (history.process_name(code) for code in (history.rows.process[row], history.stays.process[stay]))
    path, index = view_and_next(history, stay), history.index(end_of_stay(history, stay))
    sentence = (
        f"{holder} delivered {history.located(row)} in view {path[0]}, but {lacking} went from there to view {path[1]} "
        f"(index {index}) without having delivered it there"
    )
    return Violation(sentence, (holder, lacking), (history.message_at(row),), (history.index(row), index), path)
