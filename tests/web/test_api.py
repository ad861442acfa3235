"""The HTTP API: answers as JSON, Arrow and events; what there is; explanations, exports, ranges; clients that go away."""

from __future__ import annotations

import io
import json
import socket
import time

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.web.encoding import ARROW_TYPE
from nearly.web.server import Addresses, Server
from tests.web.conftest import LONG, Client
from tests.web.converging import ConvergingSession
from tests.web.serving import served

BY_CITY = "select city, count(*) as n, avg(fare) as fare from rides group by city order by city"


def test_a_query_as_json(client: Client, db: nearly.Session) -> None:
    told = client.post("/api/query", {"sql": BY_CITY}).json
    expected = db.sql(BY_CITY).exact().table
    assert told["exact"]
    assert [column["name"] for column in told["columns"]] == expected.column_names
    assert [column["values"] for column in told["columns"]] == [column.to_pylist() for column in expected.columns]
    assert [column["type"] for column in told["columns"]] == ["string", "bigint", "double"]


def test_values_that_json_lacks_are_texts(client: Client) -> None:
    told = client.post("/api/query", {"sql": "select * from people order by id"}).json
    values = {column["name"]: column["values"] for column in told["columns"]}
    assert values["salary"][:4] == ["5200.00", "4100.50", "4100.50", None]
    assert values["bonus"][3:5] == ["NaN", "Infinity"]
    assert values["born"][0] == "1988-02-29"


def test_a_query_as_arrow(client: Client, db: nearly.Session) -> None:
    reply = client.post("/api/query", {"sql": BY_CITY}, Accept=ARROW_TYPE)
    found = pa.ipc.open_stream(reply.body).read_all()
    assert found.to_pylist() == db.sql(BY_CITY).exact().table.to_pylist()
    assert json.loads(found.schema.metadata[b"nearly"])["exact"]


def test_answers_come_as_events_and_end_exact(client: Client, db: nearly.Session) -> None:
    events = client.events({"sql": BY_CITY})
    assert events[0][0] == "began"
    answers = [content for name, content in events if name == "answer"]
    assert answers[-1]["exact"]
    assert answers[-1]["columns"][1]["values"] == db.sql(BY_CITY).exact().table["n"].to_pylist()
    assert answers[-1]["columns"][1]["texts"][0] == "2,000"
    assert events[-1][0] == "over"
    assert events[-1][1]["error"] is None


def test_a_goal_ends_a_query_before_its_end() -> None:
    with served(ConvergingSession(pace=0.01)) as (_, at):
        events = Client(at.port, at.token).events({"sql": "select city, rides, fare from rides", "error": 0.05})
        answers = [content for name, content in events if name == "answer"]
        assert 0 < answers[-1]["error"] <= 0.05
        assert not answers[-1]["exact"]
        assert events[-1][1]["ended"] == "good enough"
        assert answers[-1]["lacks"] == "about 2 rows missing (at most 9)"
        column = answers[-1]["columns"][1]
        assert column["uncertain"]
        assert all(low <= value <= high for low, value, high in zip(column["low"], column["values"], column["high"], strict=True))


def test_stop_pause_and_goals_while_it_runs() -> None:
    db = ConvergingSession()
    with served(db) as (server, at):
        client = Client(at.port, at.token)
        connection = _streaming(at, {"sql": "select city from rides"})
        (asking,) = _until(lambda: server.desk.under_way)
        assert client.post(f"/api/queries/{asking.id}/pause", {}).json["state"] in ("paused", "waiting", "running")
        _until(lambda: db.paused)
        client.post(f"/api/queries/{asking.id}/resume", {})
        db.go.release()
        _until(lambda: asking.newest)
        client.post(f"/api/queries/{asking.id}/goal", {"error": 0.5})
        _until(lambda: asking.over)
        assert asking.why == "good enough"
        assert client.post(f"/api/queries/{asking.id}/goal", {"error": -1}).status == 400
        connection.close()
        connection = _streaming(at, {"sql": "select city from rides"})
        (asking,) = _until(lambda: server.desk.under_way)
        client.post(f"/api/queries/{asking.id}/stop", {})
        _until(lambda: asking.over)
        assert asking.newest is None
        assert "stopped" in str(asking.trouble)
        connection.close()


