"""Top-two, compiled: the steps of `streamduel.policies.top_two`."""

from __future__ import annotations

from math import sqrt
from typing import Final, NamedTuple

import numpy as np
from typing_extensions import override

from streamduel.policies import Policy
from streamduel.policies.base.normal_posterior import PER_WORD, NormalPosterior
from streamduel.policies.base.prior import LOST, Belief
from streamduel.policies.top_two import LOW, LOWEST, TopTwo
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.preference.elimination import CASH, LN2, UNITS, Elimination
from streamduel.preference.normal import QUANTILES, quantiles
from streamduel.simulation.compiled.arithmetic import ln, wager, wealth
from streamduel.simulation.compiled.compiled_run import CompiledRun
from streamduel.simulation.compiled.jit import compiled, kernel
from streamduel.simulation.compiled.state import NONE, State, duel, has_words
from streamduel.simulation.environment import Environment

_MASK: Final = np.uint64(QUANTILES - 1)
_LARGEST: Final = float(quantiles()[-1])  # no draw is larger


class Wagers(NamedTuple):
    """The attributes of `Elimination`, by the same names; `safe` is `beats` without a margin."""

    share: float
    margin: float
    units: Integers
    terms: Integers
    most: Floats
    beats: Floats
    safe: Floats
    against: Floats


class Posterior(NamedTuple):
    """The attributes of `NormalPosterior` and its `Belief`, by the same names.

    Attributes:
        wealth: [0] is the wealth of the belief.
        quantiles: the table of quantiles.
    """

    beaten: Integers
    sums: Integers
    spreads: Integers
    score: Floats
    score_deviation: Floats
    mean: Floats
    deviation: Floats
    stated: Floats
    leads: Floats
    bets: Integers
    wealth: Integers
    quantiles: Floats


class Rules(NamedTuple):
    """What an answer needs.

    Attributes:
        out_at: ln 1/δ.
        sure_at: the evidence that the winner needs against each rival.
        most_at: the evidence of a pair that a Copeland winner needs.
        earns: whether `aim` is "earn".
        min_duels: duels before which there is no winner.
        leaders: (K,) buffer: the arms that may lead.
        won: (K,) buffer: how many arms each arm surely beats.
        priority: (K,): of equal arms, the one with the largest is the winner.
        possible: (K,): in a search, the arms that may lead, as long as nothing has turned.
        turned: [0] is whether the evidence for or against an arm has crossed a line.
    """

    out_at: float
    sure_at: float
    most_at: float
    earns: bool
    min_duels: int
    leaders: Booleans
    won: Integers
    priority: Integers
    possible: Booleans
    turned: Booleans


class TopTwoRun(CompiledRun):
    """A run of top-two; the kernel counts the duels of an arm with itself in one step."""

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        assert isinstance(policy, TopTwo)
        policy.elimination.settle()
        wagers, posterior = wagers_of(policy.elimination), posterior_of(policy.posterior)
        self._kernel, self._parts = run, (wagers, posterior, rules_of(policy))

    @override
    def _words_per_step(self) -> int:
        return (2 * len(self._wins) + PER_WORD - 1) // PER_WORD


def wagers_of(it: Elimination) -> Wagers:
    """A copy of the attributes."""
    beats = it.beats.copy()
    return Wagers(
        it.share, it.margin, np.array(it.units), it.terms.copy(), np.array(it.most), beats,
        it.safe.copy() if it.margin else beats, it.against.copy(),
    )  # fmt: skip


def posterior_of(it: NormalPosterior) -> Posterior:
    """A copy of the attributes."""
    none = np.zeros_like(it.mean)
    belief = it.belief or Belief(none.tolist(), none)
    return Posterior(
        it.beaten.copy(), np.array(it.sums), np.array(it.spreads), it.score.copy(),
        it.score_deviation.copy(), it.mean.copy(), it.deviation.copy(), belief.stated,
        belief.leads.copy(), belief.bets, np.array([belief.wealth]), quantiles(),
    )  # fmt: skip


def rules_of(policy: TopTwo) -> Rules:
    """What its answer needs."""
    n_arms, mark = policy.n_arms, np.bool_
    return Rules(
        policy.out_at, policy.sure_at, policy.most_at, policy.aim == "earn", policy.min_duels,
        np.zeros(n_arms, mark), np.zeros(n_arms, np.int64), policy._priority.copy(),
        np.zeros(n_arms, mark), np.ones(1, mark),
    )  # fmt: skip


