"""Groups that shrink and merge: hand-computed cases for MergeRUCB and MergeDTS."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import pytest

from streamduel.errors import PolicyError
from streamduel.policies import Policy, from_state
from streamduel.policies.base.generator import Generator
from streamduel.policies.base.merging_policy import merge
from streamduel.policies.merge_dts import MergeDTS
from streamduel.policies.merge_rucb import MergeRUCB

BOTH = [MergeRUCB, MergeDTS]

# α ln(t + C) is then 4 for every t of these tests: sqrt(4 / 16) is 1/2, so 16 wins in a row do
# not eliminate an arm, and 17 do.
WIDE = {"alpha": 4 / math.log(1e12), "constant": 1e12}
SURE = 17


def groups_of(policy: Policy) -> list[list[int]]:
    groups: list[list[int]] = policy.state_dict()["own"]["groups"]
    return groups


def sorted_groups(policy: Policy) -> list[list[int]]:
    return sorted(sorted(group) for group in groups_of(policy))


def with_groups(kind: type[Policy], groups: list[list[int]], **own: int) -> Any:
    """A policy with these groups of arms."""
    n_arms = own.pop("n_arms", 1 + max(arm for group in groups for arm in group))
    state = kind(n_arms, seed=1, **WIDE).state_dict()
    return from_state({**state, "own": {"groups": groups, "turn": 0, "stage": 1, **own}})


@pytest.mark.parametrize(
    ("n_arms", "partition", "sizes"),
    [
        (2, 4, [2]),
        (4, 4, [4]),
        (5, 4, [5]),
        (6, 4, [2, 4]),
        (8, 4, [4, 4]),
        (9, 4, [4, 5]),
        (20, 16, [20]),
        (24, 16, [8, 16]),
        (13, 5, [3, 5, 5]),
        (12, 5, [5, 7]),
    ],
)
@pytest.mark.parametrize("kind", BOTH)
def test_arms_split_into_groups(
    kind: type[Policy], n_arms: int, partition: int, sizes: list[int]
) -> None:
    groups = groups_of(kind(n_arms, seed=3, partition=partition))
    assert sorted(map(len, groups)) == sizes
    assert sorted(arm for group in groups for arm in group) == list(range(n_arms))
    others = {str(groups_of(kind(n_arms, seed=seed, partition=partition))) for seed in range(20)}
    assert len(others) > 1, "at random"


@pytest.mark.parametrize("kind", BOTH)
def test_groups_take_turns(kind: type[Policy]) -> None:
    policy = kind(12, seed=5)
    groups = groups_of(policy)
    for duel in range(30):
        pair = policy.propose()[0].tolist()
        assert set(pair) < set(groups[duel % 3]), "whether or not outcomes come"
        assert pair[0] != pair[1]
        if duel % 2:
            policy.observe(pair[0], pair[1], 1)


@pytest.mark.parametrize("kind", BOTH)
def test_arm_surely_losing_within_group_eliminated(kind: type[Policy]) -> None:
    for lost, left in ((SURE - 1, 8), (SURE, 7)):
        policy = with_groups(kind, [[0, 1, 2, 3], [4, 5, 6, 7]])
        policy.observe(2, 1, 1, lost)
        assert policy.candidates() == 8, "nothing is concluded before a pair is proposed"
        policy.propose()
        assert policy.candidates() == left
    assert sorted_groups(policy) == [[0, 2, 3], [4, 5, 6, 7]]
    pairs = {arm for pair in policy.propose(40).tolist() for arm in pair}
    assert pairs == {0, 2, 3, 4, 5, 6, 7}


@pytest.mark.parametrize("kind", BOTH)
def test_group_evaluated_in_its_turn(kind: type[Policy]) -> None:
    policy = with_groups(kind, [[0, 1, 2, 3], [4, 5, 6, 7]])
    policy.observe(4, 5, 1, SURE)
    assert policy.propose()[0].max() < 4
    assert policy.candidates() == 8
    assert policy.propose()[0].min() >= 4
    assert policy.candidates() == 7


@pytest.mark.parametrize("kind", BOTH)
def test_duels_between_groups_count_after_merge(kind: type[Policy]) -> None:
    policy = with_groups(kind, [[0, 1, 2, 3], [4, 5, 6, 7]])
    policy.observe(0, 4, 1, SURE)
    policy.propose(8)
    assert policy.candidates() == 8
    policy.observe([0, 0, 4, 4], [1, 2, 5, 6], [1, 1, 1, 1], [SURE] * 4)
    policy.propose()
    policy.propose()
    assert sorted_groups(policy) == [[0, 3], [4, 7]]
    policy.propose()
    assert sorted_groups(policy) == [[0, 3, 7]], "half of them are eliminated, and 4 has lost to 0"


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("bulk", [False, True])
def test_arm_beating_most_survives_cycle(kind: type[Policy], bulk: bool) -> None:
    policy = with_groups(kind, [[0, 1, 2], [3, 4, 5, 6]])
    # Once as three entries, once as many entries (array operations).
    cycle = [0, 1, 2] * (10 if bulk else 1), [1, 2, 0] * (10 if bulk else 1)
    policy.observe(*cycle, [1.0] * len(cycle[0]), [SURE] * len(cycle[0]))
    policy.observe(1, 5, 1)
    policy.propose()
    assert [arm for group in groups_of(policy) for arm in group if arm < 3] == [1]


def test_single_arm_skipped_or_joined_to_next_group() -> None:
    groups = [[0], [1, 2], [3, 4, 5]]
    policy = with_groups(MergeRUCB, groups)
    turns = [set(policy.propose()[0].tolist()) for _ in range(4)]
    assert turns[0] == turns[2] == {1, 2}
    assert groups_of(policy) == groups
    policy = with_groups(MergeDTS, groups)
    assert set(policy.propose()[0].tolist()) < {0, 1, 2}
    assert groups_of(policy) == [[1, 2, 0], [3, 4, 5]]
    assert set(policy.propose()[0].tolist()) < {3, 4, 5}
    policy = with_groups(MergeDTS, [[1, 2], [3, 4, 5], [0]], turn=2)
    assert set(policy.propose()[0].tolist()) < {0, 1, 2}
    assert groups_of(policy) == [[1, 2, 0], [3, 4, 5]]
    assert set(policy.propose()[0].tolist()) < {3, 4, 5}


def test_group_winner_joins_next_group() -> None:
    policy = with_groups(MergeDTS, [[0, 1], [2, 3, 4, 5]])
    policy.observe([0, 0], [1, 2], [1, 1], [SURE, SURE])
    assert set(policy.propose()[0].tolist()) < {0, 3, 4, 5}
    assert sorted_groups(policy) == [[0, 3, 4, 5]]


@pytest.mark.parametrize("kind", BOTH)
def test_single_arm_groups_merged(kind: type[Policy]) -> None:
    policy = with_groups(kind, [[0], [1], [2], [3], [4], [5]], n_arms=8)
    assert len(set(policy.propose()[0].tolist())) == 2
    assert len(groups_of(policy)) < 6


@pytest.mark.parametrize("kind", BOTH)
def test_stage_ends_when_half_of_arms_are_left(kind: type[Policy]) -> None:
    groups = [[0, 1, 2], [3, 4], [5, 6], [7, 8]]
    for n_arms, stage, merged in ((17, 1, False), (18, 1, True), (18, 2, False), (36, 2, True)):
        policy = with_groups(kind, groups, n_arms=n_arms, stage=stage)
        policy.propose()
        own = policy.state_dict()["own"]
        assert (len(own["groups"]) < 4) == merged
        assert own["stage"] == stage + merged


@pytest.mark.parametrize("kind", BOTH)
def test_last_arm_duels_itself(kind: type[Policy]) -> None:
    policy = with_groups(kind, [[0, 1], [2, 3]])
    policy.observe([3, 3, 3, 0], [0, 1, 2, 1], [1, 1, 1, 1], [SURE] * 4)
    policy.propose()
    assert (policy.champion(), policy.candidates()) == (3, 1)
    before = policy.state_dict()
    pairs, times = policy.propose_ahead(10**9)
    assert (pairs.tolist(), times.tolist()) == ([[3, 3]], [10**9])
    assert policy.propose(2).tolist() == [[3, 3], [3, 3]]
    assert policy.state_dict() == before, "and nothing is drawn"


@pytest.mark.parametrize("kind", BOTH)
def test_large_group_has_more_duels_in_flight_than_small_one(kind: type[Policy]) -> None:
    policy = with_groups(kind, [[0, 1], [2, 3, 4, 5]])
    pairs = policy.propose(14).tolist()
    assert sum(min(pair) < 2 for pair in pairs) == 2, "one pair of seven"
    assert policy.state_dict()["own"] == from_state(policy.state_dict()).state_dict()["own"]
    assert {min(policy.propose()[0]) < 2 for _ in range(2)} == {True, False}, "forgotten"


@pytest.mark.parametrize(
    ("sizes", "size", "expected"),
    [
        ([1, 1], 4, [2]),
        ([2, 2], 4, [4]),
        ([3, 3], 4, [6]),
        ([3, 4], 4, [3, 4]),
        ([1, 1, 1, 1, 1], 4, [2, 3]),
        ([1, 2, 3, 4], 4, [5, 5]),
        ([1, 5, 5, 5], 4, [5, 5, 6]),
        ([1, 6, 6], 4, [1, 6, 6]),
        ([2] * 9, 4, [2, 4, 4, 4, 4]),
        ([1] * 9, 4, [2, 3, 4]),
        ([9, 12, 3, 8], 16, [15, 17]),
    ],
)
def test_merging(sizes: list[int], size: int, expected: list[int]) -> None:
    names = iter(range(100))
    groups = [[next(names) for _ in range(length)] for length in sizes]
    for seed in range(10):
        merged = merge(groups, size, Generator(seed))
        assert sorted(map(len, merged)) == expected
        assert sorted(chain.from_iterable(merged)) == list(range(sum(sizes)))
    assert [len(group) for group in groups] == sizes, "left as they were"


def test_merge_of_equal_sized_groups_is_random() -> None:
    groups = [[0, 1], [2, 3], [4, 5]]
    joined = {tuple(sorted(map(len, merge(groups, 4, Generator(seed))))) for seed in range(9)}
    alone = {min(merge(groups, 4, Generator(seed)), key=len)[0] for seed in range(40)}
    assert joined == {(2, 4)}
    assert alone == {0, 2, 4}


@pytest.mark.parametrize("kind", BOTH)
def test_constant_equals_paper(kind: Any) -> None:
    for alpha, n_arms, failure in ((1.01, 64, 0.01), (0.6, 5, 0.2), (3.0, 500, 0.001)):
        policy = kind(n_arms, alpha=alpha, failure=failure)
        power = 2 * alpha - 1
        constant = ((4 * alpha - 1) * n_arms**2 / (power * failure)) ** (1 / power)
        for t in (1, 1_000, 10**9):
            assert policy._scale(t) == pytest.approx(alpha * math.log(t + constant), rel=1e-12)
    # 10**455 is beyond all floats.
    assert kind(500, alpha=0.51)._scale(10**9) == pytest.approx(0.51 * 1049.2815, rel=1e-6)
    assert kind(5, alpha=0.26, constant=4e5)._scale(10**6) == pytest.approx(
        0.26 * math.log(1.4e6), rel=1e-12
    )


@pytest.mark.parametrize("kind", BOTH)
def test_alpha_up_to_one_half_needs_a_constant(kind: Any) -> None:
    with pytest.raises(PolicyError, match=r"alpha must be greater than 0\.5 \(found 0\.5\), or"):
        kind(5, alpha=0.5)
    with pytest.raises(PolicyError, match=r"partition must be at least 4 \(found 3\); smaller"):
        kind(5, partition=3)
    assert kind(5, alpha=0.1, constant=10).parameters["constant"] == 10


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"groups": []}, "damaged.*groups|groups must hold arms"),
        ({"groups": [[]]}, "damaged.*groups|groups must hold arms"),
        ({"groups": [[0, 5]]}, "damaged.*groups|groups must hold arms"),
        ({"groups": [[0, 1], [1, 2]]}, "in two groups"),
        ({"turn": -1}, "damaged.*turn"),
        ({"turn": 3}, "turn must be"),
        ({"stage": 0}, "damaged.*stage"),
        ({"stage": 6}, "stage must be"),
    ],
)
def test_damaged_groups_rejected(
    kind: type[Policy], damage: dict[str, object], message: str
) -> None:
    state = kind(5).state_dict()
    with pytest.raises(PolicyError, match=message):
        from_state({**state, "own": {**state["own"], **damage}})
