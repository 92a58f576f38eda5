"""What polling for something says if it does not come."""

from __future__ import annotations

import re

import pytest

from streamduel.testing import polling
from tests.contract.connectors.in_memory import InMemory


@pytest.mark.parametrize(
    ("values", "arrived"),
    [([], "nothing"), ([b"one"], "1 record of partition 0")],
)
def test_what_does_not_arrive_is_told(
    values: list[bytes], arrived: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "PATIENCE", 0.0)
    fixture = InMemory()
    fixture.append(values)
    source = fixture.source()
    polling.own(source)
    expected = f"expected 2 records of partition 0 within 0 s (arrived: {arrived})"
    with pytest.raises(AssertionError, match=re.escape(expected)):
        polling.read(source, 2)
    source.reannounce()
    expected = "expected caught_up within 0 s (arrived: gain of partition 0)"
    with pytest.raises(AssertionError, match=re.escape(expected)):
        polling.poll_until(source, "caught_up", lambda _: source.caught_up(0))
