"""Tools that look around, as they are: JDBC's DatabaseMetaData, the commands of psql, the inspector of SQLAlchemy."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from pathlib import Path

import pytest

from nearly.web.server import Addresses, Server

JDBC = next((path for path in (Path("/usr/share/java/postgresql.jar"),) if path.exists()), None)
PROGRAM = Path(__file__).with_name("Describe.java")
COMMANDS = (
    "\\d", "\\d+", "\\d rides", "\\d+ rides", "\\d by_city", "\\d+ by_city", "\\d rides_pkey", "\\dt", "\\dt+", "\\di", "\\di+",
    "\\dv", "\\dm", "\\dm+", "\\ds", "\\dE", "\\df", "\\df+", "\\da", "\\dn", "\\dn+", "\\l", "\\l+", "\\du", "\\dp", "\\ddp",
    "\\dT", "\\dT+", "\\dD", "\\dC", "\\do", "\\dO", "\\dF", "\\dx", "\\dy", "\\db", "\\db+", "\\des", "\\dew", "\\det", "\\dRp",
    "\\dA", "\\dAc", "\\dAf", "\\dAo", "\\dL", "\\dP", "\\dc", "\\dd", "\\drds", "\\dX", "\\conninfo", "\\dconfig",
)  # fmt: skip


@pytest.mark.skipif(JDBC is None or shutil.which("javac") is None, reason="no JDBC driver (libpostgresql-jdbc-java) or no javac")
def test_jdbc_describes_everything(server: tuple[Server, Addresses], tmp_path: Path) -> None:
    subprocess.run(["javac", "-d", str(tmp_path), str(PROGRAM)], check=True, capture_output=True, timeout=300)
    address = f"jdbc:postgresql://127.0.0.1:{server[1].wire_port}/nearly"
    command = ["java", "-cp", f"{tmp_path}:{JDBC}", "Describe", address, server[1].token, "rides"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    told = {line[0]: line[1:] for line in lines}
    assert not [line for line in lines if line[0] in ("trouble", "warning")]
    assert {"rides", "people", "by_city", "TABLE", "MATERIALIZED VIEW"} <= set(told["tables"])
    assert {"city", "text", "fare", "float8", "id", "int8"} <= set(told["columns"])
    assert told["primary keys"][0] == "1"
    assert {"id", "rides_pkey"} <= set(told["primary keys"])
    assert {"rides_pkey", "id"} <= set(told["index info"])
    assert [told[name][0] for name in ("imported keys", "exported keys", "cross reference")] == ["0", "0", "0"]
    assert {"public", "pg_catalog"} <= set(told["schemas"])
    assert {"bool", "int8"} <= set(told["types"])
    assert "SELECT" in told["table privileges"]
    assert "DELETE" not in told["table privileges"]
    assert len(told["words"][0].split(",")) > 50
    assert told["connection"] == ["public", "true"]
    assert told["fetched"] == ["10", "int4", "2"]


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not there")
def test_psql_tells_of_everything(server: tuple[Server, Addresses]) -> None:
    asked = ["psql", server[1].wire or "", "-X", "-v", "ON_ERROR_STOP=0", "-P", "pager=off"]
    for command in COMMANDS:
        asked += ["-c", f"\\echo @@@{command[1:]}", "-c", command]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=False)
    troubles = [line for line in done.stderr.splitlines() if "Did not find any" not in line]
    assert not troubles, "\n".join(troubles)
    said = dict(part.split("\n", 1) for part in done.stdout.split("@@@")[1:])
    assert "rides_pkey" in said["di"]
    assert '"rides_pkey" PRIMARY KEY, btree (id)' in said["d rides"]
    assert "nearly=r/nearly" in said["dp"]
    assert "nearly" in said["l"]


def test_sqlalchemy_inspects_everything(server: tuple[Server, Addresses]) -> None:
    sa = pytest.importorskip("sqlalchemy")
    engine = sa.create_engine((server[1].wire or "").replace("postgresql://", "postgresql+psycopg://"))
    inspector = sa.inspect(engine)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "public" in inspector.get_schema_names()
        assert inspector.has_table("rides")
        assert not inspector.has_table("nothing")
        for name in ("rides", "people", "by_city"):
            assert inspector.get_columns(name)
            assert inspector.get_foreign_keys(name) == inspector.get_unique_constraints(name) == []
            assert inspector.get_check_constraints(name) == []
            assert inspector.get_table_comment(name) == {"text": None}
        assert inspector.get_pk_constraint("rides")["constrained_columns"] == ["id"]
        assert inspector.get_indexes("rides") == []
        assert inspector.get_sequence_names() == inspector.get_view_names() == inspector.get_temp_table_names() == []
        assert "select" in inspector.get_view_definition("by_city").lower()
        assert inspector.get_enums() == []
        assert {"rides", "people"} <= {name for _, name in inspector.get_multi_columns()}
    engine.dispose()
