"""The logging of this process, set up for one test and put back after it."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from streamduel import logging as log_lines
from streamduel.logging import process
from streamduel.logging.secrets import Secrets


class Written:
    """What was written to standard error."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys, self._text = capsys, ""

    @property
    def text(self) -> str:
        self._text += self._capsys.readouterr().err
        return self._text

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines, each of which is JSON."""
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Written]:
    root = logging.getLogger()
    handlers, levels = [*root.handlers], {}
    for name in ("", "streamduel", "streamduel_files", "streamduel_kafka", process.CHATTERBOX):
        levels[name] = logging.getLogger(name).level
    before = structlog.get_config()
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(process, "_SECRETS", Secrets())
    yield Written(capsys)
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    structlog.configure(**before)


@pytest.fixture(params=["text", "json"])
def form(request: pytest.FixtureRequest) -> log_lines.Form:
    """Each of the two forms of a line."""
    form: log_lines.Form = request.param
    return form
