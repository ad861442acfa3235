"""Who is answered, by which name, from which page, and what a browser is told to refuse."""

from __future__ import annotations

import re
import ssl
import subprocess
from pathlib import Path

import pytest

import nearly
from nearly.errors import EngineError, SchemaError
from nearly.web.access import Access
from nearly.web.app import STATIC
from nearly.web.server import Addresses, Server, ServerSettings
from tests.web.conftest import Client
from tests.web.serving import served

PATHS = ("/api/catalog", "/api/tables/rides", "/api/openapi.json", "/api/status", "/api/queries/x/export", "/app.js")


def test_nothing_is_told_without_the_token(client: Client) -> None:
    for stranger in (Client(client.port, None), Client(client.port, "wrong"), Client(client.port, "")):
        for path in PATHS:
            assert stranger.get(path).status == 401, path
        assert stranger.post("/api/query", {"sql": "select 1 as a"}).status == 401
        page = stranger.get("/")
        assert page.status == 401
        assert b"token" in page.body
        assert b"rides" not in page.body


def test_the_token_in_the_address_becomes_a_cookie(client: Client) -> None:
    stranger = Client(client.port, None)
    assert stranger.get("/?token=wrong").status == 401
    opened = stranger.get(f"/?token={client.token}")
    assert (opened.status, opened.headers["location"]) == (303, "/")
    cookie = opened.headers["set-cookie"]
    assert all(word in cookie.lower() for word in ("httponly", "samesite=strict"))
    page = stranger.get("/", Cookie=cookie.split(";")[0])
    assert page.status == 200
    assert str(client.token).encode() not in page.body
    assert stranger.get("/api/catalog", Cookie=cookie.split(";")[0]).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "10.0.0.1"])
def test_other_names_are_refused(host: str, client: Client) -> None:
    assert client.get("/api/catalog", Host=host).status == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)  # fmt: skip
def test_pages_of_other_sites_are_refused(headers: dict[str, str], client: Client) -> None:
    assert client.post("/api/query", {"sql": "select 1 as a"}, **headers).status == 403


def test_forms_are_refused(client: Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert client.post("/api/query", b'{"sql": "select 1 as a"}', Content_Type=kind).status == 400


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml", "/static/../app.py", "/..%2f..%2fpyproject.toml", "/%2e%2e/%2e%2e/etc/passwd", "/app.py",
        "/index.html", "//etc/passwd", "/api/tables/..%2f..%2fetc%2fpasswd", "/api/tables/%00",
    ],
)  # fmt: skip
def test_nothing_of_the_disk_is_served(path: str, client: Client) -> None:
    assert client.get(path).status in (400, 404)


def test_every_reply_keeps_the_browser_in_bounds(client: Client) -> None:
    for path in ("/", "/app.js", "/api/catalog", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_the_page_loads_nothing_from_outside_and_no_text_as_markup() -> None:
    home = Path(nearly.__file__).parent / "web" / "static"
    for file in home.iterdir():
        text = file.read_text()
        assert file.name in STATIC or file.suffix == ".html"
        assert not re.search(r"(?:src|href)=[\"'](?:https?:)?//", text), file
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), file
        assert not re.search(r"<script(?![^>]*src=)|\son\w+=\"|style=\"", text), file


def test_large_requests_are_refused(client: Client) -> None:
    assert client.post("/api/query", b"x" * 100_000, Content_Type="application/json").status == 413
    assert client.request("POST", "/api/query", b"{}", Content_Type="application/json", Content_Length="-5").status in (400, 413)


def test_other_hosts_need_a_password_and_tls() -> None:
    for settings in ({}, {"password": "long enough"}, {"secure": True}):
        with pytest.raises(SchemaError, match="password"):
            Access(host="0.0.0.0", **settings)  # type: ignore[arg-type]
    assert Access(host="0.0.0.0", password="long enough", secure=True).is_own_name("any.example")
    with pytest.raises(SchemaError, match="8 characters"):
        Access(password="short")
    with pytest.raises(SchemaError, match="--cert and --key"):
        _ = ServerSettings(certificate=Path("x")).tls


def test_a_port_that_is_taken_is_an_error_in_words(server: tuple[Server, Addresses], db: nearly.Session) -> None:
    with pytest.raises(EngineError, match="choose another with --port"):
        Server(db, ServerSettings(port=server[1].port))


def test_a_password_opens_the_door(db: nearly.Session) -> None:
    with served(db, password="open sesame") as (_, at):
        stranger = Client(at.port, None)
        assert b'type="password"' in stranger.get("/").body
        assert stranger.post("/login", b"password=wrong", Content_Type="application/x-www-form-urlencoded").status == 401
        opened = stranger.post("/login", b"password=open+sesame", Content_Type="application/x-www-form-urlencoded")
        assert opened.status == 303
        assert stranger.get("/api/catalog", Cookie=opened.headers["set-cookie"].split(";")[0]).status == 200
        assert stranger.get("/api/catalog", Authorization="Basic bmVhcmx5Om9wZW4gc2VzYW1l").status == 200
        assert stranger.get("/api/catalog", Authorization="Basic !!").status == 401


@pytest.mark.long
def test_tls_on_page_and_wire(db: nearly.Session, tmp_path: Path) -> None:
    import http.client

    import psycopg

    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(cert), "-days", "1",
               "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not there")
    with served(db, password="open sesame", certificate=cert, key=key, wire_port=0) as (_, at):
        context = ssl.create_default_context(cafile=str(cert))
        connection = http.client.HTTPSConnection("127.0.0.1", at.port, context=context, timeout=30)
        connection.request("GET", "/api/catalog", headers={"Authorization": "Bearer open sesame"})
        assert connection.getresponse().status == 200
        connection.close()
        where = f"host=127.0.0.1 port={at.wire_port} user=nearly password='open sesame' dbname=nearly"
        with psycopg.connect(f"{where} sslmode=verify-full sslrootcert={cert}") as found:
            assert found.execute("select count(*) from rides").fetchone() == (16000,)
        with pytest.raises(psycopg.OperationalError, match="TLS"):
            psycopg.connect(f"{where} sslmode=disable")


def test_json_that_is_nested_too_deeply_is_no_fault_of_the_server(client: Client) -> None:
    reply = client.request("POST", "/api/query", b"[" * 4000, Content_Type="application/json")
    assert reply.status == 400
    assert "nested" in reply.json["error"]["message"]


def test_a_time_beyond_all_times_is_no_limit(client: Client) -> None:
    assert client.post("/api/query", {"sql": "select 1 as a", "seconds": 1e300}).json["columns"][0]["values"] == [1]
