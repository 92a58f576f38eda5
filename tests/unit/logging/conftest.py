"""Logging, set up for one test and restored after it."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from streamduel.logging import LogFormat, setup
from streamduel.logging.secrets import Secrets


class Written:
    """Standard error."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys, self._text = capsys, ""

    @property
    def text(self) -> str:
        self._text += self._capsys.readouterr().err
        return self._text

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines as JSON."""
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Written]:
    root = logging.getLogger()
    handlers, levels = [*root.handlers], {}
    for name in ("", "streamduel", "streamduel_files", "streamduel_kafka", setup.NOISY_LOGGER):
        levels[name] = logging.getLogger(name).level
    before = structlog.get_config()
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(setup, "_SECRETS", Secrets())
    yield Written(capsys)
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    structlog.configure(**before)


@pytest.fixture(params=["text", "json"])
def form(request: pytest.FixtureRequest) -> LogFormat:
    """Each of the two formats."""
    form: LogFormat = request.param
    return form
