"""RUCB against the paper: hand-computed cases and a full recomputation at every step."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.rucb import RUCB
from streamduel.preference.bounds import UpperBounds
from tests.unit.policies.bed import Bounds, policy_after


class Textbook(Bounds):
    """Algorithm 1 as printed: K x K bounds recomputed at every step; draws in RUCB's order."""

    def __init__(self, n_arms: int, seed: int, *, alpha: float, champion_set: bool) -> None:
        super().__init__(n_arms, seed, alpha)
        self.champion_set = champion_set
        self.hypotheses: set[int] = set()

    def choose(self) -> tuple[int, int]:
        arms = self.arms
        upper = [[self.upper_of(i, j) for j in arms] for i in arms]
        candidates = [c for c in arms if all(upper[c][j] >= 0.5 for j in arms)]
        c = self.draw_champion(candidates)
        highest = max(upper[j][c] for j in arms)
        best = [j for j in arms if upper[j][c] == highest]
        if len(best) > 1 and c in best:
            best.remove(c)
        return c, self.draw(best)

    def draw_champion(self, candidates: list[int]) -> int:
        self.hypotheses &= set(candidates)
        if len(candidates) == 1:
            self.hypotheses = set(candidates)
        if not self.champion_set or len(candidates) < 2:
            return self.draw(candidates or list(self.arms))
        if self.hypotheses and self.generator.coin(1, 2):
            return next(iter(self.hypotheses))
        return self.draw([c for c in candidates if c not in self.hypotheses])

    def champion(self) -> int:
        beaten = [
            sum(
                self.wins[c, j] / (self.wins[c, j] + self.wins[j, c]) > 0.5
                for j in self.arms
                if self.wins[c, j] + self.wins[j, c] > 0
            )
            for c in self.arms
        ]
        return max(self.arms, key=lambda c: (beaten[c], self.standing[c]))


@pytest.mark.parametrize("champion_set", [False, True])
@pytest.mark.parametrize(("n_arms", "steps"), [(2, 3000), (3, 3000), (6, 5000), (10, 9000)])
def test_every_step_equals_textbook(n_arms: int, steps: int, champion_set: bool) -> None:
    policy = RUCB(n_arms, seed=n_arms, champion_set=champion_set)
    book = Textbook(n_arms, seed=n_arms, alpha=0.51, champion_set=champion_set)
    rng = random.Random(n_arms)
    tallies: Counter[str] = Counter()
    for _ in range(steps):
        [pair] = policy.propose().tolist()
        assert [pair] == book.propose(1)
        first, second = pair
        # The lower arm wins by a gap small enough for candidates to change; one in ten is a tie.
        edge = 0.1 * ((second > first) - (second < first)) + 0.02 * (second - first)
        first_wins = float(rng.random() < 0.5 + edge)
        first_wins = 0.5 if rng.random() < 0.1 else first_wins
        policy.observe(first, second, first_wins)
        book.observe(first, second, first_wins)
        assert policy.champion() == book.champion()
        tallies[f"candidates {min(policy.candidates(), 2)}"] += 1
        tallies["self-duels" if first == second else "duels"] += 1
    assert policy.wins.tolist() == book.wins.tolist()
    expected = ["candidates 1", "candidates 2", "duels", "self-duels"]
    assert all(tallies[kind] > 20 for kind in expected), tallies


