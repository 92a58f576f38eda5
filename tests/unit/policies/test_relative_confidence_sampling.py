"""RCS: champion against a whole sample, challenger against bounds from the counts, reigns."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.base.beta import BetaPosterior, beats
from streamduel.policies.base.generator import Generator
from streamduel.policies.relative_confidence_sampling import RelativeConfidenceSampling
from streamduel.preference.arrays import Floats, Integers

MODULE = "streamduel.policies.relative_confidence_sampling"

# Wins of the row over the column. Few duels of each pair, one never seen: a word each decides.
FEW = np.array(
    [
        [0, 6, 9, 4, 0],
        [5, 0, 3, 7, 2],
        [4, 6, 0, 2, 8],
        [8, 3, 5, 0, 5],
        [0, 5, 4, 6, 0],
    ],
    dtype=float,
)
# Few, many, halves, and none.
MIXED = np.array(
    [
        [0, 6.5, 45, 4, 45],
        [5.5, 0, 40, 70, 3],
        [40, 44, 0, 2.5, 0],
        [6, 60, 5.5, 0, 4],
        [40, 2, 0, 1, 0],
    ],
    dtype=float,
)
# Each arm surely loses to another.
CYCLE = np.array([[0, 90, 5, 90], [5, 0, 90, 90], [90, 5, 0, 90], [5, 5, 5, 0]], dtype=float)
# Arm 2 surely beats all others, none of which ever met.
SURE = np.array([[0, 0, 0, 0], [0, 0, 0, 0], [300, 300, 0, 300], [0, 0, 0, 0]], dtype=float)


def in_state(wins: Floats, reigns: list[int] | None = None) -> RelativeConfidenceSampling:
    """A policy that has seen these wins, its arms having been champion so often."""
    n_arms = len(wins)
    return RelativeConfidenceSampling.from_state(
        {
            **RelativeConfidenceSampling(n_arms, seed=1).state_dict(),
            "counts": {"wins": wins.tolist(), "duels": int(wins.sum())},
            "own": {"reigns": reigns or [0] * n_arms},
        }
    )


def reigns_of(policy: RelativeConfidenceSampling) -> list[int]:
    """How often each arm has been champion."""
    reigns: list[int] = policy.state_dict()["own"]["reigns"]
    return reigns


def upper(
    policy: RelativeConfidenceSampling, c: int, t: int, in_flight: Floats | None = None
) -> list[float]:
    """u_jc of all arms j, with the paper's x/0 := 1; 1/2 for c."""
    bounds = []
    for j in range(policy.n_arms):
        played = policy.wins[j, c] + policy.wins[c, j]
        trials = played + (0 if in_flight is None else in_flight[j, c])
        mean = policy.wins[j, c] / played if played else 1.0
        bonus = math.sqrt(policy.alpha * math.log(t) / trials) if trials else 1.0
        bounds.append(0.5 if j == c else mean + bonus)
    return bounds


def by_the_paper(wins: Floats, runs: int) -> Counter[int | None]:
    """How often each arm, or nobody, beats all others in a whole sample."""
    rng, n_arms = np.random.RandomState(2), len(wins)
    theta = np.triu(rng.beta(wins + 1, wins.T + 1, size=(runs, n_arms, n_arms)), k=1)
    theta += np.tril(1 - theta.transpose(0, 2, 1), k=-1)
    victors = (theta > 0.5).sum(axis=2) == n_arms - 1
    times: Counter[int | None] = Counter(dict(enumerate(victors.sum(axis=0).tolist())))
    times[None] = runs - times.total()
    return times


@pytest.mark.parametrize("wins", [FEW[:2, :2], np.zeros((3, 3)), FEW, MIXED, np.zeros((9, 9))])
def test_a_victor_is_found_as_often_as_in_a_whole_sample(wins: Floats) -> None:
    policy, runs = in_state(wins), 4_000
    times = Counter(policy._victor() for _ in range(runs))
    expected = by_the_paper(wins, 5 * runs)
    assert expected[None] > 0 or len(wins) == 2
    for victor in times | expected:
        share = (times[victor] + expected[victor]) / (6 * runs)
        # Of the difference of the two shares, four standard errors.
        allowed = 4 * (1.2 * share * (1 - share) / runs) ** 0.5
        assert abs(times[victor] / runs - expected[victor] / (5 * runs)) < allowed, victor


