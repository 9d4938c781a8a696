"""Judge traces that members have written themselves."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from antiphon.properties.judge import judge
from antiphon.properties.verdicts.verdict import Verdict
from antiphon.trace.collect import collect


def collected(directory: Path) -> pa.Table:
    """All events of a directory of members that have ended."""
    collect(directory)
    return pa.concat_tables([pq.read_table(path) for path in sorted((directory / "events").glob("*.parquet"))])


def judged(directory: Path) -> dict[str, Verdict]:
    """The verdicts by property, the last group's if there are several; none of them is a violation."""
    verdicts = judge(collected(directory))
    violated = [verdict for verdict in verdicts if verdict.violations]
    assert not violated, [f"{each.property}: {each.example and each.example.sentence}" for each in violated]
    return {verdict.property: verdict for verdict in verdicts}
