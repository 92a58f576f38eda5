"""Crediting of impressions, within a bound of memory."""

from __future__ import annotations

import tracemalloc

from streamduel.config.experiment import ExperimentSettings
from streamduel.interleaving.credit import Click
from streamduel_spark.crediting import B_WINS, NO_DUEL, Crediting

RANKS = 1000


def test_impressions_with_many_clicks_are_not_remembered() -> None:
    crediting = Crediting({"search": ExperimentSettings(arms=["bm25", "ltr"])})
    clicks = [Click(rank) for rank in range(RANKS)]
    crediting.outcome("search", "b" * RANKS, None, clicks)
    tracemalloc.start()
    try:
        for number in range(100):  # a remembered one takes some 100 kB
            turned = clicks[number:] + clicks[:number]
            assert crediting.outcome("search", "b" * RANKS, None, turned) == B_WINS
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 1_000_000


def test_an_impression_of_an_experiment_that_was_removed_is_no_duel() -> None:
    assert Crediting({}).outcome("search", "ab", None, [Click(0)]) == NO_DUEL
