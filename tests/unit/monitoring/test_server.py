import json
import signal
import socket
import threading
import time
from email.utils import parsedate_to_datetime

import httpx
import pytest

from streamduel.errors import ConfigurationError
from streamduel.monitoring import server
from streamduel.monitoring.app import HEADERS
from streamduel.monitoring.page import PAGE_HEADERS
from tests.unit.monitoring.fold import Clock, commit, config, duels, fold, parse, task, value
from tests.unit.monitoring.served import ARMS, PATIENCE, Service, monitoring


def read_until(client: socket.socket, end: bytes) -> bytes:
    """What the server sends up to these bytes, or until it closes the connection."""
    received = b""
    while (not end or not received.endswith(end)) and (chunk := client.recv(4096)):
        received += chunk
    return received


class TestPages:
    def test_metrics_over_http(self, service: Service) -> None:
        watched = task(config({"search": ARMS}))
        fold(watched, *duels("search", 0, "arm0", "arm1", "aab"))
        commit(service.monitoring.observer, watched)
        answer = service.get("/metrics")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert value(parse(answer.text), "duels_total", experiment="search") == 3

    @pytest.mark.parametrize(
        ("accept", "content_type", "last_line"),
        [
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
                "text/plain;version=0.0.4;q=0.4,*/*;q=0.2",
                "text/plain; version=0.0.4",
                "process_max_fds",
            ),
            ("text/plain", "text/plain; version=0.0.4", "process_max_fds"),
            ("image/png", "text/plain; version=0.0.4", "process_max_fds"),
            ("text/plain;version=ten", "text/plain; version=0.0.4", "process_max_fds"),
            ("application/openmetrics-text;version=1.0.0", "application/openmetrics-text", "# EOF"),
            ("application/openmetrics-text;version=", "application/openmetrics-text", "# EOF"),
        ],
    )
    def test_the_format_is_text_wherever_that_is_accepted(
        self, service: Service, accept: str, content_type: str, last_line: str
    ) -> None:
        answer = service.get("/metrics", accept=accept)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(content_type)
        assert answer.text.splitlines()[-1].startswith(last_line)

    def test_health(self, service: Service) -> None:
        assert service.get("/healthz").json() == {"status": "alive"}
        answer = service.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["status"] == "not ready"
        assert answer.json()["reasons"][0] == "the click log cannot be reached."

        service.monitoring.observer.connection(source=True)
        commit(service.monitoring.observer, task(config({"search": ARMS})))
        answer = service.get("/readyz")
        assert (answer.status_code, answer.json()) == (200, {"status": "ready"})

        service.clock.now += 61
        answer = service.get("/healthz")
        assert answer.status_code == 503
        assert json.loads(answer.text) == {
            "status": "not alive",
            "reasons": ["the runner's loop has not turned for 61 s (allowed: 60 s)."],
        }

    def test_the_overview_links_to_the_addresses(self, service: Service) -> None:
        answer = service.get("/")
        assert answer.status_code == 200
        for path in ("/metrics", "/healthz", "/readyz", "/api/experiments", "/api/openapi.json"):
            assert f'href="{path}"' in answer.text
            assert service.get(path).status_code in {200, 503}

    @pytest.mark.parametrize("path", ["/", "/metrics", "/healthz", "/readyz", "/api/experiments"])
    def test_only_reading_is_allowed(self, service: Service, path: str) -> None:
        head = service.client.head(path)
        assert head.status_code == service.get(path).status_code
        assert head.content == b""
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            answer = service.client.request(method, path)
            assert answer.status_code == 405
            assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}

    @pytest.mark.parametrize(
        "path",
        [
            "/", "/metrics", "/healthz", "/readyz", "/api/experiments", "/api/experiments/unknown",
            "/nowhere",
        ],
    )  # fmt: skip
    def test_every_answer_is_safe_in_a_browser(self, service: Service, path: str) -> None:
        headers = service.get(path).headers
        wanted = HEADERS if path != "/" else {**HEADERS, **PAGE_HEADERS}
        assert wanted.items() <= dict(headers).items()
        assert "server" not in headers

    def test_every_answer_bears_its_date(self, service: Service) -> None:
        for path in ("/healthz", "/nowhere"):
            date = parsedate_to_datetime(service.get(path).headers["date"])
            assert abs(time.time() - date.timestamp()) < PATIENCE

    def test_other_paths_are_not_redirected(self, service: Service) -> None:
        assert service.get("/nowhere").status_code == 404
        assert service.get("/metrics/", host="evil.example").status_code == 404

    def test_invalid_http_is_answered(self, service: Service) -> None:
        with service.hang(b"nonsense\r\n\r\n") as client:
            answer = read_until(client, b"received.")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.endswith(b"\r\n\r\nInvalid HTTP request received.")

    def test_an_invalid_body_is_no_error_of_the_service(
        self, service: Service, caplog: pytest.LogCaptureFixture
    ) -> None:
        begin = b"GET /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        with service.hang(begin + b"no size\r\n") as client:
            assert read_until(client, b"").startswith(b"HTTP/1.1 400 ")
        with service.hang(begin) as client:
            assert read_until(client, b'"alive"}').startswith(b"HTTP/1.1 200 ")
            client.sendall(b"no size\r\n")
            assert read_until(client, b"") == b""
        assert service.get("/healthz").status_code == 200
        assert [each.getMessage() for each in caplog.records if each.exc_info] == []

    def test_a_request_for_another_protocol_is_answered_in_this_one(
        self, service: Service, caplog: pytest.LogCaptureFixture
    ) -> None:
        upgrade = {"connection": "upgrade", "upgrade": "websocket"}
        assert service.get("/healthz", **upgrade).status_code == 200
        assert caplog.records == []


