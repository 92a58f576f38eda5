import itertools
import threading
from collections.abc import Iterator

import pytest

from streamduel.client import Assignments, Draw, News, follower
from tests.unit.client.bed import PATIENCE, alone, eventually


class Shaky:
    """A feed that fails as it is told, and then gives an epoch more each time."""

    every = 0.001

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.epochs = itertools.count(1)
        self.polled_by: set[str] = set()
        self.closed = threading.Event()

    def poll(self) -> Iterator[News]:
        self.polled_by.add(threading.current_thread().name)
        if self.failures:
            raise self.failures.pop()
        yield News(alone("x", next(self.epochs)))

    def close(self) -> None:
        assert threading.current_thread().name == "streamduel-follower"
        self.closed.set()


def test_failures_are_outlived_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(follower, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(follower, "LONGEST_PAUSE", 0.02)
    caplog.set_level("INFO", "streamduel.client.follower")
    feed = Shaky(OSError(), ValueError("third"), OSError("second"), OSError("first"))
    pauses: list[float] = []
    wait = threading.Event.wait

    def waited(event: threading.Event, timeout: float | None = None) -> bool:
        if threading.current_thread().name == "streamduel-follower":
            pauses.append(timeout or 0)
        return wait(event, timeout)

    monkeypatch.setattr(threading.Event, "wait", waited)
    with Assignments(feed) as assignments:
        assert assignments.wait_for("search", PATIENCE)
        eventually(lambda: len(pauses) >= 6)
    assert pauses[:6] == [0.01, 0.02, 0.02, 0.02, 0.001, 0.001]
    messages = [each.getMessage() for each in caplog.records]
    assert [message.rpartition(": ")[2] for message in messages[:4]] == [
        "first", "second", "third", "OSError"
    ]  # fmt: skip
    assert messages[4:] == ["assignments can be read again"]


def test_while_a_feed_fails_the_last_assignment_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "FIRST_PAUSE", 0.001)
    feed = Shaky()
    with Assignments(feed) as assignments:
        assert assignments.wait_for("search", PATIENCE)
        feed.failures = [OSError("gone")] * 3
        eventually(lambda: not feed.failures)
        assert assignments.draw("search")[:2] == ("x", "x")


def test_a_feed_is_used_and_closed_by_one_thread() -> None:
    feed = Shaky()
    with Assignments(feed) as assignments:
        assert assignments.wait_for("search", PATIENCE)
        assert not feed.closed.is_set()
    assert feed.closed.is_set()
    assert feed.polled_by == {"streamduel-follower"}


class Endless(Shaky):
    """A feed whose history has no end."""

    def poll(self) -> Iterator[News]:
        for epoch in self.epochs:
            yield News(alone("x", epoch))


def test_close_does_not_wait_for_the_end_of_a_long_history() -> None:
    with Assignments(feed := Endless()) as assignments:
        assert assignments.wait_for("search", PATIENCE)
        eventually(lambda: assignments.draw("search") > Draw("x", "x", 10))
    assert feed.closed.is_set()
