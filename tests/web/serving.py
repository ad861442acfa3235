"""A server in a thread of the test, on any free port."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from nearly.web.server import Addresses, Server, ServerSettings


@contextmanager
def served(db: Any, settings: ServerSettings | None = None, **more: Any) -> Iterator[tuple[Server, Addresses]]:
    """A server over a session, until the block ends."""
    chosen = replace(settings or ServerSettings(), **({"port": 0, "wire_port": None} | more))
    server = Server(db, chosen)
    told: queue.Queue[Addresses | BaseException] = queue.Queue()

    def run() -> None:
        try:
            asyncio.run(server.serve(told.put))
        except BaseException as trouble:
            told.put(trouble)
            raise

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    found = told.get(timeout=30)
    if isinstance(found, BaseException):
        raise found
    try:
        yield server, found
    finally:
        server.stop()
        thread.join(timeout=20)
