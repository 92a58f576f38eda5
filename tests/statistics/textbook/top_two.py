"""Top-two sampling: our own; it has no paper. This follows the docstring of the policy.

With M_ij, the wealth of a bet on arm i against arm j, which has won w of n duels against it,

    M_ij = 2 Φ(z) exp(z² / 2) sqrt(ρ / (n / 4 + ρ)),  z = (w - n / 2) / sqrt(n / 4 + ρ),  ρ = 8,

the evidence against arm i is the larger of Σ_j ln(0.3 + 0.7 M_ji) and ln(max_j M_ji / (K - 1)),
less ln 2. Arms are out at ln 1/δ, δ = 0.05; with `earns`, at ln t.

Reading taken:

- Draws are from exact normal distributions; those of the policy have 65,536 values.
- "Beats a rival in the score" is P_ij = Φ((w - l) / sqrt(n + 2)), whatever the size of n.
- The winner has x nats against each other arm, x the least with 3 y + 2 y² + 2 y³ + … ≤ δ,
  y = exp(-x), K terms in all; 3 y are three terms. A leader in a race surely beats a rival with x;
  with `earns` it takes ln t. In a search it takes ln(K (K - 1) / δ).
- In a search, if no arm is drawn above 1/2 against the leader, the arm with the largest expected
  score takes its place, unless all its pairs are decided.
- Once all arms are out, an arm that beats as many others as each other arm can, with
  ln(K (K - 1) / δ) nats of each pair, is the answer.
- Ties are at random.
"""

from __future__ import annotations

import math

import numpy as np

from tests.statistics.textbook.estimates import largest, play
from tests.statistics.textbook.history import (
    Floats,
    Ints,
    Truths,
    jitted,
    new_history,
    settle,
    summary,
)


@jitted
def log_wealth(won: int, lost: int) -> float:
    """ln M of the arm that has won `won` duels of a pair."""
    spread = (won + lost) / 4.0
    z = (won - lost) / 2.0 / math.sqrt(spread + 8.0)
    if z > -20.0:
        twice_phi = math.log(math.erfc(-z / math.sqrt(2.0)))
    else:  # erfc underflows; its asymptote
        twice_phi = math.log(math.sqrt(2.0 / math.pi) / -z) - z * z / 2.0
    return twice_phi + z * z / 2.0 + 0.5 * math.log(8.0 / (spread + 8.0))


@jitted
def against(wins: Ints, arm: int) -> float:
    """The evidence that an arm does not beat all others."""
    n_arms = len(wins)
    total, most = 0.0, -np.inf
    for j in range(n_arms):
        if j != arm:
            bet = log_wealth(wins[j, arm], wins[arm, j])
            total += math.log(0.3 + 0.7 * math.exp(min(bet, 600.0)))
            most = max(most, bet)
    return max(total, most - math.log(n_arms - 1)) - math.log(2.0)


@jitted
def expected_score(wins: Ints, arm: int) -> tuple[float, float]:
    """The mean and the variance of how many arms an arm beats."""
    mean, variance = 0.0, 0.0
    for j in range(len(wins)):
        if j != arm:
            z = (wins[arm, j] - wins[j, arm]) / math.sqrt(wins[arm, j] + wins[j, arm] + 2.0)
            chance = 0.5 * math.erfc(-z / math.sqrt(2.0))
            mean += chance
            variance += chance * (1.0 - chance)
    return mean, variance


@jitted
def score(wins: Ints, arm: int) -> float:
    """A draw of how many arms an arm beats."""
    mean, variance = expected_score(wins, arm)
    return mean + math.sqrt(variance) * np.random.normal()  # noqa: NPY002


@jitted
def preference(wins: Ints, i: int, j: int) -> float:
    """A draw of the preference for i over j."""
    n = wins[i, j] + wins[j, i]
    mean = (wins[i, j] + 1.0) / (n + 2.0)
    deviation = math.sqrt(mean * (1.0 - mean) / (n + 3.0))
    drawn: float = mean + deviation * np.random.normal()  # noqa: NPY002
    return drawn


@jitted
def sure_of(wins: Ints, enough: float) -> Truths:
    """[i, j]: whether there is enough evidence that i beats j."""
    n_arms = len(wins)
    sure = np.zeros((n_arms, n_arms), dtype=np.bool_)
    for i in range(n_arms):
        for j in range(n_arms):
            if i != j:
                sure[i, j] = log_wealth(wins[i, j], wins[j, i]) >= enough
    return sure


