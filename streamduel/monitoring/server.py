"""The monitoring server: an HTTP server in a daemon thread, protected against slow clients."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
import time
from collections.abc import Callable, Collection
from typing import Any, Final

import uvicorn
from h11 import LocalProtocolError
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
"""A few Prometheus servers, probes and browsers need a handful. A further connection closes the
oldest one, so slow clients can use up neither the connections that probes need nor the file
descriptors that the click log and the snapshots need."""

MAX_ACCEPTED: Final = 16
"""Connections accepted in one turn of the event loop. A request is answered three turns after its
connection was accepted, before `MAX_CONNECTIONS` newer ones are open."""

QUEUED: Final = 4096
"""Connections that the kernel holds until they are accepted: the default of `net.core.somaxconn`.
They cost no file descriptor. Beyond it a client's next attempt is a second later."""

ACCEPT_PAUSE_SECONDS: Final = 1.0
"""After a failure to accept a connection, mostly for lack of file descriptors, as in asyncio."""

PEEKED: Final = 4096
"""Bytes of a request that are looked at before it is read; a probe or a scraper sends some 300."""

MAX_UNSENT: Final = 32 * 1024 * 1024
"""Bytes of answers that clients have not read yet, together: ten times the metrics of some hundred
experiments, and a sixteenth of the memory that the manifests allow."""

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


class _Connection(H11Protocol):
    """A connection whose exchanges have a deadline; uvicorn itself limits only idle time.

    When there are too many connections, or too many bytes that clients do not read, the connection
    closes whose exchange began first.
    """

    _deadline: asyncio.TimerHandle | None = None
    _answered = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._restart_deadline()
        if len(self.connections) > MAX_CONNECTIONS:
            self._close_oldest(self.connections)

    def data_received(self, data: bytes) -> None:
        if self._answered and not self.transport.get_write_buffer_size():
            self._answered = False
            self._restart_deadline()
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, once: not as the second answer to a request with such a body."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        with contextlib.suppress(LocalProtocolError):  # the request was answered before its body
            super().send_400_response(msg)
        self.transport.close()

    def _should_upgrade(self) -> bool:
        return False  # and advise nobody to install another protocol

    def on_response_complete(self) -> None:
        self._answered = True
        super().on_response_complete()
        unread = [each for each in self.connections if each.transport.get_write_buffer_size()]
        while len(unread) > 1 and _unsent(unread) > MAX_UNSENT:
            unread.remove(self._close_oldest(unread))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _restart_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(EXCHANGE_SECONDS, self.transport.abort)

    def _close_oldest(self, among: Collection[Any]) -> Any:
        oldest = min(among, key=lambda each: each._deadline.when())
        self.connections.discard(oldest)  # now: `abort` does it in the next turn of the loop
        oldest.transport.abort()
        return oldest


def _unsent(connections: Collection[Any]) -> int:
    return sum(each.transport.get_write_buffer_size() for each in connections)


class _Server(uvicorn.Server):
    """Accepts connections so that slow clients do not delay others, and stops in a fixed time.

    uvicorn itself makes a protocol for each of thousands of connections, and waits for all clients
    when it stops.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        for listener in sockets or ():
            listener.setblocking(False)
            self._listen(listener)

    def _listen(self, listener: socket.socket) -> None:
        if not self.should_exit:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        """Accept all waiting connections, and immediately close those beyond `MAX_ACCEPTED`.

        The oldest connections close first; those whose request has arrived close last.
        """
        loop = asyncio.get_running_loop()
        asked: list[socket.socket] = []
        silent: list[socket.socket] = []
        try:
            for _ in range(QUEUED):
                connection, _ = listener.accept()
                (asked if _has_request(connection) else silent).append(connection)
                if len(asked) + len(silent) > MAX_ACCEPTED:
                    (silent or asked).pop(0).close()
        except (BlockingIOError, ConnectionAbortedError):
            pass
        except OSError:
            loop.remove_reader(listener)
            loop.call_later(ACCEPT_PAUSE_SECONDS, self._listen, listener)
        for connection in (*silent, *asked):  # the oldest one closes first
            task = loop.create_task(self._serve_connection(connection))
            self.server_state.tasks.add(task)
            task.add_done_callback(self.server_state.tasks.discard)

    async def _serve_connection(self, connection: socket.socket) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)

    def _protocol(self) -> _Connection:
        return _Connection(self.config, self.server_state, self.lifespan.state)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        for listener in sockets or ():
            loop.remove_reader(listener)
        loop.call_later(STOP_SECONDS, self._abort_connections)
        await super().shutdown(sockets)

    def _abort_connections(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def _has_request(connection: socket.socket) -> bool:
    """Whether a connection that was just accepted has sent a whole request without a body."""
    try:
        begin = connection.recv(PEEKED, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except OSError:
        return False
    return b"\r\n\r\n" in begin


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
                http="h11",
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
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
        self.observers: tuple[Observer, ...] = (self.observer, dead_letters)
        pages = Pages(lambda: self.observer.figures, self.history, dead_letters, calendar)
        self._history_thread = HistoryThread(
            self.history, lambda: self.observer.figures, self.observer.forecasts
        )
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
        return socket.create_server(address, family=family, backlog=QUEUED, dualstack_ipv6=both)
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
