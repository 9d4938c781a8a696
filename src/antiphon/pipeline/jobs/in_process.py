"""Judge every run of a dataset in this process, for installations without Spark (the extra `lab`).

The same properties, files and verdicts as `verify.py`. One unit of files after another is read into memory.
"""

from collections.abc import Callable

from antiphon.errors import TraceError
from antiphon.pipeline.dataset import Dataset, Source, read_events
from antiphon.pipeline.jobs.doubtful import UNKNOWN_RUN, cannot_tell, judgeable_units, located, missing_runs, placed
from antiphon.properties.judge import judge_all
from antiphon.properties.promises import known
from antiphon.properties.verdicts.verdict import Verdict


def verify_in_process(
    source: Source,
    *,
    required: frozenset[str] = frozenset(),
    keep_going: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Verdict]:
    """Return the verdicts on every run under `source`, ordered by run; arguments as for `verify`."""
    required = known(required)
    source = Dataset.of(source)
    units, unjudged = judgeable_units(source, keep_going=keep_going)
    verdicts = list[Verdict]()
    for done, unit in enumerate(each.files for each in units):
        progress(done, len(units))
        try:
            verdicts += [placed(unit, verdict) for verdict in judge_all(read_events(unit), required)]
        except TraceError as error:
            if not keep_going:
                raise TraceError(located(unit, str(error))) from error
            unjudged.append(located(unit, str(error)))
    progress(len(units), len(units))
    unknown = [cannot_tell(UNKNOWN_RUN, sentence) for sentence in unjudged]
    missing = missing_runs(source.directory, {verdict.run for verdict in verdicts})
    return sorted([*unknown, *verdicts, *missing], key=lambda verdict: verdict.run)
