"""One Spark session for all tests: it takes seconds to start. No Hypothesis deadline: machines are busy."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from antiphon.pipeline.spark.session import spark_session

settings.register_profile("busy", deadline=None)
settings.load_profile("busy")
# A shell ignores SIGINT in what it runs in the background, and child processes inherit that; tests send it to both.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = spark_session("local[2]", app="antiphon-tests", light=True)  # a third less CPU time for all these queries
    yield session
    session.stop()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write what tests/scripts give now; then read the diff")
