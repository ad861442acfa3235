"""Only whole words of rendered SQL are marks."""

from __future__ import annotations

import pytest

from nearly.engine.native.splice import spliced_constant, spliced_tables


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ('SELECT * FROM "t"', "SELECT * FROM (Q)"),
        ('SELECT \'FROM "t"\' FROM "t"', "SELECT 'FROM \"t\"' FROM (Q)"),
        ("SELECT '''FROM \"t\"''' FROM \"t\" WHERE \"t\" = 1", "SELECT '''FROM \"t\"''' FROM (Q) WHERE \"t\" = 1"),
        ('SELECT "FROM ""t""" FROM "u"', 'SELECT "FROM ""t""" FROM "u"'),
        ('SELECT "t" FROM "t""" JOIN (SELECT 1 FROM "t")', 'SELECT "t" FROM "t""" JOIN (SELECT 1 FROM (Q))'),
    ],
)
def test_tables(sql: str, found: str) -> None:
    assert spliced_tables(sql, {"t": "Q"}) == found


def test_constants() -> None:
    assert spliced_constant("""f(['@x@'], "'@x@'", 'a''@x@''')""", "@x@", "1, 2") == """f([1, 2], "'@x@'", 'a''@x@''')"""
