"""The generated retailer: the same rows for the same seed, facts in the order of time, keys that exist or are null."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from benchmarks.retailer.data import ensure_tables
from benchmarks.retailer.queries import NUMBERS, query

SCALE = "0.01"
KEYS = {
    "sold_day": "days.day_id", "sold_time": "clock.time_id", "product_id": "products.product_id",
    "shopper_id": "shoppers.shopper_id", "demo_id": "demographics.demo_id", "household_id": "households.household_id",
    "address_id": "addresses.address_id", "shop_id": "shops.shop_id", "campaign_id": "campaigns.campaign_id",
    "depot_id": "depots.depot_id", "carrier_id": "carriers.carrier_id", "site_id": "sites.site_id",
    "centre_id": "centres.centre_id", "reason_id": "reasons.reason_id",
}  # fmt: skip


@pytest.fixture(scope="module")
def tables() -> dict[str, Path]:
    return ensure_tables(SCALE)


@pytest.fixture(scope="module")
def database(tables: dict[str, Path]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, path in tables.items():
        connection.execute(f"create view {name} as from read_parquet('{path}/*.parquet')")
    return connection


def test_the_same_seed_gives_the_same_rows(tables: dict[str, Path], tmp_path: Path) -> None:
    for name, path in ensure_tables(SCALE, tmp_path).items():
        assert pq.read_table(path).equals(pq.read_table(tables[name])), name


@pytest.mark.parametrize("fact", ["shop_sales", "mail_sales", "online_sales"])
def test_sales_are_in_the_order_of_time(fact: str, tables: dict[str, Path]) -> None:
    days = [day for day in pq.read_table(tables[fact])["sold_day"].to_pylist() if day is not None]
    assert days == sorted(days)


@pytest.mark.parametrize("fact", ["shop_sales", "shop_returns", "mail_sales", "mail_returns", "online_sales", "online_returns"])
def test_keys_exist_or_are_null(fact: str, database: duckdb.DuckDBPyConnection) -> None:
    for column in {*database.table(fact).columns} & {*KEYS}:
        table, key = KEYS[column].split(".")
        (lost, missing), = database.execute(
            f"select count(*) filter (where {column} not in (select {key} from {table})), avg(({column} is null)::int) from {fact}"
        ).fetchall()  # fmt: skip
        assert lost == 0
        assert missing == 0 if column == "product_id" else 0.01 < missing < 0.06


def test_there_are_many_queries_and_a_limit_has_an_order() -> None:
    assert len(NUMBERS) >= 66
    for number in NUMBERS:
        text = query(number)
        assert text.startswith(("select", "with"))
        assert "limit" not in text or "order by" in text or number == 28
