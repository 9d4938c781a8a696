"""A real S3 interface on this machine: the server of moto in a process of its own."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

from pyarrow import fs

from antiphon.trace.places import Remote
from tests.support.hosts import Host
from tests.support.patience import SECONDS_MAX

_ROOT: Final = Path(__file__).parents[2]
KEY, SECRET = "the-key", "the-secret-that-is-never-shown"
_READY: Final = re.compile(r"Running on (http://\S+?)[\x1b\s]")


_HERE: Final = Host()
_BUCKET: Final = "import sys; from tests.support.store import new_bucket; new_bucket(*sys.argv[1:])"


@contextmanager
def s3_server(host: Host = _HERE, *buckets: str) -> Iterator[str]:
    """The address of the interface on that host; it holds nothing but these buckets at first."""
    server = [sys.executable, "-c", "from moto.server import main; main()", "-H", host.address, "-p", "0"]
    environ = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(
                host.command(*server), env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
        assert process.stdout is not None
        stack.callback(process.terminate)
        said = ""
        while (ready := _READY.search(said)) is None:
            line = process.stdout.readline()
            assert line, f"the S3 interface ended: {said}"
            said += line
        log = threading.Thread(target=process.stdout.read)  # else its log fills the pipe
        log.start()
        stack.callback(log.join, SECONDS_MAX)
        stack.callback(process.terminate)
        for bucket in buckets:
            subprocess.run(host.command(sys.executable, "-c", _BUCKET, ready[1], bucket), cwd=_ROOT, check=True)
        yield ready[1]


def variables(address: str) -> dict[str, str]:
    """What the environment says about the interface."""
    return {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }


@contextmanager
def denying(address: str) -> Iterator[None]:
    """Meanwhile, no credentials count."""
    _no_need_of_credentials(address, 0)
    try:
        yield
    finally:
        _no_need_of_credentials(address, 1 << 30)


def _no_need_of_credentials(address: str, requests: int) -> None:
    """For this many requests."""
    plain = {"Content-Type": "text/plain"}
    with urlopen(Request(f"{address}/moto-api/reset-auth", str(requests).encode(), plain)) as answer:
        assert answer.status == 200


def new_bucket(address: str, name: str) -> Remote:
    _client(address).create_dir(name)
    return Remote(f"s3a://{name}", "")


def download(source: Remote, directory: Path) -> Path:
    """Copy a directory of a store to this machine."""
    for name in source.files_below():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with source.store.open_input_stream((source / name).address) as file:
            path.write_bytes(file.read())
    return directory


def _client(address: str) -> fs.S3FileSystem:
    scheme, _, host = address.partition("://")
    return fs.S3FileSystem(
        access_key=KEY,
        secret_key=SECRET,
        region="us-east-1",
        scheme=scheme,
        endpoint_override=host,
        allow_bucket_creation=True,
    )
