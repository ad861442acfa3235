"""Generated queries in parts: several sites, and all units of a sample, give the rows of the whole, whatever is known of tables."""

from __future__ import annotations

import random

import pytest

from nearly.errors import Unsupported
from nearly.plan.schema import HashedLayout, SchemaColumn, TableSchema
from nearly.plan.types import from_arrow
from nearly.rewrite.passes import for_sites, for_units
from tests.fixtures.generation import COLUMNS, TABLES, Pick, QueryGenerator, random_table
from tests.fixtures.long import first_quick
from tests.rewrite import shop
from tests.rewrite.running import SITES, by_units, on_sites, rows_differ, run

QUERIES = 15


def claimed(name: str, pick: Pick) -> TableSchema:
    """Any size, clustering and layouts by whole numbers, which have no order in common with the rows."""
    table = shop.tables()[name]
    columns = tuple(SchemaColumn(each.name, from_arrow(each.type)) for each in table.schema)
    hashed = tuple(
        HashedLayout(f"by_{key}", (key,), pick((4, 8))) for key, kind in COLUMNS.items() if kind == "int" and pick((0, 0, 1))
    )
    return TableSchema(
        name, columns, (), pick((100, 500_000, 900_000, 3_000_000)), pick((1, 30, 30)), pick((None, "a", "b")), hashed
    )


def written(generator: QueryGenerator, pick: Pick) -> str:
    """A query, perhaps over equal parts."""
    text = generator.query()
    both = f"with w as ({text}) select a.c0, count(*) as n from w as a join w as b on a.c0 = b.c0 group by a.c0"
    return both if pick((0, 0, 1)) else text


@pytest.mark.parametrize("seed", first_quick(range(8), 1))
def test_law_parts_give_the_rows_of_the_whole(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pick = random.Random(seed).choice
    generator = QueryGenerator(pick)
    checked = 0
    for _ in range(QUERIES):
        tables = {name: random_table(pick) for name in TABLES}
        monkeypatch.setattr(shop, "tables", lambda: tables)  # noqa: B023
        schemas = {name: claimed(name, pick) for name in TABLES}
        monkeypatch.setattr(shop, "schema", lambda name: schemas[name])  # noqa: B023
        text = written(generator, pick)
        try:
            plan = shop.planned(text)
            expected = run(plan)
        except Unsupported:
            continue
        assert rows_differ(expected, on_sites(for_sites(plan, shop.schema, SITES)), text) is None, text
        try:
            cut = for_units(plan, shop.schema)
        except Unsupported:
            continue
        if cut is not None:
            assert rows_differ(expected, run(cut.tail, by_units(cut)), text) is None, text
            checked += 1
    assert checked
