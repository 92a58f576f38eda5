"""The pages of the monitoring server: read only, and nothing that a browser could run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamduel.monitoring.health import why_not_live, why_not_ready
from streamduel.monitoring.metrics import Metrics

HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
"""Of every answer that does not set them itself: nothing here is to be kept, run or framed."""

INDEX: Final = """\
streamduel

/metrics  for Prometheus
/healthz  200 while the service is alive, else 503 and why
/readyz   200 while it folds records, else 503 and why
"""


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

    app = Starlette(
        routes=[
            Route("/", index),
            Route("/metrics", exposition),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
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
