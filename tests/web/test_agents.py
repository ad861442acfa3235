"""The tools for agents: what they tell, and by a real client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.web.agents import Agents, agent_server
from nearly.web.asking import Desk
from nearly.web.limits import Limits
from tests.web.converging import ConvergingSession


@pytest.fixture
def desk(db: nearly.Session) -> Iterator[Desk]:
    found = Desk(db, Limits(characters=100))
    yield found
    found.close()


def test_tools_tell_tables_and_answers(desk: Desk) -> None:
    agents = Agents(desk)
    assert "rides" in {each["name"] for each in agents.list_tables()["tables"]}
    assert agents.describe_table("by_city")["kind"] == "view"
    told = agents.ask("select city, count(*) as n from rides group by city order by city", rows=2)
    assert (told["rows"], told["rows_in_all"], told["exact"]) == (
        [{"city": "Berlin", "n": 2000}, {"city": "Lisbon", "n": 2000}],
        8,
        True,
    )
    assert "kernel: native" in agents.explain("select count(*) as n from rides")
    with pytest.raises(nearly.UnknownName, match="did you mean 'rides'"):
        agents.describe_table("ridez")


def test_an_estimate_has_intervals_and_says_what_may_be_missing() -> None:
    desk = Desk(ConvergingSession(pace=0.01), Limits())  # type: ignore[arg-type]
    told = Agents(desk).ask("select city, rides, fare from rides", error=0.05)
    desk.close()
    assert not told["exact"]
    assert told["error"] <= 0.05
    assert told["lacks"] == "about 2 rows missing (at most 9)"
    assert told["rows"][0]["fare"]["low"] < told["rows"][0]["fare"]["value"] < told["rows"][0]["fare"]["high"]


def test_changes_and_long_texts_are_refused(desk: Desk) -> None:
    server = agent_server(desk)

    async def call(name: str, **given: Any) -> Any:
        return await server.call_tool(name, given)

    for text in ("delete from rides", "select " + "1 + " * 50 + "1 as a"):
        with pytest.raises(Exception, match=r"ReadOnly|TooMuch"):
            asyncio.run(call("ask", sql=text))


def test_a_change_is_refused_in_words_for_agents(desk: Desk) -> None:
    for tool in (Agents(desk).ask, Agents(desk).explain):
        with pytest.raises(nearly.NearlyError, match="tables cannot be changed here"):
            tool("delete from rides")
        with pytest.raises(nearly.ParseError, match="did you mean SELECT"):
            tool("selec 1")


@pytest.mark.long
def test_a_client_over_standard_input_and_output(tmp_path: Path) -> None:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    pq.write_table(pa.table({"v": [1, 2, 3]}), tmp_path / "t.parquet")
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "nearly.cli.main", "mcp", "--data", str(tmp_path)], env=dict(os.environ)
    )

    async def talk() -> None:
        async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            tools = await session.list_tools()
            assert {each.name for each in tools.tools} == {"list_tables", "describe_table", "ask", "explain"}
            reply = await session.call_tool("ask", {"sql": "select sum(v) as total from t"})
            assert json.loads(reply.content[0].text)["rows"] == [{"total": 6}]
            failed = await session.call_tool("ask", {"sql": "select w from t"})
            assert "unknown column" in failed.content[0].text

    asyncio.run(asyncio.wait_for(talk(), 120))
