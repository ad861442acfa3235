"""First units in memory: the same rows as in the files, whichever columns were asked for, and never dropped while they are used."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from nearly.engine.native import engine as worker
from nearly.engine.native.engine import Native
from nearly.engine.native.first_units import FirstPiece, FirstUnits
from nearly.engine.native.reading import NativeReader
from nearly.engine.storage.catalog import Catalog
from nearly.engine.stream.units import Units, columns_read, units_of
from nearly.plan.nodes import Scan
from nearly.rewrite.stream.cut import Cut
from tests.engine.stream.test_units import scan_of, table_of

END = 5


@pytest.fixture
def samples() -> FirstUnits:
    return FirstUnits(Native())


def units_and_scan(path: Path, *columns: str) -> tuple[Units, Scan]:
    catalog = Catalog(path / "catalog")
    table = catalog.table("t") if "t" in catalog else table_of(catalog, path, "t", [at // 3 for at in range(9_000)], 4, 100)
    scan = scan_of("t", *columns)
    return units_of(Cut(scan, (), (scan,), True), [table], 0), scan


def piece_of(units: Units, scan: Scan) -> FirstPiece:
    query = partial(units.first, NativeReader(), scan, end=END)
    return FirstPiece("piece_0", units.rows_before(scan, END), columns_read(scan), query)


def keep_twice(samples: FirstUnits, piece: FirstPiece) -> None:
    samples.keep([piece], ())
    samples.keep([piece], ())
    samples.settle()


def rows(samples: FirstUnits, query: str) -> Counter[Any]:
    with samples.engine.cursor() as cursor:
        return Counter(cursor.sql(query).fetchall())


@pytest.mark.parametrize("columns", [("k", "row_"), ("row_",), ()])
def test_law_memory_gives_the_rows_of_the_files(samples: FirstUnits, tmp_path: Path, columns: tuple[str, ...]) -> None:
    units, scan = units_and_scan(tmp_path, *columns)
    piece = piece_of(units, scan)
    with samples.holding([piece]) as kept:
        assert kept == {}
    keep_twice(samples, piece)
    expected = Counter(row for query in units.queries(NativeReader(), scan, END) for row in duckdb.sql(query).fetchall())
    with samples.holding([piece]) as kept:
        found = rows(samples, kept["piece_0"])
    assert found == (expected if columns else Counter({(row[-1],): n for row, n in by_unit(expected).items()}))


def by_unit(found: Counter[Any]) -> Counter[Any]:
    return sum((Counter({(row[-1],): n}) for row, n in found.items()), Counter())


def test_once_is_not_worth_keeping(samples: FirstUnits, tmp_path: Path) -> None:
    piece = piece_of(*units_and_scan(tmp_path, "k"))
    samples.keep([piece], ())
    samples.settle()
    with samples.holding([piece]) as kept:
        assert kept == {}


def test_other_columns_are_added(samples: FirstUnits, tmp_path: Path) -> None:
    one, other = (piece_of(*units_and_scan(tmp_path, column)) for column in ("k", "row_"))
    keep_twice(samples, one)
    with samples.holding([other]) as kept:
        assert kept == {}
    samples.keep([other], ())
    samples.settle()
    with samples.holding([one]) as kept, samples.holding([other]) as also:
        assert rows(samples, kept["piece_0"]).total() == rows(samples, also["piece_0"]).total() > 0
    with samples.engine.cursor() as cursor:
        assert len(cursor.sql("SHOW TABLES").fetchall()) == 1


def test_what_is_held_stays(samples: FirstUnits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    piece = piece_of(*units_and_scan(tmp_path, "k"))
    keep_twice(samples, piece)
    monkeypatch.setattr(worker, "MOST_STATIC_CELLS", 10)
    with samples.holding([piece]) as kept:
        samples.engine.load([("a", "SELECT * FROM range(100)")])
        assert rows(samples, kept["piece_0"])
    samples.engine.load([("b", "SELECT * FROM range(100)")])
    with samples.holding([piece]) as kept:
        assert kept == {}
    assert samples.engine.has("b")
    assert not samples.engine.has("a")


def test_a_vanished_file_is_not_kept_and_not_an_error(samples: FirstUnits, tmp_path: Path) -> None:
    piece = piece_of(*units_and_scan(tmp_path, "k"))
    for path in (tmp_path / "t").glob("*.parquet"):
        path.unlink()
    keep_twice(samples, piece)
    with samples.holding([piece]) as kept:
        assert kept == {}


def test_closed_samples_keep_nothing(samples: FirstUnits, tmp_path: Path) -> None:
    piece = piece_of(*units_and_scan(tmp_path, "k"))
    samples.close()
    samples.keep([piece], ())
    samples.keep([piece], ())