def test_a_client_that_goes_away_stops_its_query(server: tuple[Server, Addresses]) -> None:
    desk = server[0].desk
    for path in ("/api/stream", "/api/query"):
        connection = _streaming(server[1], {"sql": LONG}, path)
        (asking,) = _until(lambda: [each for each in desk.under_way if each.state == "running"])
        connection.close()
        began = time.monotonic()
        _until(lambda asking=asking: asking.over)
        assert time.monotonic() - began < 10
    _until(lambda: not desk.pool.running)


def test_a_stopped_query_keeps_others(client: Client) -> None:
    assert client.post("/api/query", {"sql": "select count(*) as n from rides"}).json["columns"][0]["values"] == [16000]


@pytest.mark.parametrize(
    ("wish", "status", "kind", "said"),
    [
        ({"sql": "select nme from people"}, 400, "UnknownName", "did you mean 'name'?"),
        ({"sql": "selec 1"}, 400, "ParseError", ""),
        ({"sql": ""}, 400, "SchemaError", "no query"),
        ({"sql": 3}, 400, "SchemaError", "no query"),
        ({"sql": "select 1 as a", "error": "x"}, 400, "SchemaError", "error"),
        ({"sql": "select 1 as a", "mode": "x"}, 400, "SchemaError", "mode"),
        ({"sql": "select 1 as a", "confidence": 2}, 400, "SchemaError", "confidence"),
        ({"sql": "select 1 as a", "nme": 2}, 400, "SchemaError", "unknown: nme"),
        ({"sql": "select " + "1 + " * 3000 + "1 as a"}, 413, "TooMuch", "--max-text"),
        ({"sql": "select id from rides"}, 413, "TooMuch", "--max-rows"),
        ({"sql": "insert into rides values ('x', 1.0, 1)"}, 400, "ReadOnly", "--allow-changes"),
        ([1], 400, "SchemaError", "JSON object"),
    ],
)
def test_mistakes_are_told(wish: object, status: int, kind: str, said: str, client: Client) -> None:
    reply = client.post("/api/query", wish)
    assert (reply.status, reply.json["error"]["kind"]) == (status, kind), reply.body
    assert said in reply.json["error"]["message"]


def test_a_mistake_in_a_stream_is_its_end(client: Client) -> None:
    name, content = client.events({"sql": "select nme from people"})[-1]
    assert name == "over"
    assert "did you mean 'name'?" in content["error"]["message"]


def test_what_there_is(client: Client, db: nearly.Session) -> None:
    db.view("by_city").refresh()  # other tests may have changed its table, which then has more files
    told = client.get("/api/catalog").json
    assert {"rides", "people"} <= {each["name"] for each in told["tables"]}
    assert [each["name"] for each in told["views"]] == ["by_city"]
    assert "upper" in told["functions"]
    rides = client.get("/api/tables/rides").json
    files = len(db.table("rides").info.base.manifest.paths)
    assert files >= 16
    assert (rides["rows"], rides["key"], rides["layouts"][0]["files"]) == (16000, ["id"], files)
    assert rides["versions"][0]["version"] == db.table("rides").info.version
    assert client.get("/api/views/by_city").json["stale"] == {}
    assert client.get("/api/tables/ridez").json["error"]["message"] == "unknown table 'ridez'; did you mean 'rides'?"
    assert client.get("/api/things/x").status == 400


def test_an_explanation_is_a_tree(client: Client) -> None:
    told = client.post("/api/explain", {"sql": BY_CITY}).json
    assert told["facts"]["kernel"] == "native"
    nodes = [node for stage in told["stages"] for node in stage["nodes"]]
    assert [node["operator"] for node in nodes][-1] == "Scan"
    assert nodes[-1]["note"] == "all 16,000 rows are read here"
    assert [node["depth"] for node in nodes] == list(range(len(nodes)))


