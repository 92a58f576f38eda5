"""Evidence against each arm, against the plain formulas, in any order of the duels."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy.integrate import trapezoid

from streamduel.preference.arrays import Floats
from streamduel.preference.counts import WinCounts, distinct_pairs
from streamduel.preference.elimination import (
    CASH,
    Elimination,
    against_of,
    growth,
    growth_each,
    wager,
)
from streamduel.preference.evidence import RHO, log_evidence, wealth
from tests.unit.preference.test_divergence import Duel, some_duels, wins_of


def of(duels: list[Duel], n_arms: int) -> Elimination:
    """Counts after adding these duels one by one."""
    counts = WinCounts(n_arms)
    elimination = Elimination(counts.wins)
    for first, second, first_wins, count in duels:
        counts.add_one(first, second, first_wins, count)
        elimination.refresh(first, second)
    return elimination


def mixture(won: float, lost: float) -> float:
    """M of the arm that has won `won` duels, by its definition as an integral over λ > 0."""
    spread, lead = (won + lost) / 4, (won - lost) / 2
    steps = np.linspace(0, 12 / math.sqrt(RHO), 200_001)
    density = 2 * math.sqrt(RHO / (2 * math.pi)) * np.exp(-RHO * steps**2 / 2)
    return float(trapezoid(density * np.exp(steps * lead - steps**2 * spread / 2), steps))


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (1, 0), (7.5, 3.5), (60, 40), (520, 480)])
def test_wealth_is_the_mixture_of_bets(won: float, lost: float) -> None:
    ahead, behind = wealth(won, lost)
    assert ahead == pytest.approx(mixture(won, lost), rel=1e-5)
    assert behind == pytest.approx(mixture(lost, won), rel=1e-5)


def plain(wins: Floats) -> Floats:
    """The lower bound of ln E_w of all arms."""
    n_arms, evidence = len(wins), []
    for w in range(n_arms):
        rivals = [j for j in range(n_arms) if j != w]
        bets = [mixture(wins[j, w], wins[w, j]) for j in rivals]
        product = sum(math.log(CASH + (1 - CASH) * bet) for bet in bets)
        largest = math.log(max(*bets, 1.0) / (n_arms - 1))
        evidence.append(max(product, largest) - math.log(2))
    return np.array(evidence)


@pytest.mark.parametrize("n_arms", [3, 6])
def test_equals_plain_formula(n_arms: int) -> None:
    duels = some_duels(n_arms, 120, seed=n_arms)
    elimination = of(duels, n_arms)
    wins = wins_of(duels, n_arms)
    assert elimination.against == pytest.approx(plain(wins), abs=1e-4)
    leads = wins > wins.T
    assert elimination.beats[leads].clip(0) == pytest.approx(log_evidence(wins)[leads], abs=1e-12)


def test_order_and_bulk_do_not_matter() -> None:
    duels = some_duels(5, 300, seed=1)
    shuffled = [
        (second, first, 1 - first_wins, count) for first, second, first_wins, count in duels
    ]
    random.Random(2).shuffle(shuffled)
    one, other = of(duels, 5), of(shuffled, 5)
    counts = WinCounts(5)
    for duel in duels:
        counts.add_one(*duel)
    for each in (other, Elimination(counts.wins)):
        assert each.against.tolist() == one.against.tolist()
        assert each.beats.tolist() == one.beats.tolist()


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_pairs_at_once_have_the_bits_of_one_by_one(margin: float) -> None:
    luck, counts = np.random.RandomState(3), WinCounts(7)
    single, several = Elimination(counts.wins, margin), Elimination(counts.wins, margin)
    for _ in range(30):
        first, second = luck.randint(7, size=(2, 40))
        counts.add(first, second, luck.choice([0.0, 0.5, 1.0], 40))
        for pair in zip(first.tolist(), second.tolist(), strict=True):
            single.refresh(*pair)
        several.refresh_many(*distinct_pairs(first, second, 7))
        fresh = Elimination(counts.wins, margin)
        for it in (several, fresh):
            assert it.beats.tolist() == single.beats.tolist()
            assert it.safe.tolist() == single.safe.tolist()
            assert it.against.tolist() == single.against.tolist()


def test_an_even_pair_does_not_depend_on_who_is_named_first() -> None:
    ahead, behind = wealth(5.0, 5.0)
    assert ahead == behind


def test_an_arm_that_loses_to_one_rival_is_out_and_the_winner_is_not() -> None:
    elimination = of([(0, 1, 1.0, 60), (0, 2, 1.0, 5), (2, 1, 0.0, 60)], 3)
    enough = math.log(20)
    assert (elimination.against >= enough).tolist() == [False, True, True]


def test_millions_of_duels_stay_finite() -> None:
    elimination = of([(0, 1, 1.0, 2**50), (1, 2, 0.5, 2**50)], 3)
    assert np.isfinite(elimination.against).all()
    assert elimination.against.argmax() == 1


@pytest.mark.parametrize("seed", range(5))
def test_some_arms_have_the_evidence_of_all(seed: int) -> None:
    users = np.random.RandomState(seed)
    wins = users.randint(0, 90, (7, 7)).astype(np.float64) / 2
    np.fill_diagonal(wins, 0)
    wins[2, 3] = wins[3, 2] = 0
    whole = Elimination(wins).against
    assert against_of(wins, range(7)).tolist() == whole.tolist()
    assert against_of(wins, [5, 2]).tolist() == whole[[5, 2]].tolist()


def test_a_won_duel_adds_no_more_than_its_bound() -> None:
    for wins in np.arange(1, 90, 2.5):
        for losses in np.arange(0, 90, 1.5):
            more = math.log(wager(wins, losses)) - math.log(wager(wins - 1, losses))
            assert more <= growth(wins, losses, 1) < 1
            tie = math.log(wager(wins, losses + 1)) - math.log(wager(wins - 0.5, losses + 0.5))
            assert tie <= growth(wins, losses + 1, 0.5)
    for won in (2, 10, 40):
        for lost in (0, 10, 40):
            for wins, losses in ((40, 40), (60, 40), (90, 40), (40, 90)):
                before = wager(wins - won, losses - lost)
                assert math.log(wager(wins, losses) / before) <= growth(wins, losses, won)


def test_bounds_of_pairs_at_once_are_those_of_each() -> None:
    users = np.random.RandomState(1)
    wins, losses = users.randint(0, 90, (2, 50)) / 2
    won = np.minimum(users.choice([0.0, 0.5, 1.0, 7.0], 50), wins)
    apart = [growth(*each) for each in zip(wins, losses, won, strict=True)]
    assert growth_each(wins, losses, won).tolist() == pytest.approx(apart)


@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_put_off_crosses_no_line(seed: int, rising: bool) -> None:
    users, counts = np.random.RandomState(seed), WinCounts(5)
    lines = (0.0, 0.0, 0.0) if rising else (3.0, 4.0, 6.0)
    lazy = Elimination(counts.wins, lines=lines, rising=rising)
    put_off = 0
    for t in range(1, 1000):
        if rising:
            lines = (math.log(t),) * 3
            lazy.set_lines(*lines)
        first, second = users.permutation(5)[:2].tolist()
        first_wins = users.choice([0.0, 0.5, 1.0], p=[0.4, 0.1, 0.5] if first < second else None)
        counts.add_one(first, second, first_wins, count=users.choice([1, 1, 1, 4]))
        lazy.refresh(first, second)
        exact, (out, sure, most) = Elimination(counts.wins), lines
        assert lazy.out(out).marks.tolist() == (exact.against >= out).tolist()
        arm = users.randint(5)
        assert lazy.surely_beaten(arm, sure).marks.tolist() == (exact.beats[arm] >= sure).tolist()
        assert ((lazy.safe >= most) == (exact.safe >= most)).all()
        put_off += (lazy.beats != exact.beats).any()
    assert put_off > 20
    lazy.settle()
    assert lazy.beats.tolist() == Elimination(counts.wins).beats.tolist()
    assert lazy.against.tolist() == Elimination(counts.wins).against.tolist()


@pytest.mark.parametrize("chance", [0.5, 0.65])
@pytest.mark.parametrize("n_arms", [5, 9])
def test_what_is_put_off_of_many_duels_crosses_no_line(n_arms: int, chance: float) -> None:
    users, counts = np.random.RandomState(n_arms), WinCounts(n_arms)
    out, sure, most = lines = (3.0, 4.0, 6.0)
    lazy = Elimination(counts.wins, lines=lines)
    put_off = 0
    for _ in range(150):
        first, second = users.randint(n_arms, size=(2, users.choice([3, 30, 60])))
        chances = np.where(first < second, chance, 1 - chance)
        counts.add(first, second, (users.random_sample(len(first)) < chances).astype(np.float64))
        lazy.refresh_many(*distinct_pairs(first, second, n_arms))
        exact = Elimination(counts.wins)
        assert lazy.out(out).marks.tolist() == (exact.against >= out).tolist()
        assert ((lazy.safe >= sure) == (exact.safe >= sure)).all()
        assert ((lazy.safe >= most) == (exact.safe >= most)).all()
        put_off += (lazy.beats != exact.beats).any()
    assert put_off > 20
    lazy.settle()
    assert lazy.beats.tolist() == Elimination(counts.wins).beats.tolist()
    assert lazy.against.tolist() == Elimination(counts.wins).against.tolist()