@kernel
def run(
    state: State, wagers: Wagers, posterior: Posterior, rules: Rules, duels: int, until: int
) -> int:
    """The policy's steps after `duels` duels; see `CompiledRun`."""
    n_arms = len(rules.leaders)
    while duels < until and has_words(state):
        t = duels + 1
        early = duels < rules.min_duels
        turned = rules.turned[0] or rules.earns or duels == rules.min_duels
        winner = winner_of(state.wins, wagers, rules) if turned and not early else NONE
        if winner != NONE:
            state.plays[winner, winner] += until - duels
            rules.turned[0] = True  # it is still the winner at the next call
            return until
        racing = mark_active(wagers, rules, t)
        enough = ln(t) if rules.earns else np.inf
        if not (rules.earns or early):
            enough = rules.sure_at if racing else rules.most_at
        if not racing:
            if turned:
                mark_possible(wagers, rules, enough)
            for arm in range(n_arms):
                rules.leaders[arm] = rules.possible[arm]
        rules.turned[0] = False
        first = draw_leader(state, posterior, rules)
        second, chance = draw_rival(state, wagers, posterior, rules, first, racing, enough)
        if chance < 0.5 and not racing:
            best = int(np.argmax(posterior.score))
            other, chance = draw_rival(state, wagers, posterior, rules, best, racing, enough)
            if chance > LOW:
                first, second = best, other
        state.taken[0] += (2 * n_arms + PER_WORD - 1) // PER_WORD
        if first == second:
            state.plays[first, first] += 1
        else:
            first_wins = duel(state, first, second)
            bet(posterior, state.wins, first, second, first_wins)
            refresh(wagers, posterior, rules, state.wins, first, second)
        duels += 1
    return duels


@compiled
def winner_of(wins: Floats, wagers: Wagers, rules: Rules) -> int:
    """The arm that the answer names, or `NONE`; see `TopTwo`."""
    if rules.earns:
        return NONE
    winner, best = NONE, NONE
    for arm in range(len(wins)):
        rank = rank_if_sure(wins, wagers, rules, arm)
        if rank > best:
            winner, best = arm, rank
    if winner != NONE or mark_active(wagers, rules, 1):
        return winner
    return copeland_winner(wagers, rules)


@compiled
def rank_if_sure(wins: Floats, wagers: Wagers, rules: Rules, arm: int) -> int:
    """`Algorithm._rank` of an arm with the evidence for an answer; `NONE` of any other arm."""
    rank: int = rules.priority[arm]
    for other in range(len(wins)):
        if other != arm and wagers.safe[arm, other] < rules.sure_at:
            return NONE
        rank += len(wins) * (wins[arm, other] > wins[other, arm])
    return rank


@compiled
def copeland_winner(wagers: Wagers, rules: Rules) -> int:
    """An arm that surely beats at least as many others as each other arm can, or `NONE`."""
    winner = count_won(wagers, rules, rules.most_at)
    for arm in range(len(rules.won)):
        if len(rules.won) - 1 - count_lost(wagers, arm, rules.most_at) > rules.won[winner]:
            return NONE
    return winner


@compiled
def count_won(wagers: Wagers, rules: Rules, enough: float) -> int:
    """Count in `rules.won` how many arms each arm surely beats; which arm beats the most."""
    best = 0
    for arm in range(len(rules.won)):
        won = 0
        for other in range(len(rules.won)):
            won += wagers.beats[arm, other] >= enough
        rules.won[arm] = won
        tied = won == rules.won[best]
        if won > rules.won[best] or (tied and rules.priority[arm] > rules.priority[best]):
            best = arm
    return best


@compiled
def count_lost(wagers: Wagers, arm: int, enough: float) -> int:
    """How many arms surely beat this one."""
    lost = 0
    for other in range(len(wagers.most)):
        lost += wagers.beats[other, arm] >= enough
    return lost


@compiled
def mark_active(wagers: Wagers, rules: Rules, t: int) -> bool:
    """Mark the arms that are in; whether there are any."""
    enough, racing = ln(t) if rules.earns else rules.out_at, False
    for arm in range(len(rules.leaders)):
        rules.leaders[arm] = wagers.against[arm] < enough
        racing |= rules.leaders[arm]
    return racing


@compiled
def mark_possible(wagers: Wagers, rules: Rules, enough: float) -> None:
    """Mark the arms that may beat more others than any arm surely does; to earn, or as many."""
    surely = rules.won[count_won(wagers, rules, enough)]
    for arm in range(len(rules.leaders)):
        most = len(rules.leaders) - 1 - count_lost(wagers, arm, enough)
        rules.possible[arm] = most > surely or (rules.earns and most == surely)


