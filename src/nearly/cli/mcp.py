"""`nearly mcp`: tools for agents over standard input and output, read-only and limited."""

from __future__ import annotations

import argparse
from pathlib import Path

from nearly.cli.serve import opened
from nearly.cli.verbs import Commands
from nearly.errors import Unsupported


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser("mcp", help="tools for agents (Model Context Protocol)", description=__doc__)
    parser.add_argument("--data", type=Path, metavar="DIR", help="directory with the tables")
    parser.add_argument("--path", type=Path, metavar="CATALOG", help="the catalog; without it, it is temporary")
    parser.add_argument("--max-seconds", type=float, default=60.0, metavar="S", help="of a query (default: 60)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve one agent until it closes the connection; the exit code."""
    try:
        from nearly.web.agents import serve_agent
        from nearly.web.limits import Limits
    except ImportError as trouble:
        raise Unsupported(f"the tools for agents need {trouble.name}; install it with: pip install 'nearly[mcp]'") from None
    with opened(options) as db:
        serve_agent(db, Limits(seconds=options.max_seconds))
    return 0
