"""A run that is watched while it goes on: a Structured Streaming job over the parts of its trace.

Spark finds new parts, reads them and remembers which it has read; what they tell is added to a state (`watched/`) that
is stored before Spark calls a batch done. A batch that Spark repeats after a restart adds nothing, for the state knows
which rows it has counted: so none is lost, and none counted twice, whenever the watch is killed.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everybody gives it
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from antiphon.errors import ConfigurationError, TraceError
from antiphon.pipeline.dataset import checked, find_event_files, spark_path
from antiphon.pipeline.live.figures import Figures, figures
from antiphon.pipeline.live.latencies import Spread
from antiphon.pipeline.live.places import Place, find
from antiphon.pipeline.live.rows import SEEN, TELLING, IntArray
from antiphon.pipeline.live.state import State
from antiphon.pipeline.spark.session import as_trace_error

Show = Callable[[Figures], None]
"""Called with the figures so far, again and again."""

_BATCH_BYTES: Final = 16 << 20
"""Of event files, in one batch: about a million and a half events."""
_POLL_SECONDS: Final = 0.1
_STATE: Final = "state.msgpack"
_SPARK: Final = "spark"


class Watch:
    """All that is read of one directory, through whatever place it is in."""

    def __init__(self, spark: SparkSession, directory: Path, checkpoint: Path, *, every_s: float = 0.5) -> None:
        """What the checkpoint holds is counted already; `every_s` is the time from batch to batch."""
        _require_checkpoint(checkpoint)
        self._spark, self._directory, self._checkpoint, self._every_s = spark, directory, checkpoint, every_s
        self._state = State.load(checkpoint / _STATE, directory)
        self._taking = Lock()
        self._failure: Exception | None = None
        self._checked: set[Path] = set()
        self.figures = figures(self._state)
        self.delay = Spread()
        """From an event to the figures that count it, in nanoseconds; of what happened since there were any."""
        self._since_ns: int | None = None

    def read_what_is_there(self, place: Place) -> None:
        """To the end of what is there now."""
        self._follow(place._replace(whole=True), lambda _figures: None)

    def follow(self, show: Show, place: Place | None = None) -> None:
        """Until the run has ended, or for ever if nothing says that it has; waits for a run if there is none yet.

        `place`: where its events are, if that is known.
        """
        place = place or find(self._directory)
        while place is None:
            time.sleep(_POLL_SECONDS)
            place = find(self._directory)
        while place is not None:
            self._follow(place, show)
            place = None if self._is_over(place) else self._successor(place)

    def _is_over(self, place: Place) -> bool:
        return place.whole or (place.began_ns > 0 and self.figures.over)

    def _successor(self, place: Place) -> Place | None:
        """Where the rest is, now that nobody adds anything there."""
        if place.began_ns and place.directory.exists():  # whoever wrote it was killed
            return place._replace(whole=True)
        while place.began_ns and place.directory.parent.exists():
            time.sleep(_POLL_SECONDS)
        return find(self._directory)

    def _follow(self, place: Place, show: Show) -> None:
        if place.whole:
            find_event_files(place.directory)  # what is wrong with a file is said at once
        resumed = self._marks(place).exists()
        with self._explained(place, resumed=resumed), self._query(place) as query:
            while query.isActive:
                self._check_new(place)
                show(self.figures)
                if not place.whole and (self._is_over(place) or not place.goes_on):
                    return
                time.sleep(_POLL_SECONDS)
            query.awaitTermination()  # raises what it failed with
        show(self.figures)

    def _check_new(self, place: Place) -> None:
        """Spark passes over an empty file, and takes nulls for a column that is missing."""
        for path in place.events.glob("[!._]*.parquet"):
            if path not in self._checked:
                self._checked.add(path)
                with suppress(FileNotFoundError):  # the run has ended meanwhile
                    checked(path)

    @contextmanager
    def _query(self, place: Place) -> Iterator[StreamingQuery]:
        writer = _seen(self._spark, place).writeStream
        writer = writer.foreachBatch(lambda batch, _number: self._take(batch, place.began_ns))
        writer = writer.option("checkpointLocation", str(self._marks(place).absolute()))
        every = f"{round(1000 * self._every_s)} milliseconds"
        writer = writer.trigger(availableNow=True) if place.whole else writer.trigger(processingTime=every)
        query = writer.start()
        try:
            yield query
        finally:
            query.stop()
            with self._taking:  # a batch that Spark has given up may still be taken here
                pass

    def _take(self, batch: DataFrame, began_ns: int) -> None:
        """One batch. What goes wrong is kept: Spark would wrap it in pages of text, and choke on them."""
        with self._taking:
            try:
                counted = self._state.take(_arrow(batch))
                self._state.save(self._checkpoint / _STATE)
                self.figures = figures(self._state)
            except Exception as error:
                self._failure = error
                raise RuntimeError("this batch failed") from None
            self._time(counted.column("time").to_numpy() + began_ns)

    def _time(self, happened_ns: IntArray) -> None:
        now_ns = time.time_ns()
        if self._since_ns is None:
            self._since_ns = now_ns
        if len(late_ns := now_ns - happened_ns[happened_ns >= self._since_ns]):
            self.delay.take(late_ns)

    @staticmethod
    def _has_moved(place: Place) -> bool:
        """The run has ended, and its parts went with it."""
        return place.began_ns > 0 and not place.whole and not place.directory.exists()

    def _marks(self, place: Place) -> Path:
        """Where Spark remembers what it has read there."""
        return self._checkpoint / _SPARK / place.key

    @contextmanager
    def _explained(self, place: Place, *, resumed: bool) -> Iterator[None]:
        """Says in one sentence what went wrong, and with which file if it is one."""
        try:
            with as_trace_error(place.directory):
                try:
                    yield
                except StreamingQueryException as error:
                    raise self._failure or error from None
        except TraceError as error:
            if self._failure is None and self._has_moved(place):
                return  # Spark was to read parts that are gone: the finished directory has what they told
            if any(place.events.glob("*.parquet")):
                find_event_files(place.directory)
            if resumed and self._failure is None:
                raise TraceError(f"the checkpoint {self._checkpoint} cannot be gone on from: {error}") from error
            raise


def _require_checkpoint(path: Path) -> None:
    """A new folder, or one that a watch has left."""
    if path.is_file():
        raise ConfigurationError(f"{path} is a file; a checkpoint is a folder")
    path.mkdir(parents=True, exist_ok=True)
    if {each.name for each in path.iterdir()} - {_STATE, f".{_STATE}", _SPARK}:
        raise ConfigurationError(f"{path} holds something else than the checkpoint of a watch; name a new folder")
    # The state is stored before Spark calls a batch done: without it, what Spark would pass over is lost.
    if not (path / _STATE).exists() and any((path / _SPARK).glob("*/commits/[0-9]*")):
        raise TraceError(f"the checkpoint {path} has lost {_STATE}, which has all that was counted; name a new folder")


def _seen(spark: SparkSession, place: Place) -> DataFrame:
    """New parts as they come; those that are gone before they could be read are elsewhere by then."""
    reader = spark.readStream.schema(from_arrow_schema(SEEN))
    reader = reader.option("maxBytesPerTrigger", _BATCH_BYTES).option("ignoreMissingFiles", "true")
    events = reader.parquet(spark_path(place.events))
    detail = F.when(F.col("kind").isin(*TELLING), F.col("detail")).alias("detail")
    return events.select(*(name for name in SEEN.names if name != "detail"), detail)


def _arrow(batch: DataFrame) -> pa.Table:
    table = batch.toArrow()
    return pa.Table.from_arrays([table.column(field.name).cast(field.type) for field in SEEN], schema=SEEN)
