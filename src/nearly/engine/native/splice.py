"""Putting text in the place of marks in rendered SQL, where rendering it anew for every piece of a table would take too long.

A mark is a whole word of the SQL: the table of a FROM clause, or a text constant. Law: text that only looks like a mark, inside a
string, a name or a comment of the user's, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_QUOTED = re.compile(r"""'(?:[^']|'')*'|(?:\bFROM )?"(?:[^"]|"")*\"""")
"""Strings and quoted names of DuckDB, a name together with the FROM before it."""


def spliced_tables(sql: str, bodies: Mapping[str, str]) -> str:
    """The SQL with queries in the place of tables, by name: a table's mark is its quoted name, where a FROM clause begins with it.

    >>> spliced_tables('SELECT \\'"t"\\' FROM "t"', {"t": "SELECT 1"})
    'SELECT \\'"t"\\' FROM (SELECT 1)'
    """
    return _spliced(sql, {f'FROM "{name}"': f"FROM ({body})" for name, body in bodies.items()})


def spliced_constant(sql: str, mark: str, text: str) -> str:
    """The SQL with other text in the place of a text constant."""
    return _spliced(sql, {f"'{mark}'": text})


def _spliced(sql: str, parts: Mapping[str, str]) -> str:
    return _QUOTED.sub(lambda found: parts.get(found.group(), found.group()), sql)
