"""A monitoring server that runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.monitoring.served import Service


@pytest.fixture
def service(without_proxy: None) -> Iterator[Service]:
    made = Service()
    yield made
    made.close()
