"""The user's own configuration of Spark: `spark-defaults.conf`, in SPARK_CONF_DIR or below SPARK_HOME.

Java reads this file by itself. We read it to know which settings must not be replaced by defaults of ours.
"""

import os
import re
from pathlib import Path

from antiphon.errors import ConfigurationError


def configured() -> dict[str, str]:
    """The settings in the user's `spark-defaults.conf`, which we must not replace by defaults of our own."""
    directory = configuration_directory()
    path = None if directory is None else directory / "spark-defaults.conf"
    if path is None or not path.is_file():
        return {}
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from error
    pairs = [re.split(r"\s*[=\s]\s*", line, maxsplit=1) for line in lines if line and not line.startswith("#")]
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def configuration_directory() -> Path | None:
    """Where the user keeps the configuration of Spark, also if the Spark there is not the one that we start."""
    if directory := os.environ.get("SPARK_CONF_DIR"):
        return Path(directory)
    home = os.environ.get("SPARK_HOME")
    return Path(home, "conf") if home else None
