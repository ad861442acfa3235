"""CSV and JSON files without Spark: what is read is what Spark reads, and what it reads differently is left to it."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nearly.engine.storage.layouts import Origin
from nearly.engine.text.files import read_plainly

PLAIN = {
    "numbers": "a,b,c,d\n1,2.5,3000000000,-7\n,3,4,\n-2147483648,0.125,999999999999999999,12.75\n",
    "texts": 'name,note\nAnna,"x, y"\nBob,\n"Tom"," blank "\nthe end,12\n',
    "times": "d,t,b\n2020-02-29,2020-01-01 10:00:00,true\n1999-12-31,2020-06-01 23:59:59.5,FALSE\n,,\n",
    "all null": "a,b\n1,\n2,\n",
    "windows": "a,b\r\n1,x\r\n2,y\r\n",
    "no last newline": "a,b\n1,x",
    "odd names": "a b,Ünï,select\n1,2,3\n",
    "letters": "a,b\nA,N\nR,F\n",
    "small first": "a,b,c\n" + "1,1,x\n" * 3000 + "5000000000,1.5,7\n",
    "text last": "a\n" + "Oslo\n" * 2500 + "17\n",
}
NOT_PLAIN = {
    "leading zeros": "a\n007\n",
    "plus": "a\n+5\n",
    "exponent": "a\n1e5\n2\n",
    "too many digits": "a\n12345678901234567890\n",
    "time alone": "a\n12:30\n",
    "dates and times": "a\n2020-01-01\n2020-01-01 10:00:00\n",
    "no such day": "a\n2020-02-30\n",
    "nan": "a\nNaN\n1.5\n",
    "doubled quote": 'a,b\n"x""y",1\n',
    "quote within": 'a,b\nx"y,1\n',
    "backslash": 'a,b\n"x\\"",1\n',
    "two lines": 'a,b\n"x\ny",1\n',
    "blank line": "a,b\n1,2\n\n3,4\n",
    "blanks": "a,b\n1,2\n  \n3,4\n",
    "short row": "a,b\n1\n2,3\n",
    "long row": "a,b\n1,2,3\n",
    "equal names": "a,A\n1,2\n",
    "no name": "a,\n1,2\n",
    "no rows": "a,b\n",
    "empty": "",
    "mark": "\ufeffa,b\n1,2\n",
    "return alone": "a,b\r1,2\r",
    "zero": "a\nx\0y\n",
    "mixed": "a\n1\ntrue\n",
    "digits of others": "a\n\u0661\u0662\n",
    "blank before": "a\n 5\n",
}
JSON = {
    "kinds": '{"b": 1, "a": "x"}\n{"b": 2.5, "c": true}\n{"a": null, "z": null}\n',
    "whole": '{"n": 1}\n{"n": -9007199254740993}\n{"n": 0}\n',
    "texts": '{"t": "2020-01-01", "u": "\\u00e9\\n", "e": ""}\n{"t": "b", "u": "", "e": ""}\n',
    "missing": '{"a": 1}\n{"b": "x"}\n{}\n',
}
NOT_PLAIN_JSON = {
    "nested": '{"a": {"b": 1}}\n',
    "list": '{"a": [1]}\n',
    "kinds": '{"a": 1}\n{"a": "x"}\n',
    "case": '{"a": 1, "A": 2}\n',
    "twice": '{"a": 1, "a": 2}\n',
    "broken": '{"a": 1}\n{"a": \n',
    "array": '[{"a": 1}]\n',
    "large": '{"a": 18446744073709551615}\n{"a": 99999999999999999999999}\n',
    "empty": "",
}


POOLS = [
    line.split("|")
    for line in """1|22|-3|2147483648|0
1.5|2|-0.25|100.0
2020-01-01|1999-12-31|
true|False|
Oslo|x y|12||T1
2020-01-01 10:00:00|
1e3|5
+1|2
12:30|a
nan|1
-0|1
1.|2
.5|1
T|Z
0x1|1d
Infinity|1.0
2020-1-1|2020-01-01
2020|2021
2020-01|2020-02
é|1
null|1
NULL|x
1_000|2
today|now""".splitlines()
]


def native(path: Path, utc: bool = True) -> pa.Table | None:
    kind = "json" if ".json" in path.suffixes else "csv"
    return read_plainly(Origin(kind, (str(path),)), utc)


def by_spark(spark: Any, path: Path) -> pa.Table:
    if ".json" in path.suffixes:
        return spark.read.json(str(path)).toArrow()
    separator = "\t" if ".tsv" in path.suffixes else ","
    return spark.read.csv(str(path), header=True, inferSchema=True, sep=separator).toArrow()


def same(mine: pa.Table, theirs: pa.Table) -> None:
    assert mine.schema.names == theirs.schema.names
    assert mine.schema.types == theirs.schema.types
    assert mine.to_pylist() == theirs.to_pylist()


@pytest.mark.parametrize("name", PLAIN)
def test_csv_is_read_as_spark_reads_it(name: str, spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(PLAIN[name].encode())
    mine = native(path)
    assert mine is not None
    same(mine, by_spark(spark, path))


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_csv_that_readers_differ_in_is_left_to_spark(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(NOT_PLAIN[name].encode())
    assert native(path) is None


def test_times_outside_utc_are_left_to_spark(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(PLAIN["times"])
    assert native(path, utc=False) is None


def test_compressed_tabbed_and_several_files(spark: Any, tmp_path: Path) -> None:
    tabbed = tmp_path / "t.tsv.gz"
    tabbed.write_bytes(gzip.compress(b"a\tb\n1\tx,y\n\tz\n"))
    mine = native(tabbed)
    assert mine is not None
    same(mine, by_spark(spark, tabbed))
    several = tmp_path / "several.csv"
    several.mkdir()
    for place in range(3):
        (several / f"part-{place}.csv").write_text(f"a,b\n{place},{'x' if place else 1.5}\n")
    rows = read_plainly(Origin("csv", (str(several),)), True)
    assert rows is not None
    assert rows.schema.types == [pa.int32(), pa.string()]
    assert rows["b"].to_pylist() == ["1.5", "x", "x"]
    (several / "part-3.csv").write_text("b,a\n1,2\n")
    assert read_plainly(Origin("csv", (str(several),)), True) is None


@pytest.mark.parametrize("name", JSON)
def test_json_is_read_as_spark_reads_it(name: str, spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(JSON[name])
    mine = read_plainly(Origin("json", (str(path),)), True)
    assert mine is not None
    same(mine, spark.read.json(str(path)).toArrow())


@pytest.mark.parametrize("name", NOT_PLAIN_JSON)
def test_json_that_readers_differ_in_is_left_to_spark(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(NOT_PLAIN_JSON[name])
    assert native(path) is None


@pytest.mark.long
def test_random_files_are_read_as_spark_reads_them_or_not_at_all(spark: Any, tmp_path: Path) -> None:
    draw = random.Random(17)
    read = 0
    for number in range(60):
        columns = [draw.choice(POOLS) for _ in range(draw.randint(1, 3))]
        rows = [[f'"{draw.choice(pool)}"' if draw.random() < 0.1 else draw.choice(pool) for pool in columns] for _ in range(5)]
        header = [f"c{place}" for place in range(len(columns))]
        path = tmp_path / f"{number}.csv"
        path.write_text("".join(",".join(line) + "\n" for line in [header, *rows]))
        mine = native(path)
        if mine is not None:
            read += 1
            same(mine, by_spark(spark, path))
    assert read >= 10
