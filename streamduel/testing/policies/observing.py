"""Checks of what a policy observes."""

from __future__ import annotations

import random

import numpy as np

from streamduel.errors import PolicyError
from streamduel.testing.policies.under_test import (
    ARMS,
    PolicyUnderTest,
    duels,
    examples,
    observe,
    play,
    raises,
)

NAN = float("nan")

# Refused arguments (first, second, first_wins, count), and a part of the message.
REFUSED = {
    "arm too large": ((ARMS, 0, 1, None), f"first must hold arms from 0 to {ARMS - 1} \\(found 5"),
    "arm negative": ((0, -1, 1, None), "second must hold arms"),
    "arm too large among many": (([0, 1], [1, ARMS], [1, 0], None), "second must hold arms"),
    "arm beyond 64 bits": ((2**70, 0, 1, None), "first must hold arms"),
    "arm a fraction": ((0.5, 0, 1, None), "first must hold arms"),
    "arm a float": (([0.0, 1.0], [1, 0], [1, 1], None), "first must hold arms"),
    "arm a text": (("0", 1, 1, None), "first must hold arms"),
    "arm a truth value": ((True, 0, 1, None), "first must hold arms"),
    "arm a truth value among many": (([0, True], [1, 0], [1, 1], None), "first must hold arms"),
    "arms truth values": ((np.array([True]), [0], [1], None), "first must hold arms"),
    "no arm": ((None, 0, 1, None), "first must hold arms"),
    "a table of arms": (([[0, 1]], [1, 0], [1, 0], None), "first must hold arms"),
    "ragged arms": (([[0], [1, 2]], [1, 0], [1, 0], None), "first must hold arms"),
    "outcome NaN": ((0, 1, NAN, None), r"first_wins must hold 1, 0, or 0.5 for a tie \(found nan"),
    "outcome NaN among many": (([0, 0], [1, 1], [1, NAN], None), "first_wins must hold"),
    "outcome 2": ((0, 1, 2, None), "first_wins must hold"),
    "outcome 0.25": ((0, 1, 0.25, None), "first_wins must hold"),
    "outcome a text": ((0, 1, "1", None), "first_wins must hold"),
    "outcome a truth value": ((0, 1, True, None), "first_wins must hold"),
    "no outcome": ((0, 1, None, None), "first_wins must hold"),
    "outcome complex": (([0], [1], np.array([1j]), None), "first_wins must hold"),
    "count 0": ((0, 1, 1, 0), "count must hold integers from 1"),
    "count -1 among many": (([0, 1], [1, 0], [1, 1], [5, -1]), "count must hold integers from 1"),
    "count a fraction": ((0, 1, 1, 1.5), "count must hold"),
    "count a truth value": ((0, 1, 1, True), "count must hold"),
    "count beyond exactness": ((0, 1, 1, 2**51 + 1), "count must hold"),
    "counts beyond exactness together": (([0, 0], [1, 1], [1, 1], [2**51, 1]), "not exact"),
    "lengths differ": (([0, 1], [1], [1, 1], None), "first 2, second 1, first_wins 2"),
    "length of count differs": (([0, 1], [1, 0], [1, 1], [1]), "count 1"),
}


def check_refused_calls_change_nothing(tested: PolicyUnderTest) -> None:
    """Invalid arguments are refused, and change nothing."""
    policy = tested.new()
    play(policy, 30)
    before = policy.state_dict()
    for case, (arguments, message) in REFUSED.items():
        with raises(PolicyError, message):
            policy.observe(*arguments)  # type: ignore[arg-type]
        assert policy.state_dict() == before, case
    for n in (0, -1, True, "1", 1.0, None):
        with raises(PolicyError, "number of duels to propose"):
            policy.propose(n)  # type: ignore[arg-type]
        assert policy.state_dict() == before, n


def check_wrong_construction_is_refused(tested: PolicyUnderTest) -> None:
    """Invalid arguments of the constructor are refused."""
    for n_arms in (1, 0, -2, "3", 2.5, True, None):
        with raises(PolicyError, "n_arms must be an integer from 2"):
            tested.new(n_arms=n_arms)  # type: ignore[arg-type]
    for seed in (-1, "7", 1.5, True, None):
        with raises(PolicyError, "seed must be an integer from 0"):
            tested.new(seed=seed)  # type: ignore[arg-type]
    policy = tested.new()
    with raises(PolicyError, f"policy '{policy.name}' has no parameter 'nonesuch'"):
        type(policy)(ARMS, nonesuch=1)


