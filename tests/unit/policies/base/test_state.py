"""The state of a policy: saving, restoring and validation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.base.state import Arm, Count, State, restore, save


class KeptState(State):
    active: list[Arm]
    listed: list[list[Arm]]
    wins: list[list[float]]
    best: Arm | None
    pairs: list[tuple[Arm, Arm]]
    round: Count


class Kept:
    """An owner with all kinds of attributes."""

    def __init__(self) -> None:
        self._active = np.array([True, False, True])
        self._listed = np.eye(3, dtype=np.bool_)
        self._wins = np.zeros((3, 3))
        self._best: int | None = None
        self._pairs = [(0, 1)]
        self._round = 1


SAVED: dict[str, Any] = {
    "active": [0, 2],
    "listed": [[0], [1], [2]],
    "wins": [[0.0] * 3] * 3,
    "best": None,
    "pairs": [[0, 1]],
    "round": 1,
}


def restored(**changes: object) -> Kept:
    kept = Kept()
    restore(kept, KeptState, {**SAVED, **changes}, n_arms=3, what="a state")
    return kept


def test_attributes_saved_as_json_values() -> None:
    assert save(Kept(), KeptState) == SAVED


def test_saved_state_is_a_copy() -> None:
    kept = Kept()
    save(kept, KeptState)["pairs"].clear()
    assert kept._pairs == [(0, 1)]


def test_restore_equals_saved_state() -> None:
    changes = {"active": [1], "listed": [[], [0, 2], []], "best": 2, "pairs": [], "round": 7}
    kept = restored(**changes)
    assert save(kept, KeptState) == {**SAVED, **changes}
    assert kept._active.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"active": [3]}, r"active must hold arms from 0 to 2 \(found \[3\]\)"),
        ({"pairs": [[0, 3]]}, "pairs must hold arms from 0 to 2"),
        ({"best": 3}, "best must hold arms from 0 to 2"),
        ({"active": [2, 0]}, "active must hold different numbers, ascending"),
        ({"active": [0, 0]}, "active must hold different numbers, ascending"),
        ({"wins": [[0.0]]}, r"wins must be of shape \(3, 3\) \(found \(1, 1\)\)"),
        ({"best": -1}, r"a state is damaged: .* at `\$.best`"),
        ({"round": True}, r"a state is damaged: .* at `\$.round`"),
        ({"rounds": 1}, "a state is damaged: .*unknown field `rounds`"),
        ({"round": 1.0}, r"a state is damaged: .* at `\$.round`"),
        ({"round": None}, r"a state is damaged: .* at `\$.round`"),
        ({"active": None}, r"a state is damaged: .* at `\$.active`"),
        ({"active": "02"}, r"a state is damaged: .* at `\$.active`"),
        ({"active": {"0": 1}}, r"a state is damaged: .* at `\$.active`"),
        ({"active": [True]}, r"a state is damaged: .* at `\$.active"),
        ({"active": [1.0]}, r"a state is damaged: .* at `\$.active"),
        ({"active": [[1]]}, r"a state is damaged: .* at `\$.active"),
        ({"active": [-1]}, r"a state is damaged: .* at `\$.active"),
        ({"listed": [0, 1]}, r"a state is damaged: .* at `\$.listed"),
    ],
)
def test_damaged_states_rejected(changes: dict[str, object], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        restored(**changes)
