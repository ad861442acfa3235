"""The server of the wire: who may connect, by TLS where there is a certificate, and one session for each connection."""

from __future__ import annotations

import asyncio
import secrets
import ssl

from pg_mimic import IdentityProvider, PgError, PgServer, ScramSha256AuthPlugin
from pg_mimic import messages as wire
from pg_mimic.stream import ConnectionClosed, PgStream

from nearly.errors import EngineError
from nearly.web.access import Access
from nearly.web.asking import Desk
from nearly.web.changing import StatementRunner
from nearly.web.wire.catalogue import Catalogue
from nearly.web.wire.connection import START_SECONDS, WireConnection
from nearly.web.wire.session import WireSession

MOST_CONNECTIONS = 500
START_BYTES = 10_000


class Secret(IdentityProvider):
    """Whoever has the secret of the server may connect, under any name."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    async def get_password(self, username: str) -> str | None:  # noqa: ARG002  one secret for all
        return self._secret


class LimitedStream(PgStream):
    """A stream whose messages have a largest size, a small one as long as nobody knows who sends them."""

    most = START_BYTES

    async def _read_exactly(self, n: int) -> bytes:
        if not 0 <= n <= self.most:
            raise ConnectionClosed
        return bytes(await super()._read_exactly(n))


class Wire(PgServer):
    """Listens for Postgres clients."""

    def __init__(self, desk: Desk, access: Access, changer: StatementRunner, tls: ssl.SSLContext | None) -> None:
        super().__init__(
            session_factory=self._no_session,
            auth_plugin_factory=lambda _: ScramSha256AuthPlugin(),
            identity_provider=Secret(access.secret),
            server_version="16.0",
        )
        self._desk = desk
        self._changer = changer
        self._catalogue = Catalogue(desk.db)
        self._tls = tls

    @staticmethod
    def _no_session() -> WireSession:
        """Connections are made by `_handle_client`, which knows when their client is gone."""
        raise NotImplementedError

    async def start(self, host: str, port: int) -> int:
        """Begin to listen; the port."""
        try:
            server = await self.start_server(host, port)
        except OSError as trouble:
            raise EngineError(f"port {port} of {host} cannot be used: {trouble.strerror}; choose another with --pg-port") from None
        return int(server.sockets[0].getsockname()[1])

    async def _handle_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = LimitedStream(reader, writer)
        gone = _watched(reader)
        try:
            async with asyncio.timeout(START_SECONDS):
                asked = await self._negotiate_startup(stream)
        except (ConnectionClosed, TimeoutError, ValueError, IndexError, ssl.SSLError, ConnectionError):
            return
        if asked is None:
            return
        if len(self._connections) >= MOST_CONNECTIONS:
            refusal = {"S": "FATAL", "V": "FATAL", "C": "53300", "M": "too many connections"}
            stream.write(wire.make_error_response(refusal))
            await stream.drain()
            return
        pid = self._allocate_pid()
        session = WireSession(self._desk, self._changer, self._catalogue, gone)
        connection = WireConnection(stream, session, self, pid, _secret(), asked)
        self._connections[pid] = connection
        try:
            await connection.run()
        except (ConnectionError, PgError):
            pass
        finally:
            self._connections.pop(pid, None)

    async def _negotiate_startup(self, stream: PgStream) -> dict[str, str] | None:
        """The parameters of the client; TLS before them where there is a certificate. None for a request to cancel."""
        code, payload = await stream.read_startup_packet()
        secure = False
        while code in (wire.SSL_REQUEST_CODE, wire.GSSENC_REQUEST_CODE):
            secure = code == wire.SSL_REQUEST_CODE and self._tls is not None
            stream.write(b"S" if secure else b"N")
            await stream.drain()
            if secure and self._tls is not None:
                await stream.writer.start_tls(self._tls)
            code, payload = await stream.read_startup_packet()
        if code == wire.CANCEL_REQUEST_CODE:
            self.cancel(*wire.parse_cancel_request(payload))
            return None
        if self._tls is not None and not secure:
            stream.write(
                wire.make_error_response(
                    {"S": "FATAL", "V": "FATAL", "C": "28000", "M": "this server takes TLS connections alone (sslmode=require)"}
                )
            )
            await stream.drain()
            return None
        return dict(wire.parse_startup_message(payload))


def _watched(reader: asyncio.StreamReader) -> asyncio.Event:
    """An event that is set when the client is gone, also while nobody reads what it sends."""
    gone = asyncio.Event()
    ended, failed = reader.feed_eof, reader.set_exception

    def eof() -> None:
        gone.set()
        ended()

    def exception(trouble: Exception) -> None:
        gone.set()
        failed(trouble)

    reader.feed_eof = eof  # type: ignore[method-assign]
    reader.set_exception = exception  # type: ignore[method-assign,assignment]
    return gone


def _secret() -> int:
    """A number that a client shows to cancel what it runs."""
    return secrets.randbits(32) - (1 << 31)