def check_every_type_of_arguments_is_equal(tested: PolicyUnderTest) -> None:
    """Numbers, lists and arrays of any type have the same effect."""
    ways = [
        (0, 1, 1),
        (0, 1, 1.0),
        ([0], [1], [1]),
        ((0,), (1,), (1.0,)),
        (np.array([0]), np.array([1]), np.array([1])),
        (
            np.array([0], dtype=np.uint8),
            np.array([1], dtype=np.int16),
            np.array([1], dtype=np.float32),
        ),
        (np.int64(0), np.int32(1), np.float64(1)),
    ]
    states = []
    for first, second, first_wins in ways:
        policy = tested.new()
        policy.observe(first, second, first_wins)  # type: ignore[arg-type]
        policy.observe(first, second, first_wins, 1)  # type: ignore[arg-type]
        states.append(policy.state_dict())
    assert states == states[:1] * len(ways)


def check_a_batch_equals_one_by_one(tested: PolicyUnderTest) -> None:
    """Many duels in one call have the same effect as one by one."""
    for luck in examples():
        observed = duels(luck, least=30, most=150)
        together, apart = tested.new(), tested.new()
        observe(together, observed)
        for duel in observed:
            apart.observe(*duel)
        assert together.state_dict() == apart.state_dict()
        assert play(together, 60) == play(apart, 60)


def check_a_count_equals_repetition(tested: PolicyUnderTest) -> None:
    """A count has the same effect as that many entries."""
    for luck in examples():
        observed = duels(luck)
        counted, repeated = tested.new(), tested.new()
        observe(counted, observed)
        for first, second, first_wins, times in observed:
            for _ in range(times):
                repeated.observe(first, second, first_wins)
        assert counted.state_dict() == repeated.state_dict()
        assert play(counted, 60) == play(repeated, 60)


def check_counts_of_billions_are_exact(tested: PolicyUnderTest) -> None:
    """Counts of billions are exact."""
    policy = tested.new()
    policy.observe([0, 1, 2], [1, 2, 2], [1, 0.5, 0], [10**12, 10**12 + 1, 10**12])
    assert policy.duels == 3 * 10**12 + 1
    assert policy.wins[0, 1] == 10**12
    assert policy.wins[1, 2] == policy.wins[2, 1] == (10**12 + 1) / 2
    policy.propose(2)


def check_any_order_of_delivery_gives_equal_counts(tested: PolicyUnderTest) -> None:
    """The order of outcomes does not change the counts."""
    for luck in examples():
        observed = duels(luck)
        forward, shuffled = tested.new(), tested.new()
        observe(forward, observed)
        for duel in random.Random(1).sample(observed, k=len(observed)):
            shuffled.observe(*duel)
        assert shuffled.wins.tobytes() == forward.wins.tobytes()
        assert shuffled.duels == forward.duels


def check_counts_are_the_duels_observed(tested: PolicyUnderTest) -> None:
    """The counts are those of the observed duels."""
    for luck in examples():
        observed = duels(luck)
        policy, wins = tested.new(), np.zeros((ARMS, ARMS))
        observe(policy, observed)
        for first, second, first_wins, times in observed:
            if first != second:
                wins[first, second] += first_wins * times
                wins[second, first] += (1 - first_wins) * times
        assert policy.wins.tolist() == wins.tolist()
        assert policy.duels == sum(duel.times for duel in observed)


def check_self_duels_only_advance_time(tested: PolicyUnderTest) -> None:
    """Duels of an arm with itself advance time, and have no other effect."""
    if not tested.remembers:
        return
    policy = tested.new()
    play(policy, 40)
    wins, duels_before, champion = policy.wins.copy(), policy.duels, policy.champion()
    policy.observe(2, 2, 1)
    policy.observe([0, 3, 1], [0, 3, 1], [0, 0.5, 1], [1, 1_000, 1])
    assert policy.duels == duels_before + 1_003
    assert policy.wins.tobytes() == wins.tobytes()
    assert policy.champion() == champion


def check_no_duels_change_nothing(tested: PolicyUnderTest) -> None:
    """Empty arrays change nothing."""
    policy = tested.new()
    play(policy, 20)
    before = policy.state_dict()
    policy.observe([], [], [])
    policy.observe(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0), [])
    assert policy.state_dict() == before


def check_arguments_are_not_changed(tested: PolicyUnderTest) -> None:
    """The caller's arrays are neither changed nor kept."""
    for length in (1, 3, 200):
        policy = tested.new()
        handed = [
            np.arange(length) % ARMS,
            (np.arange(length) + 1) % ARMS,
            np.arange(length) % 2 / 2,
            np.arange(length) % 3 + 1,
        ]
        copies = [array.copy() for array in handed]
        policy.observe(*handed)  # type: ignore[arg-type]
        assert all(map(np.array_equal, handed, copies))
        before = policy.state_dict()
        for array in handed:
            array[:] = 0
        assert policy.state_dict() == before


def check_wins_cannot_be_written(tested: PolicyUnderTest) -> None:
    """Counts and parameters are read-only."""
    policy = tested.new()
    with raises(ValueError, "read-only"):
        policy.wins[0, 1] = 1
    with raises(AttributeError):
        policy.duels = 7  # type: ignore[misc]
    for parameter in policy.parameters:
        with raises(AttributeError):
            setattr(policy, parameter, 1)
