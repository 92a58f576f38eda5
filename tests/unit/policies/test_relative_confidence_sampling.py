"""RCS: champion against a full sample, challenger against recomputed bounds, champion counts."""

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
from tests.unit.policies.bed import FEW

MODULE = "streamduel.policies.relative_confidence_sampling"

# Few, many, half and no wins.
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
# Arm 2 surely beats all others, which have no duels with each other.
SURE = np.array([[0, 0, 0, 0], [0, 0, 0, 0], [300, 300, 0, 300], [0, 0, 0, 0]], dtype=float)


def in_state(wins: Floats, reigns: list[int] | None = None) -> RelativeConfidenceSampling:
    """A policy with these wins and these numbers of times as champion."""
    n_arms = len(wins)
    return RelativeConfidenceSampling.from_state(
        {
            **RelativeConfidenceSampling(n_arms, seed=1).state_dict(),
            "counts": {"wins": wins.tolist(), "duels": int(wins.sum())},
            "own": {"reigns": reigns or [0] * n_arms},
        }
    )


def reigns_of(policy: RelativeConfidenceSampling) -> list[int]:
    """Number of times each arm has been champion."""
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
    """Share of each arm, or of no arm, beating all others in a full sample."""
    rng, n_arms = np.random.RandomState(2), len(wins)
    theta = np.triu(rng.beta(wins + 1, wins.T + 1, size=(runs, n_arms, n_arms)), k=1)
    theta += np.tril(1 - theta.transpose(0, 2, 1), k=-1)
    victors = (theta > 0.5).sum(axis=2) == n_arms - 1
    times: Counter[int | None] = Counter(dict(enumerate(victors.sum(axis=0).tolist())))
    times[None] = runs - times.total()
    return times


