"""All verdicts of a run: W first, and if the trace is well formed, every property its services promise.

The same function judges in-process after a simulation, in the tests, and on each run file of a cluster.
"""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from antiphon.errors import TraceError
from antiphon.properties import (
    acknowledgments,
    agreement,
    answers,
    calm,
    connected,
    cuts,
    delivery,
    drained,
    exclusions,
    flow,
    liveness,
    order,
    reliable,
    reliable_total,
    safe,
    stability,
    states,
    successors,
    total,
    views,
    weak_total,
    wellformed,
)
from antiphon.properties.audience import Audience
from antiphon.properties.causality import establish
from antiphon.properties.columns import admit
from antiphon.properties.history import load
from antiphon.properties.membership import Membership
from antiphon.properties.past import Pasts
from antiphon.properties.promises import Promises, known
from antiphon.properties.sequencers import Sequencers
from antiphon.properties.sets import Delivered
from antiphon.properties.spans import Spans
from antiphon.properties.stamps import Stamps
from antiphon.properties.verdict import Verdict, Violation
from antiphon.properties.windows import Windows


def judge(events: pa.Table, required: frozenset[str] = frozenset()) -> list[Verdict]:
    """The verdicts of one run, W first.

    What is `required` is judged as if every service promised it. TraceError if the table is empty, holds more than one
    run, or cannot be read as a trace; ConfigurationError if there is no checker of something required.
    """
    required = known(required)
    history = load(events)
    wellformedness = wellformed.check(history)
    if wellformedness.violations:
        return [wellformedness]
    promises, causality, delivered = Promises(history, required), establish(history), Delivered(history)
    pasts, spans, stamps = Pasts(history, promises, causality), Spans(history, promises), Stamps(history)
    audience, membership = Audience(history), Membership(history, promises)
    sequencers = Sequencers(history, promises, membership)
    windows, prefixes = Windows(history), stability.Prefixes(history, audience, membership, spans)
    traffic = flow.Traffic(history, windows)
    gone = exclusions.Gone(history, membership)
    return [
        wellformedness,
        *views.check_self_inclusion(history, promises, membership),
        *views.check_growing_ids(history, promises, membership),
        *views.check_first_view(history, promises, membership),
        *views.check_one_membership(history, promises, membership),
        *successors.check_same_history(history, promises, membership),
        *successors.check_disjoint_successors(history, promises, membership),
        *successors.check_disjoint_at_last(history, promises, membership),
        *successors.check_successors_agree(history, promises, membership),
        *successors.check_transitional(history, promises, membership),
        *views.check_shrinking(history, promises, membership),
        *views.check_reasons(history, promises, membership),
        *views.check_primary_chain(history, promises, membership),
        *delivery.check_integrity(history, promises, causality),
        *delivery.check_duplication(history, promises),
        *cuts.check_right_place(history, promises),
        *cuts.check_sender_in_view(history, promises, membership),
        *cuts.check_same_view(history, promises),
        *cuts.check_same_view_together(history, promises, delivered),
        *cuts.check_sending_view(history, promises),
        *cuts.check_blocked_while_flushing(history, promises, membership),
        *delivery.check_virtual_synchrony(history, promises, delivered),
        *cuts.check_same_cut(history, promises, delivered),
        *cuts.check_nothing_after_removal(history, promises, membership),
        *cuts.check_uniform_agreement(history, promises, delivered),
        *states.check_states(history, promises, membership),
        *agreement.check_agreement(history, promises, delivered),
        *answers.check_answers(history, promises),
        *order.check_fifo(history, promises),
        *reliable.check_reliable_fifo(history, promises, spans, prefixes.arrivals),
        *order.check_causal(history, promises, pasts.of("O3"), sequencers),
        *reliable.check_reliable_causal(history, promises, pasts.of("O4"), spans, membership, sequencers),
        *weak_total.check_one_group(history, promises, delivered),
        *weak_total.check_many_groups(history, promises, delivered, stamps),
        *total.check_total(history, promises, stamps),
        *reliable_total.check_reliable_total(history, promises, delivered, stamps),
        *total.check_causal_total(history, promises, pasts.of("O8"), stamps),
        *stability.check_stable_everywhere(history, promises, prefixes),
        *stability.check_stable_prefix(history, promises, prefixes, windows),
        *safe.check_safe_delivery(history, promises, prefixes),
        *stability.check_no_early_discard(history, promises, prefixes, membership),
        *acknowledgments.check_acknowledgers(history, promises),
        *connected.check_connected(history, promises),
        *flow.check_bounds(history, promises, traffic),
        *flow.check_send_condition(history, promises, traffic),
        *liveness.check_no_loss_by_pressure(history, promises),
        *exclusions.check_precision(history, promises, membership, gone),
        *liveness.check_multicast(history, promises, delivered, audience),
        *liveness.check_self_delivery(history, promises),
        *exclusions.check_termination(history, promises, membership, gone),
        *exclusions.check_exclusion(history, promises, membership, gone, prefixes.arrivals),
        *drained.check_stable_at_last(history, promises, prefixes, audience),
        *drained.check_unblocked(history, promises),
        *drained.check_buffers_empty(history, promises, prefixes, spans),
        *calm.check_no_false_exclusion(history, promises, membership, prefixes.arrivals),
        *calm.check_silence(history, promises, membership),
        *states.check_new_incarnations(history, promises, membership),
    ]


def judge_all(events: pa.Table, required: frozenset[str] = frozenset()) -> list[Verdict]:
    """The verdicts of every run in the table, in the order of their ids; none for a table without rows.

    A run that cannot be read as a trace gets a verdict that says why: it must not hide what others violate.
    """
    admit(events)
    if not len(events):
        return []
    runs = sorted(pc.unique(events["run"]).to_pylist())
    if len(runs) == 1:
        return _judge_or_tell(events, required)
    place = pc.index_in(events["run"], pa.array(runs)).to_numpy()
    sorted_events = events.take(pa.array(np.argsort(place, kind="stable")))
    bounds = np.searchsorted(np.sort(place), np.arange(len(runs) + 1)).tolist()
    return [
        verdict
        for begin, end in pairwise(bounds)
        for verdict in _judge_or_tell(sorted_events.slice(begin, end - begin), required)
    ]


def _judge_or_tell(events: pa.Table, required: frozenset[str]) -> list[Verdict]:
    try:
        return judge(events, required)
    except TraceError as error:
        run = events["run"][0].as_py()
        return [Verdict(run, "W", None, "harness error", len(events), 1, Violation(str(error)))]
