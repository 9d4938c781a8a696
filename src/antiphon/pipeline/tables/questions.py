"""Questions in SQL about the tables of a directory. A table is computed when a question names it, never before.

Spark itself says which names a question uses: it refuses a name that is unknown, the table is made, and the question is
asked again.
"""

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from antiphon.errors import ConfigurationError
from antiphon.pipeline.spark.session import reason
from antiphon.pipeline.tables.catalog import Catalog
from antiphon.pipeline.tables.columns import Table
from antiphon.pipeline.tables.silver import shaped

_QUESTIONS: Final = frozenset("select with from values table describe desc explain (".split())
"""The words with which a question may begin; other statements, and INSERT, would change something."""
_ABOUT: Final = frozenset(["describe", "desc", "explain"])
"""Questions about columns or plans: no table needs its rows."""
_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""Texts, quoted names and comments."""
_NAME: Final = re.compile(r"`((?:[^`]|``)*)`")
_OF_THE_SESSION: Final = (
    "spark.sql.execution.arrow.pyspark.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.shuffle.partitions",
    "spark.sql.sources.parallelPartitionDiscovery.threshold",
)
"""Settings that a new session does not take over from another."""


def answer(spark: SparkSession, catalog: Catalog, question: str) -> DataFrame:
    """The answer to a question; ConfigurationError says in one sentence what is wrong with it."""
    words = _words(question)
    if not words or words[0] not in _QUESTIONS or "insert" in words:
        raise ConfigurationError("this is no query: it begins with SELECT, WITH, FROM, VALUES, DESCRIBE or EXPLAIN")
    session = _alone(spark)
    made: set[str] = set()
    while True:
        try:
            return session.sql(question)
        except PySparkException as error:
            name = _unknown_table(error)
            table = catalog.tables.get(name.lower()) if name is not None else None
            if table is None or table.name in made:
                raise ConfigurationError(_sentence(error, catalog.tables)) from error
        rows = _empty(session, table) if words[0] in _ABOUT else catalog.frame(session, table)
        rows.createOrReplaceTempView(table.name)
        made.add(table.name)


def explained(error: Exception) -> str:
    """One sentence about a question that failed while it was answered."""
    return f"the question cannot be answered: {reason(error)}"


def _words(question: str) -> list[str]:
    """The words of a question in small letters, without comments; a text or a quoted name counts as one."""
    plain = _QUOTED.sub(lambda found: " " if found[0].startswith(("--", "/*")) else " '' ", question)
    return plain.lower().replace("(", " ( ").split()


def _alone(spark: SparkSession) -> SparkSession:
    """A session with views of its own, so that those of another directory are not seen."""
    session = spark.newSession()
    for setting in _OF_THE_SESSION:
        value = spark.conf.get(setting, None)
        if value is not None:
            session.conf.set(setting, value)
    return session


def _empty(spark: SparkSession, table: Table) -> DataFrame:
    return shaped(spark.createDataFrame(table.columns.empty_table()), table)


def _unknown_table(error: PySparkException) -> str | None:
    """The table that a question names and Spark does not know."""
    if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return None
    return ".".join(_names((error.getMessageParameters() or {}).get("relationName", "")))


def _sentence(error: PySparkException, tables: Collection[str]) -> str:
    told = error.getMessageParameters() or {}
    match error.getCondition():
        case "TABLE_OR_VIEW_NOT_FOUND":
            return f"there is no table {_unknown_table(error)}; there are {', '.join(tables)}"
        case "UNRESOLVED_COLUMN.WITH_SUGGESTION":
            name = _names(told.get("objectName", ""))
            known = [_names(each)[-1] for each in told.get("proposal", "").split(", ")]
            return f"there is no column {'.'.join(name)}; the nearest is {_nearest(name[-1], known)}"
        case "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION":
            return f"there is no column {'.'.join(_names(told.get('objectName', '')))}"
    return reason(error)


def _names(quoted: str) -> list[str]:
    """The parts of a name, each in quotes."""
    return [name.replace("``", "`") for name in _NAME.findall(quoted)] or [quoted]


def _nearest(name: str, names: Sequence[str]) -> str:
    return get_close_matches(name, names, n=1, cutoff=0.0)[0]
