"""The checks of policies find faulty ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streamduel import policies
from streamduel.policies.uniform import Uniform
from streamduel.testing.policies import PolicyUnderTest
from streamduel.testing.policies.proposing import check_asking_changes_nothing
from streamduel.testing.policies.state import check_equal_seeds_give_equal_duels_in_another_process


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


class LateHashOrder(Uniform):
    """Its first choices depend on the seed alone."""

    name = "late_hash_order"

    def _choose(self, t: int) -> tuple[int, int]:
        first, second = super()._choose(t)
        return (first, second) if t <= 400 or hash(f"{t}") % 2 else (second, first)


def test_hash_order_after_hundreds_of_duels_is_found() -> None:
    with pytest.raises(AssertionError, match=r"^choice 4\d\d\b"):
        check_equal_seeds_give_equal_duels_in_another_process(PolicyUnderTest(LateHashOrder))
