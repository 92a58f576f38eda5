"""The monitoring server: an HTTP server in a daemon thread, protected against slow clients."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from streamduel.config import LoadedConfig, MonitoringSettings
from streamduel.errors import ConfigurationError
from streamduel.monitoring.app import create_app
from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.history import History, HistoryThread
from streamduel.monitoring.page import Pages
from streamduel.monitoring.recent_dead_letters import RecentDeadLetters
from streamduel.stream.observer import Observer

MAX_CONNECTIONS: Final = 64
"""A few Prometheus servers, probes and browsers need a handful. More are closed unheard, so clients
cannot use up the file descriptors that the click log and the snapshots need."""

EXCHANGE_SECONDS: Final = 15.0
"""From a request's first byte until its answer is sent; Prometheus itself gives up after 10. After
it, the connection of a client that does not finish its request or does not read is closed. The same
limit applies before the first byte: browsers connect in advance."""

KEEP_ALIVE_SECONDS: Final = 5
"""An idle connection is closed after it; reconnecting costs a scraper nothing."""

STOP_SECONDS: Final = 0.05
"""When the server stops, answers that are being sent may take this long."""

JOIN_SECONDS: Final = 3.0
"""Stopping takes some 0.2 s. If it takes longer, the daemon thread ends with the process."""

BACKLOG: Final = MAX_CONNECTIONS
"""Connections that wait to be accepted."""


class _Connection(H11Protocol):
    """A connection whose exchanges have a deadline; uvicorn itself limits only idle time."""

    _deadline: asyncio.TimerHandle | None = None
    _answered = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
        else:
            self._restart_deadline()

    def data_received(self, data: bytes) -> None:
        if self._answered and not self.transport.get_write_buffer_size():
            self._answered = False
            self._restart_deadline()
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._answered = True
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _restart_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(EXCHANGE_SECONDS, self.transport.abort)


class _Server(uvicorn.Server):
    """Stops in a fixed time, whatever its clients do; uvicorn itself waits for them."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(STOP_SECONDS, self._abort_connections)
        await super().shutdown(sockets)

    def _abort_connections(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()


class Server:
    """An HTTP server in a daemon thread.

    Signals stay with the main thread: uvicorn installs handlers only when it runs there.

    Args:
        app: what it serves.
        settings: where it listens.
    """

    def __init__(self, app: ASGIApp, settings: MonitoringSettings) -> None:
        self._settings = settings
        self._server = _Server(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=_Connection,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread: threading.Thread | None = None

    def start(self) -> tuple[str, int]:
        """Listen, and return the actual host and port.

        Raises:
            ConfigurationError: the address cannot be bound.
        """
        listener = _listen(self._settings.host, self._settings.port)
        host, port = listener.getsockname()[:2]
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="monitoring", daemon=True
        )
        self._thread.start()
        return host, port

    def stop(self) -> None:
        """Close all connections and release the port."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS)


class Monitoring:
    """Metrics, health and status page of one service.

    Args:
        settings: where they are served.
        loaded: the configuration of the service.
        clock: monotonic seconds.
        calendar: seconds since 1970.

    Attributes:
        observer: keeps the figures.
        history: past confidence and regret.
        observers: to be passed to the runner.
    """

    def __init__(
        self,
        settings: MonitoringSettings,
        loaded: LoadedConfig,
        clock: Callable[[], float] = time.monotonic,
        calendar: Callable[[], float] = time.time,
    ) -> None:
        self.observer = Metrics(loaded.config.source["connector"], clock)
        self.history = History(calendar)
        dead_letters = RecentDeadLetters(calendar)
        self.observers: tuple[Observer, ...] = (
            self.observer.heartbeat,
            self.observer,
            dead_letters,
        )
        pages = Pages(lambda: self.observer.figures, self.history, dead_letters, calendar)
        self._history_thread = HistoryThread(self.history, lambda: self.observer.figures)
        self._server = Server(create_app(self.observer, self.history, pages), settings)

    def start(self) -> tuple[str, int]:
        """Begin to serve, and return the actual host and port.

        Raises:
            ConfigurationError: the address cannot be bound.
        """
        address = self._server.start()
        self._history_thread.start()
        return address

    def stop(self) -> None:
        """Stop serving."""
        self._history_thread.stop()
        self._server.stop()


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket, so that a wrong address shows before the service starts."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(_refusal(host, port, error)) from error


def _refusal(host: str, port: int, error: OSError | UnicodeError) -> str:
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.EADDRINUSE:
        return f"monitoring.port {port} is in use on {host}; choose another, or 0 for a free one."
    if code == errno.EACCES:
        return (
            f"monitoring.port {port} is reserved for the system on {host}; choose one from 1024, "
            f"or 0 for a free one."
        )
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"monitoring.host must be an address of this machine (found '{host}'): {reason}."
