"""CCB against the paper: hand-computed cases and a full recomputation at every step."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest

from streamduel.errors import PolicyError
from streamduel.policies.base.generator import Generator
from streamduel.policies.ccb import CCB
from tests.unit.policies.bed import Bounds, with_own

CYCLE = (0.5, 0.8, 0.2)


class Textbook(Bounds):
    """Algorithm 1 as printed: K x K bounds recomputed at every step; draws in CCB's order."""

    def __init__(self, n_arms: int, seed: int, alpha: float) -> None:
        super().__init__(n_arms, seed, alpha)
        self.tallies: Counter[str] = Counter()
        self.reset()

    def reset(self) -> None:
        self.best = set(self.arms)
        self.lists: list[set[int]] = [set() for _ in self.arms]
        self.losses = len(self.arms)

    def choose(self) -> tuple[int, int]:
        arms = self.arms
        u = [[self.upper_of(i, j) for j in arms] for i in arms]  # line 6
        low = [[1 - u[j][i] for j in arms] for i in arms]
        over = [sum(u[i][k] >= 0.5 for k in arms if k != i) for i in arms]  # line 7
        under = [sum(low[i][k] >= 0.5 for k in arms if k != i) for i in arms]
        among = [i for i in arms if over[i] == max(over)]  # line 8
        flying = bool(self.in_flight.any())
        if not flying:
            self.line_9(u, low, over, under, among)
        open_pairs = [
            (i, j) for i in arms for j in sorted(self.lists[i]) if low[i][j] <= 0.5 <= u[i][j]
        ]
        if open_pairs and self.generator.coin(1, 4):  # line 10
            self.tallies["line 10"] += 1
            return open_pairs[self.generator.below(len(open_pairs))]
        preferred = [i for i in among if i in self.best]
        if preferred and preferred != among and self.generator.coin(2, 3):  # line 11
            self.tallies["line 11"] += 1
            among = preferred
        c = self.draw(among)  # line 12
        listed = [j for j in sorted(self.lists[c]) if low[j][c] <= 0.5]
        if flying:  # what is expected to be decided is not played
            listed = [j for j in listed if u[j][c] >= 0.5]
        everyone = [j for j in arms if low[j][c] <= 0.5]
        pool = listed if listed and self.generator.coin(1, 2) else everyone  # line 13
        self.tallies["shortlisted"] += pool is listed
        highest = max(u[j][c] for j in pool)
        tied = [j for j in pool if u[j][c] == highest]
        return c, self.draw([j for j in tied if j != c] if len(tied) > 1 else tied)

    def line_9(
        self,
        u: list[list[float]],
        low: list[list[float]],
        over: list[int],
        under: list[int],
        among: list[int],
    ) -> None:
        arms = self.arms
        if any(low[i][j] > 0.5 for i in arms for j in self.lists[i]):  # A
            self.tallies["9A"] += 1
            self.reset()
        for i in sorted(self.best):  # B
            if over[i] < max(under):
                self.tallies["9B"] += 1
                self.best.remove(i)
                if len(self.lists[i]) != self.losses + 1:
                    self.lists[i] = {k for k in arms if u[i][k] < 0.5}
        if not self.best:
            self.tallies["emptied"] += 1
            self.reset()
        proven = [i for i in among if over[i] == under[i]]  # C
        for i in proven:
            self.best.add(i)
            self.lists[i] = set()
            self.losses = len(arms) - 1 - over[i]
        size = self.losses + 1
        for j in arms:
            if proven and len(self.lists[j]) < size:
                self.lists[j] = set()
            if proven and len(self.lists[j]) > size:
                self.tallies["cut"] += 1
                listed = sorted(self.lists[j])
                order = self.generator.permutation(len(listed))
                self.lists[j] = {listed[k] for k in order[:size]}

    def own_state(self) -> dict[str, Any]:
        return {
            "best": sorted(self.best),
            "shortlists": [sorted(listed) for listed in self.lists],
            "losses": self.losses,
        }


