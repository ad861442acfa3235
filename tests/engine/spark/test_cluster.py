"""What a session asks of a Spark that it was given before the first query."""

from __future__ import annotations

from typing import Any

import pytest

from nearly.engine.spark import cluster
from nearly.engine.spark.cluster import Cluster, Sites


def test_workers_that_another_session_has_just_started_will_do(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def probe(_: Any, cores: int) -> Sites:
        started.append(cores)
        return Sites(1, cores)

    def opened() -> Sites:
        found = Cluster(spark)
        assert found._warm_up is not None
        found._warm_up.join()
        found.close()
        return found.sites

    monkeypatch.setattr(cluster, "probe", probe)
    monkeypatch.setattr(cluster, "_warmed", {})
    assert [opened(), opened()] == [Sites(1, 2)] * 2
    assert started == [2]
    monkeypatch.setattr(cluster, "WARM_SECONDS", 0.0)
    opened()
    assert started == [2, 2], "Spark has let them go meanwhile"
