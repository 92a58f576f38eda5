"""Top-two, compiled: the steps of `streamduel.policies.top_two`."""

from __future__ import annotations

from math import sqrt
from typing import Final, NamedTuple

import numpy as np
from typing_extensions import override

from streamduel.policies import Policy
from streamduel.policies.base.normal_posterior import PER_WORD, NormalPosterior
from streamduel.policies.top_two import TopTwo
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.preference.elimination import CASH, LN2, UNITS, Elimination
from streamduel.preference.normal import QUANTILES, quantiles
from streamduel.simulation.compiled.arithmetic import ln, wealth
from streamduel.simulation.compiled.compiled_run import CompiledRun
from streamduel.simulation.compiled.jit import compiled, kernel
from streamduel.simulation.compiled.state import State, duel, has_words
from streamduel.simulation.environment import Environment

_MASK: Final = np.uint64(QUANTILES - 1)


class Wagers(NamedTuple):
    """The attributes of `Elimination`, by the same names."""

    share: float
    units: Integers
    terms: Integers
    most: Floats
    beats: Floats
    against: Floats


class Posterior(NamedTuple):
    """The attributes of `NormalPosterior`, by the same names, and the table of quantiles."""

    beaten: Integers
    sums: Integers
    spreads: Integers
    score: Floats
    score_deviation: Floats
    mean: Floats
    deviation: Floats
    quantiles: Floats


class Rules(NamedTuple):
    """What an answer needs.

    Attributes:
        out_at: ln 1/δ.
        sure_at: the evidence that the arm that is left needs against each rival.
        earns: whether `aim` is "earn".
        active: (K,) buffer: the arms that are in, or may beat the most others.
        won: (K,) buffer: how many arms each arm surely beats.
    """

    out_at: float
    sure_at: float
    earns: bool
    active: Booleans
    won: Integers


class TopTwoRun(CompiledRun):
    """A run of top-two; the kernel counts the duels of an arm with itself at once."""

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        assert isinstance(policy, TopTwo)
        n_arms = policy.n_arms
        self._wagers = wagers_of(policy.elimination)
        self._posterior = posterior_of(policy.posterior)
        self._rules = Rules(
            policy.out_at,
            policy.sure_at,
            policy.aim == "earn",
            np.zeros(n_arms, dtype=np.bool_),
            np.zeros(n_arms, dtype=np.int64),
        )

    @override
    def _words_per_step(self) -> int:
        return (2 * len(self._wins) + PER_WORD - 1) // PER_WORD

    @override
    def _run(self, state: State, duels: int, until: int) -> int:
        return run(state, self._wagers, self._posterior, self._rules, duels, until)


def wagers_of(elimination: Elimination) -> Wagers:
    """A copy of the attributes."""
    it = elimination
    return Wagers(
        it.share, np.array(it.units), it.terms.copy(), np.array(it.most), it.beats.copy(),
        it.against.copy(),
    )  # fmt: skip


def posterior_of(posterior: NormalPosterior) -> Posterior:
    """A copy of the attributes."""
    it = posterior
    return Posterior(
        it.beaten.copy(), np.array(it.sums), np.array(it.spreads), it.score.copy(),
        it.score_deviation.copy(), it.mean.copy(), it.deviation.copy(), quantiles(),
    )  # fmt: skip


@kernel
def run(
    state: State, wagers: Wagers, posterior: Posterior, rules: Rules, duels: int, until: int
) -> int:
    """The policy's steps after `duels` duels; see `CompiledRun._run`."""
    while duels < until and has_words(state):
        n_active = mark_active(wagers, rules, duels + 1)
        times = 1
        if n_active == 1:
            first = index_of(rules.active)
            second = weakest_rival(wagers, posterior, first)
            if rules.earns or wagers.beats[first, second] >= rules.sure_at:
                second = first
                times = times_alone(wagers, rules, first, duels + 1, until - duels)
        else:
            if n_active == 0:
                mark_possible(wagers, rules, ln(duels + 1))
            first, second = draw_pair(state, wagers, posterior, rules, n_active, ln(duels + 1))
        if first == second:
            state.plays[first, first] += times
            duels += times
        else:
            duel(state, first, second)
            refresh(wagers, posterior, state.wins, first, second)
            duels += 1
    return duels


@compiled
def mark_active(wagers: Wagers, rules: Rules, t: int) -> int:
    """Mark the arms that are in; their number."""
    bound, n_active = rules.out_at + (ln(t) if rules.earns else 0.0), 0
    for arm in range(len(rules.active)):
        rules.active[arm] = wagers.against[arm] < bound
        n_active += rules.active[arm]
    return n_active


@compiled
def index_of(marked: Booleans) -> int:
    """The first marked index."""
    place = 0
    while not marked[place]:
        place += 1
    return place


@compiled
def weakest_rival(wagers: Wagers, posterior: Posterior, arm: int) -> int:
    """The rival against which an arm has the least evidence."""
    rival, least = arm, np.inf
    for other in range(len(wagers.against)):
        evidence = wagers.beats[arm, other]
        if evidence <= 0:
            evidence = -posterior.mean[arm, other]
        if other != arm and evidence < least:
            rival, least = other, evidence
    return rival


