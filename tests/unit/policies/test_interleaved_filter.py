"""Interleaved Filter by hand: passes, confidence, removal, succession, pruning."""

from __future__ import annotations

import math
from typing import Any

import pytest

from streamduel.errors import PolicyError
from streamduel.policies import from_state
from streamduel.policies.interleaved_filter import InterleavedFilter1, InterleavedFilter2

HORIZON = 1_000
BOTH = [InterleavedFilter1, InterleavedFilter2]


def led_by(candidate: int, kind: type[InterleavedFilter1], **parameters: Any) -> InterleavedFilter1:
    """A filter of four arms whose first candidate is the one wanted."""
    for seed in range(100):
        policy = kind(4, seed=seed, horizon=HORIZON, **parameters)
        policy.propose()
        if policy.state_dict()["own"]["candidate"] == candidate:
            return policy
    raise AssertionError("no seed gives this candidate")


def decisive(scale: float = 1.0) -> int:
    """The least n with 1/2 >= sqrt(scale ln(T K²) / n): so many wins in a row decide."""
    return math.ceil(4 * scale * math.log(HORIZON * 4**2))


def play(policy: InterleavedFilter1, wins: dict[int, float], passes: int) -> None:
    """So many passes of a candidate against rivals with these shares of wins for the candidate."""
    candidate = policy.state_dict()["own"]["candidate"]
    for rival, share in wins.items():
        won = round(share * passes)
        for outcome, times in ((1, won), (0, passes - won)):
            if times:
                policy.observe(candidate, rival, outcome, times)
    policy.propose()


def standing(policy: InterleavedFilter1) -> tuple[int, list[int]]:
    """The candidate and its rivals."""
    own = policy.state_dict()["own"]
    return own["candidate"], own["rivals"]


@pytest.mark.parametrize("kind", BOTH)
def test_a_pass_meets_every_rival_once(kind: type[InterleavedFilter1]) -> None:
    policy = led_by(2, kind)
    for _ in range(3):
        met = []
        for _ in range(3):
            candidate, rival = policy.propose()[0].tolist()
            assert candidate == 2
            met.append(rival)
            policy.observe(candidate, rival, len(met) % 2)
        assert sorted(met) == [0, 1, 3]


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_an_arm_is_removed_once_it_is_surely_beaten(scale: float) -> None:
    needed = decisive(scale)
    for passes, left in ((needed - 1, [0, 1, 3]), (needed, [0, 3])):
        policy = led_by(2, InterleavedFilter1, confidence_scale=scale)
        play(policy, {0: 0.5, 1: 1, 3: 0.5}, passes)
        assert standing(policy) == (2, left)


def test_no_arm_is_judged_within_a_pass() -> None:
    policy = led_by(2, InterleavedFilter1)
    play(policy, {0: 0.5, 1: 1}, decisive())
    assert standing(policy) == (2, [0, 1, 3])
    assert policy.propose(5).tolist() == [[2, 3]] * 5
    play(policy, {3: 0.5}, 1)
    assert standing(policy) == (2, [0, 3])


@pytest.mark.parametrize(
    ("kind", "left"), [(InterleavedFilter1, [0, 3]), (InterleavedFilter2, [3])]
)
def test_the_arm_that_beats_the_candidate_follows_it(
    kind: type[InterleavedFilter1], left: list[int]
) -> None:
    policy = led_by(2, kind)
    play(policy, {0: 0.6, 1: 0, 3: 0.4}, decisive())
    # IF2 prunes arm 0, which has lost to the loser, but not surely.
    assert standing(policy) == (1, left)
    own = policy.state_dict()["own"]
    assert own["passes"] == 0
    assert own["lost_before"] == policy.wins[:, 1].tolist()  # empty statistics


def test_of_several_victors_the_clearest_follows() -> None:
    policy = led_by(2, InterleavedFilter2)
    play(policy, {0: 0.1, 1: 0.2, 3: 0.05}, 4 * decisive())
    assert standing(policy)[0] == 3


def test_ties_among_victors_are_drawn() -> None:
    followers = set()
    for seed in range(40):
        policy = InterleavedFilter1(3, seed=seed, horizon=HORIZON)
        candidate = policy.propose()[0, 0]
        for rival in {0, 1, 2} - {candidate}:
            policy.observe(candidate, rival, 0, 100)
        policy.propose()
        followers.add((candidate, standing(policy)[0]))
    assert len(followers) == 6


def test_the_last_arm_is_served_alone() -> None:
    policy = led_by(2, InterleavedFilter1)
    play(policy, {0: 1, 1: 1, 3: 1}, decisive())
    assert policy.candidates() == 1
    assert policy.champion() == 2
    assert policy.propose(3).tolist() == [[2, 2]] * 3
    pairs, times = policy.propose_ahead(10**6)
    rest = policy.parameters["horizon"] - policy.duels
    assert (pairs.tolist(), times.tolist()) == ([[2, 2]], [rest])


def test_duels_without_the_candidate_are_counted_and_decide_nothing() -> None:
    policy = led_by(2, InterleavedFilter1)
    policy.observe([0, 1], [1, 3], [1, 1], [50_000, 50_000])
    again = from_state(policy.state_dict())
    assert standing(policy) == (2, [0, 1, 3])
    assert again.duels == 100_000


def test_a_state_that_does_not_fit_is_refused() -> None:
    policy = led_by(2, InterleavedFilter1)
    play(policy, {0: 0.5, 1: 0.5, 3: 0.5}, 10)
    state = policy.state_dict()
    for change in (
        {"candidate": 4},
        {"candidate": 1},
        {"candidate": None},
        {"passes": "1"},
        {"rivals": [9]},
        {"won_before": [0.0]},
        {"lost_before": [99.0] * 4},
    ):
        with pytest.raises(PolicyError):
            from_state({**state, "own": {**state["own"], **change}})