class TestAddress:
    def test_error_for_a_port_in_use(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(ConfigurationError) as refused:
                monitoring(Clock(), port=port).start()
        assert str(refused.value) == (
            f"monitoring.port {port} is in use on 127.0.0.1; choose another, or 0 for a free one."
        )

    @pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid", "x" * 300, "a..b"])
    def test_error_for_a_foreign_host(self, host: str) -> None:
        with pytest.raises(ConfigurationError) as refused:
            monitoring(Clock(), host=host).start()
        sentence = str(refused.value)
        assert sentence.startswith(
            f"monitoring.host must be an address of this machine (found '{host}')"
        )
        assert sentence.count("\n") == 0

    def test_error_for_a_reserved_port(self) -> None:
        error = PermissionError(13, "Permission denied")
        assert server._refusal("127.0.0.1", 80, error) == (
            "monitoring.port 80 is reserved for the system on 127.0.0.1; choose one from 1024, or "
            "0 for a free one."
        )

    def test_ipv6(self) -> None:
        made = monitoring(Clock(), host="::1")
        try:
            host, port = made.start()
        except ConfigurationError:
            pytest.skip("this machine has no IPv6")
        assert httpx.get(f"http://[{host}]:{port}/healthz").status_code == 200
        made.stop()

    def test_the_port_is_free_again_after_stop(self) -> None:
        first = monitoring(Clock())
        _, port = first.start()
        first.stop()
        second = monitoring(Clock(), port=port)
        assert second.start() == ("127.0.0.1", port)
        second.stop()

    def test_stop_without_start_and_twice(self) -> None:
        made = monitoring(Clock())
        made.stop()
        other = monitoring(Clock())
        other.start()
        other.stop()
        other.stop()

    def test_signal_handlers_are_left_alone(self) -> None:
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.getsignal(number) for number in numbers]
        made = Service()
        made.get("/healthz")
        assert [signal.getsignal(number) for number in numbers] == before
        made.close()
        assert [signal.getsignal(number) for number in numbers] == before

    def test_the_thread_does_not_keep_the_process_alive(self, service: Service) -> None:
        (thread,) = [each for each in threading.enumerate() if each.name == "monitoring"]
        assert thread.daemon