@jitted
def race(wins: Ints, active: Truths, enough: float, earns: bool) -> tuple[int, int]:
    """Leader and challenger while arms are in."""
    arms = range(len(wins))
    leader = largest(np.array([score(wins, arm) for arm in arms]), active)
    chances = np.array([preference(wins, arm, leader) for arm in arms])
    chances[leader] = 0.5
    allowed = ~sure_of(wins, enough)[leader]
    allowed[leader] = earns
    return leader, largest(chances, allowed)


@jitted
def search(wins: Ints, enough: float, earns: bool) -> tuple[int, int]:
    """Leader and challenger once all arms are out."""
    n_arms = len(wins)
    arms = range(n_arms)
    sure = sure_of(wins, enough)
    at_most = n_arms - 1 - sure.sum(axis=0)
    surely = sure.sum(axis=1).max()
    leaders = at_most >= surely if earns else at_most > surely
    leader = largest(np.array([score(wins, arm) for arm in arms]), leaders)
    chances = np.array([preference(wins, arm, leader) for arm in arms])
    chances[leader] = 0.5
    undecided = ~sure[leader] & ~sure[:, leader]
    undecided[leader] = earns
    rival = largest(chances, undecided)
    if chances[rival] < 0.5:
        best = int(np.argmax(np.array([expected_score(wins, arm)[0] for arm in arms])))
        left = ~sure[best] & ~sure[:, best]
        left[best] = False
        if left.any():
            draws = np.array([preference(wins, arm, best) for arm in arms])
            return best, largest(draws, left)
    return leader, rival


@jitted
def unsurpassed(wins: Ints, enough: float) -> int:
    """The arm that beats as many others as each other arm can; -1 without one."""
    n_arms = len(wins)
    sure = sure_of(wins, enough)
    for arm in range(n_arms):
        beaten = sure[arm].sum()
        others = [n_arms - 1 - sure[:, i].sum() for i in range(n_arms) if i != arm]
        if max(others) <= beaten:
            return arm
    return -1


@jitted
def enough_for(delta: float, n_arms: int) -> float:
    """The evidence that the winner needs against each other arm."""
    x = 0.0
    while True:
        error, arms = 0.0, 0
        while arms < n_arms:
            arms += 1
            error += math.exp(-x * max(1, arms // 2))  # 1, 1, 1, 2, 2, 3, 3, …
        if error <= delta:
            return x
        x += 1e-4


@jitted
def run(
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    delta: float = 0.05,
    earns: bool = False,
) -> tuple[Ints, Ints]:
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    wins = np.zeros((n_arms, n_arms), dtype=np.int64)
    evidence = np.array([against(wins, arm) for arm in range(n_arms)])
    enough = enough_for(delta, n_arms)
    certain = np.zeros((n_arms, n_arms), dtype=np.bool_)
    history = new_history(checkpoints)
    for t in range(1, len(history) + 1):
        if not earns and certain.sum(axis=1).max() == n_arms - 1:
            winner = int(certain.sum(axis=1).argmax())
            settle(history, t, len(history), winner)
            break
        active = evidence < (math.log(t) if earns else math.log(1 / delta))
        if active.any():
            first, second = race(wins, active, math.log(t) if earns else enough, earns)
        else:
            union = math.log(n_arms * (n_arms - 1) / delta)
            winner = -1 if earns else unsurpassed(wins, union)
            if winner >= 0:
                settle(history, t, len(history), winner)
                break
            first, second = search(wins, math.log(t) if earns else union, earns)
        play(preferences, history, t, first, second, wins)
        if first != second:
            evidence[first], evidence[second] = against(wins, first), against(wins, second)
            certain[first, second] = log_wealth(wins[first, second], wins[second, first]) >= enough
            certain[second, first] = log_wealth(wins[second, first], wins[first, second]) >= enough
    return summary(history, n_arms, checkpoints)


@jitted
def run_earning(
    preferences: Floats, horizon: int, checkpoints: Ints, seed: int, delta: float = 0.05
) -> tuple[Ints, Ints]:
    return run(preferences, horizon, checkpoints, seed, delta, True)
