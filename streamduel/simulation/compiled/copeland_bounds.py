"""Decided pairs, compiled: the steps of `streamduel.preference.copeland_bounds`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.simulation.compiled.jit import compiled
from streamduel.simulation.compiled.state import least_of


class CopelandBounds(NamedTuple):
    """The attributes of `CopelandBounds`, by the same names.

    Attributes:
        moment: one record of the attributes that are single numbers: `scale`, `next_turn`, and
            `turned`, which is set when a pair becomes decided or undecided.
    """

    means: Floats
    trials: Floats
    margins: Floats
    least: Floats
    beats: Booleans
    undecided: Booleans
    wins: Integers
    losses: Integers
    moment: Any


def copeland_bounds(wins: Floats) -> CopelandBounds:
    """The bounds of given counts.

    Args:
        wins: (K, K) wins.
    """
    n_arms = len(wins)
    moment = np.zeros(1, dtype=[("scale", "f8"), ("next_turn", "f8"), ("turned", "?")])
    moment["next_turn"] = np.inf
    moment["turned"] = True
    bounds = CopelandBounds(
        means=np.full((n_arms, n_arms), 2.0),
        trials=np.full((n_arms, n_arms), np.inf),
        margins=np.full((n_arms, n_arms), np.inf),
        least=np.full(n_arms, np.inf),
        beats=np.zeros((n_arms, n_arms), dtype=np.bool_),
        undecided=~np.eye(n_arms, dtype=np.bool_),
        wins=np.zeros(n_arms, dtype=np.int64),
        losses=np.zeros(n_arms, dtype=np.int64),
        moment=moment,
    )
    np.fill_diagonal(bounds.means, 0.5)
    for first, second in np.argwhere(np.triu(wins + wins.T) > 0):
        refresh(bounds, wins, first, second)
    return bounds


@compiled
def advance(bounds: CopelandBounds, scale: float) -> None:
    """Update everything for a scale, which must not be less than the one before."""
    moment = bounds.moment[0]
    moment.scale = scale
    while moment.next_turn <= scale:  # the pair with the least margin becomes undecided
        low = place_of(bounds.least, moment.next_turn)
        high = place_of(bounds.margins[low], moment.next_turn)
        if bounds.beats[low, high]:
            turn(bounds, low, high, False)
        else:
            turn(bounds, high, low, False)
        set_margin(bounds, low, high, np.inf)


@compiled
def refresh(bounds: CopelandBounds, wins: Floats, first: int, second: int) -> None:
    """Update the bounds of one pair from its counts."""
    played = wins[first, second] + wins[second, first]
    first_mean, second_mean = wins[first, second] / played, wins[second, first] / played
    bounds.means[second, first] = first_mean
    bounds.means[first, second] = second_mean
    bounds.trials[second, first] = played
    bounds.trials[first, second] = played
    leader, other, gap = first, second, 0.5 - second_mean
    if wins[first, second] < wins[second, first]:
        leader, other, gap = second, first, 0.5 - first_mean
    margin = played * (gap * gap)
    decided = margin > bounds.moment[0].scale
    if bounds.beats[other, leader]:
        turn(bounds, other, leader, False)
    if bounds.beats[leader, other] != decided:
        turn(bounds, leader, other, decided)
    if not decided:
        margin = np.inf
    set_margin(bounds, min(first, second), max(first, second), margin)


@compiled
def turn(bounds: CopelandBounds, winner: int, loser: int, decided: bool) -> None:
    """Record that one arm surely beats another, or no longer does."""
    bounds.beats[winner, loser] = decided
    bounds.undecided[winner, loser] = not decided
    bounds.undecided[loser, winner] = not decided
    change = 1 if decided else -1
    bounds.wins[winner] += change
    bounds.losses[loser] += change
    bounds.moment[0].turned = True


@compiled
def set_margin(bounds: CopelandBounds, low: int, high: int, margin: float) -> None:
    """Set the margin of a pair, and update the least of its row and the least of all."""
    before = bounds.margins[low, high]
    if margin == before:
        return
    bounds.margins[low, high] = margin
    if margin <= bounds.least[low]:
        bounds.least[low] = margin
    elif before == bounds.least[low]:  # the least has grown; another may be least now
        bounds.least[low] = least_of(bounds.margins[low])
    else:
        return
    bounds.moment[0].next_turn = least_of(bounds.least)


@compiled
def place_of(values: Floats, value: float) -> int:
    """The index of the first element with a value, of which there is one."""
    place = 0
    while values[place] != value:
        place += 1
    return place
