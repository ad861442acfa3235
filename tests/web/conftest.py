"""One small session, and a server over it, for the tests of the web."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.web.limits import Limits
from nearly.web.server import Addresses, Server
from tests.fixtures import tables
from tests.fixtures.driver_only import driver_only
from tests.web.serving import served

CITIES = ("Berlin", "Lisbon", "Madrid", "Oslo", "Paris", "Porto", "Rome", "Vienna")
LONG = "select count(*) as n from big a join big b on a.v < b.v join big c on b.v < c.v"
"""A query that does not end while a test waits."""


@pytest.fixture(scope="package")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    home = tmp_path_factory.mktemp("web")
    rides = home / "rides"
    rides.mkdir()
    for part in range(16):
        rows = range(part * 1000, (part + 1) * 1000)
        columns = {
            "city": [CITIES[row % 8] for row in rows],
            "fare": [10 + (row * 7919 % 1000) / 50 for row in rows],
            "id": list(rows),
        }
        pq.write_table(pa.table(columns), rides / f"{part:02}.parquet")
    pq.write_table(pa.table({"v": list(range(30_000))}), home / "big.parquet")
    with driver_only(home / "catalog", eager=True) as session:
        session.register("rides", str(rides), key=["id"])
        session.register("big", str(home / "big.parquet"))
        for name, path in tables.write(home / "data").items():
            session.register(name, str(path))
        session.create_view("by_city", "select city, count(*) as n from rides group by city")
        yield session


@pytest.fixture(scope="package")
def server(db: nearly.Session) -> Iterator[tuple[Server, Addresses]]:
    with served(db, wire_port=0, limits=Limits(characters=5000, rows=10_000)) as found:
        yield found


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server said."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Client:
    """A client of the API, with the token unless it is told otherwise."""

    port: int
    token: str | None

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        sent = {"Host": f"127.0.0.1:{self.port}"} | {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.request("GET", path, None, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        return self.request("POST", path, body, **headers)

    def events(self, wish: dict[str, Any]) -> list[tuple[str, Any]]:
        """All events of a stream."""
        parts = self.post("/api/stream", wish).body.decode().split("\n\n")
        found = [part.split("\n") for part in parts if part.startswith("event: ")]
        return [(lines[0][7:], json.loads(lines[1][6:])) for lines in found]


@pytest.fixture
def client(server: tuple[Server, Addresses]) -> Client:
    return Client(server[1].port, server[1].token)
