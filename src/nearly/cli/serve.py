"""`nearly serve`: a page, an HTTP API and the wire of Postgres over a directory of tables or a catalog."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nearly.cli.lake import tables_in
from nearly.cli.verbs import Commands
from nearly.errors import SchemaError, Unsupported
from nearly.session import Session, connect

_EPILOG = """\
The address that is printed has a token, without which nobody is answered; psql gets it as the password. A HOST that other machines
reach needs a password (--password-file, or NEARLY_PASSWORD) and TLS (--cert, --key). Ctrl-C ends the server.

example: nearly serve --data lake
"""


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "serve", help="a page, an HTTP API and the wire of Postgres", description=__doc__, epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--data", type=Path, metavar="DIR", help="directory with the tables")
    parser.add_argument("--path", type=Path, metavar="CATALOG", help="the catalog; without it, it is temporary")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--name", action="append", default=[], metavar="HOST", help="a name by which other machines know the server"
    )
    parser.add_argument("--port", type=int, default=8765, help="of the page; 0 for any (default: 8765)")
    parser.add_argument("--pg-port", type=int, default=5433, metavar="PORT", help="of the wire; 0 for any (default: 5433)")
    parser.add_argument("--no-pg", action="store_true", help="without the wire")
    parser.add_argument("--password-file", type=Path, metavar="FILE", help="a password in place of the token; else NEARLY_PASSWORD")
    parser.add_argument("--cert", type=Path, metavar="FILE", help="certificate for TLS, as PEM")
    parser.add_argument("--key", type=Path, metavar="FILE", help="its private key, as PEM")
    parser.add_argument("--allow-changes", action="store_true", help="take INSERT, DELETE, UPDATE, MERGE and views, too")
    parser.add_argument("--max-queries", type=int, metavar="N", help="queries at a time (default: twice the cores)")
    parser.add_argument("--max-waiting", type=int, metavar="N", help="queries that wait for their turn (default: 5000)")
    parser.add_argument("--max-text", type=int, metavar="N", help="characters of a query (default: 100000)")
    parser.add_argument("--max-rows", type=int, metavar="N", help="rows of an answer that is handed out (default: 1000000)")
    parser.add_argument("--max-seconds", type=float, metavar="S", help="of a query (default: 600)")
    parser.add_argument("--eager", action="store_true", help="early answers also where the exact one is expected soon")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C; the exit code."""
    try:
        from nearly.web.limits import Limits
        from nearly.web.server import Addresses, Server, ServerSettings
    except ImportError as trouble:
        raise Unsupported(f"the server needs {trouble.name}; install it with: pip install 'nearly[serve]'") from None
    settings = ServerSettings(
        options.host, options.port, None if options.no_pg else options.pg_port, _password(options.password_file), options.cert,
        options.key, tuple(options.name), options.allow_changes, Limits(**limits_of(options)),
    )  # fmt: skip

    def tell(found: Addresses) -> None:
        print(f"page   {found.page}")
        if found.wire is not None:
            print(f"wire   psql {found.wire}")
        print(f"{'changes are allowed' if options.allow_changes else 'read-only'}; Ctrl-C ends the server", flush=True)

    with opened(options) as db:
        server = Server(db, settings)
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, lambda *_: server.stop())
        asyncio.run(server.serve(tell))
    return 0


def limits_of(options: argparse.Namespace) -> dict[str, Any]:
    """The limits that were given; others are as they are by default."""
    given = {
        "queries": options.max_queries, "waiting": options.max_waiting, "characters": options.max_text,
        "rows": options.max_rows, "seconds": options.max_seconds,
    }  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


@contextlib.contextmanager
def opened(options: argparse.Namespace) -> Iterator[Session]:
    """A session over the tables that the options name; a temporary catalog is removed at the end."""
    if options.data is None and options.path is None:
        raise SchemaError("there is nothing to serve; give --data DIR, or --path CATALOG with tables from before")
    with contextlib.ExitStack() as stack:
        own = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nearly-")))
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        eager = getattr(options, "eager", False)
        db = stack.enter_context(connect(path=options.path or own / "catalog", lazy=True, log=own / "java.log", eager=eager))
        stored = {name.lower() for name in (*db.tables, *db.views)}
        for name, source in ({} if options.data is None else tables_in(options.data)).items():
            if name.lower() not in stored:
                db.register(name, str(source))
        yield db


def _password(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get("NEARLY_PASSWORD") or None
    try:
        return file.read_text().strip()
    except OSError as trouble:
        raise SchemaError(f"--password-file {str(file)!r} cannot be read: {trouble.strerror}") from None
