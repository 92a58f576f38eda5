"""The addresses of the monitoring server: read only, for people and for programs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec
from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamduel.monitoring import api, openapi
from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.experiments_csv import experiments_csv
from streamduel.monitoring.exposition import Exposition
from streamduel.monitoring.history import History
from streamduel.monitoring.page import PAGE_HEADERS, Pages
from streamduel.monitoring.page.overview import Query
from streamduel.monitoring.page.pages import absent
from streamduel.monitoring.views import ExperimentView

HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Of every answer that does not set them: not to be cached, run or framed, and without a referrer
for the sites that pages link to."""

IMMUTABLE: Final = {"cache-control": "public, max-age=31536000, immutable"}
"""Of a file whose address contains the hash of its content."""


PROBES: Final = ("/healthz", "/readyz")
"""What orchestrators ask, with a timeout of a second."""


class _AnyName(PathConvertor):
    """An experiment's name in a path: anything, slashes and line breaks included."""

    regex = "(?s:.*)"


register_url_convertor("any_name", _AnyName())


def create_app(metrics: Metrics, history: History, pages: Pages) -> ASGIApp:
    """The ASGI application.

    Its endpoints are coroutines without an await: the server's thread makes one answer after the
    other, so no number of clients takes more than one thread's share of the interpreter. A probe
    waits for the answer that is being made, and for no other one.

    Args:
        metrics: the figures and their registry.
        history: past confidence and regret.
        pages: the status page.
    """
    exposition = Exposition(metrics.registry)

    async def scrape(request: Request) -> Response:
        page, content_type = exposition.page(",".join(request.headers.getlist("accept")))
        return Response(page, headers={"content-type": content_type})

    async def healthz(_: Request) -> Response:
        return _health("alive", metrics.figures.why_not_live())

    async def readyz(_: Request) -> Response:
        return _health("ready", metrics.figures.why_not_ready())

    app = Starlette(
        routes=[
            Route("/metrics", scrape),
            *(Route(path, probe) for path, probe in zip(PROBES, (healthz, readyz), strict=True)),
            *_api(metrics, history),
            *_pages(pages),
        ]
    )
    app.router.redirect_slashes = False  # a redirect would repeat the client's host header
    return _WithHeaders(_InTurn(app))


def _health(status: Literal["alive", "ready"], why_not: Sequence[str]) -> Response:
    if not why_not:
        return _json(api.Healthy(status))
    return _json(api.Unhealthy(f"not {status}", list(why_not)), 503)  # type: ignore[arg-type]


def _api(metrics: Metrics, history: History) -> list[Route]:
    """The addresses for programs."""
    document = openapi.document()

    async def experiments(_: Request) -> Response:
        figures = metrics.figures
        views = sorted(figures.experiments(), key=lambda view: view.name)
        found = {view.name: api.Summary.of(view, figures.outlook(view.name)) for view in views}
        return _json(api.Experiments(found))

    async def table(request: Request) -> Response:
        text = experiments_csv(metrics.figures, history, Query.parse(request.query_params))
        return Response(text, media_type="text/csv")

    async def openapi_document(_: Request) -> Response:
        return JSONResponse(document)

    def summary(view: ExperimentView) -> api.Experiments:
        outlook = metrics.figures.outlook(view.name)
        return api.Experiments({view.name: api.Summary.of(view, outlook)})

    def of_one(path: str, answer: Callable[[ExperimentView], msgspec.Struct]) -> Route:
        async def endpoint(request: Request) -> Response:
            figures, name = metrics.figures, request.path_params["name"]
            view = figures.experiment(name)
            if view is None:
                sentence, status = absent(figures, name)
                return _json(api.Refusal(sentence), status)
            return _json(answer(view))

        return Route(f"{path}/{{name:any_name}}", endpoint)

    return [
        Route("/api/experiments", experiments),
        of_one("/api/experiments", summary),
        of_one("/api/history", lambda view: api.HistoryAnswer.of(view, history)),
        of_one("/api/matrix", api.MatrixAnswer.of_view),
        of_one("/api/segments", api.SegmentsAnswer.of_view),
        of_one("/api/record", api.RecordAnswer.of),
        of_one("/api/examples", api.ExamplesAnswer.of),
        Route("/api/experiments.csv", table),
        Route("/api/openapi.json", openapi_document),
    ]


def _json(answer: msgspec.Struct, status: int = 200) -> Response:
    return Response(msgspec.json.encode(answer), status, media_type="application/json")


def _pages(pages: Pages) -> list[Route]:
    """The addresses for people."""

    async def overview(request: Request) -> Response:
        return HTMLResponse(pages.overview(request.query_params), headers=PAGE_HEADERS)

    async def experiment(request: Request) -> Response:
        if not request.path_params.get("name") and "name" not in request.query_params:
            return RedirectResponse("/")
        name = request.path_params.get("name") or request.query_params["name"]
        page = pages.experiment(name)
        if page is None:
            page, status = pages.missing(name)
            return HTMLResponse(page, status_code=status, headers=PAGE_HEADERS)
        return HTMLResponse(page, headers=PAGE_HEADERS)

    async def static(request: Request) -> Response:
        file = pages.files.get(request.path_params["name"])
        if file is None:
            return _json(api.Refusal("there is no such file."), 404)
        cached = request.query_params.get("v") == file.version
        return Response(
            file.content, headers={"content-type": file.media_type, **(IMMUTABLE if cached else {})}
        )

    return [
        Route("/", overview),
        Route("/experiments", experiment),
        Route("/experiments/{name:any_name}", experiment),
        Route("/static/{name}", static),
    ]


class _InTurn:
    """Begins one answer in each turn of the event loop; answers to probes begin immediately.

    Otherwise a probe would wait until a page is rendered for each of many clients.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] not in PROBES:
            async with self._turn:
                await asyncio.sleep(0)
        await self._app(scope, receive, send)


class _WithHeaders:
    """Adds `HEADERS` to every answer, errors included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)
