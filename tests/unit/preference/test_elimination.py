"""Evidence against each arm, against the plain formulas, in any order of the duels."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from streamduel.preference.arrays import Floats
from streamduel.preference.counts import WinCounts
from streamduel.preference.elimination import CASH, Elimination, against_of
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
    return float(np.trapezoid(density * np.exp(steps * lead - steps**2 * spread / 2), steps))


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
