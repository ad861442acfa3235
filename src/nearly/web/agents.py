"""Tools for agents, over the Model Context Protocol: look at tables, ask with a goal, see how exact the answer is. Read-only."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from nearly.answer import Answer
from nearly.errors import NearlyError
from nearly.session import Session
from nearly.web.asking import EARLY, EXACT, ClientQuery, Desk, Wish
from nearly.web.browsing import describe, overview
from nearly.web.changing import ReadOnly, StatementRunner
from nearly.web.encoding import facts, plain
from nearly.web.limits import Limits, TooMuch

ROWS = 200
"""Rows of an answer that an agent is shown, unless it asks for fewer."""
_ABOUT = """\
nearly answers analytical SQL (Spark's dialect) over large tables, early with bounds and then exactly. Give ask() an `error`, such
as 0.01, or `seconds` when a close answer is enough: it comes much sooner, with an interval for every uncertain number. Look at
list_tables and describe_table first. Tables cannot be changed."""


class Agents:
    """What the tools do."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._changer = StatementRunner(desk.db, desk.limits, allowed=False)

    def list_tables(self) -> dict[str, Any]:
        """The tables and views with their rows and columns, and the synopses that answer some questions at once."""
        return overview(self._desk.db)

    def describe_table(self, name: str) -> dict[str, Any]:
        """A table or view in full: columns with types, key, versions, layouts, and how stale a view is."""
        kind = "views" if name.lower() in {each.lower() for each in self._desk.db.views} else "tables"
        return describe(self._desk.db, kind, name)

    def ask(
        self, sql: str, error: float | None = None, seconds: float | None = None, confidence: float = 0.95, rows: int = ROWS
    ) -> dict[str, Any]:
        """The answer of a query. Without a goal it is exact; with `error` (relative, such as 0.01) or `seconds` it may be an
        estimate: each uncertain column then has its interval, `lacks` says which rows may be missing, `state` how good it is.
        """
        if self._changer.surely_changes(sql):
            raise ReadOnly("tables cannot be changed here; ask a query")
        early = error is not None or seconds is not None
        wish = Wish(sql, error, seconds, confidence, EARLY if early else EXACT)
        asking = self._desk.ask(wish, "agent")
        asking.wait()
        return answered(asking, min(max(rows, 1), ROWS))

    def explain(self, sql: str) -> str:
        """How a query would be answered: the plan, what is read where, which kernel, which view or synopsis, and why."""
        if self._changer.surely_changes(sql):
            raise ReadOnly("tables cannot be changed here; ask about a query")
        return self._desk.db.sql(sql).explain()


def answered(asking: ClientQuery, rows: int) -> dict[str, Any]:
    """An answer by rows; an uncertain number is an object with its value and interval."""
    answer = asking.newest
    if answer is None or asking.trouble is not None:
        raise asking.trouble or TooMuch("the query ended without an answer")
    table = [_row(answer, row) for row in range(min(rows, answer.table.num_rows))]
    told = {"rows": table, "rows_in_all": answer.table.num_rows, "seconds": round(asking.elapsed, 3), **facts(answer)}
    return told | ({"ended": asking.why} if asking.why else {})


def _row(answer: Answer, row: int) -> dict[str, Any]:
    found = {}
    for place, name in enumerate(answer.table.column_names):
        value, low, high = (side.column(place)[row].as_py() for side in (answer.table, answer.low, answer.high))
        certain = answer.exact or (low == value == high)
        found[name] = plain(value) if certain else {"value": plain(value), "low": plain(low), "high": plain(high)}
    return found


def serve_agent(db: Session, limits: Limits) -> None:
    """Serve one agent over standard input and output, until it closes them."""
    desk = Desk(db, limits)
    try:
        agent_server(desk).run("stdio")
    finally:
        desk.close()


def agent_server(desk: Desk) -> MCPServer[Any]:
    """The server with its tools."""
    agents = Agents(desk)
    server: MCPServer[Any] = MCPServer("nearly", instructions=_ABOUT)
    for tool in (agents.list_tables, agents.describe_table, agents.ask, agents.explain):
        server.add_tool(told(tool), name=tool.__name__, description=" ".join((tool.__doc__ or "").split()))
    return server


def told(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The tool in a thread; its errors are told to the agent in words."""

    @wraps(tool)
    async def run(*given: Any, **named: Any) -> Any:
        try:
            return await anyio.to_thread.run_sync(partial(tool, *given, **named), abandon_on_cancel=True)
        except NearlyError as trouble:
            raise ToolError(f"{type(trouble).__name__}: {trouble}") from None

    return run
