"""PCOMP: hand-computed eliminations at the end of a round."""

from __future__ import annotations

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.pcomp import PComp
from tests.unit.policies import bed


def policy_after(policy: PComp, *results: tuple[int, int, int, int]) -> PComp:
    """The policy after `(first, second, wins of first, wins of second)` and a proposal."""
    bed.policy_after(policy, *results).propose()
    return policy


def in_round_three(*, accumulate: bool = False) -> PComp:
    """Two arms, T = 1000, B = 6, rounds of 3, 10 and 31 duels; ln(1/δ) / 2 = 5.94."""
    policy = PComp(2, seed=1, horizon=1000, accumulate=accumulate)
    policy_after(policy, (0, 1, 0, 3))
    policy_after(policy, (0, 1, 0, 10))
    assert policy.round == 3
    return policy


def test_estimates_use_duels_of_the_round() -> None:
    # 31 (p - 1/2)² > 5.94: true for p = 30 / 31, false for 29 / 31.
    assert policy_after(in_round_three(), (0, 1, 30, 1)).candidates() == 1
    assert policy_after(in_round_three(), (0, 1, 29, 2)).candidates() == 2
    assert policy_after(in_round_three(), (0, 1, 30, 1)).champion() == 0


def test_surplus_duels_do_not_narrow_radius() -> None:
    # n / 4 > 5.94 needs a quota of 24.
    assert policy_after(PComp(2, horizon=1000), (0, 1, 500, 0)).candidates() == 2


def test_radius_of_accumulated_estimates() -> None:
    for won in (23, 24):
        policy = policy_after(PComp(2, horizon=1000, accumulate=True), (0, 1, won, 0))
        assert policy.candidates() == (1 if won == 24 else 2)
    assert policy_after(in_round_three(accumulate=True), (0, 1, 30, 1)).candidates() == 2


def test_all_beaten_arms_eliminated_together() -> None:
    policy = PComp(4, horizon=1000, accumulate=True)
    policy_after(
        policy, (0, 1, 50, 0), (1, 2, 50, 0), (0, 2, 5, 5), (3, 0, 5, 5), (3, 1, 5, 5), (3, 2, 5, 5)
    )
    assert policy.candidates() == 2
    first, second = policy.remaining().nonzero()
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == [(0, 3), (3, 0)]
    assert policy.remaining()[0, 3] == 10


def test_no_elimination_of_all_arms() -> None:
    policy = PComp(3, horizon=1000, accumulate=True)
    policy_after(policy, (0, 1, 50, 0), (1, 2, 50, 0), (2, 0, 50, 0))
    assert (policy.round, policy.candidates()) == (2, 3)


def test_eliminated_arm_eliminates_no_other() -> None:
    policy = PComp(3, horizon=1000, accumulate=True)
    policy_after(policy, (0, 2, 50, 0), (0, 1, 3, 3), (1, 2, 3, 3))
    assert policy.candidates() == 2
    policy_after(policy, (2, 1, 200, 0), (0, 1, 5, 5))
    assert (policy.round, policy.candidates()) == (3, 2)


def test_late_duels_count_in_current_round() -> None:
    policy = in_round_three()
    late = policy.clone()
    policy_after(policy, (0, 1, 31, 0))
    assert policy.candidates() == 1
    policy_after(late, (1, 0, 8, 0), (0, 1, 23, 0))
    assert late.candidates() == 2


@pytest.mark.parametrize("before", [[], [[0.0]], [[0, 1], [0, 0]], [[0, -1], [0, 0]]])
def test_damaged_states_rejected(before: object) -> None:
    state = PComp(2, horizon=1000).state_dict()
    with pytest.raises(PolicyError):
        PComp.from_state({**state, "own": {**state["own"], "before": before}})


def test_wins_before_round_recorded_at_its_start() -> None:
    policy = in_round_three()
    policy.observe(0, 1, 1, 4)
    assert policy.state_dict()["own"]["before"] == [[0.0, 0.0], [13.0, 0.0]]
    assert np.array_equal(policy.wins, [[0, 4], [13, 0]])
