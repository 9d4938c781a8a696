"""S3: safe delivery: a process delivers only what it knows to be stable (docs/spec/properties.md 5; newtop.md 14).

S1 judges whether that knowledge was true, D11 whether all processes that go on have the message. Both concern all
members except those that a notice has named as failed.
"""

import numpy as np

from antiphon.properties.promises import Promises
from antiphon.properties.tables.history import History
from antiphon.properties.tables.stability_reports import StabilityReports
from antiphon.properties.verdicts.findings import Violations, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation


def check_safe_delivery(history: History, promises: Promises, stability: StabilityReports) -> list[Verdict]:
    """S3: a process called a message stable before it delivers it."""
    asked, messages = promises.judged_deliveries("S3"), history.messages
    sender, number = messages.sender[asked.message], messages.number[asked.message]
    stable = stability.stable.since(asked.process, asked.group, sender, number)
    early = np.flatnonzero(stable > asked.row)

    def describe(position: int) -> Violation:
        row, since = int(asked.row[early[position]]), int(stable[early[position]])
        who, known = history.process_name(history.rows.process[row]), since < len(history.rows.kind)
        later = f"it called it stable only at index {history.index(since)}" if known else "it never called it stable"
        places = (history.index(row), *((history.index(since),) if known else ()))
        return Violation(
            f"{who} delivered {history.located(row)}, but {later}", (who,), (history.message_at(row),), places
        )

    opportunities = np.bincount(asked.group, minlength=len(history.groups))
    return over_groups(
        history, promises, "S3", opportunities, Violations(asked.row[early], asked.group[early], describe)
    )
