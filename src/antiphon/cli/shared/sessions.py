"""How commands start Spark and what the user chose about it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Final

import typer

from antiphon.cli.shared.output import waiting
from antiphon.errors import ConfigurationError
from antiphon.pipeline.spark.configuration import configured
from antiphon.trace import stores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DRIVER_MEMORY: Final = "spark.driver.memory"
_SIZE: Final = re.compile(r"[1-9][0-9]*[kmgt]b?", re.IGNORECASE)
_KEY: Final = re.compile(r"spark\.[A-Za-z0-9_.-]+")

Master = Annotated[
    str | None, typer.Option("--master", help="Spark master; default: all cores of this machine.", show_default=False)
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="KEY=VALUE",
        help="A setting of Spark; may be repeated. It replaces the value in your Spark configuration files.",
        show_default=False,
    ),
]
DriverMemory = Annotated[
    str | None,
    typer.Option(
        "--driver-memory",
        metavar="SIZE",
        help="Heap of Spark's driver, e.g. 8g; default: your Spark configuration, else a quarter of the memory.",
        show_default=False,
    ),
]

ShipPackages = Annotated[
    bool,
    typer.Option(
        "--ship-packages",
        help="Send antiphon's packages to the workers of a cluster, which then need only Python and Spark.",
    ),
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        "--in-process",
        help="Do it in this process, without Spark: sooner done with a few runs. The default without PySpark.",
    ),
]


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """What the user chose about Spark."""

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    ship_packages: bool = False

    def __bool__(self) -> bool:
        """Whether the user chose anything."""
        return self.master is not None or bool(self.conf) or self.ship_packages


def spark_choice(
    master: str | None, conf: Sequence[str] | None, driver_memory: str | None, ship_packages: bool = False
) -> SparkChoice:
    """The options of a command; ConfigurationError names one that cannot be used. Those of s3a apply from here on."""
    settings = dict(_setting(text) for text in conf or ())
    if driver_memory is not None:
        if not _SIZE.fullmatch(driver_memory):
            raise ConfigurationError(f"--driver-memory {driver_memory} is not a size; write for example 512m or 8g")
        settings[_DRIVER_MEMORY] = driver_memory
    stores.configure(configured() | settings)
    return SparkChoice(master, settings, ship_packages)


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not _KEY.fullmatch(key):
        raise ConfigurationError(f"--conf {text} is not a setting of Spark; write for example spark.executor.memory=2g")
    return key, value


def started(choice: SparkChoice, *, light: bool = False) -> "SparkSession":
    """The Spark session of this command; `light` if Python tasks do all its work."""
    from antiphon.pipeline.spark.session import spark_session  # noqa: PLC0415 - Spark takes a second to import

    with waiting("starting Spark"):
        return spark_session(choice.master, conf=choice.conf, ship_packages=choice.ship_packages, light=light)


def started_unless(quick: bool, choice: SparkChoice) -> "SparkSession | None":
    """The Spark session of this command; None if the work is to be done in this process."""
    if not quick and find_spec("pyspark") is not None:
        return started(choice, light=True)
    if choice:
        raise ConfigurationError(
            "--master, --conf, --driver-memory and --ship-packages need PySpark and go without --quick: "
            "install `antiphon[cli]`"
        )
    return None
