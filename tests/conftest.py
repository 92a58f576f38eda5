"""What all tests share: the real broker, and what the code under test has logged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

pytest_plugins = ["tests.broker.fixture"]


@pytest.fixture
def told() -> Iterator[list[EventDict]]:
    """The events that were logged so far, as they were named, with their keys and `log_level`."""
    with capture_logs() as events:
        yield events
