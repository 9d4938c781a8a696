"""The stores behind URIs: how this process reaches S3 and HDFS through Arrow, and what their errors mean.

Credentials come from the environment (`AWS_ACCESS_KEY_ID` and others) or from Spark's settings of s3a. A place takes
them along when it is sent to a worker, because workers need not have the environment of the driver. Without any, each
process looks for its own, as the SDK of AWS does. They are never part of a message.
"""

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from antiphon.errors import ConfigurationError, TraceError

S3: Final = ("s3", "s3a")
HADOOP: Final = ("hdfs", "viewfs")
_CONNECT_SECONDS_MAX: Final = 5.0
_REQUEST_SECONDS_MAX: Final = 20.0
_ATTEMPTS: Final = 3
_S3A: Final = "spark.hadoop.fs.s3a."


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach S3; None leaves the choice to the SDK of AWS."""

    endpoint: str | None = field(default=None, repr=False)
    """Without it, Amazon's own."""
    region: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    @staticmethod
    def of(environ: Mapping[str, str], spark: Mapping[str, str]) -> "Access":
        """From the environment; Spark's settings of s3a come first."""

        def chosen(setting: str, *variables: str) -> str | None:
            return next(filter(None, (spark.get(_S3A + setting), *map(environ.get, variables))), None)

        endpoint = chosen("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        if endpoint is not None and "://" not in endpoint:
            is_plain = spark.get(_S3A + "connection.ssl.enabled", "true").lower() == "false"
            endpoint = f"{'http' if is_plain else 'https'}://{endpoint}"
        return Access(
            endpoint,
            chosen("endpoint.region", "AWS_REGION", "AWS_DEFAULT_REGION"),
            chosen("access.key", "AWS_ACCESS_KEY_ID"),
            chosen("secret.key", "AWS_SECRET_ACCESS_KEY"),
            chosen("session.token", "AWS_SESSION_TOKEN"),
        )


class _Process:
    """The stores that this process has opened."""

    def __init__(self) -> None:
        self._spark: Mapping[str, str] = {}
        self._given: Access | None = None
        """What the driver has sent; a worker uses it instead of its own environment."""
        self._latest = Access()
        self._open: dict[tuple[str, Access], Any] = {}
        self._lock = threading.Lock()

    @property
    def access(self) -> Access:
        found = self._given or Access.of(os.environ, self._spark)
        if found != self._latest:  # one value, so that many pickled places share it
            self._latest = found
        return self._latest

    def configure(self, spark: Mapping[str, str]) -> None:
        self._spark = {key: value for key, value in spark.items() if key.startswith(_S3A)}

    def take(self, given: Access) -> None:
        self._given = given

    def store(self, root: str) -> Any:
        access = self.access
        with self._lock:
            if (root, access) not in self._open:
                self._open[root, access] = _opened(root, access)
            return self._open[root, access]


_process: Final = _Process()


def configure(spark: Mapping[str, str]) -> None:
    """Use the settings of s3a among these settings of Spark."""
    _process.configure(spark)


def access() -> Access:
    """How this process reaches S3."""
    return _process.access


def take(given: Access) -> None:
    """In a worker: reach S3 as the driver does."""
    _process.take(given)


def store(root: str) -> Any:
    """The file system of Arrow behind `s3a://bucket` or `hdfs://host:port`; opened once in a process."""
    return _process.store(root)


def _opened(root: str, access: Access) -> Any:
    from pyarrow import fs  # noqa: PLC0415 - takes long to import, and most commands need no store

    parts = urlsplit(root)
    with told(root), _told_settings(root):
        if parts.scheme in HADOOP:
            host = f"{parts.scheme}://{parts.hostname}" if parts.hostname else "default"
            return fs.HadoopFileSystem(host, parts.port or 0)
        scheme, _, address = (access.endpoint or "https://").partition("://")
        return fs.S3FileSystem(
            access_key=access.key,
            secret_key=access.secret,
            session_token=access.token,
            region=access.region or (None if access.endpoint is None else "us-east-1"),
            scheme=scheme,
            endpoint_override=address.rstrip("/") or None,
            connect_timeout=_CONNECT_SECONDS_MAX,
            request_timeout=_REQUEST_SECONDS_MAX,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        )


@contextmanager
def _told_settings(root: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # such as a key without its secret
        raise ConfigurationError(f"{root} cannot be reached: {error}") from error


_MEANINGS: Final = {
    r"NO_SUCH_BUCKET": "the bucket does not exist",
    r"NETWORK_CONNECTION|curlCode": "the store does not answer; is the endpoint right (AWS_ENDPOINT_URL)?",
    r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|TOKEN|UNRECOGNIZED_CLIENT|HTTP status 40[13]": (
        "access is denied; are the credentials right (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN)?"
    ),
    r"PERMANENT_REDIRECT|HTTP status 301": "the bucket is in another region (AWS_REGION)",
    r"libhdfs|libjvm": "libhdfs of Hadoop is not found; set HADOOP_HOME, JAVA_HOME and ARROW_LIBHDFS_DIR",
}
"""Patterns in messages of Arrow, and what they mean to a user."""


def meaning(error: Exception) -> str | None:
    """What an error of a store means, in a few words; None if it is not from a store."""
    text = str(error)
    if not re.search(r"AWS Error|libhdfs|libjvm|HDFS", text):
        return None
    for pattern, sentence in _MEANINGS.items():
        if re.search(pattern, text):
            return sentence
    return " ".join(text.split())[:200].rstrip(".")


@contextmanager
def told(place: object) -> Iterator[None]:
    """Turn errors of a store into one sentence; a missing file stays FileNotFoundError."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        sentence = meaning(error)
        kind = ConfigurationError if sentence is not None and "libhdfs" in sentence else TraceError
        raise kind(f"{place} cannot be reached: {sentence or error}") from error
