"""The preference matrix as a heat map: each cell with its duels in numbers and words."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Final, NamedTuple

import numpy as np

from streamduel.errors import legible
from streamduel.monitoring.page.wording import at_least, count, percent
from streamduel.monitoring.views import ExperimentView
from streamduel.preference.evidence import log_evidence, nats

MAX_SHOWN_ARMS: Final = 20
"""The cells of a larger matrix are indistinguishable."""

_SHADES: Final = (0.01, 0.03, 0.07, 0.15)
"""Distances from one half at which the shades begin. Rankers in an experiment differ by a few per
cent; everything beyond 15 has one shade."""

SCALE: Final = (
    ("lose4", "under 35"), ("lose3", "35"), ("lose2", "43"), ("lose1", "47"), ("even", "50"),
    ("win1", "51"), ("win2", "53"), ("win3", "57"), ("win4", "over 65"),
)  # fmt: skip
"""The class of each shade, and the percentage at which it begins."""


class Cell(NamedTuple):
    """One cell: the arm of the row against the arm of the column.

    Attributes:
        shade: the class of its colour.
        text: the share of duels won, in per cent.
        decided: whether the pair is decided with enough confidence to name a champion: if all cells
            in a champion's row are, its confidence is at least 95 %.
        words: all of it in sentences.
    """

    shade: str
    text: str
    decided: bool
    words: str


class Row(NamedTuple):
    """A row: an arm against each arm."""

    arm: str
    cells: tuple[Cell, ...]


class HeatMap(NamedTuple):
    """The matrix, or the part of it that is shown.

    Attributes:
        arms: their names, in the order of rows and columns.
        rows: one for each of them.
        left_out: how many arms are not shown.
    """

    arms: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: int


def ranking(view: ExperimentView) -> list[int]:
    """The arms, best first: the champion, then by Copeland score and by the share of duels won."""
    own, against = view.wins.sum(axis=1), view.wins.sum(axis=0)
    shares = (own + 1) / (own + against + 2)  # arms without duels in the middle
    copeland = view.copeland
    return sorted(
        range(len(view.arms)),
        key=lambda arm: (arm != view.champion, -copeland[arm], -shares[arm], arm),
    )


def shown_arms(view: ExperimentView) -> list[int]:
    """The arms on the page, best first: the champion, those served now, and the best others."""
    pairs = view.assignment.pairs if view.assignment else ()
    served = [arm for pair in sorted(pairs, key=lambda it: -it.share) for arm in (pair.a, pair.b)]
    places, order = {arm: place for place, arm in enumerate(view.arms)}, ranking(view)
    first = [view.champion, *(places[arm] for arm in served if arm in places), *order]
    chosen = set(list(dict.fromkeys(first))[:MAX_SHOWN_ARMS])
    return [arm for arm in order if arm in chosen]


def heat_map(view: ExperimentView, shown: Sequence[int]) -> HeatMap:
    """The heat map of some arms.

    Args:
        view: the experiment.
        shown: the arms, best first.
    """
    names = tuple(legible(view.arms[arm]) for arm in shown)
    wins = view.wins[np.ix_(shown, shown)]
    lower, upper = view.verdict.bounds(shown)
    evidence = log_evidence(wins)
    sides = (wins, wins.T, lower, upper, evidence, evidence.T)
    enough = nats(view.verdict.level, len(view.arms), view.seeks)
    rows = []
    for i, arm in enumerate(names):
        cells = tuple(
            _cell(arm, other, _Pair(*(float(side[i, j]) for side in sides)), enough)
            if i != j
            else Cell("same", "", False, f"{arm}: a ranker has no duels with itself.")
            for j, other in enumerate(names)
        )
        rows.append(Row(arm, cells))
    return HeatMap(names, tuple(rows), len(view.arms) - len(shown))


class _Pair(NamedTuple):
    """The duels of a pair, from the view of its first arm; evidence for and against it in nats."""

    won: float
    lost: float
    lower: float
    upper: float
    better: float
    worse: float


def _cell(arm: str, other: str, pair: _Pair, enough: float) -> Cell:
    duels = pair.won + pair.lost
    if not duels:
        return Cell("unmet", "·", False, f"{arm} against {other}: no duel yet.")
    share = pair.won / duels
    words = (
        f"{arm} against {other}: won {count(pair.won)} of {count(duels)} duels, {percent(share)}. "
        f"95 % at any time: {percent(pair.lower)} to {percent(pair.upper)}. "
        f"{_verdict(pair)}"
    )
    decided = max(pair.better, pair.worse) >= enough
    return Cell(_shade(share), f"{100 * share:.0f}", decided, words)


def _verdict(pair: _Pair) -> str:
    if pair.better > 0:
        return f"Confidence that it is better: {at_least(1 - exp(-pair.better))}."
    if pair.worse > 0:
        return f"Confidence that it is worse: {at_least(1 - exp(-pair.worse))}."
    return "It is undecided which is better."


def _shade(share: float) -> str:
    """The class of a colour: `even`, or the side and how far from even."""
    distance = abs(share - 0.5)
    strength = sum(distance >= shade for shade in _SHADES)
    return f"{'win' if share > 0.5 else 'lose'}{strength}" if strength else "even"
