"""RUCB paper, Figure 5, and Copeland paper, Figure 4: how often there is a Condorcet winner."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from benchmarks.papers import picture
from benchmarks.papers.experiment import Experiment, Outcome, Picture, Table
from benchmarks.papers.laboratory import Laboratory
from benchmarks.papers.matrices import INFORMATIONAL, NAVIGATIONAL
from benchmarks.papers.picture import Curve
from benchmarks.papers.subsets import condorcet_share, ordered_subsets
from benchmarks.papers.verdict import Check, Measured, above, below, is_true, share
from streamduel.preference.arrays import Floats

SEED = 5
SHOWN = (4, 8, 16, 34, 64, 100, 136)

Shares = dict[int, Measured]
"""Probabilities for each K."""


def winner_shares(p: Floats) -> Shares:
    """Of a Condorcet winner, for all K."""
    return {size: Measured(condorcet_share(p, size)) for size in range(1, len(p) + 1)}


def order_shares(p: Floats, number: int) -> Shares:
    """Of a total order, for all K until the sample has none, and some larger K."""
    found: Shares = {}
    for size in range(1, len(p) + 1):
        last = list(found.values())[-3:]
        if len(last) == 3 and not any(each.value for each in last):
            found[size] = Measured(0.0)
        else:
            found[size] = share(ordered_subsets(p, size, number, SEED), number)
    return found


def navigational(laboratory: Laboratory) -> Outcome:
    """RUCB, Figure 5."""
    p = laboratory.matrix(NAVIGATIONAL)
    number = laboratory.either(10_000, 200)
    winner, order = winner_shares(p), order_shares(p, number)
    _draw(laboratory, "rucb_figure_5.png", "navigational clicks", winner, order)
    least = min(winner, key=lambda size: winner[size].value)
    return Outcome(
        method=f"All {len(p)} rankers of MSLR under navigational clicks; the paper has 64 rankers"
        " of LETOR NP2004, which are not public. The probability of a Condorcet winner is exact"
        " (each ranker's number of subsets, as in the paper), that of a total order from"
        f" {number:,} random subsets for each K (the paper: 100,000).",
        measured=f"P(winner) ≥ {winner[least].value:.3f} (K = {least}); P(order) at K = 16:"
        f" {order[16].text(4)}",
        checks=judge_navigational(winner, order),
        tables=[_table(winner, order)],
        pictures=[Picture("rucb_figure_5.png", _shows("navigational"))],
        notes=[_note(order, "P(total order)")],
    )


def judge_navigational(winner: Shares, order: Shares) -> list[Check]:
    """The paper's statements on Figure 5."""
    least = min(winner, key=lambda size: winner[size].value)
    inside = 2 < least < max(winner)
    return [
        above(
            "P(Condorcet winner) is above 0.97 for every K (the paper's bound, on its own data)",
            winner[least],
            0.97,
            3,
        ),
        is_true(
            "P(Condorcet winner) falls first, then rises again",
            f"least at K = {least} of {max(winner)}",
            inside,
        ),
        below(
            "P(total order) falls fast: an order is less likely than not at K = 16", order[16], 0.5
        ),
    ]


def informational(laboratory: Laboratory) -> Outcome:
    """Copeland, Figure 4."""
    p = laboratory.matrix(INFORMATIONAL)
    number = laboratory.either(10_000, 200)
    winner, order = winner_shares(p), order_shares(p, number)
    other = winner_shares(laboratory.matrix(NAVIGATIONAL))
    _draw(laboratory, "copeland_figure_4.png", "informational clicks", winner, order)
    return Outcome(
        method=f"The paper's own matrix: {len(p)} rankers of MSLR under informational clicks. The"
        " probability of a Condorcet winner is exact, where the paper has 10,000 random subsets"
        f" for each K; that of a total order, which the paper does not show, from {number:,}.",
        measured=f"P(winner): {winner[16].value:.3f} at K = 16, {winner[34].value:.3f} at 34,"
        f" {winner[max(winner)].value:.0f} at {max(winner)}",
        checks=judge_informational(winner, other),
        tables=[_table(winner, order)],
        pictures=[Picture("copeland_figure_4.png", _shows("informational"))],
        notes=[_note(winner, "P(Condorcet winner)")],
    )


