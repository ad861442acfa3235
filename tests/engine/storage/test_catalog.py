"""The catalog: what it registers, what it refuses, and that it survives damage, races and re-opening."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearly.engine.storage.blocks import BlockTarget
from nearly.engine.storage.catalog import Catalog, check_name
from nearly.engine.storage.clustering import Clustering
from nearly.engine.storage.registration import register_parquet
from nearly.errors import EngineError, SchemaError, UnknownName, Unsupported
from tests.processes import HUNG


def write(path: Path, **columns: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=10)
    return path


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "catalog")


def test_a_table_is_the_same_after_opening_again(catalog: Catalog, tmp_path: Path) -> None:
    values = [1.5, math.nan, None, -0.0, math.inf] * 10
    write(tmp_path / "d" / "größe=a%2Fb" / "f.parquet", ключ=list(range(50)), v=values, s=["ä"] * 50)
    table = register_parquet(catalog, "Tabelle_ß", tmp_path / "d", key=["КЛЮЧ"])
    assert table.key == ("ключ",)
    again = Catalog(catalog.path)
    assert again.table("tabelle_ß") == table
    assert again.names == ("Tabelle_ß",)
    assert "TABELLE_ß" in again
    assert table.column_names == ("ключ", "v", "s", "größe")
    assert table.base.blocks[0].partition[0].value == "a/b"


def test_a_moved_catalog_still_opens(catalog: Catalog, tmp_path: Path) -> None:
    source = write(catalog.directory("t") / "base-1" / "f.parquet", x=[1, 2])
    register_parquet(catalog, "t", source)
    moved = catalog.path.rename(tmp_path / "moved")
    table = Catalog(moved).table("t")
    assert table.base.manifest.paths == (str(moved / "tables" / "t" / "base-1" / "f.parquet"),)


@pytest.mark.parametrize("name", ["", " ", "a b", "a.b", "a/b", "../x", "12", "x" * 129, "a\n", "select;", "`", "🙂"])
def test_absurd_names_are_refused(catalog: Catalog, tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "f.parquet", x=[1])
    with pytest.raises(SchemaError, match="cannot name a table"):
        register_parquet(catalog, name, path)
    assert catalog.names == ()


@pytest.mark.parametrize("name", ["t", "_", "T2", "größe", "表", "x" * 128])
def test_identifiers_of_any_script_are_names(name: str) -> None:
    assert check_name(name) == name


def test_names_are_compared_without_case_and_replaced(catalog: Catalog, tmp_path: Path) -> None:
    first = register_parquet(catalog, "Orders", write(tmp_path / "a.parquet", x=[1]))
    second = register_parquet(catalog, "ORDERS", write(tmp_path / "b.parquet", x=[1, 2]))
    assert catalog.names == ("ORDERS",)
    assert catalog.table("orders") == second
    assert first.content != second.content


def test_drop_forgets_the_table_and_keeps_the_users_files(catalog: Catalog, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", x=[1])
    register_parquet(catalog, "t", path)
    catalog.drop("T")
    assert catalog.names == ()
    assert path.exists()
    with pytest.raises(UnknownName, match="'t'"):
        catalog.table("t")
    with pytest.raises(UnknownName):
        catalog.drop("t")


def test_an_unknown_table_offers_close_names(catalog: Catalog, tmp_path: Path) -> None:
    register_parquet(catalog, "lineitem", write(tmp_path / "a.parquet", x=[1]))
    with pytest.raises(UnknownName, match="did you mean 'lineitem'"):
        catalog.table("lineitm")


@pytest.mark.parametrize("damage", ["cut", "digit", "binary", "empty", "format"])
def test_differs_a_damaged_catalog_file_is_named(catalog: Catalog, tmp_path: Path, damage: str) -> None:
    register_parquet(catalog, "t", write(tmp_path / "a.parquet", x=[1, 2, 3]))
    file = catalog.directory("t") / "table.json"
    text = file.read_text()
    outer = json.loads(text)
    changed = {
        "cut": text[: len(text) // 2].encode(),
        "digit": json.dumps({**outer, "body": outer["body"].replace("0", "4")}).encode(),
        "binary": b"\xff\xfe\x00",
        "empty": b"",
        "format": json.dumps({**outer, "format": 99}).encode(),
    }[damage]
    assert changed != text.encode()
    file.write_bytes(changed)
    with pytest.raises(EngineError, match=r"table\.json"):
        Catalog(catalog.path)
    with pytest.raises(EngineError, match=r"table\.json"):
        catalog.table("t")


def test_a_catalog_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(EngineError, match="cannot make a catalog"):
        Catalog(tmp_path / "f")


def test_another_process_is_seen(catalog: Catalog, tmp_path: Path) -> None:
    register_parquet(catalog, "t", write(tmp_path / "a.parquet", x=[1]))
    other = Catalog(catalog.path)
    register_parquet(other, "t", write(tmp_path / "b.parquet", x=[1, 2]))
    assert catalog.table("t").rows == 2


_RACE = """
import sys
from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.registration import register_parquet
catalog = Catalog(sys.argv[1])
for turn in range(40):
    register_parquet(catalog, "t", sys.argv[2])
    assert catalog.table("t").rows in (10, 20)
