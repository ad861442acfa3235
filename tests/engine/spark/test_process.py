"""What is known of an embedded Spark before it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearly.engine.spark.cluster import sites_of_master
from nearly.engine.spark.process import ANSI, TIME_ZONE, foreseen_settings, local_time_zone


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TZ", "SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_SUBMIT_OPTS", "SPARK_ANSI_SQL_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "Asia/Tokyo")


def test_the_time_zone_is_that_of_the_environment_or_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert local_time_zone() == "Asia/Tokyo"
    monkeypatch.setenv("TZ", "CET-1CEST")
    assert local_time_zone() is None, "a rule has no name that Spark knows"
    monkeypatch.delenv("TZ")
    link = tmp_path / "localtime"
    assert local_time_zone(link) == "UTC"
    link.symlink_to("/usr/share/zoneinfo/Europe/Berlin")
    if link.exists():
        assert local_time_zone(link) == "Europe/Berlin"
    link.unlink()
    link.write_bytes(b"TZif2")
    assert local_time_zone(link) is None, "a copied file does not tell its name"


def test_settings_are_foreseen_only_where_nobody_else_has_a_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert foreseen_settings("local[2]") == {TIME_ZONE: "Asia/Tokyo", ANSI: "true"}
    assert foreseen_settings("spark://host:7077") == {}
    monkeypatch.setenv("SPARK_ANSI_SQL_MODE", "false")
    assert foreseen_settings("local[2]")[ANSI] == "false"
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert foreseen_settings("local[2]")
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.session.timeZone Europe/Paris")
    assert foreseen_settings("local[2]") == {}
    monkeypatch.delenv("SPARK_CONF_DIR")
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Duser.timezone=Europe/Paris")
    assert foreseen_settings("local[2]") == {}


def test_a_local_master_tells_its_slots() -> None:
    found = [sites_of_master(master) for master in ("local", "local[3]", "local[4, 2]", "spark://host:7077", "yarn")]
    assert [None if each is None else (each.executors, each.cores) for each in found] == [(1, 1), (1, 3), (1, 4), None, None]
