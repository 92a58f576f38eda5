"""Fixtures of all tests: the real broker, and captured application log events."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

pytest.register_assert_rewrite("streamduel.testing")  # before its import: see its docstrings

pytest_plugins = ["tests.broker.fixture"]


@pytest.fixture(scope="session", autouse=True)
def _hangups_reach_processes() -> None:
    """Processes inherit that a signal is ignored, as under nohup, but not that it is handled."""
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.fixture
def logged() -> Iterator[list[EventDict]]:
    """The application log events so far, with their keys and `log_level`."""
    with capture_logs() as events:
        yield events


@pytest.fixture
def without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests reach local servers, whatever proxy the machine has."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
