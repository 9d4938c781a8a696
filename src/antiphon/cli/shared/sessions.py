"""Spark for commands that may have nothing left to run, and the message about kept results after an interrupt."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from antiphon.cli.shared.output import waiting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session_starter(master: str | None) -> "Callable[[], SparkSession]":
    """Return a function that starts Spark when it is called."""
    from antiphon.pipeline.spark.session import spark_session  # noqa: PLC0415 - Spark takes a second to import

    def session() -> "SparkSession":
        with waiting("starting Spark"):
            return spark_session(master)

    return session


def report_kept_results(done: int, total: int, place: Path) -> None:
    """After an interrupt, say on standard error what was kept."""
    if done:
        sentence = f"{done:,} of {total:,} runs are kept in {place}; run the same command again to do the rest"
        typer.echo(f"antiphon: {sentence}", err=True)