@pytest.mark.parametrize(
    ("wins", "least", "mean"),
    [
        (np.zeros((20, 20)), 19, 3 * 20),
        (np.kron(MIXED, np.ones((4, 4))), 19, 3 * 20),
        (SURE, 3, 3),
    ],
)
def test_only_the_pairs_that_matter_are_drawn_and_none_twice(
    wins: Floats, least: int, mean: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = in_state(wins * ~np.eye(len(wins), dtype=bool))
    drawn: list[tuple[int, int]] = []
    numbers = []

    def noting(posterior: BetaPosterior, first: Integers, second: Integers, draw: Generator) -> Any:
        drawn.extend(zip(first.tolist(), second.tolist(), strict=True))
        return beats(posterior, first, second, draw)

    monkeypatch.setattr(MODULE + ".beats", noting)
    for _ in range(200):
        drawn.clear()
        victor = policy._victor()
        assert len({frozenset(pair) for pair in drawn}) == len(drawn)
        assert drawn[0][0] == policy.champion(), "the leader begins"
        assert victor is None or sum(victor in pair for pair in drawn) == policy.n_arms - 1
        numbers.append(len(drawn))
    assert min(numbers) >= least
    assert sum(numbers) / 200 <= mean


def test_the_arm_that_beats_the_most_meets_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    # By the counts, 1 and 2 beat the most; one of them leads, and in the sample loses to the other.
    wins = np.array(
        [
            [0, 1, 2, 2, 1],
            [2, 0, 1, 2, 2],
            [1, 2, 0, 2, 2],
            [1, 1, 1, 0, 1],
            [2, 1, 1, 2, 0],
        ],
        dtype=float,
    )
    policy = in_state(wins, reigns=[0] * 5)
    standing = policy.state_dict()["priority"]
    leader = max((1, 2), key=lambda arm: standing[arm])
    assert policy.champion() == leader
    other, asked = 3 - leader, []

    def scripted(
        posterior: BetaPosterior, first: Integers, second: Integers, draw: Generator
    ) -> Any:
        asked.append((first.tolist()[0], second.tolist()))
        outcomes = {leader: second == 4, other: second != 0, 0: second != 4}
        return outcomes[first.tolist()[0]]

    monkeypatch.setattr(MODULE + ".beats", scripted)
    assert policy._victor() is None
    # 0 has beaten both who had their turn, and is beaten by 4, whom it had not met before.
    rivals = [arm for arm in range(5) if arm != leader]
    assert asked == [(leader, rivals), (other, [0, 3]), (0, [3, 4])]


def test_a_sure_winner_is_champion_and_meets_itself() -> None:
    policy = in_state(SURE)
    assert policy.candidates() == 1
    assert policy.propose(20).tolist() == [[2, 2]] * 20
    assert reigns_of(policy) == [0, 0, 20, 0], "that counts as having been champion, too"


def test_without_a_victor_the_least_often_champion_is_the_next() -> None:
    policy = in_state(CYCLE, reigns=[7, 5, 6, 4])
    assert policy.candidates() == 0
    # That θ deceives about a pair has a chance below 1e-19.
    champions = [int(policy.propose()[0, 0]) for _ in range(40)]
    assert champions[0] == 3
    assert sorted(champions[1:3]) == [1, 3]
    assert sorted(champions[3:6]) == [1, 2, 3]
    assert all(sorted(champions[turn : turn + 4]) == [0, 1, 2, 3] for turn in range(6, 38, 4))
    assert sum(reigns_of(policy)) == 22 + 40


def test_of_the_arms_least_often_champion_each_is_equally_likely() -> None:
    champions = Counter(in_turn(seed) for seed in range(400))
    assert set(champions) == {0, 1, 3}
    # Four standard errors.
    assert all(abs(count - 400 / 3) < 4 * 9.5 for count in champions.values())


def in_turn(seed: int) -> int:
    """The champion if no arm wins and arm 2 has been champion more often."""
    policy = in_state(CYCLE, reigns=[3, 3, 4, 3])
    policy._generator = Generator(seed)
    return int(policy.propose()[0, 0])


def test_a_winner_of_the_tournament_is_champion_again() -> None:
    policy = in_state(SURE, reigns=[1, 1, 500, 0])
    assert policy.propose()[0, 0] == 2
    assert reigns_of(policy) == [1, 1, 501, 0]


def test_every_proposed_champion_is_counted() -> None:
    """Also if its duel is never seen, and if it was foreseen."""
    policy, champions = in_state(MIXED), Counter[int]()
    for n in (1, 30, 1, 7):
        champions.update(policy.propose(n)[:, 0].tolist())
        pairs, times = policy.propose_ahead(5)
        assert times.tolist() == [1] * len(pairs)
        champions.update(pairs[:, 0].tolist())
    assert reigns_of(policy) == [champions[arm] for arm in range(5)]


def test_duels_ahead_are_those_proposed_one_by_one() -> None:
    wins = np.array([[0, 20, 45], [10, 0, 30], [10, 30, 0]], dtype=float)
    jumping, stepping = in_state(wins), in_state(wins)
    rng, longest = random.Random(3), 0
    while jumping.duels < 3_000:
        pairs, times = jumping.propose_ahead(30)
        assert times.tolist() == [1] * len(pairs)
        assert all(c == d for c, d in pairs[:-1].tolist())
        longest = max(longest, len(pairs))
        won = [float(rng.random() < 0.5 + 0.2 * (d - c)) for c, d in pairs.tolist()]
        for (c, d), first_wins in zip(pairs.tolist(), won, strict=True):
            assert stepping.propose().tolist() == [[c, d]]
            stepping.observe(c, d, first_wins)
        jumping.observe(pairs[:, 0], pairs[:, 1], won)
    assert jumping.state_dict() == stepping.state_dict()
    assert longest == 30


def test_the_number_of_duels_proposed_ahead_is_bounded() -> None:
    policy = in_state(SURE)
    policy.observe([2] * 3, [0, 1, 3], [1] * 3, [10**6] * 3)
    assert len(policy.propose_ahead(10**9)[0]) == 4_096
    assert reigns_of(policy) == [0, 0, 4_096, 0]


@pytest.mark.parametrize(("n", "calls"), [(1, 1_500), (50, 25)])
def test_the_challenger_has_the_largest_upper_bound(n: int, calls: int) -> None:
    policy, rng = RelativeConfidenceSampling(5, seed=2, alpha=0.6), random.Random(n)
    tallies: Counter[str] = Counter()
    for _ in range(calls):
        pairs, in_flight = policy.propose(n).tolist(), np.zeros((5, 5))
        for step, (c, d) in enumerate(pairs):
            t = policy.duels + 1 + step
            bounds = upper(policy, c, t, in_flight)
            assert bounds[d] == pytest.approx(max(bounds), rel=1e-12)
            in_flight[[c, d], [d, c]] += 1
            tallies["with itself" if c == d else "with another"] += 1
            alone = upper(policy, c, t)
            tallies["by duels in flight"] += alone[d] < max(alone) - 1e-9
        for c, d in rng.sample(pairs, k=(n + 1) // 2):
            policy.observe(c, d, float(rng.random() < 0.5 + 0.2 * ((d > c) - (d < c))))
    kinds = ["with itself", "with another", *["by duels in flight"] * (n > 1)]
    assert all(tallies[kind] > 20 for kind in kinds), tallies


def test_in_a_tie_the_champion_gives_way() -> None:
    policy = RelativeConfidenceSampling(4, seed=1)
    for arm, won in ((1, 4), (2, 16), (3, 4)):
        policy.observe(0, arm, 1, won)
    # With 1 in the place of alpha ln t: u_10 = u_30 = sqrt(1 / 4) = 1/2 = u_00, u_20 = 1/4.
    rivals = Counter(policy._challenger(0, 1.0) for _ in range(400))
    assert set(rivals) == {1, 3}
    assert abs(rivals[1] - 200) < 4 * 10
    assert policy._challenger(0, 0.99) == 0


def test_an_unseen_pair_has_a_bound_of_two() -> None:
    policy = RelativeConfidenceSampling(4, seed=1)
    policy.observe([0, 1, 2], [1, 2, 0], [0.5] * 3, [6] * 3)
    # t = 19, 0.51 ln 19 = 1.50: a pair seen six times has 1/2 + 0.5 < 2.
    for _ in range(60):
        c, d = policy.propose()[0].tolist()
        assert 3 in {c, d}
        assert c != d


def test_duels_in_flight_narrow_no_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = in_state(MIXED)
    before = [np.copy(getattr(policy._posterior, name)) for name in BetaPosterior.__slots__]
    marks, mark = [], policy._mark_in_flight

    def noting(first: int, second: int, in_flight: int) -> None:
        mark(first, second, in_flight)
        marks.append(in_flight)
        during = [getattr(policy._posterior, name) for name in BetaPosterior.__slots__]
        assert all(map(np.array_equal, before, during))

    monkeypatch.setattr(policy, "_mark_in_flight", noting)
    policy.propose(60)
    assert max(marks) > 2
    assert marks[-1] == 0


def test_after_proposing_nothing_is_in_flight() -> None:
    policy, fresh = in_state(MIXED), in_state(MIXED)
    expected = fresh.propose(40).tolist()
    start = policy.clone()._generator
    policy.propose(60)
    policy._generator, policy._reigns = start, np.zeros(5, dtype=np.int64)
    assert policy.propose(40).tolist() == expected


def test_candidates_are_those_whom_no_bound_rules_out() -> None:
    policy = RelativeConfidenceSampling(3, seed=0)
    assert policy.candidates() == 3
    policy.observe(0, 1, 1, 8)
    # 0.51 ln t = 8 / 4 between t = 50 and t = 51.
    assert policy.candidates() == 2
    policy.observe(2, 2, 0.5, 41)
    assert policy.duels + 1 == 50
    assert policy.candidates() == 2
    policy.observe(2, 2, 0.5)
    assert policy.candidates() == 3


def test_it_needs_no_horizon() -> None:
    assert list(RelativeConfidenceSampling.declared) == ["alpha"]
    assert "needs no horizon" in RelativeConfidenceSampling.traits()
    assert "looks for the arm that beats every other one" in RelativeConfidenceSampling.traits()


@pytest.mark.parametrize(
    "reigns",
    [
        None,
        3,
        "000",
        {"0": 1},
        [],
        [0, 0],
        [0] * 4,
        [0, -1, 0],
        [0, 1.0, 0],
        [0, True, 0],
        [[0]] * 3,
    ],
)
def test_damaged_reigns_are_refused(reigns: object) -> None:
    state = RelativeConfidenceSampling(3).state_dict()
    with pytest.raises(PolicyError, match=r"damaged.*reigns|reigns must be of shape \(3,\)"):
        RelativeConfidenceSampling.from_state({**state, "own": {"reigns": reigns}})


@pytest.mark.parametrize("own", [{}, {"reign": [0, 0, 0]}, {"reigns": [0, 2**63, 0]}])
def test_a_state_without_usable_reigns_is_damaged(own: dict[str, object]) -> None:
    state = RelativeConfidenceSampling(3).state_dict()
    with pytest.raises(PolicyError, match="state of policy 'relative_confidence_sampling' is dam"):
        RelativeConfidenceSampling.from_state({**state, "own": own})


def test_reigns_are_restored() -> None:
    policy = in_state(MIXED, reigns=[3, 0, 2**40, 1, 0])
    assert reigns_of(policy.clone()) == [3, 0, 2**40, 1, 0]


def test_alpha_must_exceed_one_half() -> None:
    with pytest.raises(PolicyError) as refused:
        RelativeConfidenceSampling(3, alpha=0.5)
    assert str(refused.value) == (
        "policy.alpha must be greater than 0.5 (found 0.5); below it the bounds fail too often."
    )
