"""Names and texts as the engines read them literally, whatever characters they have."""

from __future__ import annotations


def spark_name(name: str) -> str:
    """A name in Spark SQL.

    >>> spark_name("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def native_name(name: str) -> str:
    """A name in DuckDB's SQL.

    >>> native_name('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def native_text(text: str) -> str:
    """A text constant in DuckDB's SQL.

    >>> native_text("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
