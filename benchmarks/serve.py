"""Many clients at one server: are all answers right, is anybody starved, and does the server's memory stay?

Every client sends three queries, one after the other, as the page does, and checks the exact end of each against DuckDB. All
clients begin at once. A first round warms the server up, and is checked as well; what is told is of the last one. At the end a
client asks something that takes minutes and goes away: `freed_s` is how long the server goes on with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import Record, print_summary, print_table, write_json

CITIES = ("Berlin", "Lisbon", "Madrid", "Oslo", "Paris", "Porto", "Rome", "Vienna")
QUERIES = (
    "select city, count(*) as rides, sum(cents) as cents from rides where km > {km} group by city order by city",
    "select passengers, avg(fare) as fare from rides where city <> '{city}' group by passengers order by passengers",
    "select count(*) as rides, max(fare) as fare from rides where cents between {km}00 and 4000",
)
SECONDS = 1800
SLOW = "select count(*) as n from rides a join rides b on a.km <> b.km join rides c on b.km <> c.km where a.fare + b.fare > c.fare"
IDLE = 0.05
"""A server that uses this share of a core, or less, has nothing to do."""


def write_rides(directory: Path, rows: int, files: int = 16) -> Path:
    """A table of rides."""
    home = directory / "rides"
    home.mkdir(parents=True)
    random = np.random.default_rng(17)
    for number in range(files):
        count = rows // files
        km = random.gamma(2.0, 3.0, count).round(2)
        cents = (300 + 210 * km + random.normal(0, 150, count)).astype(np.int64)
        columns = {"city": pa.array(np.array(CITIES)[random.integers(0, len(CITIES), count)]), "km": km, "cents": cents,
                   "fare": cents / 100, "passengers": random.integers(1, 6, count)}  # fmt: skip
        pq.write_table(pa.table(columns), home / f"part-{number:02}.parquet")
    return home


@dataclass(frozen=True, slots=True)
class Place:
    """Where the server listens, its secret, and its process."""

    host: str
    port: int
    token: str
    process: int

    @property
    def megabytes(self) -> float:
        """Memory of the server that is resident."""
        lines = Path(f"/proc/{self.process}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    @property
    def cpu_seconds(self) -> float:
        """What the server has worked so far."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(data: Path) -> Iterator[Place]:
    """`nearly serve` in a process of its own."""
    command = [sys.executable, "-P", "-m", "nearly.cli.main", "serve", "--data", str(data), "--no-pg", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        page = urlsplit(process.stdout.readline().split()[-1])
        yield Place(page.hostname or "", page.port or 0, parse_qs(page.query)["token"][0], process.pid)
    finally:
        process.terminate()
        process.wait(timeout=60)


@dataclass(frozen=True, slots=True)
class Asked:
    """One query of a client: when its first event and its first answer came, when it ended, and whether the end was right."""

    first_event: float
    first_answer: float
    seconds: float
    right: bool


async def sent(place: Place, client: str, text: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which a query was sent."""
    reader, writer = await asyncio.open_connection(place.host, place.port)
    body = json.dumps({"sql": text}).encode()
    head = (
        f"POST /api/stream HTTP/1.1\r\nHost: {place.host}:{place.port}\r\nAuthorization: Bearer {place.token}\r\n"
        f"X-Nearly-Client: {client}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
    return reader, writer


async def vanish(place: Place) -> float:
    """Ask something slow, go away once the server works on it, and tell for how many seconds it still does."""
    _, writer = await sent(place, "vanishing", SLOW)
    working = place.cpu_seconds
    while place.cpu_seconds - working < 1.0:
        await asyncio.sleep(0.05)
    writer.transport.abort()
    began = now = time.perf_counter()
    spent = place.cpu_seconds
    while now - began < SECONDS:
        await asyncio.sleep(0.25)
        before, now, spent_before, spent = now, time.perf_counter(), spent, place.cpu_seconds
        if spent - spent_before <= IDLE * (now - before):
            return before - began
    return math.inf


async def ask(place: Place, client: str, text: str, expected: list[tuple[Any, ...]]) -> Asked:
    """Send a query, read its events, and compare the last answer."""
    began = time.perf_counter()
    reader, writer = await sent(place, client, text)
    first_event = first_answer = math.inf
    last: dict[str, Any] = {}
    name = ""
    async for raw in reader:
        line = raw.decode().rstrip("\r\n")
        if line.startswith("event: "):
            name = line[7:]
            first_event = min(first_event, time.perf_counter() - began)
        elif line.startswith("data: ") and name == "answer":
            first_answer = min(first_answer, time.perf_counter() - began)
            last = json.loads(line[6:])
    writer.close()
    return Asked(first_event, first_answer, time.perf_counter() - began, is_right(last, expected))


def is_right(answer: dict[str, Any], expected: list[tuple[Any, ...]]) -> bool:
    """Whether an answer is exact and has these rows; sums of doubles may differ in their last digits."""
    if not answer.get("exact"):
        return False
    rows = list(zip(*(column["values"] for column in answer["columns"]), strict=True))
    return len(rows) == len(expected) and all(
        math.isclose(a, b, rel_tol=1e-9) if isinstance(b, float) else a == b
        for row, other in zip(rows, expected, strict=True)
        for a, b in zip(row, other, strict=True)
    )


async def visit(place: Place, number: int, oracle: dict[str, list[tuple[Any, ...]]]) -> tuple[float, list[Asked]]:
    """All queries of one client; the seconds it took, and each of them."""
    began = time.perf_counter()
    asked = [await ask(place, f"client-{number}", text, oracle[text]) for text in texts_of(number)]
    return time.perf_counter() - began, asked


def texts_of(number: int) -> list[str]:
    """The queries of a client."""
    return [text.format(km=1 + number % 7, city=CITIES[number % len(CITIES)]) for text in QUERIES]


async def visits(place: Place, clients: int, oracle: dict[str, list[tuple[Any, ...]]]) -> list[tuple[float, list[Asked]]]:
    async with asyncio.timeout(SECONDS):
        return list(await asyncio.gather(*(visit(place, number, oracle) for number in range(clients))))


def oracle_of(data: Path, clients: int) -> tuple[dict[str, list[tuple[Any, ...]]], float]:
    """DuckDB's answers, and the seconds that it would take for the queries of all clients, one after the other."""
    with duckdb.connect() as engine:
        engine.execute(f"create view rides as select * from read_parquet('{data}/rides/*.parquet')")
        wanted = [text for number in range(clients) for text in texts_of(number)]
        took: dict[str, float] = {}
        answers: dict[str, list[tuple[Any, ...]]] = {}
        for text in dict.fromkeys(wanted):
            began = time.perf_counter()
            answers[text] = engine.execute(text).fetchall()
            took[text] = time.perf_counter() - began
        return answers, sum(took[text] for text in wanted)


def measure(data: Path, clients: int, rounds: int) -> tuple[Record, list[Record]]:
    """All rounds; the summary of the last one, and a row for each."""
    oracle, alone = oracle_of(data, clients)
    rows: list[Record] = []
    wrong = 0
    with serving(data) as place:
        memory = place.megabytes
        for number in range(rounds):
            began = time.perf_counter()
            seen = asyncio.run(visits(place, clients, oracle))
            took = time.perf_counter() - began
            grown, memory = place.megabytes - memory, place.megabytes
            times = [seconds for seconds, _ in seen]
            asked = [each for _, several in seen for each in several]
            wrong += sum(not each.right for each in asked)
            rows.append({
                "round": number + 1, "clients": clients, "queries": len(asked), "wrong": sum(not each.right for each in asked),
                "seconds": took, "duckdb_seconds": alone, "client_median_s": statistics.median(times),
                "client_slowest_s": max(times),
                "slowest_over_median": max(times) / statistics.median(times),
                "first_event_ms": 1000 * statistics.median(each.first_event for each in asked),
                "first_answer_ms": 1000 * statistics.median(each.first_answer for each in asked), "rss_growth_mb": grown,
            })  # fmt: skip
        freed = asyncio.run(vanish(place))
    names = (
        "clients",
        "wrong",
        "slowest_over_median",
        "first_event_ms",
        "first_answer_ms",
        "rss_growth_mb",
        "seconds",
        "duckdb_seconds",
    )
    return {name: rows[-1][name] for name in names} | {"wrong": wrong, "freed_s": freed}, rows


def main() -> int:
    """Run it; 1 when an answer was wrong or a client was starved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3, help="the first warms up, the last counts")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--tiny", action="store_true", help="few clients and rows, to see that it runs")
    options = parser.parse_args()
    if options.tiny:
        options.clients, options.rows, options.rounds = 6, 20_000, 2
    with tempfile.TemporaryDirectory(prefix="nearly-serve-") as home:
        write_rides(Path(home), options.rows)
        summary, rows = measure(Path(home), options.clients, options.rounds)
    print_table(list(rows[0]), rows)
    print_summary(summary)
    if options.json is not None:
        write_json(options.json, {"clients": options.clients, "rows": options.rows, "rounds": options.rounds}, summary, rows)
    return int(summary["wrong"] != 0 or float(summary["slowest_over_median"] or 0) > 3)


if __name__ == "__main__":
    sys.exit(main())