def test_exports_have_all_rows(client: Client, db: nearly.Session) -> None:
    began = client.events({"sql": BY_CITY})[0][1]["id"]
    rows = db.sql(BY_CITY).exact().table.to_pylist()
    readers = {
        "csv": lambda body: pa.csv.read_csv(io.BytesIO(body)),
        "parquet": lambda body: pq.read_table(io.BytesIO(body)),
        "arrow": lambda body: pa.ipc.open_stream(body).read_all(),
    }
    for name, read in readers.items():
        reply = client.get(f"/api/queries/{began}/export?format={name}")
        assert "attachment" in reply.headers["content-disposition"]
        assert [row["n"] for row in read(reply.body).to_pylist()] == [row["n"] for row in rows]
    assert client.get(f"/api/queries/{began}/export?format=xls").status == 400
    assert client.get("/api/queries/nothing/export").status == 404


def test_a_range_for_missing_rows(client: Client) -> None:
    stated = {"rides": [{"where": "city = 'Oslo'", "rows": [0, 10], "values": {"fare": [0, 100]}}]}
    told = client.post("/api/range", {"sql": "select count(*) as n from rides", "missing": stated}).json
    column = told["columns"][0]
    assert (column["surely_low"], column["surely_high"]) == ([16000], [16010])
    again = client.post("/api/range", {"sql": "select count(*) as n from rides"})
    assert "nothing is stated" in again.json["error"]["message"]
    for wrong in ({"rides": "/etc/passwd"}, {"rides": [{"file": "x"}]}, "x", {"nothing": [{"rows": [0, 1]}]}):
        assert client.post("/api/range", {"sql": "select count(*) as n from rides", "missing": wrong}).status == 400


def test_changes_are_refused_unless_allowed(client: Client, db: nearly.Session) -> None:
    text = "insert into rides values ('Oslo', 1.5, 99999)"
    assert client.post("/api/execute", {"sql": text}).json["error"]["kind"] == "ReadOnly"
    assert client.post("/api/execute", {"sql": "select 1 as a"}).json["error"]["kind"] == "ReadOnly"
    with served(db, changes=True) as (_, at):
        assert Client(at.port, at.token).post("/api/execute", {"sql": text}).json["inserted"] == 1
        assert Client(at.port, at.token).post("/api/execute", {"sql": "delete from rides where id = 99999"}).json["deleted"] == 1


def test_the_api_describes_itself(client: Client) -> None:
    told = client.get("/api/openapi.json").json
    assert told["openapi"].startswith("3.")
    assert {"/api/query", "/api/stream", "/api/explain", "/api/catalog"} <= told["paths"].keys()


def _streaming(at: Addresses, wish: dict[str, str], path: str = "/api/stream") -> socket.socket:
    """A connection on which a query was asked, and nothing read."""
    body = json.dumps(wish).encode()
    connection = socket.create_connection(("127.0.0.1", at.port))
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{at.port}\r\nAuthorization: Bearer {at.token}\r\n"
    connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def _until(found: object, seconds: float = 30.0) -> object:
    """The first value that is not nothing."""
    assert callable(found)
    until = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < until
        time.sleep(0.01)
    return value


def test_paths_and_methods_that_there_are_not_are_told_as_json(client: Client) -> None:
    for reply, status in (
        (client.get("/api/nothing"), 404),
        (client.get("/api/query"), 405),
        (client.post("/api/catalog", {}), 405),
    ):
        assert reply.status == status
        assert "openapi" in reply.json["error"]["message"]
    assert client.get("/api/query").headers["allow"] == "POST"


def test_a_change_that_is_asked_as_a_query_is_told_where_it_belongs(client: Client, db: nearly.Session) -> None:
    for path in ("/api/query", "/api/stream", "/api/explain"):
        reply = client.post(path, {"sql": "delete from rides"})
        assert (reply.status, reply.json["error"]["kind"]) == (400, "ReadOnly")
        assert "--allow-changes" in reply.json["error"]["message"]
    with served(db, changes=True) as (_, at):
        reply = Client(at.port, at.token).post("/api/query", {"sql": "delete from rides where false"})
        assert "/api/execute" in reply.json["error"]["message"]