def policy_after(policy: CCB, *results: tuple[int, int, int]) -> CCB:
    """The policy after `(winner, loser, number of duels)`."""
    for winner, loser, count in results:
        policy.observe(winner, loser, 1, count)
    return policy


def hypotheses(policy: CCB) -> dict[str, Any]:
    """Its hypotheses: B, the B^i and L_C."""
    own: dict[str, Any] = policy.state_dict()["own"]
    return own


def chance_in_order(first: int, second: int) -> float:
    return 0.5 + 0.15 * ((second > first) - (second < first)) + 0.02 * (second - first)


def chance_in_cycle(first: int, second: int) -> float:
    """The arms 0, 1 and 2 beat each other in a cycle, and all others."""
    if max(first, second) < 3:
        return CYCLE[(second - first) % 3]
    return chance_in_order(first, second)


@pytest.mark.parametrize("chance", [chance_in_order, chance_in_cycle])
@pytest.mark.parametrize(("n_arms", "steps"), [(3, 2000), (6, 4000), (9, 6000)])
def test_every_step_equals_textbook(n_arms: int, steps: int, chance: Any) -> None:
    policy, book = CCB(n_arms, seed=n_arms), Textbook(n_arms, seed=n_arms, alpha=0.51)
    rng = random.Random(n_arms)
    alone = 0
    for _ in range(steps):
        [[first, second]] = policy.propose().tolist()
        assert [[first, second]] == book.propose(1)
        assert hypotheses(policy) == book.own_state()
        first_wins = float(rng.random() < chance(first, second))
        first_wins = 0.5 if rng.random() < 0.1 else first_wins
        policy.observe(first, second, first_wins)
        book.observe(first, second, first_wins)
        alone += first == second
    assert alone > steps / 10
    expected = ["line 10", "line 11", "shortlisted", "9B"]
    assert n_arms == 3 or all(book.tallies[part] > 1 for part in expected), book.tallies


def test_preference_changes_disprove_hypotheses() -> None:
    policy, book = CCB(5, seed=2), Textbook(5, seed=2, alpha=0.51)
    rng = random.Random(5)
    for step in range(6000):
        [[first, second]] = policy.propose().tolist()
        assert [[first, second]] == book.propose(1)
        assert hypotheses(policy) == book.own_state()
        edge = 0.2 if step < 500 or step > 3000 else -0.4  # the order of the arms is reversed
        # Half of the time, an unrequested pair is observed as well.
        others = [rng.sample(range(5), k=2)] * rng.randint(0, 1)
        for i, j in [(first, second), *others]:
            first_wins = float(rng.random() < 0.5 + edge * ((j > i) - (j < i)))
            policy.observe(i, j, first_wins)
            book.observe(i, j, first_wins)
    expected = ["line 10", "line 11", "shortlisted", "9A", "9B", "cut"]
    assert all(book.tallies[part] > 0 for part in expected), book.tallies


