"""The benchmark of segments: the preferences that it compares, and what its arrangements cost."""

from __future__ import annotations

import numpy as np

from benchmarks.segments import EACH, LATER, ONE, as_prior, outcomes, pairs_of_segments
from streamduel.preference.winners import condorcet_winner
from streamduel.simulation.matrices import ARXIV


def test_the_second_segment_has_another_best_arm_unless_they_are_equal() -> None:
    found = pairs_of_segments(ARXIV)
    best = {title: [condorcet_winner(each) for each in both] for title, both in found.items()}
    first = best["equal"][0]
    assert best["equal"] == [first, first]
    assert best["the two best swapped"][0] == best["in reverse order"][0] == first
    assert first not in {best["the two best swapped"][1], best["in reverse order"][1]}


def test_counts_become_a_prior_within_discount_and_cap() -> None:
    wins = np.array([[7.0, 100.0, 6000.0], [50.0, 0.0, 0.0], [3000.0, 0.0, 0.0]])
    assert as_prior(wins).tolist() == [[0, 10, 20], [5, 0, 0], [10, 0, 0]]


def test_one_experiment_for_each_segment_pays_where_they_differ() -> None:
    # In 60 runs of 100,000 impressions: 124 against 244 where the segments are equal, 3,614 against
    # 239 where their orders are opposite.
    found = pairs_of_segments(ARXIV)
    equal, reverse = outcomes(found["equal"], 0), outcomes(found["in reverse order"], 0)
    assert equal[ONE][0] < equal[EACH][0]
    assert equal[ONE][1] < min(equal[EACH][1], equal[LATER][1])
    assert reverse[ONE][0] > 5 * max(reverse[EACH][0], reverse[LATER][0])