"""


def test_differs_two_processes_never_leave_a_damaged_file(catalog: Catalog, tmp_path: Path) -> None:
    sources = [write(tmp_path / f"{rows}.parquet", x=list(range(rows))) for rows in (10, 20)]
    racers = [subprocess.Popen([sys.executable, "-c", _RACE, str(catalog.path), str(path)]) for path in sources]
    assert [racer.wait(timeout=HUNG) for racer in racers] == [0, 0]
    assert Catalog(catalog.path).table("t").rows in (10, 20)
    assert all(re.fullmatch(r"table\.json|(whole|log)-[0-9a-f]{12}\.json", path.name) for path in catalog.directory("t").iterdir())


def test_the_temporary_files_of_a_dead_writer_are_removed_and_those_of_a_living_one_are_not(catalog: Catalog) -> None:
    dead = catalog.directory("t") / ".tmp-dead"
    dead.mkdir(parents=True)
    (dead / "owner").touch()
    with catalog.temporary("u") as living:
        (living / "f").touch()
        Catalog(catalog.path)
        assert not dead.exists()
        assert (living / "f").exists()
    assert not living.exists()


def test_what_the_table_does_not_refer_to_is_removed(catalog: Catalog, tmp_path: Path) -> None:
    kept = write(catalog.directory("t") / "base-0123456789ab" / "f.parquet", x=[1])
    orphan = write(catalog.directory("t") / "base-ba9876543210" / "f.parquet", x=[1])
    foreign = write(catalog.directory("t") / "mine" / "f.parquet", x=[1])
    register_parquet(catalog, "t", kept)
    Catalog(catalog.path)
    assert kept.exists()
    assert foreign.exists()
    assert not orphan.exists()


def test_no_files_is_an_error_and_no_rows_is_a_table(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    with pytest.raises(EngineError, match="no data files"):
        register_parquet(catalog, "t", tmp_path / "nothing")
    with pytest.raises(EngineError, match="does not exist"):
        register_parquet(catalog, "t", tmp_path / "missing" / "*.parquet")
    empty = register_parquet(catalog, "t", write(tmp_path / "e.parquet", x=pa.array([], pa.int32())))
    assert (empty.rows, empty.base.blocks, empty.base.clustering) == (0, (), None)
    one = register_parquet(catalog, "t", write(tmp_path / "o.parquet", x=[1]))
    assert (one.rows, len(one.base.blocks)) == (1, 1)


def test_hidden_files_are_skipped_and_other_files_named(catalog: Catalog, tmp_path: Path) -> None:
    directory = tmp_path / "d"
    write(directory / "a.parquet", x=[1])
    for name in ("_SUCCESS", ".a.parquet.crc", "_metadata_copy", "x._COPYING_"):
        (directory / name).write_text("")
    assert register_parquet(catalog, "t", directory).rows == 1
    assert register_parquet(catalog, "t", directory / "*").rows == 1
    (directory / "empty.parquet").write_bytes(b"")
    with pytest.raises(EngineError, match=r"empty\.parquet is empty"):
        register_parquet(catalog, "t", directory)
    (directory / "empty.parquet").write_text("a,b\n1,2\n" * 9)
    with pytest.raises(EngineError, match=r"empty\.parquet is not a whole Parquet file"):
        register_parquet(catalog, "t", directory)
    assert catalog.table("t").rows == 1


def test_files_come_in_natural_order_and_each_once(catalog: Catalog, tmp_path: Path) -> None:
    for number in (1, 2, 10):
        write(tmp_path / "d" / f"p.{number}.parquet", s=["same"] * 3)
    both = register_parquet(catalog, "t", [tmp_path / "d", str(tmp_path / "d" / "p.1*.parquet")])
    assert [Path(path).name for path in both.base.manifest.paths] == ["p.1.parquet", "p.2.parquet", "p.10.parquet"]
    assert both.rows == 9


def test_differs_schemas_that_differ_are_refused_with_both_files(catalog: Catalog, tmp_path: Path) -> None:
    for name, columns in {"a": {"x": [1]}, "b": {"x": ["1"]}}.items():
        write(tmp_path / "d" / f"{name}.parquet", **columns)
    with pytest.raises(SchemaError, match=r"a\.parquet and .*b\.parquet differ in schema: x bigint against x string"):
        register_parquet(catalog, "t", tmp_path / "d")
    write(tmp_path / "d" / "b.parquet", x=[1], y=[2])
    with pytest.raises(SchemaError, match="column y is in one of them only"):
        register_parquet(catalog, "t", tmp_path / "d")


def test_columns_whose_names_differ_in_case_only_are_refused(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="two columns named 'X'"):
        register_parquet(catalog, "t", write(tmp_path / "a.parquet", x=[1], X=[2]))


def test_unknown_key_and_clustering_columns_are_refused(catalog: Catalog, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", x=[1])
    with pytest.raises(UnknownName, match="'y'"):
        register_parquet(catalog, "t", path, key=["y"])
    with pytest.raises(UnknownName, match="'y'"):
        register_parquet(catalog, "t", path, clustered_by=["y"])
    with pytest.raises(SchemaError, match="twice"):
        register_parquet(catalog, "t", path, key=["x", "X"])


def test_other_table_formats_and_plain_subdirectories_are_refused(catalog: Catalog, tmp_path: Path) -> None:
    write(tmp_path / "delta" / "a.parquet", x=[1])
    (tmp_path / "delta" / "_delta_log").mkdir()
    with pytest.raises(Unsupported, match="Delta"):
        register_parquet(catalog, "t", tmp_path / "delta")
    write(tmp_path / "nested" / "sub" / "a.parquet", x=[1])
    with pytest.raises(Unsupported, match="'sub' is no partition directory"):
        register_parquet(catalog, "t", tmp_path / "nested")
    assert register_parquet(catalog, "t", tmp_path / "nested" / "*" / "*.parquet").rows == 1
    with pytest.raises(Unsupported, match="not a local path"):
        register_parquet(catalog, "t", "s3://bucket/x.parquet")


def ranges(tmp_path: Path, *groups: list[object], name: str = "f") -> Path:
    values = [value for group in groups for value in group]
    path = tmp_path / f"{name}.parquet"
    with pq.ParquetWriter(path, pa.schema([("c", pa.int64()), ("x", pa.array(values).type)])) as writer:
        for group in groups:
            writer.write_table(pa.table({"c": [7] * len(group), "x": pa.array(group, pa.array(values).type)}))
    return path


@pytest.mark.parametrize(
    ("groups", "clustered"),
    [
        ([[1, 5], [5, 9], [9, 12]], True),
        ([[9, 12], [1, 5], [5, 9]], True),
        ([["a", "b"], ["c", "d"]], True),
        ([[1, 6], [5, 9]], False),
        ([[1, None], [5, 9]], False),
        ([[1, 2]], False),
        ([[1, 1], [1, 1], [1, 1], [2, 2]], False),
        ([[1.0, 2.0], [3.0, 4.0]], False),
    ],
)
def test_range_clustering_is_found_in_the_footers(
    catalog: Catalog, tmp_path: Path, groups: list[list[object]], clustered: bool
) -> None:
    table = register_parquet(catalog, "t", ranges(tmp_path, *groups))
    assert table.base.clustering == (Clustering("range", ("x",)) if clustered else None)


def test_tiny_files_are_grouped_in_the_order_of_the_clustering(catalog: Catalog, tmp_path: Path) -> None:
    for number, start in enumerate([30, 0, 20, 10]):
        write(tmp_path / "d" / f"{number}.parquet", x=list(range(start, start + 10)))
    table = register_parquet(catalog, "t", tmp_path / "d", target=BlockTarget(rows=20, bytes=1 << 20))
    found = [block.statistics_of("x") for block in table.base.blocks]
    assert [(each.low, each.high) for each in found if each] == [(0, 19), (20, 39)]


def test_differs_a_false_declaration_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    path = ranges(tmp_path, [1, 6], [5, 9])
    with pytest.raises(SchemaError, match=r"clustered_by=\['x'\] does not hold.*1 to 6.*5 to 9"):
        register_parquet(catalog, "t", path, clustered_by=["X"])
    with pytest.raises(SchemaError, match="cannot be checked"):
        register_parquet(catalog, "t", ranges(tmp_path, [1, None], [5, 9]), clustered_by=["x"])
    table = register_parquet(catalog, "t", ranges(tmp_path, [1, 5], [5, 9]), clustered_by=["x", "c"])
    assert table.base.clustering == Clustering("range", ("x", "c"))


def test_a_clustered_layout_is_found_by_its_columns(catalog: Catalog, tmp_path: Path) -> None:
    table = register_parquet(catalog, "t", ranges(tmp_path, [1, 5], [6, 9]))
    assert table.clustered_by(["X"]) == table.base
    assert table.clustered_by(["x", "c"]) == table.base
    assert table.clustered_by(["c"]) is None
    assert table.layout("base") == table.base
    with pytest.raises(UnknownName, match="layout 'other'"):
        table.layout("other")


def test_a_pin_is_replaced_and_one_without_its_number_keeps_all_versions(catalog: Catalog, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")
    register_parquet(catalog, "t", str(tmp_path / "t.parquet"))
    pin = catalog.directory("t") / "pins" / "v.pin"
    for version in (1, 2, 2):
        catalog.keep("t", "v", version)
        assert pin.read_text(encoding="utf-8") == str(version)
    pin.write_text("", encoding="utf-8")
    assert catalog._versions._pinned(catalog.directory("t")) == 0
    catalog.keep("t", "v", None)
    assert not pin.exists()