def test_duels_in_flight_equal_textbook() -> None:
    policy, book = CCB(5, seed=9, alpha=0.6), Textbook(5, seed=9, alpha=0.6)
    rng = random.Random(2)
    for _ in range(250):
        n = rng.choice([1, 2, 7, 30])
        pairs = policy.propose(n).tolist()
        assert pairs == book.propose(n)
        assert hypotheses(policy) == book.own_state()
        # Half of the proposed duels have no outcome.
        for first, second in rng.sample(pairs, k=(n + 1) // 2):
            first_wins = float(rng.random() < chance_in_cycle(first, second))
            policy.observe(first, second, first_wins)
            book.observe(first, second, first_wins)
    assert book.tallies["line 10"] > 10


def test_disproven_hypothesis_resets_all() -> None:
    # t = 21, 0.51 ln 21 = 1.55 < 20 / 4: arm 0 surely beats arm 1, which is on its shortlist.
    policy = policy_after(CCB(3, seed=1), (0, 1, 20))
    policy = with_own(policy, best=[2], shortlists=[[1], [], [0]], losses=1)
    policy.propose()
    assert hypotheses(policy) == {"best": [0, 1, 2], "shortlists": [[], [], []], "losses": 3}


def test_losers_removed_and_their_winners_shortlisted() -> None:
    # t = 41, 0.51 ln 41 = 1.89 < 5: arm 0 surely beats both, and each of them beats one at most.
    policy = policy_after(CCB(3, seed=1), (0, 1, 20), (0, 2, 20))
    assert policy.candidates() == 1
    before = policy.state_dict()["generator"]
    assert policy.propose().tolist() == [[0, 0]]
    assert hypotheses(policy) == {"best": [0], "shortlists": [[], [0], [0]], "losses": 0}
    assert policy.state_dict()["generator"] == before, "one choice, no draw"


def test_shortlist_of_full_length_kept_on_removal() -> None:
    policy = policy_after(CCB(4, seed=1), (0, 1, 20), (0, 2, 20), (0, 3, 20), (2, 1, 20))
    policy = with_own(policy, best=[0, 1, 2], shortlists=[[], [3], [1], []], losses=0)
    # Arm 2 surely beats arm 1 on its shortlist, which alone would reset everything.
    assert hypotheses(with_proposal(policy))["best"] == [0]
    policy = with_own(policy, best=[0, 1, 2, 3], shortlists=[[], [3], [0, 3], [0]], losses=0)
    policy = with_proposal(policy)
    assert hypotheses(policy) == {"best": [0], "shortlists": [[], [3], [0], [0]], "losses": 0}


def with_proposal(policy: CCB) -> CCB:
    policy.propose()
    return policy


def test_empty_set_of_best_arms_resets_all_and_is_checked_again() -> None:
    policy = with_own(policy_after(CCB(3, seed=1), (0, 1, 20), (0, 2, 20)), best=[1], losses=0)
    policy.propose()
    assert hypotheses(policy) == {"best": [0, 1, 2], "shortlists": [[], [], []], "losses": 0}
    # The lists of 1 and 2 are then empty, and not L_C + 1 = 1 long.
    stepping = policy.clone()
    policy.propose_ahead(1)
    stepping.propose()
    assert hypotheses(policy) == {"best": [0], "shortlists": [[], [0], [0]], "losses": 0}
    assert hypotheses(stepping) == hypotheses(policy)


def test_shortlists_cut_at_random_or_emptied() -> None:
    beaten = policy_after(CCB(4), (0, 1, 20), (0, 2, 20), (0, 3, 20)).state_dict()
    kept: Counter[tuple[int, ...]] = Counter()
    for seed in range(300):
        policy = CCB.from_state({**beaten, "generator": Generator(seed).state_dict()})
        policy = with_own(policy, best=[0], shortlists=[[], [0, 2, 3], [], [0, 2]], losses=3)
        policy.propose()
        shortlists = hypotheses(policy)["shortlists"]
        assert [len(listed) for listed in shortlists] == [0, 1, 0, 1]
        kept[1, shortlists[1][0]] += 1
        kept[3, shortlists[3][0]] += 1
    assert all(abs(kept[1, arm] - 100) < 33 for arm in (0, 2, 3))  # four standard deviations
    assert all(abs(kept[3, arm] - 150) < 35 for arm in (0, 2))


def test_open_shortlist_pair_has_a_quarter_of_the_steps() -> None:
    policy = with_own(CCB(4, seed=1), shortlists=[[1], [], [], []])
    pairs = Counter(tuple(policy.propose()[0].tolist()) for _ in range(4000))
    # Else c is 0 with 1/4, and then d is the listed arm with 1/2, or 1 among three.
    expected = 4000 * (1 / 4 + 3 / 4 * 1 / 4 * (1 / 2 + 1 / 2 * 1 / 3))
    assert abs(pairs[0, 1] - expected) < 4 * 31
    assert all(abs(pairs[i, j] - 250) < 4 * 16 for i, j in ((1, 0), (2, 3), (3, 1)))


def test_arms_in_b_have_two_thirds_of_the_steps() -> None:
    policy = with_own(CCB(3, seed=1), best=[2])
    champions = Counter(policy.propose()[0, 0].item() for _ in range(3000))
    assert abs(champions[2] - 3000 * (2 / 3 + 1 / 9)) < 4 * 23
    assert abs(champions[0] - 3000 / 9) < 4 * 18


def test_winners_of_cycle_are_champion_equally_often() -> None:
    policy = policy_after(CCB(4, seed=1), *((i, (i + 1) % 3, 50) for i in range(3)))
    policy_after(policy, *((i, 3, 50) for i in range(3)))
    assert policy.candidates() == 3
    pairs, times = policy.propose_ahead(3000)
    assert times.tolist() == [1] * 3000
    counts = Counter(map(tuple, pairs.tolist()))
    assert set(counts) == {(0, 0), (1, 1), (2, 2)}
    assert all(abs(count - 1000) < 4 * 26 for count in counts.values())
    assert hypotheses(policy)["losses"] == 1


def test_propose_ahead_of_several_winners_equals_single_proposals() -> None:
    jumping, stepping = CCB(5, seed=3), CCB(5, seed=3)
    rng, longest = random.Random(3), 0
    for _ in range(6000):
        pairs, times = jumping.propose_ahead(700)
        longest = max(longest, len(pairs))
        wins = [float(rng.random() < chance_in_cycle(*pair)) for pair in pairs.tolist()]
        for pair, won in zip(pairs.tolist(), wins, strict=True):
            assert stepping.propose().tolist() == [pair]
            stepping.observe(pair[0], pair[1], won)
        jumping.observe(pairs[:, 0], pairs[:, 1], wins, times)
        if jumping.duels > 20_000:
            break
    assert jumping.state_dict() == stepping.state_dict()
    assert longest > 300


def test_winner_is_alone_until_bound_crosses_one_half() -> None:
    # All 8 won: u_10 reaches 1/2 when 0.51 ln t = 8 / 4, between t = 50 and t = 51.
    policy = policy_after(CCB(3, seed=1), (0, 1, 8), (0, 2, 9))
    pairs, times = policy.propose_ahead(10**9)
    assert (pairs.tolist(), times.tolist()) == ([[0, 0]], [math.ceil(math.exp(2 / 0.51)) - 18])
    assert policy.propose_ahead(5)[1].tolist() == [5]
    policy.observe(0, 0, 0.5, times.item() - 1)
    assert policy.candidates() == 1
    policy.observe(0, 0, 0.5)
    assert policy.candidates() == 3
    assert {tuple(sorted(policy.propose()[0].tolist())) for _ in range(50)} >= {(0, 1)}
    policy_after(policy, (0, 1, 10**12), (0, 2, 10**12))
    assert policy.propose_ahead(10**12)[1].tolist() == [10**12]


def test_proposing_does_not_change_hypotheses() -> None:
    # Each pair has been won 3 to 0; 40 duels in flight would decide them all.
    policy = policy_after(CCB(3, seed=1), (0, 1, 3), (0, 2, 3), (1, 2, 3))
    policy.propose()
    before = hypotheses(policy)
    policy.propose(40)
    assert hypotheses(policy) == before
    assert policy.candidates() == 3


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"best": []}, "damaged.*best"),
        ({"shortlists": [[], []]}, "damaged"),
        ({"shortlists": [[0], [], []]}, "own shortlist"),
        ({"losses": 4}, "losses"),
        ({"losses": -1}, "losses"),
    ],
)
def test_damaged_hypotheses_rejected(damage: dict[str, object], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        with_own(CCB(3), **damage)


def test_alpha_up_to_one_half_rejected() -> None:
    with pytest.raises(PolicyError, match=r"greater than 0\.5 \(found 0\.5\); the regret bounds"):
        CCB(3, alpha=0.5)
