"""Random histories of several tables at once: rows come, go and change, tables are emptied, filled again and compacted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import nearly
from nearly.engine.storage.layouts import Origin, Table
from tests.fixtures.driver_only import driver_only
from tests.fixtures.generation import ARROW, COLUMNS, TABLES, VALUES, Pick, random_table

KINDS = ("insert", "insert", "delete", "update", "empty", "in_and_out", "compact", "twice")


class Histories:
    """The tables of the query generator, changed at random."""

    def __init__(self, path: Path, pick: Pick) -> None:
        self.pick = pick
        self.db: nearly.Session = driver_only(path / "catalog")
        for name in TABLES:
            pq.write_table(random_table(pick), path / f"{name}.parquet")
            self.db.register(name, str(path / f"{name}.parquet"))
            self.compactable(name)

    def compactable(self, name: str) -> None:
        """As if the files were a copy."""
        catalog = self.db._engine.catalog
        catalog.save(replace(catalog.table(name), origin=Origin("dataframe")))

    @property
    def tables(self) -> dict[str, Table]:
        return {name: self.db._engine.catalog.table(name) for name in TABLES}

    def step(self) -> None:
        """Change some of the tables."""
        for name in TABLES:
            if self.pick((True, False)):
                getattr(self, f"_{self.pick(KINDS)}")(name)

    def _rows(self, name: str) -> pa.Table:
        return self.db.sql(f"select * from {name}").exact().table

    def _insert(self, name: str) -> None:
        size = self.pick((1, 2, 4))
        columns = {each: pa.array([self.pick(VALUES[kind]) for _ in range(size)], ARROW[kind]) for each, kind in COLUMNS.items()}
        self.db.insert(name, pa.table(columns))

    def _delete(self, name: str) -> None:
        rows = self._rows(name)
        places = [place for place in range(rows.num_rows) if self.pick((True, False))][:3]
        self.db.delete(name, rows.take(pa.array(places, pa.int64())))

    def _update(self, name: str) -> None:
        self.db.update(
            name, self.pick(({"b": "coalesce(b, 0) + 1"}, {"s": "upper(s)"})), self.pick(("a = 1", "a is null", "b > 0"))
        )

    def _empty(self, name: str) -> None:
        self.db.delete(name, where="true")

    def _in_and_out(self, name: str) -> None:
        some = self._rows(name).slice(0, 2)
        self.db.delete(name, some)
        self.db.insert(name, some)

    def _twice(self, name: str) -> None:
        self._insert(name)
        self._insert(name)
        self._delete(name)

    def _compact(self, name: str) -> None:
        self._insert(name)
        self.db.compact(name)
        self._delete(name)
