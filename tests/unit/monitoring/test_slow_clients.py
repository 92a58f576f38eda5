"""Slow and hanging clients on real sockets: others are answered, and memory is bounded."""

import contextlib
import resource
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from streamduel.monitoring import server
from tests.unit.monitoring.fold import Clock, commit, config, task
from tests.unit.monitoring.served import ARMS, PATIENCE, Service

PROBE_SECONDS = 1.0
"""A probe's timeout, by default of Kubernetes. Tests compare processor time with it, which other
programs on the machine do not change."""

SLOW = (
    b"",
    b"GET /metr",
    b"GET /metrics HTTP/1.1\r\nhost: x\r\n",
    b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n",
)
"""Nothing, a part of the request line, a part of the headers; a whole request whose answer is not
read; and a connection kept open after its answer."""


def grow(service: Service, experiments: int = 120) -> None:
    """Make the metrics longer, with 3.6 MB, than what the buffers of two sockets hold."""
    arms = [f"{arm:-<250}" for arm in ARMS]
    watched = task(config({f"{number:-<250}": arms for number in range(experiments)}))
    commit(service.monitoring.observer, watched)


def is_closed(client: socket.socket) -> bool:
    """Whether the server lets go of the connection; waits for it."""
    try:
        while client.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def read_until(client: socket.socket, end: bytes) -> bytes:
    """What the server sends up to these bytes, or until it closes the connection."""
    received = b""
    while not received.endswith(end) and (chunk := client.recv(4096)):
        received += chunk
    return received


def reconnect(service: Service, number: int, stop: threading.Event) -> None:
    """Keep that many slow connections open, and replace one each millisecond.

    Without a pause, this thread would open a hundred while that of the probe waits for the
    interpreter between its connection and its request.
    """
    clients: list[socket.socket] = []
    while not stop.wait(0.001):
        clients.append(service.hang(b"GET /"))
        if len(clients) > number:
            clients.pop(0).close()
    for client in clients:
        client.close()


