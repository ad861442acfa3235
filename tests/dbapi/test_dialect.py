"""SQLAlchemy over nearly: connecting, reflection, statements that it renders, and its errors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry

registry.register("nearly", "nearly.dbapi.dialect", "NearlyDialect")

ROWS = pa.table({
    "id": [1, 2, 3], "city": ["Oslo", "back\\slash", "it's"], "fare": [1.5, 2.0, 4.0],
    "day": [dt.date(2020, 1, day) for day in (1, 2, 3)],
})  # fmt: skip


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    home = tmp_path_factory.mktemp("lake")
    (home / "data").mkdir()
    pq.write_table(ROWS, home / "data" / "rides.parquet")
    made = sa.create_engine(f"nearly:///{home}/catalog?data={home}/data")
    yield made
    made.dispose()


def test_tables_are_reflected(engine: sa.Engine) -> None:
    inspector = sa.inspect(engine)
    assert inspector.get_table_names() == ["rides"]
    assert inspector.get_view_names() == []
    assert inspector.has_table("RIDES")
    assert not inspector.has_table("nowhere")
    columns = inspector.get_columns("rides")
    assert [type(each["type"]) for each in columns] == [sa.BigInteger, sa.String, sa.Double, sa.Date]
    assert inspector.get_pk_constraint("rides")["constrained_columns"] == []
    assert inspector.get_foreign_keys("rides") == inspector.get_indexes("rides") == []
    with pytest.raises(sa.exc.NoSuchTableError):
        sa.Table("nowhere", sa.MetaData(), autoload_with=engine)


def test_statements_are_rendered_and_answered(engine: sa.Engine) -> None:
    rides = sa.Table("rides", sa.MetaData(), autoload_with=engine)
    chosen = (
        sa.select(rides.c.city, sa.func.sum(rides.c.fare).label("total"), sa.cast(sa.func.count(), sa.String).label("n"))
        .where(rides.c.day >= dt.date(2020, 1, 2), rides.c.city.in_(["back\\slash", "it's", "none"]))
        .group_by(rides.c.city)
        .order_by(sa.desc("total"))
        .limit(5)
    )
    with engine.connect() as connection:
        assert connection.execute(chosen).all() == [("it's", 4.0, "1"), ("back\\slash", 2.0, "1")]
        assert (
            connection.execute(
                sa.select(rides.c.id).where(rides.c.city == sa.literal("back\\slash", literal_execute=True))
            ).scalar()
            == 2
        )
        assert connection.execute(sa.text("select max(fare) from rides where id < :most"), {"most": 3}).scalar() == 2.0
        joined = sa.select(sa.func.count()).select_from(rides.join(rides.alias("b"), sa.true()))
        assert connection.execute(joined).scalar() == 9
        with pytest.raises(sa.exc.ProgrammingError, match="unknown column 'nope'"):
            connection.execute(sa.text("select nope from rides"))


def test_changes_are_kept(engine: sa.Engine) -> None:
    rides = sa.Table("rides", sa.MetaData(), autoload_with=engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(rides), [{"id": 9, "city": "x", "fare": 1.0, "day": None}])
        assert connection.execute(sa.delete(rides).where(rides.c.id == 9)).rowcount == 1
        assert connection.execute(sa.select(sa.func.count()).select_from(rides)).scalar() == 3
