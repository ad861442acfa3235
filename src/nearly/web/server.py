"""One process for many clients: HTTP and the wire of Postgres over one session."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import uvicorn

from nearly.errors import EngineError, SchemaError
from nearly.session import Session
from nearly.web.access import Access
from nearly.web.app import application
from nearly.web.asking import Desk
from nearly.web.changing import StatementRunner
from nearly.web.limits import Limits
from nearly.web.wire.server import Wire

CLOSING_SECONDS = 3


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where a server listens, who may ask it, and how much. A port of 0 is any that is free; None for no wire."""

    host: str = "127.0.0.1"
    port: int = 8765
    wire_port: int | None = 5433
    password: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    names: tuple[str, ...] = ()
    changes: bool = False
    limits: Limits = field(default_factory=Limits)

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The server's side of TLS, if it has a certificate."""
        if (self.certificate is None) != (self.key is None):
            raise SchemaError("TLS needs both --cert and --key")
        if self.certificate is None or self.key is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as trouble:
            raise SchemaError(f"the certificate or its key cannot be read: {trouble}") from None
        return context


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a server is reached, with its secret."""

    page: str
    wire: str | None
    token: str
    port: int
    wire_port: int | None


class Server:
    """A session that is served until it is told to stop."""

    def __init__(self, db: Session, settings: ServerSettings) -> None:
        self._settings = settings
        self._tls = settings.tls
        access = Access(settings.host, settings.port, settings.password, self._tls is not None, settings.names)
        self._socket = _listening(settings.host, settings.port)
        self.access = replace(access, port=self._socket.getsockname()[1])
        self.desk = Desk(db, settings.limits)
        self.changer = StatementRunner(db, settings.limits, settings.changes)
        self._http: uvicorn.Server | None = None

    async def serve(self, ready: Callable[[Addresses], None]) -> None:
        """Answer clients until `stop`; `ready` is told where they find it."""
        app = application(self.desk, self.access, self.changer)
        config = uvicorn.Config(
            app, log_level="critical", access_log=False, lifespan="off", server_header=False, date_header=False,
            timeout_graceful_shutdown=CLOSING_SECONDS, h11_max_incomplete_event_size=65536,
        )  # fmt: skip
        config.load()
        config.ssl = self._tls
        self._http = uvicorn.Server(config)
        async with contextlib.AsyncExitStack() as stack:
            wire_port = None
            if self._settings.wire_port is not None:
                wire = Wire(self.desk, self.access, self.changer, self._tls)
                wire_port = await wire.start(self._settings.host, self._settings.wire_port)
                stack.callback(wire.close)
            ready(self._addresses(wire_port))
            await self._http.serve(sockets=[self._socket])
        await asyncio.to_thread(self.desk.close)

    def stop(self) -> None:
        """End it; from any thread."""
        if self._http is not None:
            self._http.should_exit = True

    def _addresses(self, wire_port: int | None) -> Addresses:
        access, shown = self.access, _shown(self.access.host)
        scheme = "https" if access.secure else "http"
        query = "" if access.password is not None else f"?token={access.token}"
        secret = "PASSWORD" if access.password is not None else access.token
        wire = None if wire_port is None else f"postgresql://nearly:{secret}@{shown}:{wire_port}/nearly"
        return Addresses(f"{scheme}://{shown}:{access.port}/{query}", wire, access.token, access.port, wire_port)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens; a port that is taken is an error in words."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(2048)
    except OSError as trouble:
        found.close()
        raise EngineError(f"port {port} of {host} cannot be used: {trouble.strerror}; choose another with --port") from None
    return found
