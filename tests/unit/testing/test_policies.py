"""The checks of policies find faulty ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streamduel import policies
from streamduel.testing.policies import PolicyUnderTest
from streamduel.testing.policies.proposing import check_asking_changes_nothing


def drawing(policy: Any, *_: object) -> str:
    return f"drawn {policy._generator.below(100)}"


def raising(*_: object) -> str:
    raise NotImplementedError("not written yet")


@pytest.mark.parametrize(
    ("explain", "shown"),
    [
        (drawing, r"At index 0 diff: \[4, 1\] != \[0, 2\]"),
        (raising, "not written yet"),
        (lambda *_: None, "None"),
        (lambda *_: "", "an empty sentence"),
    ],
)
def test_a_faulty_explain_is_found(
    explain: Callable[..., Any], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies.get("uniform"), "explain", explain)
    with pytest.raises((AssertionError, NotImplementedError), match=shown):
        check_asking_changes_nothing(PolicyUnderTest(policies.get("uniform")))