@pytest.mark.parametrize("wins", [FEW[:2, :2], np.zeros((3, 3)), FEW, MIXED, np.zeros((9, 9))])
def test_victor_shares_equal_full_sample(wins: Floats) -> None:
    policy, runs = in_state(wins), 4_000
    times = Counter(policy._victor() for _ in range(runs))
    expected = by_the_paper(wins, 5 * runs)
    assert expected[None] > 0 or len(wins) == 2
    for victor in times | expected:
        share = (times[victor] + expected[victor]) / (6 * runs)
        # Four standard errors of the difference of the two shares.
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
def test_only_deciding_pairs_sampled_each_once(
    wins: Floats, least: int, mean: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = in_state(wins * ~np.eye(len(wins), dtype=bool))
    drawn: list[tuple[int, int]] = []
    numbers = []

    def recording(
        posterior: BetaPosterior, first: Integers, second: Integers, draw: Generator
    ) -> Any:
        drawn.extend(zip(first.tolist(), second.tolist(), strict=True))
        return beats(posterior, first, second, draw)

    monkeypatch.setattr(MODULE + ".beats", recording)
    for _ in range(200):
        drawn.clear()
        victor = policy._victor()
        assert len({frozenset(pair) for pair in drawn}) == len(drawn)
        assert drawn[0][0] == policy.champion(), "the leader is sampled first"
        assert victor is None or sum(victor in pair for pair in drawn) == policy.n_arms - 1
        numbers.append(len(drawn))
    assert min(numbers) >= least
    assert sum(numbers) / 200 <= mean


def test_leader_of_sample_duels_remaining_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    # By the counts, 1 and 2 beat the most; one leads and loses to the other in the sample.
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
    # 0 has beaten both earlier arms and loses to 4, not sampled against 0 before.
    rivals = [arm for arm in range(5) if arm != leader]
    assert asked == [(leader, rivals), (other, [0, 3]), (0, [3, 4])]


def test_sure_winner_is_champion_and_duels_itself() -> None:
    policy = in_state(SURE)
    assert policy.candidates() == 1
    assert policy.propose(20).tolist() == [[2, 2]] * 20
    assert reigns_of(policy) == [0, 0, 20, 0], "this counts as being champion, too"


def test_least_frequent_champion_is_next_without_victor() -> None:
    policy = in_state(CYCLE, reigns=[7, 5, 6, 4])
    assert policy.candidates() == 0
    # θ contradicts a pair's counts with probability below 1e-19.
    champions = [int(policy.propose()[0, 0]) for _ in range(40)]
    assert champions[0] == 3
    assert sorted(champions[1:3]) == [1, 3]
    assert sorted(champions[3:6]) == [1, 2, 3]
    assert all(sorted(champions[turn : turn + 4]) == [0, 1, 2, 3] for turn in range(6, 38, 4))
    assert sum(reigns_of(policy)) == 22 + 40


def test_least_frequent_champions_equally_likely() -> None:
    champions = Counter(champion_without_victor(seed) for seed in range(400))
    assert set(champions) == {0, 1, 3}
    # Four standard errors.
    assert all(abs(count - 400 / 3) < 4 * 9.5 for count in champions.values())


def champion_without_victor(seed: int) -> int:
    """The champion if no arm is victor and arm 2 has been champion more often."""
    policy = in_state(CYCLE, reigns=[3, 3, 4, 3])
    policy._generator = Generator(seed)
    return int(policy.propose()[0, 0])


def test_victor_is_champion_regardless_of_count() -> None:
    policy = in_state(SURE, reigns=[1, 1, 500, 0])
    assert policy.propose()[0, 0] == 2
    assert reigns_of(policy) == [1, 1, 501, 0]


def test_every_proposed_champion_counted() -> None:
    """Also if its outcome is never observed or it was proposed ahead."""
    policy, champions = in_state(MIXED), Counter[int]()
    for n in (1, 30, 1, 7):
        champions.update(policy.propose(n)[:, 0].tolist())
        pairs, times = policy.propose_ahead(5)
        assert times.tolist() == [1] * len(pairs)
        champions.update(pairs[:, 0].tolist())
    assert reigns_of(policy) == [champions[arm] for arm in range(5)]


def test_propose_ahead_equals_single_proposals() -> None:
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


def test_proposed_run_is_bounded() -> None:
    policy = in_state(SURE)
    policy.observe([2] * 3, [0, 1, 3], [1] * 3, [10**6] * 3)
    assert len(policy.propose_ahead(10**9)[0]) == 4_096
    assert reigns_of(policy) == [0, 0, 4_096, 0]


@pytest.mark.parametrize(("n", "calls"), [(1, 1_500), (50, 25)])
def test_challenger_has_largest_upper_bound(n: int, calls: int) -> None:
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


def test_challenger_preferred_to_champion_in_tie() -> None:
    policy = RelativeConfidenceSampling(4, seed=1)
    for arm, won in ((1, 4), (2, 16), (3, 4)):
        policy.observe(0, arm, 1, won)
    # With 1 in the place of alpha ln t: u_10 = u_30 = sqrt(1 / 4) = 1/2 = u_00, u_20 = 1/4.
    assert policy._bounds.challengers(0, 1.0) == [1, 3]
    assert policy._bounds.challengers(0, 0.99) == [0]


def test_unseen_pair_has_bound_of_two() -> None:
    policy = RelativeConfidenceSampling(4, seed=1)
    policy.observe([0, 1, 2], [1, 2, 0], [0.5] * 3, [6] * 3)
    # t = 19, 0.51 ln 19 = 1.50: a pair with six duels has 1/2 + 0.5 < 2.
    for _ in range(60):
        c, d = policy.propose()[0].tolist()
        assert 3 in {c, d}
        assert c != d


def test_duels_in_flight_do_not_change_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = in_state(MIXED)
    before = [np.copy(getattr(policy._posterior, name)) for name in vars(policy._posterior)]
    marks, mark = [], policy._mark_in_flight

    def recording(first: int, second: int, in_flight: int) -> None:
        mark(first, second, in_flight)
        marks.append(in_flight)
        during = [getattr(policy._posterior, name) for name in vars(policy._posterior)]
        assert all(map(np.array_equal, before, during))

    monkeypatch.setattr(policy, "_mark_in_flight", recording)
    policy.propose(60)
    assert max(marks) > 2
    assert marks[-1] == 0


def test_nothing_in_flight_after_propose() -> None:
    policy, fresh = in_state(MIXED), in_state(MIXED)
    expected = fresh.propose(40).tolist()
    start = policy.clone()._generator
    policy.propose(60)
    policy._generator, policy._reigns = start, np.zeros(5, dtype=np.int64)
    assert policy.propose(40).tolist() == expected


def test_candidates_not_ruled_out_by_bounds() -> None:
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


def test_description_without_horizon() -> None:
    assert list(RelativeConfidenceSampling.declared) == ["alpha"]
    assert "needs no horizon" in RelativeConfidenceSampling.traits()
    assert "looks for the arm that beats every other one" in RelativeConfidenceSampling.traits()


@pytest.mark.parametrize("reigns", [[], [0, 0], [0] * 4, [0, -1, 0], [0, 2**63, 0]])
def test_damaged_champion_counts_rejected(reigns: object) -> None:
    state = RelativeConfidenceSampling(3).state_dict()
    with pytest.raises(PolicyError, match=r"damaged.*(reigns|too large)|reigns must be of shape"):
        RelativeConfidenceSampling.from_state({**state, "own": {"reigns": reigns}})


def test_champion_counts_restored() -> None:
    policy = in_state(MIXED, reigns=[3, 0, 2**40, 1, 0])
    assert reigns_of(policy.clone()) == [3, 0, 2**40, 1, 0]


def test_alpha_up_to_one_half_rejected() -> None:
    with pytest.raises(PolicyError) as refused:
        RelativeConfidenceSampling(3, alpha=0.5)
    assert str(refused.value) == (
        "policy.alpha must be greater than 0.5 (found 0.5); below it the bounds fail too often."
    )
