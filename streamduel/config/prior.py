"""The prior of an experiment: counts of another one, or scores of an offline evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum, sqrt
from typing import Annotated, Final

from pydantic import Field, model_validator

from streamduel.config.messages import Problem
from streamduel.errors import listed, nearest, shown
from streamduel.preference.exponential import exp
from streamduel.section import MAX_ARMS, Name, Number, Section

MAX_CAP: Final = 1000
"""Duels of a pair: more would not steer better, and a wrong prior would cost more."""

STEEPNESS: Final = 0.4
"""Log odds of a win per standard deviation of the scores: the best of ten rankers then beats the
worst with a probability of about 0.75, as in click logs of search engines."""

_Wins = Annotated[float, Field(strict=True, ge=0, le=1e15)]
_Score = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-1e15, le=1e15)]


class PriorSettings(Section):
    """What is known before the first duel. It steers the first choices; nothing counts it as duels.

    Either `wins` or `scores`. Only some policies use a prior: docs/experiments.md#prior.
    """

    wins: dict[Name, Annotated[dict[Name, _Wins], Field(max_length=MAX_ARMS)]] | None = Field(
        None,
        max_length=MAX_ARMS,
        description="Wins in another experiment: by arm, how often it beat each other arm; pairs"
        " may be missing.",
    )
    scores: dict[Name, _Score] | None = Field(
        None,
        max_length=MAX_ARMS,
        description="Scores of an offline evaluation by arm, such as nDCG; larger is better, and"
        " the scale does not matter.",
    )
    discount: Annotated[Number, Field(gt=0, le=1)] = Field(
        0.1, description="How many duels a duel of `wins` counts for."
    )
    cap: Annotated[Number, Field(gt=0, le=MAX_CAP)] = Field(
        30.0,
        description="Largest number of duels that the prior counts for, per pair; with `scores`,"
        " the number for every pair.",
    )

    @model_validator(mode="after")
    def _check_kind(self) -> PriorSettings:
        if self.wins is not None and self.scores is not None:
            raise ValueError("must have either wins or scores (found both)")
        return self

    @property
    def is_given(self) -> bool:
        """Whether there is a prior."""
        return self.wins is not None or self.scores is not None

    def problems(self, arms: Sequence[str]) -> Iterator[Problem]:
        """Contradictions to the arms."""
        named = [("wins", arm, others) for arm, others in (self.wins or {}).items()]
        known = set(arms)
        for key, arm, others in [*named, *(("scores", arm, {}) for arm in self.scores or {})]:
            for name in (arm, *others):
                if name not in known:
                    hint = nearest(name, arms) or "."
                    yield Problem(
                        f"prior.{key}",
                        f"must name arms, {listed(arms)} (found {shown(name)}){hint}",
                    )
            if others.get(arm):
                yield Problem(
                    f"prior.{key}", f"must have no wins of an arm over itself (found {shown(arm)})."
                )

    def pseudo_wins(self, arms: Sequence[str]) -> list[list[float]]:
        """(K, K) how often each arm beats each other one; 0 where nothing is known.

        Args:
            arms: the present arms.

        >>> prior = PriorSettings(wins={"b": {"a": 600.0}, "a": {"b": 400.0}})
        >>> prior.pseudo_wins(["a", "b", "c"])
        [[0.0, 12.0, 0.0], [18.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
        >>> prior = PriorSettings(scores={"a": 0.37, "b": 0.41}, cap=10)
        >>> [[round(wins, 2) for wins in row] for row in prior.pseudo_wins(["a", "b"])]
        [[0.0, 3.1], [6.9, 0.0]]
        """
        if self.scores is not None:
            return self._of_scores(self.scores, arms)
        known = self._of_wins()
        return [[known.get((arm, other), 0.0) for other in arms] for arm in arms]

    def _of_wins(self) -> Mapping[tuple[str, str], float]:
        wins = {
            (arm, other): n for arm, row in (self.wins or {}).items() for other, n in row.items()
        }
        weighted = {}
        for (arm, other), won in wins.items():
            if arm == other:
                continue  # 0; anything else is one of the `problems`
            duels = (won + wins.get((other, arm), 0.0)) * self.discount
            weighted[arm, other] = won * self.discount * (self.cap / max(duels, self.cap))
        return weighted

    def _of_scores(self, scores: Mapping[str, float], arms: Sequence[str]) -> list[list[float]]:
        n = max(len(scores), 1)
        mean = fsum(scores.values()) / n
        variance = fsum((score - mean) * (score - mean) for score in scores.values()) / n
        slope = STEEPNESS / sqrt(variance) if variance > 0 else 0.0
        of_arms = [scores.get(arm) for arm in arms]
        return [
            [
                0.0 if i == j or mine is None or its is None
                else self.cap * _chance(slope * (mine - its))
                for j, its in enumerate(of_arms)
            ]
            for i, mine in enumerate(of_arms)
        ]  # fmt: skip


def _chance(log_odds: float) -> float:
    """The probability of a win with these log odds."""
    if log_odds < 0:
        return 1.0 - _chance(-log_odds)
    return 1.0 / (1.0 + exp(-min(log_odds, 700.0)))
