"""The application: one function for each page. It reads from the service, renders a template, and hands over decisions."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from albert_tools.engine.model.failure import Failure
from albert_tools.service import ToolService
from albert_tools.surfaces.web.access import Access, Guard
from albert_tools.surfaces.web.fleet_page import fleet_page, has_fleet
from albert_tools.surfaces.web.questions import question_page
from albert_tools.surfaces.web.queue_page import queue_page
from albert_tools.surfaces.web.run_rows import run_page
from albert_tools.surfaces.web.source_lines import source_lines
from albert_tools.surfaces.web.tool_pages import next_waiting, tool_page, tools_page
from albert_tools.surfaces.web.visible import marked, plain

_HERE = Path(__file__).parent
#: Code of a failure → status of the answer; 400 for others.
_STATUS = {
    "not_found": 404,
    "unknown_tool": 404,
    "permission_denied": 403,
    "exists": 409,
    "outdated": 409,
    "damaged": 500,
    "io_error": 500,
}
_Handler = Callable[[Request], Awaitable[Response]]


class Pages:
    """The pages of one service. `person` is the name that the record has for the decisions made here."""

    def __init__(self, service: ToolService, access: Access, person: str) -> None:
        self.service = service
        self.access = access
        self.person = person
        self._templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            finalize=plain,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["marked"] = marked
        self._templates.globals |= {"root": access.folder, "form_token": access.form_token, "here": ""}
        self._templates.globals["has_fleet"] = self._has_fleet
        self._fleet = False

    def application(self) -> Starlette:
        """The ASGI application."""
        pages = [
            *self._live("/", "queue", self._queue),
            *self._live("/fleet", "fleet", lambda _: fleet_page(self.service)),
            self._route("/next", self._next),
            self._route("/tools", self._tools),
            self._route("/tools/{name}", self._tool),
            self._route("/tools/{name}", self._decide, "POST"),
            self._route("/questions/{approval}", self._question),
            self._route("/questions/{approval}", self._answer, "POST"),
            self._route("/runs/{run}", self._run),
            self._route("/suggestions", self._suggestions),
        ]
        public = [Route("/open", self._open), Mount("/static", StaticFiles(directory=_HERE / "static"))]
        return Starlette(
            routes=[Mount(self.access.folder, routes=[*public, *pages])],
            middleware=[Middleware(Guard, access=self.access)],
            exception_handlers={Failure: self._failed, HTTPException: self._not_found},
        )

    def _route(self, path: str, handler: _Handler, method: str = "GET") -> Route:
        """A page that only the browser with our cookie gets."""

        async def admitted(request: Request) -> Response:
            return await handler(request) if self.access.admits(request) else self._closed()

        return Route(path, admitted, methods=[method])

    def _html(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._text(template, **values), status)

    def _text(self, template: str, **values: Any) -> str:
        return self._templates.get_template(template).render(values)

    async def _rendered(self, template: str, values: Callable[..., dict[str, Any]], *given: Any) -> Response:
        """A page whose values `values(service, *given)` reads, in a thread, because it reads files."""
        return await asyncio.to_thread(lambda: self._html(template, **values(self.service, *given)))

    def _has_fleet(self) -> bool:
        """Whether the menu has the page of the fleet. Once it has, it keeps it."""
        with suppress(Failure):
            self._fleet = self._fleet or has_fleet(self.service)
        return self._fleet

    # Opening

    async def _open(self, request: Request) -> Response:
        # The browser itself follows this link, so it sends the new cookie also if the printed link was on another site.
        opened = self._html("opened.html")
        if self.access.exchange(request.query_params.get("token", ""), opened):
            return opened
        return RedirectResponse(f"{self.access.folder}/", 303) if self.access.admits(request) else self._closed()

    def _closed(self) -> Response:
        return self._html(
            "problem.html",
            403,
            closed=True,
            heading="This review is not open in this browser",
            message="Open the link that `albert review --web` has printed. It works once, in one browser.",
            hint="If you have used it, stop the command and start it again.",
        )

    async def _failed(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, Failure)
        return await asyncio.to_thread(self._problem, _STATUS.get(error.code, 400), error.message, error.hint or "")

    async def _not_found(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        message = "There is no such page." if error.status_code == 404 else error.detail
        if not self.access.admits(request):
            # Each of our pages names the secret folder.
            return PlainTextResponse(message, error.status_code)
        return await asyncio.to_thread(self._problem, error.status_code, message)

    def _problem(self, status: int, message: str, hint: str = "") -> Response:
        return self._html("problem.html", status, closed=False, heading="That did not work", message=message, hint=hint)

    # Pages that change

    def _live(self, path: str, name: str, values: Callable[[Request], dict[str, Any]]) -> tuple[Route, Route]:
        """A page that changes, and its changing part alone, for the page's script. `values` reads what the part shows."""

        def part(request: Request) -> str:
            return self._text(f"{name}_part.html", **values(request))

        async def whole(request: Request) -> Response:
            text = await asyncio.to_thread(part, request)
            return await asyncio.to_thread(self._html, "live.html", here=name, part=Markup(text), digest=_digest(text))

        async def changed(request: Request) -> Response:
            """Without a body if the part is what the page already shows."""
            text = await asyncio.to_thread(part, request)
            digest = _digest(text)
            if request.query_params.get("digest") == digest:
                return Response(status_code=204)
            return HTMLResponse(text, headers={"x-digest": digest})

        return self._route(path, whole), self._route(f"/live/{name}", changed)

    async def _next(self, request: Request) -> Response:
        state = await asyncio.to_thread(next_waiting, self.service, request.query_params.get("after", ""))
        page = f"tools/{state.tool}?version={state.version}" if state is not None else ""
        return RedirectResponse(f"{self.access.folder}/{page}", 303)

    def _queue(self, request: Request) -> dict[str, Any]:
        page = request.query_params.get("page", "")
        return queue_page(self.service, int(page) if page.isdecimal() and len(page) < 5 else 1)

    # Tools, questions, runs

    async def _tools(self, request: Request) -> Response:
        query, after = (request.query_params.get(name, "")[:200] for name in ("q", "after"))
        values = await tools_page(self.service, query, after)
        return await asyncio.to_thread(self._html, "tools.html", here="tools", **values)

    async def _tool(self, request: Request) -> Response:
        name, query = request.path_params["name"], request.query_params
        values = await tool_page(self.service, name, query.get("version"), "rerun" in query)
        return await asyncio.to_thread(self._html, "tool.html", **values)

    async def _decide(self, request: Request) -> Response:
        name, fields = request.path_params["name"], await self.access.form(request)
        decision, version, why = (fields.get(f, "") for f in ("verdict", "version", "why"))
        manifest, seen = fields.get("manifest", ""), fields.get("state", "")
        state = await self.service.decide(name, decision, self.person, version, why.strip(), manifest, seen)
        return RedirectResponse(f"{self.access.folder}/tools/{name}?version={state.version}", 303)

    async def _question(self, request: Request) -> Response:
        return await self._rendered("question.html", question_page, request.path_params["approval"])

    async def _answer(self, request: Request) -> Response:
        approval, fields = request.path_params["approval"], await self.access.form(request)
        answer: Any = fields.get("choice", "")
        answered = await asyncio.to_thread(self.service.approvals.answer, approval, answer, self.person)
        return RedirectResponse(f"{self.access.folder}/questions/{answered.id}", 303)

    async def _run(self, request: Request) -> Response:
        return await self._rendered("run.html", run_page, request.path_params["run"])

    async def _suggestions(self, request: Request) -> Response:
        suggestions = await self.service.suggest()
        sources = [source_lines(each.source) for each in suggestions]
        return await asyncio.to_thread(
            self._html, "suggestions.html", here="suggestions", suggestions=suggestions, sources=sources
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
