"""What the monitoring server answers to which address: read only, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from email.utils import formatdate
from typing import Final

from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamduel.monitoring import api, openapi
from streamduel.monitoring.assessments import Assessments
from streamduel.monitoring.exposition import Exposition
from streamduel.monitoring.health import why_not_live, why_not_ready
from streamduel.monitoring.history import History
from streamduel.monitoring.metrics import Metrics
from streamduel.monitoring.page import PAGE_HEADERS, Pages

HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Of every answer that does not set them itself: nothing here is to be kept, run or framed, and
whoever is linked to need not know whence one came."""

KEPT: Final = {"cache-control": "public, max-age=31536000, immutable"}
"""Of a file whose address names its content."""


class _AnyName(PathConvertor):
    """What an experiment may be called in a path: anything, slashes and line breaks included."""

    regex = "(?s:.*)"


register_url_convertor("any_name", _AnyName())


def create_app(
    metrics: Metrics, history: History, pages: Pages, assessments: Assessments
) -> ASGIApp:
    """All that is served, as an ASGI application.

    Its answers are coroutines without an await in them: one is made after the other in the server's
    own thread, so that no number of scrapers takes more than one thread's share from the fold.

    Args:
        metrics: what is known.
        history: how it came to be.
        pages: what people see of it.
        assessments: of the experiments, which the history makes.
    """
    lines = Exposition(metrics, assessments)

    async def exposition(request: Request) -> Response:
        return _exposition(lines, ",".join(request.headers.getlist("accept")))

    async def healthz(_: Request) -> Response:
        return _answer("alive", why_not_live(metrics.figures))

    async def readyz(_: Request) -> Response:
        return _answer("ready", why_not_ready(metrics.figures))

    app = Starlette(
        routes=[
            Route("/metrics", exposition),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            *_api(metrics, history),
            *_pages(pages),
        ]
    )
    app.router.redirect_slashes = False  # a redirect would repeat what the client says is the host
    return _WithHeaders(app)


def _exposition(lines: Exposition, accept: str) -> Response:
    """The metrics in the format that the client asks for: text, or OpenMetrics."""
    page, content_type = lines.page(accept)
    return Response(page, headers={"content-type": content_type})


def _answer(status: str, why_not: Sequence[str]) -> Response:
    if not why_not:
        return JSONResponse({"status": status})
    return JSONResponse({"status": f"not {status}", "reasons": why_not}, status_code=503)


def _api(metrics: Metrics, history: History) -> list[Route]:
    """What programs read."""
    document = openapi.document()

    async def experiments(request: Request) -> Response:
        return api.experiments(metrics.figures, request.path_params.get("name"))

    async def past(request: Request) -> Response:
        return api.history(metrics.figures, history, request.path_params["name"])

    async def matrix(request: Request) -> Response:
        return api.matrix(metrics.figures, request.path_params["name"])

    async def description(_: Request) -> Response:
        return JSONResponse(document)

    return [
        Route("/api/experiments", experiments),
        Route("/api/experiments/{name:any_name}", experiments),
        Route("/api/history/{name:any_name}", past),
        Route("/api/matrix/{name:any_name}", matrix),
        Route("/api/openapi.json", description),
    ]


def _pages(pages: Pages) -> list[Route]:
    """What people see."""

    async def overview(request: Request) -> Response:
        return HTMLResponse(pages.overview(request.query_params), headers=PAGE_HEADERS)

    async def experiment(request: Request) -> Response:
        if not request.path_params.get("name") and "name" not in request.query_params:
            return RedirectResponse("/")  # somebody has cut the address short
        name = request.path_params.get("name") or request.query_params["name"]
        page = pages.experiment(name)
        if page is None:
            return HTMLResponse(pages.missing(name), status_code=404, headers=PAGE_HEADERS)
        return HTMLResponse(page, headers=PAGE_HEADERS)

    async def static(request: Request) -> Response:
        file = pages.files.get(request.path_params["name"])
        if file is None:
            return JSONResponse({"error": "there is no such file."}, status_code=404)
        known = request.query_params.get("v") == file.version
        return Response(
            file.content, headers={"content-type": file.media_type, **(KEPT if known else {})}
        )

    return [
        Route("/", overview),
        Route("/experiments", experiment),
        Route("/experiments/{name:any_name}", experiment),
        Route("/static/{name}", static),
    ]


class _WithHeaders:
    """Adds `HEADERS`, and the date, to every answer, errors included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("date", formatdate(usegmt=True))
            await send(message)

        await self._app(scope, receive, send_with_headers)
