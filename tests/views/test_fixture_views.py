"""Every query of the corpus as a view: after rows came, went and changed, and tables were emptied and filled, it is its query."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from nearly.engine.storage.layouts import Origin
from nearly.errors import NearlyError
from nearly.views import kept_groups
from nearly.views.moving import Move
from tests.fixtures import tables
from tests.fixtures.agreement import difference
from tests.fixtures.driver_only import driver_only
from tests.fixtures.queries import QueryCase, corpus

CASES = [case for case in corpus() if not case.notes.keys() & {"error", "kernel"} and case.feature != "spark_only"]
QUICK = 24
LONG = 3
"""Of so many queries one is tried in a quick run, and in a long one."""


class Gallery:
    """A session with the tables of the corpus and a view for each query."""

    def __init__(self, home: Path, cases: list[QueryCase]) -> None:
        self.pick = random.Random(11)
        self.numbers = itertools.count()
        self.path = home / "catalog"
        self.db = driver_only(self.path)
        for name, path in tables.write(home / "files").items():
            self.db.register(name, str(path))
            catalog = self.db._engine.catalog
            catalog.save(replace(catalog.table(name), origin=Origin("dataframe")))
        self.contents = {name: table for name, table in tables.tables().items() if name != "nested"}
        self.views: dict[str, QueryCase] = {}
        for place, case in enumerate(cases):
            name = f"view_{place}"
            if self.is_ours(case.text):
                self.db.create_view(name, case.text)
                self.views[name] = case

    def is_ours(self, text: str) -> bool:
        """Whether a query can be a view without Spark: all its columns have names, which differ, and types that can be stored."""
        prepared = self.db._engine.plan(text)
        if prepared.query is None or prepared.query.unnamed:
            return False
        names = [name.lower() for name in prepared.query.names]
        try:
            self.db.sql(text, kernel="native").exact()
        except NearlyError:
            return False
        return len(set(names)) == len(names) and not any(t.name == "void" or "interval" in t.name for t in prepared.query.types)

    def rows(self, name: str) -> pa.Table:
        return self.db.sql(f"select * from `{name}`", kernel="native").exact().table

    def ordered(self, name: str) -> pa.Table:
        """The rows in an order that does not depend on how they were read, so that each run has the same history."""
        rows = self.rows(name)
        texts = [repr(row) for row in rows.to_pylist()]
        return rows.take(pa.array(sorted(range(rows.num_rows), key=texts.__getitem__), pa.int64()))

    def inserted(self) -> None:
        for name in self.contents:
            rows = self.ordered(name)
            if rows.num_rows:
                places = [[self.pick.randrange(rows.num_rows) for _ in range(3)] for _ in rows.column_names]
                pairs = zip(rows.column_names, places, strict=True)
                mixed = pa.table({each: rows[each].take(pa.array(place)) for each, place in pairs})
                self.db.insert(name, pa.concat_tables([rows.slice(0, 1), mixed.cast(rows.schema)]))

    def deleted(self) -> None:
        for name in self.contents:
            rows = self.ordered(name)
            places = [place for place in range(rows.num_rows) if self.pick.random() < 0.3]
            self.db.delete(name, rows.take(pa.array(places, pa.int64())))

    def updated(self) -> None:
        self.db.update(
            "people", {"salary": "coalesce(salary, 0) + 1", "dept": "'ops'"}, where="id % 3 = 1 and coalesce(salary, 0) < 9999998"
        )
        self.db.update("sale", {"amount": "null"}, where="person = 1")

    def emptied(self) -> None:
        for name in self.contents:
            self.db.compact(name)
            self.db.delete(name, where="true")

    def filled(self) -> None:
        for name, rows in self.contents.items():
            self.db.insert(name, rows)

    def reopened(self) -> None:
        self.db.close()
        self.db = driver_only(self.path)

    def judge(self, step: str) -> list[str]:
        """Refresh all views; which of them are not their queries then."""
        wrong = []
        for name, case in self.views.items():
            try:
                expected = self.db.sql(case.text, kernel="native").exact().table
            except NearlyError:  # the changed rows have no answer
                continue
            self.db.view(name).refresh()
            trouble = difference(expected, self.rows(name), "select 1")
            if trouble is not None and not _has_limit(case) and not self.leaves_open(case, expected):
                wrong.append(f"{step}: {case} ({self.db.view(name).history[0].strategy}): {trouble}\n{case.text}")
        return wrong

    def leaves_open(self, case: QueryCase, expected: pa.Table) -> bool:
        """Whether the same rows in another order have another answer: a window over rows that tie."""
        for place in range(3):
            with driver_only(self.path.with_name(f"shuffled_{next(self.numbers)}")) as other:
                for name in self.contents:
                    rows = self.ordered(name)
                    order = list(reversed(range(rows.num_rows)))
                    if place:
                        self.pick.shuffle(order)
                    other.register(name, rows.take(pa.array(order, pa.int64())))
                if difference(expected, other.sql(case.text, kernel="native").exact().table, "select 1") is not None:
                    return True
        return False


def _has_limit(case: QueryCase) -> bool:
    return " limit " in f" {case.text.lower()} ".replace("\n", " ")


@pytest.mark.parametrize("every", [QUICK, pytest.param(LONG, marks=pytest.mark.long)])
def test_oracle_a_view_is_its_query(tmp_path: Path, every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By deltas, also where these small tables would be read again in less time."""
    monkeypatch.setattr(Move, "_too_much", lambda *_: None)
    monkeypatch.setattr(kept_groups, "FEWEST_READ", -1)
    monkeypatch.setattr(kept_groups, "MOST_SHARE", 10.0)
    gallery = Gallery(tmp_path, CASES[::every])
    try:
        assert len(gallery.views) >= 400 // every * 0.6
        wrong = []
        for step in (gallery.inserted, gallery.deleted, gallery.updated, gallery.reopened, gallery.emptied, gallery.filled):
            step()
            wrong += gallery.judge(step.__name__)
        assert not wrong, f"{len(wrong)} wrong\n" + "\n\n".join(wrong[:10])
    finally:
        gallery.db.close()
