"""Frames: the example that WAKE begins with, and how answers are had while they tighten."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

import nearly
from nearly.progressive.frame import Frame

LARGE_ORDERS = """
    select name, sum(qty) as total
    from (select order_id, sum(quantity) as qty from lines group by order_id having sum(quantity) > 250)
    join orders using (order_id) join customers using (customer)
    group by name order by total desc, name limit 100
"""


def large_orders(db: nearly.Session) -> Frame:
    """The customers with the largest orders (WAKE, section 1)."""
    lines, orders, customers = (db.table(name) for name in ("lines", "orders", "customers"))
    large = lines.agg(qty=nearly.sum("quantity"), by="order_id").filter("qty > 250")
    by_customer = large.join(orders, on="order_id").join(customers, on="customer").agg(total=nearly.sum("qty"), by="name")
    return by_customer.sort("-total", "name").limit(100)


def test_large_orders_by_customer(frames: nearly.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    """Every step evolves; the last answer is what SQL gives, in its order."""
    frame = large_orders(frames)
    answers = list(frame)
    assert len(answers) > 1
    assert not answers[0].exact
    assert answers[-1].exact
    assert all(answer.table.schema == answers[-1].table.schema for answer in answers), "consistency: one schema for all answers"
    assert [answer.progress for answer in answers] == sorted(answer.progress for answer in answers)
    assert answers[-1].table.to_pylist() == oracle.sql(LARGE_ORDERS).to_arrow_table().to_pylist()
    assert answers[-1].table.equals(frames.sql(LARGE_ORDERS).exact().table)


def test_get_then_final(frames: nearly.Session) -> None:
    frame = frames.table("lines").agg(n=nearly.count(), by="größe")
    assert (frame.is_final, frame.progress, frame.growth) == (False, 0.0, None), "nothing has run"
    first = frame.get()
    assert 0 < first.progress <= 1
    final = frame.get_final()
    assert frame.is_final
    assert final.exact
    assert frame.get() is final
    assert [answer.exact for answer in frame] == [True], "a late reader gets the newest answer"


def test_extending_a_frame_that_evolves(frames: nearly.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    """A frame that has begun to run is extended; both give their own answers."""
    counts = frames.table("lines").agg(n=nearly.count(), by="order_id")
    counts.get()
    histogram = counts.agg(orders=nearly.count(), by="n").sort("n")
    expected = oracle.sql("select n, count(*) orders from (select count(*) n from lines group by order_id) group by n order by n")
    assert histogram.get_final().table.to_pylist() == expected.to_arrow_table().to_pylist()
    assert counts.get_final().table.num_rows == 100_000


def test_stopped_frame_keeps_its_answer(frames: nearly.Session) -> None:
    frame = frames.table("lines").agg(s=nearly.sum("quantity"))
    first = frame.get()
    frame.stop()
    frame.stop()
    assert frame.get().progress >= first.progress
    assert [answer.table.schema for answer in frame] == [first.table.schema]


def test_stopping_what_never_ran(frames: nearly.Session) -> None:
    frame = frames.table("lines")
    frame.stop()
    assert not frame.is_final


def test_many_readers(frames: nearly.Session) -> None:
    """Threads that ask one frame at the same time share one run."""
    frame = frames.table("lines").agg(s=nearly.sum("quantity"))
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(frame.get_final())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(answer) for answer in found}) == 1


def test_closing_the_session_ends_its_frames(spark: Any, frame_files: dict[str, Path], tmp_path: Path) -> None:
    with nearly.connect(spark, path=tmp_path, executors=1, cores=2, eager=True) as session:
        session.register("lines", frame_files["lines"])
        frame = session.table("lines").agg(s=nearly.sum("quantity"))
        answer = frame.get()
    assert frame.progress >= answer.progress
    for use in (frame.get, frame.get_final, lambda: session.table("lines")):
        with pytest.raises(nearly.EngineError, match="closed"):
            use()


def test_info_is_the_table(frames: nearly.Session) -> None:
    assert frames.table("LINES").info.rows == frames.sql("select count(*) n from lines").exact().table["n"][0].as_py()
    assert frames.table("lines").info.name == "lines"
    with pytest.raises(nearly.SchemaError, match="computed"):
        _ = frames.table("lines").limit(1).info


def test_empty_table(frames: nearly.Session) -> None:
    empty = frames.table("empty")
    assert empty.get_final().table.num_rows == 0
    totals = empty.agg(s=nearly.sum("x"), n=nearly.count()).get_final()
    assert totals.table.to_pylist() == [{"s": None, "n": 0}]
    assert empty.agg(s=nearly.sum("x"), by="id").get_final().table.num_rows == 0


def test_confidence_and_seed_are_the_tables(frames: nearly.Session) -> None:
    frame = frames.table("lines", confidence=0.5, seed=3).agg(s=nearly.sum("quantity"))
    first, of_query = next(iter(frame)), next(iter(frames.sql(frame.sql, confidence=0.5, seed=3)))
    assert (first.confidence, first.table, first.low) == (0.5, of_query.table, of_query.low)
