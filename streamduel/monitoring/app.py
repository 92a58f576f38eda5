"""The pages of the monitoring server: read only, and nothing that a browser could run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamduel.errors import nearest
from streamduel.monitoring.health import why_not_live, why_not_ready
from streamduel.monitoring.metrics import Metrics
from streamduel.monitoring.views import Figures
from streamduel.stream.homes import MOST_COMPARED

HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
"""Of every answer that does not set them itself: nothing here is to be kept, run or framed."""

INDEX: Final = """\
streamduel

/metrics          for Prometheus
/healthz          200 while the service is alive, else 503 and why
/readyz           200 while it folds records, else 503 and why
/api/experiments  all experiments with their assignments, as JSON; one with /api/experiments/NAME
"""


class _AnyName(PathConvertor):
    """What an experiment may be called in a path: anything, slashes and line breaks included."""

    regex = "(?s:.*)"


register_url_convertor("any_name", _AnyName())


def create_app(metrics: Metrics) -> ASGIApp:
    """The pages, as an ASGI application.

    They are coroutines without an await in them: one is answered after the other in the server's
    own thread, so that no number of scrapers takes more than one thread's share from the fold.

    Args:
        metrics: what the pages show.
    """

    async def index(_: Request) -> Response:
        return PlainTextResponse(INDEX)

    async def exposition(request: Request) -> Response:
        return _exposition(metrics.registry, ",".join(request.headers.getlist("accept")))

    async def healthz(_: Request) -> Response:
        return _answer("alive", why_not_live(metrics.figures))

    async def readyz(_: Request) -> Response:
        return _answer("ready", why_not_ready(metrics.figures))

    async def experiments(request: Request) -> Response:
        return _experiments(metrics.figures, request.path_params.get("name"))

    app = Starlette(
        routes=[
            Route("/", index),
            Route("/metrics", exposition),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/api/experiments", experiments),
            Route("/api/experiments/{name:any_name}", experiments),
        ]
    )
    app.router.redirect_slashes = False  # a redirect would repeat what the client says is the host
    return _WithHeaders(app)


def _exposition(registry: CollectorRegistry, accept: str) -> Response:
    """The metrics in the format that the client asks for: text, or OpenMetrics."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # a version that is no number
        encode, content_type = choose_encoder("")
    return Response(encode(registry), headers={"content-type": content_type})


def _answer(status: str, why_not: Sequence[str]) -> Response:
    if not why_not:
        return JSONResponse({"status": status})
    return JSONResponse({"status": f"not {status}", "reasons": why_not}, status_code=503)


def _experiments(figures: Figures, name: str | None) -> Response:
    """Those that this process holds, by name; or the one that is asked for.

    Each is encoded once after a change, however many ask, and in a step of its own: a thousand of
    them never keep the fold waiting for longer than one.
    """
    views = {view.name: view for view in figures.experiments()}
    if name is not None and name not in views:
        hint = nearest(name, views) if len(views) <= MOST_COMPARED else ""
        sentence = f"experiment '{name[:80]}' is in no partition of this process{hint or '.'}"
        return JSONResponse({"error": sentence}, status_code=404)
    wanted = sorted(views) if name is None else [name]
    answer = {"experiments": {each: views[each].summary for each in wanted}}
    return Response(msgspec.json.encode(answer), media_type="application/json")


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
