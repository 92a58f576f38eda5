"""Why a pair is compared: a sentence of every policy."""

from __future__ import annotations

import json

import numpy as np
import pytest

from streamduel import policies
from streamduel.policies.top_two import TopTwo

NAMES = ("bm25", "ltr-v1", "ltr-v2", "dense")
P = np.array(
    [[0.5, 0.4, 0.4, 0.5], [0.6, 0.5, 0.45, 0.6], [0.6, 0.55, 0.5, 0.6], [0.5, 0.4, 0.4, 0.5]]
)


@pytest.mark.parametrize("name", policies.names())
@pytest.mark.parametrize("duels", [0, 120])
def test_every_policy_names_the_pair_and_a_number(name: str, duels: int) -> None:
    kind = policies.get(name)
    parameters = {"horizon": 10_000} if "horizon" in kind.declared else {}
    policy = kind(len(NAMES), seed=5, **parameters)
    users = np.random.RandomState(5)
    for _ in range(duels):
        first, second = policy.propose()[0].tolist()
        policy.observe(first, second, int(users.random_sample() < P[first, second]))
    before = json.dumps(policy.state_dict())
    for first in range(len(NAMES)):
        for second in range(len(NAMES)):
            if first != second:
                found = policy.explain(first, second, NAMES)
                assert NAMES[first] in found
                assert NAMES[second] in found
                assert any(character.isdigit() for character in found)
                assert found.endswith(".")
    assert json.dumps(policy.state_dict()) == before
    again = policies.from_state(json.loads(before))
    assert again.propose(20).tolist() == policy.propose(20).tolist()


def test_rucb_tells_the_upper_bound_of_the_challenger() -> None:
    policy = policies.get("rucb")(2, seed=1)
    policy.observe(0, 1, 1.0, 80)
    policy.observe(0, 1, 0.0, 40)
    assert policy.explain(1, 0, ("x", "y")) == (
        "x is the only ranker that may beat all others, and y is its strongest challenger: by "
        "the upper bound, it may win 47.6 % of their duels."
    )


@pytest.mark.parametrize("name", ["rucb", "relative_confidence_sampling"])
def test_says_that_in_a_cycle_no_ranker_may_beat_all_others(name: str) -> None:
    policy = policies.get(name)(3, seed=1)
    policy.observe([0, 1, 2], [2, 0, 1], [1.0] * 3, [700] * 3)
    policy.observe([0, 1, 2], [2, 0, 1], [0.0] * 3, [300] * 3)
    assert policy.candidates() == 0
    assert policy.explain(1, 2, ("rock", "paper", "scissors")) == (
        "By the upper bounds, no ranker may beat all others, so paper was chosen from all 3, and "
        "scissors is its strongest challenger: by the upper bound, it may win 76.4 % of their "
        "duels."
    )


def test_calls_no_ranker_possible_that_surely_loses_to_another_one() -> None:
    policy = policies.get("rucb")(3, seed=1)
    policy.observe([0, 0, 1], [1, 2, 2], [1.0] * 3, [900] * 3)
    assert policy.candidates() == 1
    assert policy.explain(2, 1, ("x", "y", "z")) == (
        "z was chosen, though by the bounds it cannot beat all others, and y is its strongest "
        "challenger: by the upper bound, it may win 100.0 % of their duels."
    )


def test_top_two_tells_what_is_missing() -> None:
    policy = policies.get("top_two")(2, seed=1)
    policy.observe(0, 1, 1.0, 60)
    policy.observe(0, 1, 0.0, 40)
    assert policy.explain(1, 0, ("x", "y")) == (
        "x leads, expected to beat 1.0 of 1 others; y was drawn as the rival that may still beat "
        "it, with 40.2 % ± 4.8 % of their duels. Of 3.7 nats that prove x better, 1.5 are there."
    )


def test_top_two_tells_what_a_smallest_difference_asks_to_be_proven() -> None:
    policy = TopTwo(3, seed=1, smallest_difference=0.1)
    policy.observe([0, 1, 2] * 2, [1, 2, 0] * 2, [1.0] * 3 + [0.0] * 3, [60] * 3 + [40] * 3)
    assert " nats that prove x not worse by 0.1, " in policy.explain(0, 1, ("x", "y", "z"))
    policy.observe([0, 1, 2] * 2, [1, 2, 0] * 2, [1.0] * 3 + [0.0] * 3, [600] * 3 + [400] * 3)
    assert policy._out(policy.duels + 1).marks.all(), "each of the cycle loses to one"
    assert " nats that prove x better, " in policy.explain(0, 1, ("x", "y", "z"))


def test_top_two_says_leads_only_of_the_ranker_with_the_best_score() -> None:
    policy = policies.get("top_two")(3, seed=1)
    policy.observe([0, 0, 1], [1, 2, 2], [1.0] * 3, [12] * 3)
    policy.observe([0, 0, 1], [1, 2, 2], [0.0] * 3, [8] * 3)
    names = ("x", "y", "z")
    assert policy.explain(1, 0, names).startswith("x leads, expected to beat 1.6 of 2 others; y")
    assert policy.explain(2, 1, names).startswith(
        "y was drawn as a possible winner, expected to beat 1.0 of 2 others; z was drawn as"
    )


def test_top_two_says_leads_of_no_ranker_that_is_out() -> None:
    policy = policies.get("top_two")(4, seed=1)
    first, second = [1, 0, 0, 1, 1], [0, 2, 3, 2, 3]
    policy.observe(first, second, [1.0] * 5, [80, 80, 80, 10, 10])
    policy.observe(first, second, [0.0] * 5, [20, 20, 20, 12, 12])
    found = policy.explain(0, 1, ("w", "x", "y", "z"))
    assert found.startswith("x leads, expected to beat 1.7 of 3 others; w was drawn as the rival")
