"""Serves the pages from a thread of its own, and holds out against clients that hang."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from streamduel.config import LoadedConfig, MonitoringSettings
from streamduel.errors import ConfigurationError
from streamduel.monitoring.app import create_app
from streamduel.monitoring.assessments import Assessments
from streamduel.monitoring.history import Historian, History
from streamduel.monitoring.letters import Letters
from streamduel.monitoring.metrics import Metrics
from streamduel.monitoring.page import Pages
from streamduel.stream.observer import Observer

MAX_CONNECTIONS: Final = 64
"""A Prometheus or two, probes and somebody looking: a handful. More are closed unheard, so that
clients cannot use up the file descriptors that the log and the snapshots need."""

EXCHANGE_SECONDS: Final = 15.0
"""From a request's first byte until its answer is sent; Prometheus itself gives up after 10. It
frees the place, and the memory, of a client that does not finish asking or does not read. As long
may pass before the first byte: browsers connect before they know what to ask."""

KEEP_ALIVE_SECONDS: Final = 5
"""An idle connection is closed after it: to open one anew costs a scraper nothing."""

STOP_SECONDS: Final = 0.05
"""At the end, answers that are being sent may take this long."""

JOIN_SECONDS: Final = 3.0
"""Stopping takes some 0.2 s. What takes longer dies with the process: its thread is a daemon."""

BACKLOG: Final = 64
"""Connections that wait to be accepted; as many as may be open."""

PUT_OFF: Final = 4
"""To answer takes two turns between the request and the next sleep; with as many again, one that
comes meanwhile has not long to wait."""


class _PatientSelector(selectors.DefaultSelector):
    """Does not look for news while there is something to be done; at most `PUT_OFF` times in a row.

    asyncio looks at every turn. Each look lets go of the interpreter, and to get it back from a
    busy fold takes milliseconds, in which the fold is slower, too.
    """

    _put_off = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0 and self._put_off < PUT_OFF:
            self._put_off += 1
            return []
        self._put_off = 0
        return super().select(timeout)


class _WholeAnswers(h11.Connection):
    """Says the head of an answer only together with what comes after it.

    To send it alone would let go of the interpreter once more.
    """

    _head = b""

    def send(self, event: h11.Event) -> bytes | None:  # type: ignore[override]
        said = super().send(event)
        if isinstance(event, h11.Response):
            self._head, said = said or b"", b""
        elif said or isinstance(event, h11.EndOfMessage):
            self._head, said = b"", self._head + (said or b"")
        return said


class _Connection(H11Protocol):
    """A connection on which every exchange has its deadline; uvicorn itself limits only idling."""

    _deadline: asyncio.TimerHandle | None = None
    _answered = True  # all that was asked

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = _WholeAnswers(h11.SERVER)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
        else:
            self._begin_deadline()

    def data_received(self, data: bytes) -> None:
        if self._answered and not self.transport.get_write_buffer_size():
            self._answered = False
            self._begin_deadline()
        super().data_received(data)

    def on_response_complete(self) -> None:
        self._answered = True
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def _begin_deadline(self) -> None:
        self._cancel_deadline()
        self._deadline = self.loop.call_later(EXCHANGE_SECONDS, self.transport.abort)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()


class _Uvicorn(uvicorn.Server):
    """Sleeps when nobody asks, and ends in a fixed time, whatever its clients do.

    uvicorn itself looks ten times a second whether it shall end. Beside a busy fold each look costs
    up to a millisecond, for the interpreter must be had first.
    """

    _wake: Callable[[], object] | None = None

    def end(self) -> None:
        """Close all connections and return; to be called from another thread."""
        self.should_exit = True
        if self._wake is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed: it has ended already
                self._wake()

    async def main_loop(self) -> None:
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        self._wake = lambda: loop.call_soon_threadsafe(ended.set)
        if not self.should_exit:
            await ended.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        for server in self.servers:
            for listener in server.sockets:
                # Not closed yet: a connection that is just being accepted would never be.
                loop.remove_reader(listener)
        await asyncio.sleep(STOP_SECONDS)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await super().shutdown(sockets)


class Server:
    """An HTTP server in a daemon thread.

    Signals stay with the main thread: uvicorn installs handlers only when it runs in that one.

    Args:
        app: what it serves.
        settings: where it listens.
    """

    def __init__(self, app: ASGIApp, settings: MonitoringSettings) -> None:
        self._settings = settings
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                http=_Connection,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,  # uvicorn renews it in the loop that it has no more
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread: threading.Thread | None = None

    def start(self) -> tuple[str, int]:
        """Listen; the host and the port that it really does on.

        Raises:
            ConfigurationError: it cannot; the sentence says why.
        """
        listener = _listen(self._settings.host, self._settings.port)
        host, port = listener.getsockname()[:2]
        self._thread = threading.Thread(
            target=self._run, args=(listener,), name="monitoring", daemon=True
        )
        self._thread.start()
        return host, port

    def _run(self, listener: socket.socket) -> None:
        def patient() -> asyncio.AbstractEventLoop:
            return asyncio.SelectorEventLoop(_PatientSelector())

        with asyncio.Runner(loop_factory=patient) as runner:
            runner.run(self._server.serve([listener]))

    def stop(self) -> None:
        """Close all connections; the port is free afterwards."""
        self._server.end()
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS)


class Monitoring:
    """Metrics, health and status page of one service.

    Args:
        settings: where they are served.
        loaded: the configuration of the service.
        clock: seconds that only grow.
        calendar: seconds since 1970.

    Attributes:
        observer: keeps what is known.
        history: how it came to be, which a thread of its own works out.
        observers: to be handed to the runner; what is served comes from them.
    """

    def __init__(
        self,
        settings: MonitoringSettings,
        loaded: LoadedConfig,
        clock: Callable[[], float] = time.monotonic,
        calendar: Callable[[], float] = time.time,
    ) -> None:
        self.observer = Metrics(loaded.config.source["connector"], clock)
        assessments = Assessments()
        self.history = History(calendar, assessments)
        letters = Letters(calendar)
        self.observers: tuple[Observer, ...] = (self.observer.pulse, self.observer, letters)
        pages = Pages(lambda: self.observer.figures, self.history, letters, calendar)
        self._historian = Historian(self.history, lambda: self.observer.figures)
        answers = create_app(self.observer, self.history, pages, assessments)
        self._server = Server(answers, settings)

    def start(self) -> tuple[str, int]:
        """Serve from now on; the host and the port that it really does on.

        Raises:
            ConfigurationError: the address cannot be listened on; the sentence says why.
        """
        address = self._server.start()
        self._historian.start()
        return address

    def stop(self) -> None:
        """Serve no longer."""
        self._historian.stop()
        self._server.stop()


def _listen(host: str, port: int) -> socket.socket:
    """A socket that listens already, so that what is wrong shows before the service starts."""
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
