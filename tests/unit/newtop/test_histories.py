"""Digests of what was delivered (docs/spec/newtop.md 11.2 rule 7): equal for the same order, else different."""

import itertools

from antiphon.protocols.newtop.formation.histories import Histories
from antiphon.protocols.newtop.formation.transfer import Transfer
from antiphon.protocols.newtop.frames import BlockFrame, Ordering
from antiphon.types import Company, GroupId, ProcessId, ViewId, formed_view

G, OTHER = GroupId("g@7"), GroupId("g@8")
A, B, C, D = map(ProcessId, "abcd")
V1, V2 = ViewId("0006.000001.aaaaaaaaaaaaaaaa"), ViewId("0006.000001.bbbbbbbbbbbbbbbb")


def frame(sender: ProcessId, block: int, ordering: Ordering | None = None) -> BlockFrame:
    return BlockFrame(G, sender, block, block - 1, 0, (b"x",), ordering=ordering)


def digest(*steps: BlockFrame | int) -> int:
    """Of these messages, and states of classes, in this order."""
    histories = Histories(on=True)
    histories.begin(G)
    for step in steps:
        if isinstance(step, int):
            histories.told(G, step)
        else:
            histories.delivered(step)
    return histories.digest(G)


def test_the_same_deliveries_give_the_same_digest_and_all_others_another() -> None:
    steps: list[BlockFrame | int] = [frame(A, 1), frame(B, 1), frame(A, 2), 0, 1]
    found: dict[int, tuple[BlockFrame | int, ...]] = {}
    for length in range(len(steps) + 1):
        for order in itertools.permutations(steps, length):
            assert found.setdefault(digest(*order), order) == order
            assert digest(*order) == digest(*order)
    assert 0 not in found


def test_with_a_sequencer_the_place_among_the_submissions_counts() -> None:
    first, second = (frame(A, 5, Ordering(B, place, 0)) for place in (1, 2))
    assert digest(first) != digest(second)


def test_a_digest_belongs_to_a_formation_and_a_configured_group_has_none() -> None:
    histories = Histories(on=True)
    histories.begin(G)
    histories.begin(OTHER)
    assert histories.digest(G) != histories.digest(OTHER)
    histories.forget(G)
    assert histories.digest(G) == 0
    histories.delivered(frame(A, 1))
    histories.told(G, 0)
    assert histories.digest(G) == 0


def transfer(me: ProcessId, *companies: Company) -> Transfer:
    return Transfer(me, formed_view(OTHER, 10, companies, me), companies)


def test_classes_with_one_history_transfer_nothing() -> None:
    companies = Company((A, B), V1, 3, False, 4, history=99), Company((C,), V2, 3, False, 3, history=99)
    assert formed_view(OTHER, 10, companies, A).alike == ((0, 1),)
    for me in (A, B, C):
        found = transfer(me, *companies)
        assert (found.wanted, found.waits, found.over) == (False, False, True)


def test_unknown_histories_are_not_alike() -> None:
    companies = Company((A, B), V1, 3, False), Company((C,), V2, 3, False), Company((D,), None, 0, False)
    assert formed_view(OTHER, 10, companies, A).alike == ()


def test_a_joiner_takes_one_state_of_classes_that_are_alike() -> None:
    companies = (
        Company((A,), V1, 3, False, 4, history=99),
        Company((B,), V2, 3, False, 5, history=99),
        Company((D,), None, 0, False),
    )
    joiner, donor, other = (transfer(me, *companies) for me in (D, A, B))
    assert (donor.owes, other.owes, joiner.waits) == (True, False, True)
    view = formed_view(OTHER, 10, companies, D)
    other.snapshot(b"state")
    for each in (joiner, other):  # the donor fails: a member of the other class takes its place
        each.installed(type(view)(view.group, view.id, (B, D)))
    assert other.donate() == (0, b"state")
    joiner.told(0, b"state")
    assert not joiner.waits
    complete = joiner.complete()
    assert (complete.states, complete.own, complete.primary) == (((0, b"state"),), None, 0)