@contextlib.contextmanager
def busy(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The server's thread is held up by an answer."""
    begun, done = threading.Event(), threading.Event()

    def wait(clock: Clock) -> float:
        begun.set()
        done.wait(PATIENCE)
        return clock.now

    with service.hang(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"):
        monkeypatch.setattr(Clock, "__call__", wait)
        assert begun.wait(PATIENCE)
        yield
        done.set()


def seconds_to_probe(port: int, path: str) -> float:
    """Processor time until a probe has its answer: of the probe, the server and slow clients."""
    began = time.process_time()
    request = f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        client.sendall(request.encode())
        answer = read_until(client, b"}")
    assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 503")), answer
    return time.process_time() - began


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Enough for the clients, which are in the process of the server."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class TestHangingClients:
    HANGING = (
        *SLOW[:4],
        b"POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\nhalf",
    )

    @pytest.fixture
    def hanging(self, service: Service) -> Iterator[list[socket.socket]]:
        grow(service)
        with contextlib.ExitStack() as stack:
            clients = [service.hang(request) for request in self.HANGING * 3]
            for client in clients:
                stack.callback(client.close)
            yield clients

    def test_do_not_stop_other_scrapes(
        self, service: Service, hanging: list[socket.socket]
    ) -> None:
        for _ in range(2):
            assert service.get("/metrics").status_code == 200
            assert service.get("/healthz").status_code == 200

    def test_do_not_delay_the_fold(self, service: Service, hanging: list[socket.socket]) -> None:
        observer = service.monitoring.observer
        watched = task(config({"search": ARMS}), partition=1)
        began = time.perf_counter()
        for _ in range(100):
            observer.turned()
            observer.polled(10)
            observer.committed([watched], 0.02)
            observer.lagging({1: 5})
        assert time.perf_counter() - began < server.EXCHANGE_SECONDS  # as a waiting client takes

    def test_do_not_delay_the_stop(
        self,
        service: Service,
        hanging: list[socket.socket],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(server, "JOIN_SECONDS", 60)  # a busy machine is not what is tested
        began = time.perf_counter()
        service.monitoring.stop()
        assert time.perf_counter() - began < server.EXCHANGE_SECONDS
        assert not [each for each in threading.enumerate() if each.name == "monitoring"]
        assert all(is_closed(client) for client in hanging)

    def test_are_disconnected_at_the_deadline(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        grow(service)
        monkeypatch.setattr(server, "EXCHANGE_SECONDS", 0.1)
        for request in self.HANGING:
            with service.hang(request) as client:
                time.sleep(0.2)  # so that the whole answer is not read after all
                assert is_closed(client), request

    def test_every_exchange_has_its_own_deadline(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "EXCHANGE_SECONDS", 2.0)
        with service.hang(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n") as client:
            assert b"alive" in read_until(client, b"}")
            time.sleep(1.2)
            client.sendall(b"GET /healthz HTTP/1.1\r\n")
            time.sleep(1.2)  # beyond the first deadline, within the second
            client.sendall(b"host: x\r\n\r\n")
            assert b"alive" in read_until(client, b"}")

    def test_the_deadline_of_the_first_exchange_begins_with_its_first_byte(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "EXCHANGE_SECONDS", 2.0)
        with service.hang(b"") as client:  # as browsers do that expect to need it
            time.sleep(1.2)
            client.sendall(b"GET /healthz HTTP/1.1\r\n")
            time.sleep(1.2)
            client.sendall(b"host: x\r\n\r\n")
            assert b"alive" in read_until(client, b"}")


class TestManySlowClients:
    @pytest.mark.parametrize("number", [70, 500, 2000])
    def test_probes_are_answered_in_time(
        self, service: Service, descriptors: None, number: int
    ) -> None:
        grow(service, experiments=10)
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(service.hang(b"")) for _ in range(number)]
            for place, client in enumerate(clients):
                with contextlib.suppress(OSError):  # it is closed if newer ones took its place
                    client.sendall(SLOW[place % len(SLOW)])
            for _ in range(5):
                assert seconds_to_probe(service.port, "/healthz") < PROBE_SECONDS
                assert seconds_to_probe(service.port, "/readyz") < PROBE_SECONDS

    def test_probes_are_answered_while_slow_clients_reconnect(self, service: Service) -> None:
        stop = threading.Event()
        flood = threading.Thread(target=reconnect, args=(service, 70, stop))
        flood.start()
        try:
            for _ in range(20):
                assert seconds_to_probe(service.port, "/healthz") < PROBE_SECONDS
        finally:
            stop.set()
            flood.join()

    def test_the_connection_whose_exchange_began_first_closes(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "MAX_CONNECTIONS", 2)
        with service.hang(b"") as first, service.hang(b"GET /") as second:
            assert seconds_to_probe(service.port, "/healthz") < PATIENCE
            assert is_closed(first)
            second.sendall(b"healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b"alive" in read_until(second, b"}")

    def test_requests_that_have_arrived_are_accepted_first(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While the server's thread is busy, a probe and then many slow clients connect."""
        with contextlib.ExitStack() as stack:
            with busy(service, monkeypatch):
                request = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
                probe = stack.enter_context(service.hang(request))
                for _ in range(2 * server.MAX_ACCEPTED):
                    stack.enter_context(service.hang(b"GET /"))
            assert b"alive" in read_until(probe, b"}")

    def test_unread_answers_are_bounded_together(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        grow(service, experiments=60)  # 1.8 MB
        monkeypatch.setattr(server, "MAX_UNSENT", 2_500_000)
        request = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"
        with contextlib.ExitStack() as stack:
            readers = []
            for _ in range(4):
                readers.append(stack.enter_context(service.hang(request)))
                assert read_until(readers[-1], b"\n").startswith(b"HTTP/1.1 200")
            for reader in readers[:-1]:
                assert is_closed(reader)
            assert readers[-1].recv(4096)
