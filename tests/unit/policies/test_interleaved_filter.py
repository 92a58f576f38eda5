"""Interleaved Filter, hand-computed: passes, confidence, removal, new candidate, pruning."""

from __future__ import annotations

import math
from typing import Any

import pytest

from streamduel.errors import PolicyError
from streamduel.policies import from_state
from streamduel.policies.interleaved_filter import InterleavedFilter1, InterleavedFilter2

HORIZON = 1_000
BOTH = [InterleavedFilter1, InterleavedFilter2]


def with_candidate(
    candidate: int, kind: type[InterleavedFilter1], **parameters: Any
) -> InterleavedFilter1:
    """A filter of four arms with this first candidate."""
    for seed in range(100):
        policy = kind(4, seed=seed, horizon=HORIZON, **parameters)
        policy.propose()
        if policy.state_dict()["own"]["candidate"] == candidate:
            return policy
    raise AssertionError("no seed gives this candidate")


def deciding_wins(scale: float = 1.0) -> int:
    """The smallest n with 1/2 >= sqrt(scale ln(T K²) / n): n wins in a row decide."""
    return math.ceil(4 * scale * math.log(HORIZON * 4**2))


def play(policy: InterleavedFilter1, wins: dict[int, float], passes: int) -> None:
    """Observe passes of the candidate with these shares of wins against its rivals."""
    candidate = policy.state_dict()["own"]["candidate"]
    for rival, share in wins.items():
        won = round(share * passes)
        for outcome, times in ((1, won), (0, passes - won)):
            if times:
                policy.observe(candidate, rival, outcome, times)
    policy.propose()


def candidate_and_rivals(policy: InterleavedFilter1) -> tuple[int, list[int]]:
    """The candidate and its rivals."""
    own = policy.state_dict()["own"]
    return own["candidate"], own["rivals"]


@pytest.mark.parametrize("kind", BOTH)
def test_pass_contains_every_rival_once(kind: type[InterleavedFilter1]) -> None:
    policy = with_candidate(2, kind)
    for _ in range(3):
        met = []
        for _ in range(3):
            candidate, rival = policy.propose()[0].tolist()
            assert candidate == 2
            met.append(rival)
            policy.observe(candidate, rival, len(met) % 2)
        assert sorted(met) == [0, 1, 3]


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_surely_beaten_arm_removed(scale: float) -> None:
    needed = deciding_wins(scale)
    for passes, left in ((needed - 1, [0, 1, 3]), (needed, [0, 3])):
        policy = with_candidate(2, InterleavedFilter1, confidence_scale=scale)
        play(policy, {0: 0.5, 1: 1, 3: 0.5}, passes)
        assert candidate_and_rivals(policy) == (2, left)


def test_no_removal_within_pass() -> None:
    policy = with_candidate(2, InterleavedFilter1)
    play(policy, {0: 0.5, 1: 1}, deciding_wins())
    assert candidate_and_rivals(policy) == (2, [0, 1, 3])
    assert policy.propose(5).tolist() == [[2, 3]] * 5
    play(policy, {3: 0.5}, 1)
    assert candidate_and_rivals(policy) == (2, [0, 3])


@pytest.mark.parametrize(
    ("kind", "left"), [(InterleavedFilter1, [0, 3]), (InterleavedFilter2, [3])]
)
def test_arm_beating_candidate_becomes_candidate(
    kind: type[InterleavedFilter1], left: list[int]
) -> None:
    policy = with_candidate(2, kind)
    play(policy, {0: 0.6, 1: 0, 3: 0.4}, deciding_wins())
    # IF2 prunes arm 0, which is behind the old candidate, but not surely.
    assert candidate_and_rivals(policy) == (1, left)
    own = policy.state_dict()["own"]
    assert own["passes"] == 0
    assert own["lost_before"] == policy.wins[:, 1].tolist()  # statistics are reset


def test_clearest_of_several_winners_becomes_candidate() -> None:
    policy = with_candidate(2, InterleavedFilter2)
    play(policy, {0: 0.1, 1: 0.2, 3: 0.05}, 4 * deciding_wins())
    assert candidate_and_rivals(policy)[0] == 3


def test_winner_ties_broken_at_random() -> None:
    followers = set()
    for seed in range(40):
        policy = InterleavedFilter1(3, seed=seed, horizon=HORIZON)
        candidate = policy.propose()[0, 0]
        for rival in {0, 1, 2} - {candidate}:
            policy.observe(candidate, rival, 0, 100)
        policy.propose()
        followers.add((candidate, candidate_and_rivals(policy)[0]))
    assert len(followers) == 6


def test_last_arm_duels_itself() -> None:
    policy = with_candidate(2, InterleavedFilter1)
    play(policy, {0: 1, 1: 1, 3: 1}, deciding_wins())
    assert policy.candidates() == 1
    assert policy.champion() == 2
    assert policy.propose(3).tolist() == [[2, 2]] * 3
    pairs, times = policy.propose_ahead(10**6)
    rest = policy.parameters["horizon"] - policy.duels
    assert (pairs.tolist(), times.tolist()) == ([[2, 2]], [rest])


def test_duels_of_other_pairs_counted_without_removal() -> None:
    policy = with_candidate(2, InterleavedFilter1)
    policy.observe([0, 1], [1, 3], [1, 1], [50_000, 50_000])
    again = from_state(policy.state_dict())
    assert candidate_and_rivals(policy) == (2, [0, 1, 3])
    assert again.duels == 100_000


def test_mismatched_state_rejected() -> None:
    policy = with_candidate(2, InterleavedFilter1)
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
