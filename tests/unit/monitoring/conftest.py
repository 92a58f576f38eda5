"""A monitoring server that runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.monitoring.served import Service


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Service()
    yield made
    made.close()