def judge_informational(winner: Shares, navigational_winner: Shares) -> list[Check]:
    """The paper's statement on Figure 4, and its explanation."""
    values = [each.value for each in winner.values()]
    falls = all(after <= before for before, after in pairwise(values))
    less = [
        size
        for size, each in winner.items()
        if size > 2 and each.value >= navigational_winner[size].value
    ]
    return [
        is_true(
            "P(Condorcet winner) falls with every further ranker", _falling(values, falls), falls
        ),
        below("it falls fast: below 1/2 at a quarter of all rankers, K = 34", winner[34], 0.5, 3),
        is_true(
            "it is lower than under navigational clicks for every K above 2",
            f"K where it is not: {', '.join(map(str, less)) or 'none'}",
            not less,
        ),
    ]


def _falling(values: Sequence[float], falls: bool) -> str:
    return f"from {values[2]:.4f} at K = 3 to {values[-1]:.4f}{'' if falls else ', not always'}"


def _note(shares: Shares, what: str) -> str:
    """A note on the bound for "fast", which is not the paper's."""
    size = min((size for size, each in shares.items() if each.value < 0.5), default=0)
    return (
        'The paper has no number for "fast"; the bound is ours.'
        f" {what} is below 1/2 from K = {size} on."
    )


def _table(winner: Shares, order: Shares) -> Table:
    sizes = [size for size in SHOWN if size in winner]
    rows = [
        ["Condorcet winner", *(f"{winner[size].value:.3f}" for size in sizes)],
        ["total order", *(order[size].text(4) for size in sizes)],
    ]
    return Table(["probability of a", *(f"K = {size}" for size in sizes)], rows)


def _draw(laboratory: Laboratory, file: str, title: str, winner: Shares, order: Shares) -> None:
    figure, axes = picture.panels(1, 1, 6, 3.2)
    curves = [
        Curve("Condorcet winner", 0, list(winner), [each.value for each in winner.values()]),
        Curve("total order", 1, list(order), [each.value for each in order.values()]),
    ]
    panel = axes[0, 0]
    picture.add(panel, curves)
    picture.finish(panel, f"MSLR, {title}", "K, rankers in the subset", "probability", log_x=False)
    panel.set_ylim(-0.02, 1.02)
    panel.legend(frameon=False)
    picture.save(figure, laboratory.images / file)


def _shows(clicks: str) -> str:
    return (
        "Probabilities of a Condorcet winner and of a total order over the size of a random subset"
        f" of the MSLR rankers under {clicks} clicks."
    )


RUCB_FIGURE_5 = Experiment(
    name="rucb_figure_5",
    title="RUCB, Figure 5",
    source="Zoghi, Whiteson, Munos and de Rijke, Relative Upper Confidence Bound for the K-Armed"
    " Dueling Bandit Problem, ICML 2014, section 8.1",
    claim="Whatever the size of a subset of rankers, it almost surely has a Condorcet winner (above"
    " 0.97; falling first, then rising), while the probability of a total order falls fast.",
    matrices=(NAVIGATIONAL,),
    run=navigational,
)
COPELAND_FIGURE_4 = Experiment(
    name="copeland_figure_4",
    title="Copeland, Figure 4",
    source="Zoghi, Karnin, Whiteson and de Rijke, Copeland Dueling Bandits, NIPS 2015, appendix"
    " C.1",
    claim="Under informational clicks the probability that there is a Condorcet winner falls fast"
    " with the number of rankers, other than under navigational clicks.",
    matrices=(INFORMATIONAL, NAVIGATIONAL),
    run=informational,
)