@compiled
def times_alone(wagers: Wagers, rules: Rules, arm: int, t: int, most: int) -> int:
    """How many times in a row, from step t on, the arm that is left meets itself."""
    if not rules.earns:
        return most
    least = np.inf
    for other in range(len(wagers.against)):
        if other != arm:
            least = min(least, wagers.against[other])
    few, many = 1, most  # steps after which the arm is surely, and perhaps, still alone
    while few < many:
        middle = (few + many + 1) // 2
        if least >= rules.out_at + ln(t + middle - 1):
            few = middle
        else:
            many = middle - 1
    return few


@compiled
def mark_possible(wagers: Wagers, rules: Rules, enough: float) -> None:
    """Mark the arms that may beat at least as many others as any arm surely does."""
    n_arms, most = len(rules.active), 0
    for arm in range(n_arms):
        won = 0
        for other in range(n_arms):
            won += wagers.beats[arm, other] >= enough
        rules.won[arm] = won
        most = max(most, won)
    for arm in range(n_arms):
        lost = 0
        for other in range(n_arms):
            lost += wagers.beats[other, arm] >= enough
        rules.active[arm] = n_arms - 1 - lost >= most


@compiled
def normal(state: State, posterior: Posterior, place: int) -> float:
    """Draw number `place` of this step."""
    word = state.words[state.taken[0] + place // PER_WORD]
    bits = (word >> np.uint64(16 * (place % PER_WORD))) & _MASK
    draw: float = posterior.quantiles[np.int64(bits)]
    return draw


@compiled
def draw_pair(
    state: State, wagers: Wagers, posterior: Posterior, rules: Rules, n_active: int, enough: float
) -> tuple[int, int]:
    """Leader and challenger of a race, or of a search if no arm is in."""
    n_arms = len(rules.active)
    leader, best = 0, -np.inf
    for arm in range(n_arms):
        if rules.active[arm]:
            score = posterior.score[arm] + posterior.score_deviation[arm] * normal(
                state, posterior, arm
            )
            if score > best:
                leader, best = arm, score
    rival, best = leader, -np.inf
    for arm in range(n_arms):
        if arm == leader:
            if n_active > 0:
                continue
            chance = 0.5
        else:
            chance = posterior.mean[leader, arm] + posterior.deviation[leader, arm] * normal(
                state, posterior, n_arms + arm
            )
            if n_active == 0 and (
                wagers.beats[leader, arm] >= enough or wagers.beats[arm, leader] >= enough
            ):
                chance = 0.0
            if n_active > 0 and chance <= 0.5 and not rules.active[arm]:
                continue
        if chance > best:
            rival, best = arm, chance
    state.taken[0] += (2 * n_arms + PER_WORD - 1) // PER_WORD
    return leader, rival


@compiled
def refresh(wagers: Wagers, posterior: Posterior, wins: Floats, first: int, second: int) -> None:
    """Update what depends on the counts of one pair."""
    first, second = min(first, second), max(first, second)
    won, lost = wins[first, second], wins[second, first]
    refresh_posterior(posterior, first, second, won, lost)
    if won < lost:
        first, second, won, lost = second, first, lost, won
    ahead, behind = wealth(won, lost)
    set_wager(wagers, first, second, ahead)
    set_wager(wagers, second, first, behind)


@compiled
def set_wager(wagers: Wagers, arm: int, rival: int, on_arm: float) -> None:
    """Set M_ij of an arm i and a rival j, and the evidence against the rival."""
    beats, before, now = wagers.beats, wagers.beats[arm, rival], ln(on_arm)
    beats[arm, rival] = now
    if now >= wagers.most[rival]:
        wagers.most[rival] = now
    elif before == wagers.most[rival]:
        most = now
        for other in range(len(wagers.most)):
            most = max(most, beats[other, rival])
        wagers.most[rival] = most
    term = np.int64(ln(CASH + (1 - CASH) * on_arm) * UNITS)
    wagers.units[rival] += term - wagers.terms[rival, arm]
    wagers.terms[rival, arm] = term
    most = wagers.most[rival] - wagers.share
    wagers.against[rival] = max(wagers.units[rival] / UNITS, most) - LN2


@compiled
def refresh_posterior(
    posterior: Posterior, first: int, second: int, won: float, lost: float
) -> None:
    """Update the posterior of one pair, first < second."""
    n = won + lost
    mean = (won + 1) / (n + 2)
    deviation = sqrt(mean * (1 - mean) / (n + 3))
    posterior.mean[second, first], posterior.mean[first, second] = mean, 1 - mean
    posterior.deviation[first, second] = posterior.deviation[second, first] = deviation
    now = int(np.searchsorted(posterior.quantiles, (won - lost) / sqrt(n + 2)))
    before = posterior.beaten[first, second]
    if now != before:
        posterior.beaten[first, second] = now
        add(posterior, first, now - before, now, before)
        add(posterior, second, before - now, now, before)


@compiled
def add(posterior: Posterior, arm: int, gain: int, now: int, before: int) -> None:
    """The chance of an arm in one pair has changed from or to `before`."""
    posterior.sums[arm] += gain
    posterior.spreads[arm] += now * (QUANTILES - now) - before * (QUANTILES - before)
    posterior.score[arm] = posterior.sums[arm] / QUANTILES
    posterior.score_deviation[arm] = sqrt(posterior.spreads[arm]) / QUANTILES