@compiled
def normal(state: State, posterior: Posterior, place: int) -> float:
    """Draw number `place` of this step."""
    word = state.words[state.taken[0] + place // PER_WORD]
    bits = (word >> np.uint64(16 * (place % PER_WORD))) & _MASK
    draw: float = posterior.quantiles[np.int64(bits)]
    return draw


@compiled
def draw_leader(state: State, posterior: Posterior, rules: Rules) -> int:
    """The arm with the largest draw of its score among those that may lead."""
    leader, best = 0, -np.inf
    for arm in range(len(rules.leaders)):
        mean, deviation = posterior.score[arm], posterior.score_deviation[arm]
        if rules.leaders[arm] and mean + deviation * _LARGEST > best:
            score = mean + deviation * normal(state, posterior, arm)
            if score > best:
                leader, best = arm, score
    return leader


@compiled
def draw_rival(
    state: State,
    wagers: Wagers,
    posterior: Posterior,
    rules: Rules,
    leader: int,
    racing: bool,
    enough: float,
) -> tuple[int, float]:
    """The arm with the best chance against the leader, in a race or in a search; the chance."""
    n_arms = len(rules.leaders)
    rival, best = 0, -np.inf
    proven = wagers.safe if racing else wagers.beats
    for arm in range(n_arms):
        mean, deviation = posterior.mean[leader, arm], posterior.deviation[leader, arm]
        if arm == leader:
            chance = 0.5 if rules.earns else LOWEST
        elif mean + deviation * _LARGEST <= best:
            continue
        elif proven[leader, arm] >= enough or (not racing and proven[arm, leader] >= enough):
            chance = LOW
        else:
            chance = mean + deviation * normal(state, posterior, n_arms + arm)
        if chance > best:
            rival, best = arm, chance
    return rival, best


@compiled
def bet(posterior: Posterior, wins: Floats, first: int, second: int, first_wins: float) -> None:
    """Pay the wager on the prior after a duel; if it is won or lost, update all pairs."""
    half_wins, held = np.int64(2 * first_wins), posterior.wealth[0] >= LOST
    posterior.wealth[0] += half_wins * posterior.bets[first, second]
    posterior.wealth[0] += (2 - half_wins) * posterior.bets[second, first]
    holds = posterior.wealth[0] >= LOST
    if holds == held:
        return
    n_arms = len(wins)
    for one in range(n_arms):
        for other in range(n_arms):
            posterior.leads[one, other] = posterior.stated[one, other] if holds else 0.0
    for one in range(n_arms):
        for other in range(one + 1, n_arms):
            refresh_posterior(posterior, one, other, wins[one, other], wins[other, one])


@compiled
def refresh(
    wagers: Wagers, posterior: Posterior, rules: Rules, wins: Floats, first: int, second: int
) -> None:
    """Update what depends on the counts of one pair."""
    first, second = min(first, second), max(first, second)
    won, lost = wins[first, second], wins[second, first]
    refresh_posterior(posterior, first, second, won, lost)
    if won < lost:
        first, second, won, lost = second, first, lost, won
    ahead, behind = wealth(won, lost)
    set_wager(wagers, rules, first, second, ahead)
    set_wager(wagers, rules, second, first, behind)
    if wagers.margin > 0:
        gift = (won + lost) * wagers.margin
        wagers.safe[first, second] = ln(wager(won + gift, lost - gift))
        wagers.safe[second, first] = ln(wager(lost + gift, won - gift))
        rules.turned[0] = True


@compiled
def set_wager(wagers: Wagers, rules: Rules, arm: int, rival: int, on_arm: float) -> None:
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
    most, known = wagers.most[rival] - wagers.share, wagers.against[rival]
    wagers.against[rival] = max(wagers.units[rival] / UNITS, most) - LN2
    rules.turned[0] |= (
        (known < rules.out_at) != (wagers.against[rival] < rules.out_at)
        or (before < rules.sure_at) != (now < rules.sure_at)
        or (before < rules.most_at) != (now < rules.most_at)
    )


@compiled
def refresh_posterior(
    posterior: Posterior, first: int, second: int, won: float, lost: float
) -> None:
    """Update the posterior of one pair, first < second."""
    won, lost = won + posterior.leads[first, second], lost + posterior.leads[second, first]
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
