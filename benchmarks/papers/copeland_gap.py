"""Copeland paper, C.4: how much the regret bound gains from its own gap."""

from __future__ import annotations

from benchmarks.papers.experiment import Experiment, Outcome
from benchmarks.papers.laboratory import Laboratory
from benchmarks.papers.matrices import INFORMATIONAL
from benchmarks.papers.verdict import is_true
from streamduel.preference.gaps import copeland_gap, gap_ratio, smallest_gap

PUBLISHED = 1419


def run(laboratory: Laboratory) -> Outcome:
    """Compute the number from the matrix."""
    p = laboratory.matrix(INFORMATIONAL)
    found = gap_ratio(p)
    check = is_true(f"Δ²/Δ_min², rounded, is {PUBLISHED:,}", f"{found:,.2f}", judge(found))
    return Outcome(
        method=f"`streamduel.preference.gaps` on all {len(p)} rankers: Δ = {copeland_gap(p):.4g},"
        f" Δ_min = {smallest_gap(p):.3g}. Nothing is random here.",
        measured=f"{found:,.2f}",
        checks=[check],
    )


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
