"""One experiment for all traffic, or one for each segment; writes a table of docs/experiments.md.

python -m benchmarks.segments
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import numpy as np

from benchmarks.policy_regret import put_in, rows
from benchmarks.worlds import SEED, drawn, published
from streamduel import policies
from streamduel.preference.arrays import Floats
from streamduel.preference.regret import regrets
from streamduel.simulation.certainty import Judge
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.measurement import start_run
from streamduel.simulation.seeds import arrangement, run_seeds

SHARES: Final = (0.7, 0.3)
HORIZON: Final = 100_000
POOLED: Final = 2_000
"""Duels of all traffic before each segment gets an experiment of its own."""
STEP: Final = 100
"""Duels between two checks of the confidence."""
CONFIDENCE: Final = 0.95
DISCOUNT: Final = 0.1
CAP: Final = 30
WORLDS: Final = ("arxiv", "bt16a")
PAGE: Final = Path("experiments.md")

ONE: Final = "one"
EACH: Final = "one for each segment"
LATER: Final = f"one, after {POOLED:,} one for each"


class Found(NamedTuple):
    """The result of an experiment.

    Attributes:
        regret: the sum of its duels' regret.
        sure: the number of its duels until it was sure of its champion; those of the whole run if
            it was not.
        wins: (K, K), counts at the end.
    """

    regret: float
    sure: int
    wins: Floats


def as_prior(wins: Floats) -> Floats:
    """The counts of another experiment as pseudo-wins, with the usual discount and cap."""
    discounted = DISCOUNT * wins * ~np.eye(len(wins), dtype=bool)
    return discounted * CAP / np.maximum(discounted + discounted.T, CAP)


def experiment(
    preferences: Floats, gaps: Floats, duels: int, run: int, name: str, prior: Floats | None = None
) -> Found:
    """One run of `top_two`.

    Args:
        preferences: (K, K), of its duels.
        gaps: (K, K), the regret of a duel of each pair.
        duels: how many there are.
        run: its number.
        name: distinguishes runs of the same number.
        prior: (K, K), pseudo-wins that it starts from.
    """
    seeds = run_seeds(SEED, run, name)
    parameters = {} if prior is None else {"prior": prior.tolist()}
    policy = policies.create("top_two", len(preferences), seed=seeds.policy, **parameters)
    course = start_run(policy, MatrixEnvironment(preferences, seed=seeds.environment))
    judge, sure = Judge(CONFIDENCE, policy.seeks, policy.n_arms), duels
    for until in [*range(STEP, duels, STEP), duels]:
        course.advance(until)
        if sure == duels and judge.verdict(course) == "champion":
            sure = until
            course.advance(duels)
            break
    return Found(float((gaps * course.plays).sum()), sure, course.wins)


def outcomes(segments: list[Floats], run: int) -> dict[str, tuple[float, float]]:
    """By the arrangement of experiments, the regret and the impressions until all are sure.

    The segment of an impression does not depend on the pair that it shows. So an experiment of all
    traffic observes the mean of the preferences.
    """
    gaps = [regrets(each, "condorcet") for each in segments]
    mixed, gap = np.tensordot(SHARES, segments, 1), np.tensordot(SHARES, gaps, 1)
    one = experiment(mixed, gap, HORIZON, run, "all")
    first = experiment(mixed, gap, POOLED, run, "all")
    found = {ONE: (one.regret, float(one.sure))}
    for name, before, prior in ((EACH, 0, None), (LATER, POOLED, as_prior(first.wins))):
        lengths = [round(share * (HORIZON - before)) for share in SHARES]
        parts = [
            experiment(each, gaps[n], lengths[n], run, f"part {n}", prior)
            for n, each in enumerate(segments)
        ]
        regret = sum(part.regret for part in parts) + (first.regret if before else 0)
        sure = max(part.sure / share for share, part in zip(SHARES, parts, strict=True))
        found[name] = (regret, before + sure)
    return found


def pairs_of_segments(best: Floats) -> dict[str, list[Floats]]:
    """Preferences of two segments, by how they differ.

    Args:
        best: (K, K), of the first segment.
    """
    order = np.argsort(-(best > 0.5).sum(axis=1), kind="stable")
    swapped, reverse = np.arange(len(best)), np.empty_like(order)
    swapped[order[:2]] = order[1::-1]
    reverse[order] = order[::-1]
    others = {"equal": best, "the two best swapped": best[np.ix_(swapped, swapped)]}
    others["in reverse order"] = best[np.ix_(reverse, reverse)]
    return {title: [best, other] for title, other in others.items()}


def table(runs: int) -> list[str]:
    """A row for each pair of segments and arrangement of experiments."""
    cells, worlds = [], published(None) | drawn()
    for world in (worlds[name] for name in WORLDS):
        for title, segments in pairs_of_segments(world.preferences).items():
            found = []
            for run in range(runs):
                arms = arrangement(SEED, run, len(world.preferences))
                found.append(outcomes([each[np.ix_(arms, arms)] for each in segments], run))
            for name in (ONE, EACH, LATER):
                regret = np.mean([each[name][0] for each in found])
                sure = median(each[name][1] for each in found)
                cells.append([world.title, title, name, f"{regret:,.0f}", f"{sure:,.0f}"])
    first, second, level = (f"{100 * share:.0f} %" for share in (*SHARES, CONFIDENCE))
    lead = (
        f"`top_two`, {HORIZON:,} impressions, {first} of them in one segment and {second} in the "
        f"other, {runs} runs.\nRegret is the mean; impressions until every experiment is {level} "
        "sure, the median:"
    )
    heads = ["matrix", "segments are", "experiments", "regret", "sure after"]
    return [lead, "", *rows(heads, cells)]


def main(given: list[str] | None = None) -> None:
    """Measure, and write the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=40)
    arguments.add_argument("--out", type=Path, default=Path("docs"))
    options = arguments.parse_args(given)
    put_in(options.out / PAGE, "segments", table(options.runs))


if __name__ == "__main__":
    main()
