"""Random histories of a synopsis through the public API, compared with the rows themselves.

Create, insert, delete, update, refuse, close, open, plan again and ask in any order, by the synopsis or its table, in two sessions
at once, with compactions and tables made anew: what is called exact is right, what is certain holds, and no group is missing or too
many without a word.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from tests.fixtures.driver_only import driver_only

TEXTS = ("a", "b", "c", "ü", "", "updated")
AGGREGATES = ("rows", "count", "sum", "avg", "min", "max", "var_pop", "var_samp", "stddev_pop", "stddev_samp")
Row = dict[str, Any]


def measured(draw: random.Random, kind: str) -> float | int | None:
    if draw.random() < 0.08:
        return None
    match kind:
        case "whole":
            return draw.randrange(-50, 50)
        case "heavy":
            return draw.lognormvariate(0, 3)
        case "mixed":
            return draw.choice([1e15, -1e15, 0.1, 0.2, 3.0]) if draw.random() < 0.3 else draw.gauss(0, 1)
    return 7.0


@dataclass
class History:
    """A synopsis under test, and all rows that its table should have."""

    path: Path
    draw: random.Random
    kind: str
    keyed: bool
    rows: dict[int, Row] = field(default_factory=dict)
    next_id: int = 0
    files: int = 0
    asked: int = 0
    covered: list[bool] = field(default_factory=list)

    def fresh(self) -> Row:
        self.next_id += 1
        near = self.draw.random() < 0.5
        return {
            "id": self.next_id,
            "c": None if self.draw.random() < 0.05 else round(self.draw.random() * (10 if near else 100), 3 if self.keyed else 0),
            "t": None if self.draw.random() < 0.05 else self.draw.choice(TEXTS),
            "b": None if self.draw.random() < 0.05 else self.draw.random() < 0.3,
            "a": measured(self.draw, self.kind),
        }

    def table(self, rows: list[Row]) -> pa.Table:
        types = {"id": pa.int64(), "c": pa.float64(), "t": pa.string(), "b": pa.bool_(), "a": pa.float64()}
        return pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in types.items()})

    @contextmanager
    def session(self) -> Iterator[nearly.Session]:
        with driver_only(self.path / "catalog") as db:
            yield db

    def register(self, db: nearly.Session) -> None:
        self.files += 1
        file = self.path / f"{self.files}.parquet"
        pq.write_table(self.table(list(self.rows.values())), file, row_group_size=97)
        db.register("t", file, key=["id"] if self.keyed else ())

    def create(self) -> None:
        self.rows = {row["id"]: row for row in (self.fresh() for _ in range(self.draw.choice([0, 1, 40, 400])))}
        with self.session() as db:
            self.register(db)
            on = [*self.draw.choice([[["c"]], [["c"], ["c", "t"]], [["c", "b"]]]), ["t", "b"]]
            db.create_synopsis(
                "y", "t", "a", on, leaves=self.draw.choice([1, 4, 16]), sample=self.draw.choice([0.05, 0.3, 1.0]),
                pooled=self.draw.random() < 0.3, seed=self.draw.randrange(100),
            )  # fmt: skip

    def live(self, db: nearly.Session, other: nearly.Session) -> None:
        """Some steps in one session, with another one beside it."""
        for each in (db, other):
            each.synopsis("y").auto_repartition = self.draw.random() < 0.3
            if self.draw.random() < 0.3:  # as if it were killed: nothing is saved at the end
                each.synopsis("y").subscription.close = lambda: None  # type: ignore[method-assign]
        steps = [self.insert, self.delete, self.update, self.refuse, self.replan, self.ask, self.ask, self.group]
        steps += [self.change_the_table, self.compact, self.save, self.replace]
        for _ in range(self.draw.randrange(2, 10)):
            self.draw.choice(steps)(self.draw.choice([db, db, other]))

    def insert(self, db: nearly.Session) -> None:
        new = [self.fresh() for _ in range(self.draw.choice([1, 5, 60]))]
        db.synopsis("y").insert(self.table(new))
        self.rows |= {row["id"]: row for row in new}

    def delete(self, db: nearly.Session) -> None:
        gone = self.draw.sample(sorted(self.rows), min(len(self.rows), self.draw.choice([1, 5, 120])))
        db.synopsis("y").delete(self.table([self.rows.pop(each) for each in gone]))

    def update(self, db: nearly.Session) -> None:
        if self.rows:
            old = self.rows[self.draw.choice(sorted(self.rows))]
            new = self.fresh() | ({"id": old["id"]} if self.draw.random() < 0.5 else {})
            db.synopsis("y").update(self.table([old]), self.table([new]))
            del self.rows[old["id"]]
            self.rows[new["id"]] = new

    def change_the_table(self, db: nearly.Session) -> None:
        """By statements, several at once, or none that lasts."""
        low = self.draw.randrange(self.next_id + 1)
        inside = [each for each in self.rows.values() if low <= each["id"] < low + 20]
        with db.transaction():
            db.update("t", {"a": "a + 1", "t": "'updated'"}, where=f"id between {low} and {low + 19}")
            db.insert("t", self.table([new := self.fresh()]))
            db.delete("t", where=f"id = {low} or b")
        for each in inside:
            each |= {"a": None if each["a"] is None else each["a"] + 1, "t": "updated"}
        self.rows[new["id"]] = new
        self.rows = {key: row for key, row in self.rows.items() if key != low and not row["b"]}

    def compact(self, db: nearly.Session) -> None:
        db.compact("t")

    def save(self, db: nearly.Session) -> None:
        db.synopsis("y").save()

    def replace(self, db: nearly.Session) -> None:
        """The table is registered again, from other files, perhaps after it was dropped."""
        if self.draw.random() < 0.4:
            if self.draw.random() < 0.5:
                db.drop("t")
            self.rows |= {row["id"]: row for row in (self.fresh() for _ in range(20))}
            self.register(db)

    def refuse(self, db: nearly.Session) -> None:
        """A row that is not there, one with another value where there is no key, and one that is deleted twice."""
        wrong = [self.fresh() | {"t": self.draw.choice([*TEXTS, "nobody has this", None])}]
        if self.rows:
            there = self.rows[self.draw.choice(sorted(self.rows))]
            wrong = self.draw.choice(
                [wrong, [there, *wrong], [there, there], wrong if self.keyed else [there | {"a": 0.123456789}]]
            )
        before = db.synopsis("y").stats()
        with pytest.raises(nearly.SchemaError, match=r"lacks|more than once"):
            db.synopsis("y").delete(self.table(wrong))
        assert db.synopsis("y").stats()["rows"] == before["rows"] == len(self.rows)
        assert db.synopsis("y").version == before["version"]

    def replan(self, db: nearly.Session) -> None:
        levels = self.draw.choice([None, None, 1, 2, "auto"])
        db.synopsis("y").repartition(levels=levels, goal=self.draw.choice([1.0, 1.0, 0.3]))

    def conditions(self) -> tuple[dict[str, Any], list[Row]]:
        """Random conditions, and the rows that satisfy them."""
        conditions: dict[str, Any] = {}
        chosen = list(self.rows.values())
        if self.draw.random() < 0.7:
            low, high = sorted(round(self.draw.random() * self.draw.choice([10, 100]), 3) for _ in range(2))
            ends = self.draw.choice([(low, high), (None, high), (low, None), (high, low), (low, low)])
            conditions["c"] = ends
            chosen = [row for row in chosen if row["c"] is not None and (ends[0] is None or row["c"] >= ends[0])]
            chosen = [row for row in chosen if ends[1] is None or row["c"] <= ends[1]]
        for name, values in (("t", (*TEXTS, None, "nobody has this")), ("b", (True, False, None))):
            if self.draw.random() < 0.25:
                conditions[name] = self.draw.choice(values)
                chosen = [row for row in chosen if row[name] == conditions[name]]
        return conditions, chosen

    def ask(self, db: nearly.Session) -> None:
        conditions, chosen = self.conditions()
        aggregate = self.draw.choice(AGGREGATES)
        found = db.synopsis("y").query(aggregate, **conditions)
        assert found.complete
        assert found.table.num_rows == 1
        self.check(found, 0, aggregate, chosen)

    def group(self, db: nearly.Session) -> None:
        conditions, chosen = self.conditions()
        by = self.draw.choice([["t"], ["b"], ["t", "b"]])
        aggregate = self.draw.choice(AGGREGATES)
        found = db.synopsis("y").query(aggregate, by=by, **conditions)
        truth: dict[tuple[Any, ...], list[Row]] = {}
        for row in chosen:
            truth.setdefault(tuple(row[name] for name in by), []).append(row)
        keys = list(zip(*(found.table[name].to_pylist() for name in by), strict=True))
        assert len(set(keys)) == len(keys)
        assert set(keys) <= set(truth)
        assert len(set(truth) - set(keys)) <= found.unseen.most
        if found.complete:
            assert set(keys) == set(truth)
        else:
            assert not found.exact
            assert found.error > 0
        for place, key in enumerate(keys):
            self.check(found, place, aggregate, truth.get(key, []))

    def check(self, found: nearly.Answer, place: int, aggregate: str, chosen: list[Row]) -> None:
        self.asked += 1
        expected, slack = truth_of(aggregate, [row["a"] for row in chosen])
        value, low, high, hard_low, hard_high = (
            table[aggregate][place].as_py() for table in (found.table, found.low, found.high, found.hard_low, found.hard_high)
        )
        shown = (aggregate, value, low, high, hard_low, hard_high, found.exact, expected, slack)
        assert 0.0 <= found.progress <= 1.0
        if found.exact:
            assert found.error == 0
            assert found.progress == 1.0
            assert (value is None) == (expected is None), shown
        if expected is None or value is None:
            return
        if found.exact:
            assert value == pytest.approx(expected, rel=1e-9, abs=slack), shown
        assert hard_low is None or hard_low <= expected + slack, shown
        assert hard_high is None or hard_high >= expected - slack, shown
        assert low is None or low <= value, shown
        assert high is None or high >= value, shown
        if low is not None and high is not None:
            self.covered.append(low - slack <= expected <= high + slack)


def truth_of(aggregate: str, values: list[float | None]) -> tuple[float | None, float]:
    """An aggregate by definition, in exact arithmetic where that matters, and how much a double may be off."""
    known = [each for each in values if each is not None]
    if aggregate in ("rows", "count"):
        return len(values if aggregate == "rows" else known), 0.0
    if not known or (aggregate.endswith("samp") and len(known) < 2):
        return None, 0.0
    largest = max(map(abs, known))
    total, rounding = math.fsum(known), 1e-12 * math.fsum(map(abs, known))
    if aggregate == "sum":
        return total, rounding
    if aggregate == "avg":
        return total / len(known), rounding / len(known)
    if aggregate in ("min", "max"):
        return min(known) if aggregate == "min" else max(known), 0.0
    spread = float(np.var(known, ddof=1 if aggregate.endswith("samp") else 0))
    slack = 1e-9 * largest * largest
    return (spread, slack) if aggregate.startswith("var") else (math.sqrt(spread), math.sqrt(slack))


def run(path: Path, seed: int) -> History:
    draw = random.Random(seed)
    history = History(path, draw, draw.choice(["whole", "heavy", "mixed", "constant"]), keyed=draw.random() < 0.7)
    history.create()
    for _ in range(3):
        with history.session() as db, history.session() as other:
            history.live(db, other)
    with history.session() as db:
        assert db.synopsis("y").stats()["rows"] == db.table("t").info.rows == len(history.rows)
        history.ask(db)
        history.group(db)
    return history


@pytest.mark.parametrize("seed", range(15))
def test_histories_agree_with_the_rows(tmp_path: Path, seed: int) -> None:
    history = run(tmp_path, seed)
    assert history.asked


@pytest.mark.long
def test_many_histories_agree_with_the_rows(tmp_path: Path) -> None:
    """Over many histories intervals cover about as often as they promise, although trees, samples and rows are tiny."""
    covered: list[bool] = []
    for seed in range(1_000, 1_060):
        (tmp_path / str(seed)).mkdir()
        covered += run(tmp_path / str(seed), seed).covered
    assert np.mean(covered) > 0.9
