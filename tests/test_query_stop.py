"""A stop that comes while a query begins stops the run that begins, not another one."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearly import query
from nearly.engine.jobs.native_kernel import NativeKernel
from nearly.engine.native.running import Stopped
from nearly.plan.nodes import Plan
from tests.fixtures.driver_only import driver_only


@pytest.mark.parametrize("after_exact", [False, True])
def test_a_stop_while_a_query_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after_exact: bool) -> None:
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "t.parquet")
    began, may_go, made, real = threading.Event(), threading.Event(), list[Any](), query.Run

    def slowly(*given: Any) -> Any:
        began.set()
        may_go.wait(30)
        made.append(real(*given))
        return made[-1]

    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "t.parquet")
        asked = db.sql("select sum(a) as s from t")
        if after_exact:
            asked.exact()
        monkeypatch.setattr(query, "Run", slowly)
        answers: list[Any] = []
        reader = threading.Thread(target=lambda: answers.extend(asked))
        reader.start()
        assert began.wait(30)
        stopper = threading.Thread(target=asked.stop)
        stopper.start()
        may_go.set()
        stopper.join(30)
        reader.join(30)
    assert len(made) == 1
    assert made[0]._ended.is_set()


def test_a_query_that_a_view_answers_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"g": [1, 1, 2], "a": [1, 2, 3]}), tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "t.parquet")
        db.create_view("v", "select g, sum(a) as s from t group by g")
        asked = db.sql("select g, sum(a) as s from t group by g")
        assert asked.exact().source == "view v"
        run = NativeKernel.run

        def stopping(self: NativeKernel, plan: Plan) -> pa.Table:
            asked.stop()
            return run(self, plan)

        monkeypatch.setattr(NativeKernel, "run", stopping)
        with pytest.raises(Stopped):
            asked.exact()
