"""Duels until an experimenter has an answer: a sure champion, or that there is no better arm."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec
import numpy as np

from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.preference.elimination import LN2, condorcet_winner_possible
from streamduel.preference.evidence import RHO, Winner, confidence, nats, unbeaten
from streamduel.preference.logarithm import ln
from streamduel.simulation.run import Run

_CHECK_AGAIN: Final = 100
"""After n duels the next check follows n/100 duels later, nearly as the stop rule does."""

_SLACK: Final = 1e-6
"""Nats by which the fast check asks for less evidence than the exact one: rounding differs."""

Verdict: TypeAlias = Literal["champion", "none", "unbeaten"]
"""The champion is the winner sought; there is none because no arm beats all others; or no arm beats
the champion by a difference that matters."""


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first sure answer of a run.

    Attributes:
        verdict: None if there was no answer up to the horizon.
        duels: until then; the horizon if there was none.
        regret: cumulative, until then.
        wrong: whether the answer is false.
    """

    verdict: Verdict | None
    duels: Annotated[int, msgspec.Meta(ge=1)]
    regret: Annotated[float, msgspec.Meta(ge=0)]
    wrong: bool


def check_times(horizon: int) -> list[int]:
    """Numbers of duels at which to check: each one up to 200, then steps of at most 1 %.

    >>> times = check_times(1000)
    >>> len(times), times[198:203], times[-3:]
    (384, [199, 200, 202, 204, 206], [987, 996, 1000])
    """
    times, t = [], 1
    while t < horizon:
        times.append(t)
        t += max(1, t // _CHECK_AGAIN)
    return [*times, horizon]


class Judge:
    """Determines whether the service would report an answer with enough confidence.

    The confidence in the champion is `streamduel.preference.evidence.confidence`, for the winner
    that the policy seeks. A policy that seeks a Condorcet winner has another possible answer: there
    is none (`streamduel.preference.elimination.condorcet_winner_possible`). With a margin, it is
    also an answer that no arm beats the champion by more
    (`streamduel.preference.evidence.unbeaten`). All are valid at any time, so it may be
    checked for an answer as often as one likes.

    Args:
        level: the confidence that an answer needs.
        seeks: the winner that the policy seeks.
        n_arms: K.
        margin: a difference in preference that does not matter.
    """

    def __init__(self, level: float, seeks: Winner, n_arms: int, margin: float = 0.0) -> None:
        self._level = level
        self.seeks: Winner = seeks
        self.margin = margin
        self._sure_at = nats(level, n_arms, seeks) - _SLACK
        self._out_at = -ln(1 - level) - _SLACK
        self._unbeaten_at = ln(n_arms) - ln(1 - level) - _SLACK

    def verdict(self, run: Run) -> Verdict | None:
        """The answer, if there is one after the duels so far."""
        wins = run.wins
        most = most_evidence(wins)
        # The champion comes last: a compiled run must rebuild its policy for it.
        if (
            _is_decided(most >= self._sure_at, self.seeks)
            and confidence(wins, run.champion(), self.seeks) >= self._level
        ):
            return "champion"
        if (
            self.seeks == "condorcet"
            and most.sum(axis=0).min() >= self._out_at
            and not condorcet_winner_possible(wins, 1 - self._level)
        ):
            return "none"
        if (
            self.margin
            and _is_decided(most_evidence(wins, self.margin) >= self._unbeaten_at, "condorcet")
            and unbeaten(wins, run.champion(), self.margin) >= self._level
        ):
            return "unbeaten"
        return None


def exceeds(preferences: Floats, champion: int, margin: float, ties: float = 0.0) -> bool:
    """Whether the win rate of some arm against the champion exceeds 1/2 by more than a margin.

    Args:
        preferences: (K, K), the probabilities of the duels that are not ties.
        champion: an arm.
        margin: `smallest_difference`.
        ties: the share of duels that are ties, each half a win.

    >>> preferences = np.array([[0.5, 0.51], [0.49, 0.5]])
    >>> exceeds(preferences, 0, 0.01), exceeds(preferences, 1, 0.01), exceeds(preferences, 1, 0.005)
    (False, False, True)
    >>> exceeds(preferences, 1, 0.005, ties=0.6)
    False
    """
    most = (1 - ties) * (float(preferences[:, champion].max()) - 0.5)
    return most - margin > 1e-12  # 0.51 - 0.5 is a little more than 0.01


def most_evidence(wins: Floats, margin: float = 0.0) -> Floats:
    """A close upper bound of `streamduel.preference.evidence.log_evidence`, in a tenth of its time.

    It has 2 exp(z² / 2) instead of 2 Φ(z) exp(z² / 2). Its sum over the rivals of an arm is also an
    upper bound of `Elimination.against`.

    Args:
        wins: (K, K), as for `log_evidence`.
        margin: [i, j] is for "j does not beat i by more than this", as in `unbeaten`.

    >>> most_evidence(np.array([[0.0, 560.0], [440.0, 0.0]])).round(3).tolist()
    [[0.0, 5.933], [0.0, 0.0]]
    """
    duels = wins + wins.T
    spread, lead = duels / 4, (wins - wins.T) / 2 + margin * duels
    most = lead * lead / (2 * (spread + RHO)) + LN2 - np.log1p(spread / RHO) / 2
    return np.where(lead > 0, np.maximum(most, 0.0), 0.0)


def _is_decided(beats: Booleans, seeks: Winner) -> bool:
    """Whether some arm is the winner, whatever the other comparisons are.

    Args:
        beats: (K, K), [i, j] is whether i is known to beat j.
        seeks: which winner.
    """
    n_others = len(beats) - 1
    won: Integers = np.count_nonzero(beats, axis=1)
    if seeks == "condorcet":
        return bool(won.max() == n_others)
    lost: Integers = np.count_nonzero(beats, axis=0)
    # [c, i]: whether i can beat no more others than c does.
    behind = won[:, None] + lost >= n_others
    np.fill_diagonal(behind, val=True)
    return bool(behind.all(axis=1).any())
