"""The posterior of preferences, against the same normal model written out pair by pair."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from streamduel.preference.arrays import Floats
from streamduel.simulation.posterior import SPREADS, Logits

WINS = np.array(
    [[0.0, 30.0, 44.0, 0.0], [20.0, 0.0, 61.0, 8.0], [31.0, 40.0, 0.0, 5.0], [0.0, 2.0, 9.0, 0.0]]
)
"""Arms 0 and 3 never met."""
PAIRS = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]


def of_pairs(logits: Logits, spread: float, deviation: float) -> tuple[Floats, Floats, Floats]:
    """y, the covariance of θ and that of y, of the pairs that met."""
    design = np.zeros((len(PAIRS), 4))
    for row, (first, second) in enumerate(PAIRS):
        design[row, first], design[row, second] = 1, -1
    prior = spread**2 * design @ design.T + deviation**2 * np.eye(len(PAIRS))
    seen = np.array([logits.seen[pair] for pair in PAIRS])
    noise = np.diag([logits.variances[pair] for pair in PAIRS])
    return seen, prior, prior + noise


def test_the_evidence_is_the_density_of_the_duels() -> None:
    logits, densities, found = Logits.of(WINS), [], []
    for spread, deviation in itertools.product(SPREADS, SPREADS):
        seen, _, covariance = of_pairs(logits, spread, deviation)
        ln_determinant = np.linalg.slogdet(covariance)[1]
        densities.append(-(ln_determinant + seen @ np.linalg.solve(covariance, seen)) / 2)
        found.append(logits.fit(spread, deviation).evidence)
    assert found == pytest.approx(densities, abs=1e-9)


@pytest.mark.parametrize(("spread", "deviation"), [(0.2, 0.1), (1.0, 0.05), (0.05, 0.5)])
def test_preferences_are_drawn_from_the_posterior(spread: float, deviation: float) -> None:
    """Means and variances of 4,000 draws, with bands of five standard errors."""
    logits, n = Logits.of(WINS), 4000
    seen, prior, covariance = of_pairs(logits, spread, deviation)
    gain = prior @ np.linalg.inv(covariance)
    means, posterior = gain @ seen, prior - gain @ prior
    fits, rng = [logits.fit(spread, deviation)], np.random.default_rng(7)
    drawn = np.array([logits.draw(fits, rng) for _ in range(n)])
    assert np.allclose(drawn + drawn.transpose(0, 2, 1), 1)
    theta = np.array([[np.log(p[pair] / (1 - p[pair])) for pair in PAIRS] for p in drawn])
    variances = posterior.diagonal()
    assert (abs(theta.mean(axis=0) - means) < 5 * np.sqrt(variances / n)).all()
    assert (abs(np.cov(theta.T) - posterior) < 5 * np.sqrt(2 / n) * variances.max()).all()


def test_arms_that_never_met_are_compared_by_their_utilities() -> None:
    logits = Logits.of(np.array([[0, 900.0, 0], [100, 0, 900], [0, 100, 0]]))
    fits, rng = [logits.fit(1.0, 0.1)], np.random.default_rng(7)
    drawn = np.array([logits.draw(fits, rng)[0, 2] for _ in range(200)])
    assert drawn.min() > 0.9


def test_probable_spreads_are_drawn_most() -> None:
    """Pairs of 53 % and of 88 % in 10,000 duels each."""
    for share, spread in ((0.53, 0.1), (0.88, 2.0)):
        wins = np.array([[0, share], [1 - share, 0]]) * 10_000
        logits = Logits.of(wins)
        evidence = {each: logits.fit(each, 0.1).evidence for each in (0.1, 2.0)}
        assert max(evidence, key=evidence.__getitem__) == spread


def test_no_duels_and_very_many_can_be_fitted() -> None:
    rng = np.random.default_rng(7)
    for wins in (np.zeros((50, 50)), np.full((3, 3), 1e12), np.array([[0, 1e12], [0, 0]])):
        logits = Logits.of(wins)
        drawn = logits.draw(
            [logits.fit(*each) for each in itertools.product(SPREADS, SPREADS)], rng
        )
        assert np.isfinite(drawn).all()
        assert ((drawn >= 0) & (drawn <= 1)).all()
