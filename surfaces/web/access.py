"""Who may see the pages: the browser that opened the printed link, and nobody else.

Everybody on this machine can connect to the port, and every page in the person's browser can send requests to it. So:

* The token of the link works once. It becomes a cookie that scripts can't read and other sites can't send.
* All pages are below a secret folder, and so is the cookie: a browser sends a cookie to every port of a host, so another server on
  this machine would get it otherwise.
* `Host` must be our address. So a name that an attacker points to this machine (DNS rebinding) reaches nothing.
* A form needs our `Origin`, and a token that only our pages contain.
"""

from __future__ import annotations

import secrets
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from albert_tools.engine.model.failure import Failure

COOKIE = "albert_review"
#: Bytes of a form, and its fields: a reason, and names.
MAX_FORM, MAX_FIELDS = 64 * 1024, 16
#: A page loads only our own style sheet, script and icon, and nothing may frame it.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    # With "no-referrer", browsers would send `Origin: null` with our own forms. No other origin gets a referrer from this either.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Access:
    """The secrets of one server.

    Attributes:
        origin: ``http://127.0.0.1:PORT``.
        folder: The path of all pages: ``/SECRET``.
        form_token: The token that every form of ours contains.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.folder = f"/{secrets.token_urlsafe(12)}"
        self.form_token = secrets.token_urlsafe(32)
        self._link_token = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)

    @property
    def link(self) -> str:
        """The link that opens the pages, once."""
        return f"{self.origin}{self.folder}/open?token={self._link_token}"

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Why a request is refused, as a status and a sentence; None if its address and origin are ours."""
        headers = Headers(scope=scope)
        if headers.getlist("host") != [self.origin.removeprefix("http://")]:
            return 421, "this is not the address of the review"
        origin = headers.get("origin")
        if origin != self.origin and (origin is not None or scope["method"] not in ("GET", "HEAD")):
            return 403, "the request comes from another page"
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not length.isdecimal() or len(length) > 9 or int(length) > MAX_FORM:
            return 413, "the request is too large"
        return None

    def admits(self, request: Request) -> bool:
        """Whether the request has our cookie."""
        return self.client_of(request.scope) is not None

    def client_of(self, scope: Scope) -> str | None:
        """A name for the browser with our cookie; None for others."""
        parts = Headers(scope=scope).get("cookie", "").split(";")
        return "browser" if any(_is_cookie(part, self._cookie) for part in parts) else None

    def exchange(self, token: str, response: Response) -> bool:
        """Put the cookie into the response if this is the token of the link. Returns whether it is. It is used up then."""
        if not self._link_token or not _same(token, self._link_token):
            return False
        self._link_token = ""
        response.set_cookie(COOKIE, self._cookie, path=self.folder, httponly=True, samesite="strict")
        return True

    async def form(self, request: Request) -> dict[str, str]:
        """The fields of a form that one of our pages sent.

        Raises:
            Failure: `permission_denied` if it has not our token.
        """
        body = (await request.body()).decode("utf-8", "replace")
        try:
            fields = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=MAX_FIELDS))
        except ValueError:
            fields = {}
        if not _same(fields.get("form_token", ""), self.form_token):
            raise Failure("permission_denied", "the form is not from a page of this review", hint="load the page again")
        return fields


class Guard:
    """Middleware: refuses requests that are not meant for us, before anything of them is read, and adds the security headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = self._access.refusal(scope)
        app = self._app if refusal is None else PlainTextResponse(refusal[1], refusal[0])
        await app(scope, receive, send_guarded)


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode())


def _is_cookie(part: str, value: str) -> bool:
    """Whether a part of the header is our cookie. Every server on this machine can set others."""
    # `http.cookies` takes long for some values.
    name, _, given = part.strip().partition("=")
    return name == COOKIE and _same(given, value)
