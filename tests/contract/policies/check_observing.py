"""What a policy promises about what it is told."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given

from streamduel.errors import PolicyError
from tests.contract.policies.rehearsal import ARMS, Duel, duels, examples, fresh, play, tell

NAN = float("nan")

# Each is told in vain: (first, second, first_wins, count), and what the message names.
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


def check_refused_calls_change_nothing(name: str) -> None:
    policy = fresh(name)
    play(policy, 30)
    before = policy.state_dict()
    for case, (arguments, message) in REFUSED.items():
        with pytest.raises(PolicyError, match=message):
            policy.observe(*arguments)  # type: ignore[arg-type]
        assert policy.state_dict() == before, case
    for n in (0, -1, True, "1", 1.0, None):
        with pytest.raises(PolicyError, match="number of duels to propose"):
            policy.propose(n)  # type: ignore[arg-type]
        assert policy.state_dict() == before, n


def check_wrong_construction_is_refused(name: str) -> None:
    for n_arms in (1, 0, -2, "3", 2.5, True, None):
        with pytest.raises(PolicyError, match="n_arms must be an integer from 2"):
            fresh(name, n_arms=n_arms)  # type: ignore[arg-type]
    for seed in (-1, "7", 1.5, True, None):
        with pytest.raises(PolicyError, match="seed must be an integer from 0"):
            fresh(name, seed=seed)  # type: ignore[arg-type]
    policy = fresh(name)
    with pytest.raises(PolicyError, match=f"policy '{policy.name}' has no parameter 'nonesuch'"):
        type(policy)(ARMS, nonesuch=1)


def check_every_way_to_tell_a_duel_is_equal(name: str) -> None:
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
        policy = fresh(name)
        policy.observe(first, second, first_wins)  # type: ignore[arg-type]
        policy.observe(first, second, first_wins, 1)  # type: ignore[arg-type]
        states.append(policy.state_dict())
    assert states == states[:1] * len(ways)


def check_a_batch_equals_one_by_one(name: str) -> None:
    @examples
    @given(duels(least=30, most=150))
    def holds(told: list[Duel]) -> None:
        together, apart = fresh(name), fresh(name)
        tell(together, told)
        for duel in told:
            apart.observe(*duel)
        assert together.state_dict() == apart.state_dict()
        assert play(together, 60) == play(apart, 60)

    holds()


def check_a_count_equals_repetition(name: str) -> None:
    @examples
    @given(duels())
    def holds(told: list[Duel]) -> None:
        counted, repeated = fresh(name), fresh(name)
        tell(counted, told)
        for first, second, first_wins, times in told:
            for _ in range(times):
                repeated.observe(first, second, first_wins)
        assert counted.state_dict() == repeated.state_dict()
        assert play(counted, 60) == play(repeated, 60)

    holds()


def check_counts_worth_billions_are_cheap_and_exact(name: str) -> None:
    policy = fresh(name)
    policy.observe([0, 1, 2], [1, 2, 2], [1, 0.5, 0], [10**12, 10**12 + 1, 10**12])
    assert policy.duels == 3 * 10**12 + 1
    assert policy.wins[0, 1] == 10**12
    assert policy.wins[1, 2] == policy.wins[2, 1] == (10**12 + 1) / 2
    policy.propose(2)


def check_any_order_of_delivery_gives_equal_counts(name: str) -> None:
    @examples
    @given(duels())
    def holds(told: list[Duel]) -> None:
        forward, shuffled = fresh(name), fresh(name)
        tell(forward, told)
        for duel in random.Random(1).sample(told, k=len(told)):
            shuffled.observe(*duel)
        assert shuffled.wins.tobytes() == forward.wins.tobytes()
        assert shuffled.duels == forward.duels

    holds()


def check_counts_are_the_duels_told(name: str) -> None:
    @examples
    @given(duels())
    def holds(told: list[Duel]) -> None:
        policy, wins = fresh(name), np.zeros((ARMS, ARMS))
        tell(policy, told)
        for first, second, first_wins, times in told:
            if first != second:
                wins[first, second] += first_wins * times
                wins[second, first] += (1 - first_wins) * times
        assert policy.wins.tolist() == wins.tolist()
        assert policy.duels == sum(duel.times for duel in told)

    holds()


def check_self_duels_advance_time_and_teach_nothing(name: str) -> None:
    policy = fresh(name)
    play(policy, 40)
    wins, duels_before, champion = policy.wins.copy(), policy.duels, policy.champion()
    policy.observe(2, 2, 1)
    policy.observe([0, 3, 1], [0, 3, 1], [0, 0.5, 1], [1, 1_000, 1])
    assert policy.duels == duels_before + 1_003
    assert policy.wins.tobytes() == wins.tobytes()
    assert policy.champion() == champion


def check_no_duels_teach_nothing(name: str) -> None:
    policy = fresh(name)
    play(policy, 20)
    before = policy.state_dict()
    policy.observe([], [], [])
    policy.observe(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0), [])
    assert policy.state_dict() == before


def check_arrays_handed_in_are_left_alone(name: str) -> None:
    for length in (1, 3, 200):
        policy = fresh(name)
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


def check_wins_cannot_be_written(name: str) -> None:
    policy = fresh(name)
    with pytest.raises(ValueError, match="read-only"):
        policy.wins[0, 1] = 1
    with pytest.raises(AttributeError):
        policy.duels = 7  # type: ignore[misc]
    for parameter in policy.parameters:
        with pytest.raises(AttributeError):
            setattr(policy, parameter, 1)


CHECKS = [check for name, check in list(globals().items()) if name.startswith("check_")]
