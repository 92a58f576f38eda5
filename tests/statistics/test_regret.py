"""Regret of every policy against an independent implementation of its algorithm.

`tests/statistics/textbook` implements the algorithms plainly and slowly, without streamduel code.
`python -m tests.statistics.textbook` ran each a few thousand times on each of five matrices; mean
and deviation of one run's regret are in `bands.json`. The mean of `RUNS` runs of streamduel must
be within four standard errors of it at each checkpoint. All seeds are fixed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamduel import policies
from streamduel.simulation import compiled
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.measurement import start_run
from tests.statistics.textbook import POLICIES
from tests.statistics.textbook.matrices import MATRICES, condorcet_regret, copeland_regret

BANDS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "bands.json").read_text(encoding="utf-8")
)
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "beat_the_mean_tight": ("beat_the_mean", {"tight": True}),
    "c2b_hoeffding": ("c2b", {"elimination": "hoeffding"}),
    "c2b_kl_anytime": ("c2b", {"elimination": "kl_anytime"}),
    "interleaved_filter_2_scale_4": ("interleaved_filter_2", {"confidence_scale": 4.0}),
    "merge_dts_as_measured": (
        "merge_dts",
        {"alpha": 0.8**6, "partition": 16, "constant": 400_000.0},
    ),
    "pcomp_accumulate": ("pcomp", {"accumulate": True}),
    "rucb_champion_set": ("rucb", {"champion_set": True}),
    "top_two_earn": ("top_two", {"aim": "earn"}),
}
RUNS = 25
QUICK, SLOW = 10_000, 3_000
"""Duels of a run with compiled loops, and without."""
ROUNDING = 1e-4
"""The bands have five significant digits."""


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("band", BANDS)
def test_regret_equals_textbook(band: str, matrix: str) -> None:
    name, parameters = VARIANTS.get(band, (band, {}))
    measured = BANDS[band][matrix]
    if "horizon" in policies.get(name).declared:
        parameters = {**parameters, "horizon": measured["horizon"]}
    furthest = QUICK if compiled.find(name) else SLOW
    checkpoints = sorted(t for t in map(int, measured["checkpoints"]) if t <= furthest)
    preferences = MATRICES[matrix]
    costs = condorcet_regret(preferences)
    kind = "copeland" if costs is None else "condorcet"
    costs = copeland_regret(preferences) if costs is None else costs
    regrets = np.empty((RUNS, len(checkpoints)))
    for run in range(RUNS):
        arms = np.random.RandomState(run).permutation(len(preferences))
        there = np.ix_(arms, arms)
        policy = policies.create(name, len(arms), seed=run, **parameters)
        way = start_run(policy, MatrixEnvironment(preferences[there], seed=run + 1_000))
        for place, t in enumerate(checkpoints):
            way.advance(t)
            regrets[run, place] = (way.plays * costs[there]).sum()
    for t, ours in zip(checkpoints, regrets.mean(axis=0), strict=True):
        mean, deviation = measured["checkpoints"][str(t)][kind]
        error = deviation * (1 / RUNS + 1 / measured["runs"]) ** 0.5
        assert abs(ours - mean) <= 4 * error + ROUNDING * mean, (t, ours, mean, error)


def test_bands_cover_all_textbook_policies() -> None:
    assert set(BANDS) == set(POLICIES)
    covered = {VARIANTS.get(band, (band, {}))[0] for band in BANDS}
    assert covered <= set(policies.names())
