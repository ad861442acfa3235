"""Who may talk to the server: the holder of a token or of the password, from a page of the server itself.

Loopback alone is no protection: other users of the machine reach it, and so do pages of other sites in the user's own browser, by
forms, by scripts and by names that resolve to 127.0.0.1. So every request needs the secret, the name that it was sent to must be
the server's own, and one that changes something must come from the server's own page or from no page at all.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nearly.errors import SchemaError

PUBLIC = frozenset({"/", "/login", "/style.css", "/icon.svg"})
"""Paths that answer without a secret; the first says that one is needed."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """The secret of a server, where it listens, and whether it is reached by TLS."""

    host: str = "127.0.0.1"
    port: int = 0
    password: str | None = None
    secure: bool = False
    names: tuple[str, ...] = ()
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and (self.password is None or not self.secure):
            raise SchemaError(
                f"host {self.host} is reached from other machines; that needs a password (--password-file, or NEARLY_PASSWORD) "
                "and TLS (--cert and --key). Without them the server listens on 127.0.0.1 alone"
            )
        if self.password is not None and len(self.password) < 8:
            raise SchemaError("the password must have 8 characters or more")

    @property
    def cookie(self) -> str:
        """The cookie's name; a browser shares cookies between the ports of a host."""
        return f"nearly_{self.port}"

    @property
    def secret(self) -> str:
        """What the wire asks for as a password."""
        return self.password or self.token

    def is_right(self, given: str) -> bool:
        """Whether this is the token or the password; how long the comparison takes tells nothing."""
        token = hmac.compare_digest(given.encode(), self.token.encode())
        password = self.password is not None and hmac.compare_digest(given.encode(), self.password.encode())
        return token or password

    def is_known(self, headers: Headers) -> bool:
        """Whether a request has the secret: in the cookie, as a bearer, or as the password of a user."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        match scheme.lower():
            case "bearer":
                return self.is_right(given.strip())
            case "basic":
                try:
                    return self.is_right(base64.b64decode(given, validate=True).decode().partition(":")[2])
                except (binascii.Error, UnicodeDecodeError):
                    return False
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self.token.encode())

    def remember(self, response: Response) -> None:
        """Have a browser send the token with requests of the server's own page, and no other."""
        response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", secure=self.secure, path="/")

    def is_own_name(self, host: str) -> bool:
        """Whether a request was sent to this server by a name of its own, not by one that somebody points here."""
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        name = name.strip("[]").lower()
        allowed = {self.host.lower(), *(each.lower() for each in self.names)}
        return name in allowed or (is_loopback(self.host) and is_loopback(name)) or (self.secure and not self.names and self.is_any)

    @property
    def is_any(self) -> bool:
        """Whether it listens on all addresses, whose names it cannot know; the password and TLS protect it then."""
        return self.host in ("0.0.0.0", "::")  # noqa: S104

    def is_own_page(self, headers: Headers, scheme: str) -> bool:
        """Whether a request comes from the server's own page, or from a program that is no browser."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if site is not None and site not in ("same-origin", "none"):
            return False
        return origin is None or origin == f"{scheme}://{headers.get('host', '')}"


class Guard:
    """Around the whole application: refuses who may not talk to it, and adds the headers that keep a browser in bounds."""

    def __init__(self, app: ASGIApp, access: Access, body: int) -> None:
        self._app = app
        self._access = access
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if self._access.secure:
                    headers.setdefault("Strict-Transport-Security", "max-age=31536000")
            await send(message)

        refusal = self._refusal(scope, Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, guarded)
        else:
            await self._app(scope, _limited(receive, self._body), guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if not self._access.is_own_name(headers.get("host", "")):
            return refused(421, "misdirected", "this server does not have that name; use the address that it printed")
        if scope["method"] not in _SAFE and not self._access.is_own_page(headers, scope["scheme"]):
            return refused(403, "foreign", "requests of other sites' pages are refused")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._body:
            return refused(413, "too_much", f"the request is larger than {self._body:,} bytes")
        if scope["path"] not in PUBLIC and not self._access.is_known(headers):
            found = refused(
                401, "unknown", "open the address that the server printed, or send its token: Authorization: Bearer TOKEN"
            )
            found.headers["WWW-Authenticate"] = "Bearer"
            return found
        return None


def refused(status: int, kind: str, message: str) -> Response:
    """An error as the API tells it."""
    return JSONResponse({"error": {"kind": kind, "message": message}}, status)


def _limited(receive: Receive, most: int) -> Receive:
    """The body of a request up to a number of bytes; then it counts as gone."""
    read = 0

    async def limited() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        return {"type": "http.disconnect"} if read > most else message

    return limited
