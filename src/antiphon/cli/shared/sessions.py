"""Spark for a command that may find that it has nothing to spread, and what it says of work that was interrupted."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from antiphon.cli.shared.output import waiting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def starting(master: str | None) -> "Callable[[], SparkSession]":
    """Starts Spark when it is called."""
    from antiphon.pipeline.spark.session import spark_session  # noqa: PLC0415 - Spark takes a second to import

    def session() -> "SparkSession":
        with waiting("starting Spark"):
            return spark_session(master)

    return session


def tell_what_is_kept(done: int, total: int, place: Path) -> None:
    """After an interrupt, on standard error."""
    if done:
        sentence = f"{done:,} of {total:,} runs are kept in {place}; the same command does the rest"
        typer.echo(f"antiphon: {sentence}", err=True)
