"""S3: safe delivery, of what is known to be stable (docs/spec/properties.md 5; docs/spec/newtop.md 14).

That it was true is S1, that nobody who goes on lacks it D11: both speak of all members but for those whom a notice has
named as failed.
"""

import numpy as np

from antiphon.properties.checks.stability import Prefixes
from antiphon.properties.promises import Promises
from antiphon.properties.tables.history import History
from antiphon.properties.verdicts.findings import Broken, over_groups
from antiphon.properties.verdicts.verdict import Verdict, Violation


def check_safe_delivery(history: History, promises: Promises, prefixes: Prefixes) -> list[Verdict]:
    """S3: what a process delivers it had called stable before."""
    asked, messages = promises.asked("S3"), history.messages
    sender, number = messages.sender[asked.message], messages.number[asked.message]
    stable = prefixes.stable.since(asked.process, asked.group, sender, number)
    early = np.flatnonzero(stable > asked.row)

    def tell(position: int) -> Violation:
        row, since = int(asked.row[early[position]]), int(stable[early[position]])
        who, known = history.process_name(history.rows.process[row]), since < len(history.rows.kind)
        later = f"only at index {history.index(since)} did it call it stable" if known else "it never called it stable"
        places = (history.index(row), *((history.index(since),) if known else ()))
        return Violation(
            f"{who} delivered {history.told(row)}, and {later}", (who,), (history.message_at(row),), places
        )

    opportunities = np.bincount(asked.group, minlength=len(history.groups))
    return over_groups(history, promises, "S3", opportunities, Broken(asked.row[early], asked.group[early], tell))
