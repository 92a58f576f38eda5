"""Copeland paper, C.4: how much the regret bound gains from its own gap."""

from __future__ import annotations

import numpy as np

from benchmarks.papers.experiment import Experiment, Outcome
from benchmarks.papers.laboratory import Laboratory
from benchmarks.papers.matrices import INFORMATIONAL
from benchmarks.papers.verdict import is_true
from streamduel.errors import PreferenceError
from streamduel.preference.arrays import Floats
from streamduel.preference.winners import copeland_winners

PUBLISHED = 1419


def run(laboratory: Laboratory) -> Outcome:
    """Compute the number from the matrix."""
    p = laboratory.matrix(INFORMATIONAL)
    found = gap_ratio(p)
    check = is_true(f"Δ²/Δ_min², rounded, is {PUBLISHED:,}", f"{found:,.2f}", judge(found))
    return Outcome(
        method=f"`benchmarks.papers.copeland_gap` on all {len(p)} rankers: Δ ="
        f" {copeland_gap(p):.4g}, Δ_min = {smallest_gap(p):.3g}. Nothing is random here.",
        measured=f"{found:,.2f}",
        checks=[check],
    )


def smallest_gap(p: Floats) -> float:
    """Δ_min, the least |p_ij - 1/2| of any two arms; 0 if there is a tie.

    Args:
        p: (K, K), preferences with 1/2 on the diagonal.

    >>> smallest_gap(np.array([[0.5, 0.75, 0.625], [0.25, 0.5, 1.0], [0.375, 0.0, 0.5]]))
    0.125

    Source: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS 2015,
    Definition 3.2.
    """
    return float(np.abs(p - 0.5)[np.triu_indices(len(p), k=1)].min())


def copeland_gap(p: Floats) -> float:
    """Δ, the gap that the regret bound of Copeland Confidence Bounds depends on.

    With C winners, each of which loses to L_C arms: the least of

    * |p_ij - 1/2|, i a Copeland winner and j none, and
    * Δ*_i, i no Copeland winner: the (L_C + 1)-th largest |p_ij - 1/2| among the arms j that i
      loses to. That many losses prove that i is no winner, and these are the fastest to find.

    Args:
        p: (K, K), preferences without ties.

    Returns:
        Δ, at least Δ_min; infinite when all arms are Copeland winners.

    Raises:
        PreferenceError: there is a tie, which the definition excludes.

    >>> copeland_gap(np.array([[0.5, 0.75, 0.875], [0.25, 0.5, 0.625], [0.125, 0.375, 0.5]]))
    0.25

    Source: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS 2015,
    Definition 3.3 to 3.6; the lack of ties is Assumption A of section 5.
    """
    first, second = np.triu_indices(len(p), k=1)
    ties = np.flatnonzero(p[first, second] == p[second, first])
    if len(ties):
        raise PreferenceError(
            "The gap Δ of a preference matrix is defined without ties only (found one: row"
            f" {first[ties[0]] + 1}, column {second[ties[0]] + 1})."
        )
    winner = np.zeros(len(p), dtype=bool)
    winner[copeland_winners(p)] = True
    if winner.all():
        return float("inf")
    losses = np.maximum(p.T - 0.5, 0)  # 0 where the arm of the row wins
    winner_losses = int((losses[winner.argmax()] > 0).sum())
    provable = np.sort(losses[~winner], axis=1)[:, -1 - winner_losses]
    return float(min(np.abs(p - 0.5)[np.ix_(winner, ~winner)].min(), provable.min()))


def gap_ratio(p: Floats) -> float:
    """Δ² / Δ_min²: how much larger the regret bound would be with Δ_min in place of Δ.

    Args:
        p: (K, K), preferences without ties.

    Raises:
        PreferenceError: there is a tie.

    >>> gap_ratio(np.array([[0.5, 0.75, 0.875], [0.25, 0.5, 0.625], [0.125, 0.375, 0.5]]))
    4.0

    Source: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS 2015, appendix
    C.4, where it is 1,419 for the 136 rankers under the informational click model.
    """
    ratio = copeland_gap(p) / smallest_gap(p)
    return ratio * ratio


def judge(found: float) -> bool:
    """Whether the number equals the published one, to its printed digits."""
    return round(found) == PUBLISHED


EXPERIMENT = Experiment(
    name="copeland_gap",
    title="Copeland, C.4",
    source="Zoghi, Karnin, Whiteson and de Rijke, Copeland Dueling Bandits, NIPS 2015, appendix"
    " C.4",
    claim="For the 136 rankers under informational clicks, the bound with Δ_min in the place of Δ"
    " would be 1,419 times as large.",
    matrices=(INFORMATIONAL,),
    run=run,
)
