import contextlib
import http.server
import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streamduel.client import Assignments, ClientError, Draw, feeds
from streamduel.client.feeds import UrlFeed
from tests.unit.client.bed import PATIENCE, alone, eventually

Handler = http.server.BaseHTTPRequestHandler
Reply = Callable[[Handler], None]


class Service:
    """A monitoring port with planned answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.reply: Reply = answer({})
        service = self

        class Answering(Handler):
            def do_GET(self) -> None:  # noqa: N802 - the base class's word
                service.asked.append((self.path, dict(self.headers)))
                with contextlib.suppress(ConnectionError):
                    service.reply(self)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.host = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.host}/api/experiments"
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def service(without_proxy: None) -> Iterator[Service]:
    made = Service()
    yield made
    made.close()


def answer(body: Any, status: int = 200, **headers: str) -> Reply:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()

    def reply(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(text)

    return reply


def experiments(**assignments: str | None) -> dict[str, Any]:
    """An answer of the monitoring port."""
    return {
        "experiments": {
            name: {"arms": ["x", "y"], "assignment": text and json.loads(text)}
            for name, text in assignments.items()
        },
        "version": "0.1.0",
    }


def values(feed: UrlFeed) -> list[Any]:
    return [json.loads(news.value) for news in feed.poll()]


def test_the_feed_reads_the_assignment_of_every_experiment(service: Service) -> None:
    service.reply = answer(experiments(search=alone("x", 3), ads=alone("y", experiment="ads")))
    found = values(UrlFeed(service.url))
    assert found == [json.loads(alone("x", 3)), json.loads(alone("y", experiment="ads"))]
    [(path, headers)] = service.asked
    assert path == "/api/experiments"
    assert headers["Accept"] == "application/json"


def test_an_experiment_without_an_assignment_is_skipped(service: Service) -> None:
    body = experiments(ads=None, search=alone("x"))
    body["experiments"]["new"] = {}
    service.reply = answer(body)
    assert values(UrlFeed(service.url)) == [json.loads(alone("x"))]


def test_headers_are_sent(service: Service) -> None:
    service.reply = answer(experiments())
    values(UrlFeed(service.url, headers={"Authorization": "Bearer s3cret"}))
    assert service.asked[0][1]["Authorization"] == "Bearer s3cret"


def test_a_new_assignment_is_followed(service: Service) -> None:
    service.reply = answer(experiments(search=alone("x", 1)))
    with Assignments.from_url(service.url, every=0.01) as assignments:
        assert assignments.wait_for("search")
        assert assignments.draw("search") == Draw("x", "x", 1)
        service.reply = answer(experiments(search=alone("y", 2)))
        eventually(lambda: assignments.draw("search") == Draw("y", "y", 2))


def test_an_invalid_assignment_affects_no_other(
    service: Service,
) -> None:
    body = experiments(bad=alone("x", 0, experiment="bad"), search=alone("x"))
    service.reply = answer(body)
    with Assignments.from_url(service.url, every=0.01) as assignments:
        assert assignments.wait_for("search")
        assert not assignments.wait_for("bad", timeout=0)


def test_experiments_of_several_processes_are_followed(service: Service) -> None:
    service.reply = answer(experiments(search=alone("x")))
    other = Service()
    other.reply = answer(experiments(ads=alone("y", experiment="ads")))
    with contextlib.closing(other), Assignments.from_url(service.url, other.url) as assignments:
        assert assignments.wait_for("search")
        assert assignments.wait_for("ads")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (answer(b"down for a while", 503), r"answered with status 503\.$"),
        (answer(b"Not Found", 404), r"answered with status 404\.$"),
        (answer({"error": "Not Found", "path": "/"}, 404), r"answered with status 404\.$"),
        (answer({"error": "no rights"}, 403), r"answered with status 403\.$"),
        (answer(b"<html>"), "gave an invalid answer: JSON is malformed"),
        (answer(b"\xff\xfe"), "gave an invalid answer: "),
        (answer([]), "gave an invalid answer: Expected `object`, got `array`"),
        (answer({"status": "ok"}), "invalid answer: .* missing required field `experiments`"),
        (answer(b"x" * 3000), "answered with more than 0 MB"),
    ],
)
def test_invalid_answers_are_errors(
    service: Service, monkeypatch: pytest.MonkeyPatch, reply: Reply, problem: str
) -> None:
    monkeypatch.setattr(feeds, "MAX_ANSWER_BYTES", 2000)
    service.reply = reply
    with pytest.raises(ClientError, match=f"^{service.url} .*{problem}"):
        values(UrlFeed(service.url))


@pytest.mark.parametrize("status", [404, 503])
def test_a_process_without_the_experiment_is_polled_again_and_logged_once(
    service: Service, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    caplog.set_level("INFO", "streamduel.client.feeds")
    url = f"{service.url}/search"
    absent = answer({"error": "experiment 'search' is in no partition of this process."}, status)
    found = answer(experiments(search=alone("x")))
    feed = UrlFeed(url)
    for reply, number in ((absent, 0), (absent, 0), (found, 1), (absent, 0)):
        service.reply = reply
        assert len(values(feed)) == number
    sentence = f"{url} has no assignment: experiment 'search' is in no partition of this process."
    assert caplog.messages == [sentence, sentence]
    assert {each.levelname for each in caplog.records} == {"INFO"}


def test_redirects_are_not_followed(service: Service) -> None:
    service.reply = answer(b"", 302, Location="http://127.0.0.1:9/elsewhere")
    with pytest.raises(ClientError, match=r"answered with status 302\.$"):
        values(UrlFeed(service.url, headers={"Authorization": "Bearer s3cret"}))
    assert len(service.asked) == 1


def test_a_slow_answer_is_given_up(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "ANSWER_SECONDS", 0.05)
    enough = threading.Event()

    def drip(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not enough.is_set():
            handler.wfile.write(b" ")
            time.sleep(0.002)

    service.reply = drip
    with pytest.raises(ClientError, match="took more than 0 s to answer"):
        values(UrlFeed(service.url))
    enough.set()


def test_a_silent_server_is_given_up(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "SILENCE_SECONDS", 0.05)
    enough = threading.Event()

    def say_nothing(_: Handler) -> None:
        enough.wait(PATIENCE)

    service.reply = say_nothing
    with pytest.raises(OSError, match="timed out"):
        values(UrlFeed(service.url))
    enough.set()


def test_a_refused_connection_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # without listening
        feed = UrlFeed(f"http://127.0.0.1:{taken.getsockname()[1]}/api/experiments")
        with pytest.raises(OSError, match="refused"):
            values(feed)


def test_a_url_that_cannot_be_reached_is_logged(
    without_proxy: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(feeds, "FIRST_PAUSE", 0.01)
    caplog.set_level("INFO", "streamduel.client.feeds")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # without listening
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/api/experiments"
        with Assignments.from_url(url, headers={"Authorization": "Bearer s3cret"}):
            eventually(lambda: bool(caplog.messages))
    assert caplog.messages[0].startswith(f"assignments of {url} cannot be read, the last ones")
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "streamduel:9400", "file:///etc/passwd", "http:///api", "", "http://[::1/api",
        "http://host:port/api", "http://host:94000/api", "http://host/my api", "http://host/äpi",
    ],
)  # fmt: skip
def test_a_url_that_cannot_be_asked_is_refused(url: str) -> None:
    with pytest.raises(ClientError) as refused:
        Assignments.from_url(url)
    assert str(refused.value) == (
        f"the URL of the assignments must be an HTTP URL such as "
        f"'http://streamduel:9400/api/experiments' (found '{url}')."
    )


@pytest.mark.parametrize("url", ["http://ada:s3cret@host/api", "http://s3cret@host/api"])
def test_a_password_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ClientError, match="must not contain a user or a password") as refused:
        UrlFeed(url)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "headers", [{"Authorization": "s3cret\n"}, {"X-Key": "s3cret€"}, {"X-Key\n": "s3cret"}]
)
def test_a_header_that_cannot_be_sent_is_refused_and_not_repeated(headers: dict[str, str]) -> None:
    with pytest.raises(ClientError, match=r"the header '.*' of the") as refused:
        UrlFeed("http://host/api", headers=headers)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("every", [0, -1, math.nan, math.inf, "2", None])
def test_a_pause_that_nobody_can_wait_for_is_refused(every: Any) -> None:
    with pytest.raises(ClientError) as refused:
        Assignments.from_url("http://host/api", every=every)
    assert str(refused.value) == (
        f"every must be a number of seconds above 0 and at most 86400 (found {every!r})."
    )