@pytest.mark.parametrize("champion_set", [False, True])
def test_duels_in_flight_equal_textbook(champion_set: bool) -> None:
    policy = RUCB(5, seed=9, alpha=0.6, champion_set=champion_set)
    book = Textbook(5, seed=9, alpha=0.6, champion_set=champion_set)
    rng = random.Random(2)
    for _ in range(150):
        n = rng.choice([1, 2, 7, 30])
        pairs = policy.propose(n).tolist()
        assert pairs == book.propose(n)
        # Half of the proposed duels have no outcome.
        for first, second in rng.sample(pairs, k=(n + 1) // 2):
            first_wins = float(rng.random() < 0.5 + 0.04 * (second - first))
            policy.observe(first, second, first_wins)
            book.observe(first, second, first_wins)
    assert policy.wins.tolist() == book.wins.tolist()


@pytest.mark.parametrize("champion_set", [False, True])
def test_cycle_without_candidates_equals_textbook(champion_set: bool) -> None:
    policy = RUCB(3, seed=4, champion_set=champion_set)
    book = Textbook(3, seed=4, alpha=0.51, champion_set=champion_set)
    rng, without = random.Random(3), 0
    for _ in range(3000):
        [[first, second]] = policy.propose().tolist()
        assert [[first, second]] == book.propose(1)
        first_wins = float(rng.random() < (0.5, 0.8, 0.2)[(second - first) % 3])
        policy.observe(first, second, first_wins)
        book.observe(first, second, first_wins)
        without += policy.candidates() == 0
    assert without > 1000


def test_unseen_pairs_have_bound_of_two() -> None:
    policy = RUCB(3, seed=0)
    assert policy.candidates() == 3
    # t = 5, 0.51 ln 5 = 0.82: a pair seen twice, 1:1, has the bounds 1/2 + 0.64 < 2.
    policy_after(policy, (0, 1, 1, 0), (1, 0, 1, 0), (2, 2, 2, 0))
    for _ in range(30):
        first, second = policy.propose()[0]
        assert (first, second) not in {(0, 1), (1, 0), (2, 2)}


def test_unseen_pair_not_always_most_promising() -> None:
    # t = 1000, 0.51 ln 1000 = 3.52: a pair seen once and lost by the champion has 1 + 1.88 > 2.
    policy = policy_after(RUCB(3, seed=0), (0, 1, 0, 1), (2, 2, 998, 0))
    second = {second for first, second in (policy.propose()[0] for _ in range(40)) if first == 0}
    assert second == {1}


def test_sure_winner_duels_itself() -> None:
    # t = 31, 0.51 ln 31 = 1.751: u_10 = u_20 = sqrt(1.751 / 10) = 0.418 < u_00 = 1/2.
    policy = policy_after(RUCB(3, seed=1), (0, 1, 10, 0), (0, 2, 10, 0), (1, 2, 5, 5))
    before = policy.state_dict()["generator"]
    assert policy.candidates() == 1
    assert policy.propose().tolist() == [[0, 0]]
    assert policy.state_dict()["generator"] == before, "one choice, no draw"


def test_likely_winner_duels_equal_rivals_equally_often() -> None:
    # t = 23, 0.51 ln 23 = 1.599: u_10 = u_20 = sqrt(1.599 / 6) = 0.516, all are candidates.
    policy = policy_after(RUCB(3, seed=1), (0, 1, 6, 0), (0, 2, 6, 0), (1, 2, 5, 5))
    assert policy.candidates() == 3
    pairs = Counter(tuple(policy.propose()[0].tolist()) for _ in range(3000))
    # c is uniform over three; against 1 and 2, it is 0 with 1 + 0.516 that is most promising.
    assert set(pairs) == {(0, 1), (0, 2), (1, 0), (2, 0)}
    assert abs(pairs[1, 0] - 1000) < 110  # four standard deviations
    assert abs(pairs[2, 0] - 1000) < 110
    assert abs(pairs[0, 1] - 500) < 90


def test_champion_uniform_without_candidates() -> None:
    # t = 31: of each pair one arm has 0.418 < 1/2, and each arm is that one in one pair.
    policy = policy_after(RUCB(3, seed=1), (0, 1, 10, 0), (1, 2, 10, 0), (2, 0, 10, 0))
    assert policy.candidates() == 0
    pairs = Counter(tuple(policy.propose()[0].tolist()) for _ in range(3000))
    assert set(pairs) == {(0, 2), (1, 0), (2, 1)}
    assert all(abs(count - 1000) < 110 for count in pairs.values())


def test_challenger_differs_from_champion_in_tie() -> None:
    policy = policy_after(RUCB(3, seed=1), (0, 1, 4, 0), (0, 2, 16, 0))
    # With 1 in the place of 0.51 ln t: u_10 = sqrt(1 / 4) = 1/2 = u_00, u_20 = 1/4.
    assert policy._bounds.challengers(0, scale=1.0) == [1]
    assert policy._bounds.challengers(0, scale=0.99) == [0]


def test_self_duels_advance_time() -> None:
    results = [(0, 1, 10, 0), (0, 2, 10, 0), (1, 2, 5, 5)]
    policy = policy_after(RUCB(3, seed=1), *results)
    assert policy.candidates() == 1
    # At t = 135, 0.51 ln t = 2.5017 and u_10 = sqrt(0.25017) >= 1/2; at 134 it is not.
    policy.observe(1, 1, 0.5, 134 - 31)
    assert policy.candidates() == 1
    policy.observe(0, 0, 0.5)
    assert policy.candidates() == 3


@pytest.mark.parametrize("champion_set", [False, True])
@pytest.mark.parametrize("off_by", [1.0, 0.0, 0.97, 1.03, math.inf])
def test_sure_winner_duels_itself_until_bound_reaches_one_half(
    off_by: float, champion_set: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From t = 31 to 134, as above; the estimate of that length may be imprecise.
    results = [(0, 1, 10, 0), (0, 2, 10, 0), (1, 2, 5, 5)]
    policy = policy_after(RUCB(3, seed=1, champion_set=champion_set), *results)
    estimate = UpperBounds.challenge
    monkeypatch.setattr(UpperBounds, "challenge", lambda *asked: off_by * estimate(*asked))
    before = policy.state_dict()["generator"]
    for most, times in ((1, 1), (2, 2), (103, 103), (104, 104), (105, 104), (10**9, 104)):
        pairs, counts = policy.propose_ahead(most)
        assert (pairs.tolist(), counts.tolist()) == ([[0, 0]], [times])
    policy.observe(0, 0, 0.5, 104)
    assert policy.state_dict()["generator"] == before
    assert policy.propose_ahead(10**9)[1].tolist() == [1], "a choice between candidates"


@pytest.mark.parametrize("champion_set", [False, True])
def test_propose_ahead_equals_single_proposals(champion_set: bool) -> None:
    policy, book = (
        RUCB(4, seed=8, champion_set=champion_set),
        Textbook(4, seed=8, alpha=0.51, champion_set=champion_set),
    )
    rng, leaps = random.Random(8), 0
    while book.t < 20_000:
        pairs, times = policy.propose_ahead(20_000)
        [[first, second]], [often] = pairs.tolist(), times.tolist()
        assert [[first, second]] * often == [
            book.propose(1)[0] for book.t in range(book.t, book.t + often)
        ]
        first_wins = float(rng.random() < 0.5 + 0.2 * (second - first))
        policy.observe(first, second, first_wins, often)
        book.observe(first, second, first_wins)
        leaps += often > 1
    assert leaps > 20


def test_champion_beats_most_arms() -> None:
    policy = policy_after(RUCB(4, seed=1), (2, 0, 2, 1), (2, 1, 3, 2), (3, 2, 1, 0), (3, 0, 0, 1))
    assert policy.champion() == 2
    policy_after(policy, (1, 2, 1, 0))  # 3:3 is not more than half
    assert policy.champion() in {0, 2, 3}
    policy_after(policy, (3, 3, 50, 0))
    assert policy.champion() in {0, 2, 3}


def test_hypothesis_used_in_half_of_the_draws() -> None:
    sure = [(0, 1, 10, 0), (0, 2, 10, 0), (1, 2, 5, 5)]
    policy = policy_after(RUCB(3, seed=1, champion_set=True), *sure)
    policy.propose()
    assert policy.state_dict()["own"] == {"hypothesis": 0}
    policy.observe(0, 0, 0.5, 200)
    assert policy.candidates() == 3
    champions = Counter(int(policy.propose()[0, 0]) for _ in range(3000))
    assert abs(champions[0] - 1500) < 110
    assert abs(champions[1] - 750) < 100
    policy_after(policy, (1, 0, 60, 0))
    assert policy.candidates() == 2
    policy.propose()
    assert policy.state_dict()["own"] == {"hypothesis": None}, "ruled out, and no successor yet"


def test_proposals_without_outcomes_spread_over_all_pairs() -> None:
    pairs = np.sort(RUCB(6, seed=3).propose(150), axis=1)
    times = Counter(map(tuple, pairs.tolist()))
    assert len(times) == 15
    assert max(times.values()) <= 16


@pytest.mark.parametrize("told_before", [0, 500])
def test_nothing_in_flight_after_propose(told_before: int) -> None:
    policy, rng = RUCB(6, seed=3), np.random.RandomState(1)
    first, second = rng.randint(6, size=(2, told_before))
    policy.observe(first, second, rng.randint(2, size=told_before))
    kept = vars(policy._bounds).keys() - {"_row"}
    before = [np.copy(getattr(policy._bounds, name)) for name in kept]
    policy.propose(100)
    after = [np.copy(getattr(policy._bounds, name)) for name in kept]
    assert all(map(np.array_equal, before, after))


def test_alpha_up_to_one_half_rejected() -> None:
    with pytest.raises(PolicyError) as refused:
        RUCB(3, alpha=0.3)
    assert str(refused.value) == (
        "policy.alpha must be greater than 0.5 (found 0.3);"
        " the regret bounds of RUCB hold only above it."
    )
    with pytest.raises(PolicyError, match=r"greater than 0\.5 \(found 0\.5\)"):
        RUCB(3, alpha=0.5)


@pytest.mark.parametrize("hypothesis", [3, -1, "0", True, 0.0])
def test_invalid_hypothesis_rejected(hypothesis: object) -> None:
    state = RUCB(3).state_dict()
    with pytest.raises(PolicyError, match="hypothesis"):
        RUCB.from_state({**state, "own": {"hypothesis": hypothesis}})
