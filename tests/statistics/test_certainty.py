"""Duels until top-two is sure of the best of six rankers of a search engine."""

from __future__ import annotations

from streamduel.simulation.matrices import ARXIV
from streamduel.simulation.settings import Settings
from streamduel.simulation.simulate import simulate
from tests.statistics.test_guarantees import failure_limit


def test_top_two_is_sure_of_the_arxiv_winner_within_the_band() -> None:
    # In 60 runs, seeds 1 and 2 have medians of 3,791 and 4,142 duels, and nine runs in ten take up
    # to 7,410 and 6,453. The bands are three standard errors each way: some 250 of the median, and
    # twice as much in the thin last tenth.
    runs = 60
    asked = Settings(ARXIV, [("top_two", {})], 20_000, runs, seed=1, until_sure=0.95)
    sure = simulate(asked).policies()[0].sure
    assert sure is not None
    assert 3_200 < sure.median < 4_700
    assert 5_400 < sure.p90 < 8_500
    assert (sure.never, sure.none) == (0, 0)
    assert sure.wrong < failure_limit(1 - sure.confidence, runs)
