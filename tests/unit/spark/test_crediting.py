"""Crediting of impressions in the Spark job."""

from __future__ import annotations

from streamduel_spark.crediting import NO_DUEL, Crediting


def test_an_impression_of_an_experiment_that_was_removed_is_no_duel() -> None:
    assert Crediting({}).outcome("search", "ab", None, []) == NO_DUEL
