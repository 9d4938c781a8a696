"""Watch a run while it goes on: a Structured Streaming job over the parts of its trace.

Spark finds new parts, reads them and remembers which ones it has read. Their rows are added to a state (`state.py`),
which is stored before Spark commits a batch. If Spark repeats a batch after a restart, nothing is added, because the
state knows which rows it has counted. So no row is lost or counted twice, whenever the watch is killed.
"""

import time
from collections.abc import Callable, Iterator, Sequence
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

from antiphon.errors import ConfigurationError, NotShared, TraceError
from antiphon.pipeline.dataset import find_event_files
from antiphon.pipeline.footers import checked
from antiphon.pipeline.jobs.sight import require_shared
from antiphon.pipeline.live.figures import Figures, figures
from antiphon.pipeline.live.latencies import Spread
from antiphon.pipeline.live.places import Place, find
from antiphon.pipeline.live.rows import SEEN, WITH_DETAIL, IntArray
from antiphon.pipeline.live.state import State
from antiphon.pipeline.spark.parquet import spark_path
from antiphon.pipeline.spark.session import as_trace_error

Show = Callable[[Figures], None]
"""Called repeatedly with the figures so far."""

_BATCH_BYTES: Final = 16 << 20
"""Bytes of event files in one batch: about a million and a half events."""
_POLL_SECONDS: Final = 0.1
_STATE: Final = "state.msgpack"
_SPARK: Final = "spark"


class Watch:
    """Reads the runs of one directory, wherever their events are at the moment."""

    def __init__(self, spark: SparkSession, directory: Path, checkpoint: Path, *, every_s: float = 0.5) -> None:
        """Rows in the checkpoint are already counted; `every_s` is the interval between batches."""
        _require_checkpoint(checkpoint)
        self._spark, self._directory, self._checkpoint, self._every_s = spark, directory, checkpoint, every_s
        self._state = State.load(checkpoint / _STATE, directory)
        self._taking = Lock()
        self._failure: Exception | None = None
        self._checked: set[Path] = set()
        self.figures = figures(self._state)
        self.delay = Spread()
        """From an event to the figures that count it, in nanoseconds; only for events since the first figures."""
        self._since_ns: int | None = None

    def read_what_is_there(self, place: Place) -> None:
        """Read everything that is there now."""
        self._follow(place._replace(whole=True), lambda _figures: None)

    def follow(self, show: Show, place: Place | None = None) -> None:
        """Follow the run until it ends, or forever if its end cannot be known; waits for a run if there is none yet.

        `place`: where its events are, if known.
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
        """Where the rest of the run is, when nothing more is written to a place."""
        if place.began_ns and place.directory.exists():  # its writer was killed
            return place._replace(whole=True)
        while place.began_ns and place.directory.parent.exists():
            time.sleep(_POLL_SECONDS)
        return find(self._directory)

    def _follow(self, place: Place, show: Show) -> None:
        files = find_event_files(place.directory) if place.whole else []  # report damaged files at once
        self._require_shared(place, files)
        resumed = self._marks(place).exists()
        with self._explained(place, resumed=resumed), self._query(place) as query:
            while query.isActive:
                self._check_new(place)
                show(self.figures)
                if not place.whole and (self._is_over(place) or not place.goes_on):
                    return
                time.sleep(_POLL_SECONDS)
            query.awaitTermination()  # raises its error
        show(self.figures)

    def _require_shared(self, place: Place, files: Sequence[Path]) -> None:
        try:
            require_shared(self._spark, place.directory, [place.events, *files])
        except NotShared:
            if not self._has_moved(place):
                raise

    def _check_new(self, place: Place) -> None:
        """Check new files, because Spark skips an empty file and reads a missing column as nulls."""
        for path in place.events.glob("[!._]*.parquet"):
            if path not in self._checked:
                self._checked.add(path)
                with suppress(FileNotFoundError):  # the run has ended meanwhile
                    checked(path, path.stat().st_size)

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
            with self._taking:  # a batch that Spark has abandoned may still be running here
                pass

    def _take(self, batch: DataFrame, began_ns: int) -> None:
        """Take one batch. An error is kept, because Spark would wrap it in pages of text and fail on them."""
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
        """True if the run has ended, and its parts were moved."""
        return place.began_ns > 0 and not place.whole and not place.directory.exists()

    def _marks(self, place: Place) -> Path:
        """The folder where Spark remembers what it has read from a place."""
        return self._checkpoint / _SPARK / place.key

    @contextmanager
    def _explained(self, place: Place, *, resumed: bool) -> Iterator[None]:
        """Report an error in one sentence, with the file if one is damaged."""
        try:
            with as_trace_error(place.directory):
                try:
                    yield
                except StreamingQueryException as error:
                    raise self._failure or error from None
        except TraceError as error:
            if self._failure is None and self._has_moved(place):
                return  # Spark tried to read parts that are gone; the finished directory has their rows
            if any(place.events.glob("*.parquet")):
                find_event_files(place.directory)
            if resumed and self._failure is None:
                raise TraceError(f"cannot continue from the checkpoint {self._checkpoint}: {error}") from error
            raise


def _require_checkpoint(path: Path) -> None:
    """Require a new folder, or the checkpoint of a watch."""
    if path.is_file():
        raise ConfigurationError(f"{path} is a file; a checkpoint is a folder")
    path.mkdir(parents=True, exist_ok=True)
    if {each.name for each in path.iterdir()} - {_STATE, f".{_STATE}", _SPARK}:
        raise ConfigurationError(f"{path} is not the checkpoint of a watch; name a new folder")
    # The state is stored before Spark commits a batch. Without it, rows that Spark would skip are lost.
    if not (path / _STATE).exists() and any((path / _SPARK).glob("*/commits/[0-9]*")):
        raise TraceError(f"the checkpoint {path} has no {_STATE}, so its counts are lost; name a new folder")


def _seen(spark: SparkSession, place: Place) -> DataFrame:
    """New parts as they appear.

    A part that cannot be read is an error, because a worker may not see the directory. When a run ends, its parts move:
    then `_explained` ignores the error, and the finished directory is read.
    """
    reader = spark.readStream.schema(from_arrow_schema(SEEN)).option("maxBytesPerTrigger", _BATCH_BYTES)
    events = reader.parquet(spark_path(place.events))
    detail = F.when(F.col("kind").isin(*WITH_DETAIL), F.col("detail")).alias("detail")
    return events.select(*(name for name in SEEN.names if name != "detail"), detail)


def _arrow(batch: DataFrame) -> pa.Table:
    table = batch.toArrow()
    return pa.Table.from_arrays([table.column(field.name).cast(field.type) for field in SEEN], schema=SEEN)
