"""Uniform: all pairs of different arms are equally likely."""

from __future__ import annotations

from collections import Counter

from streamduel.policies.uniform import Uniform


def test_ordered_pairs_equally_likely() -> None:
    pairs = Uniform(4, seed=5).propose(12_000).tolist()
    times = Counter(map(tuple, pairs))
    assert len(times) == 12
    # 12,000 draws of 12 pairs: 1,000 ± 4 · 30.3.
    assert all(abs(count - 1_000) < 122 for count in times.values())


def test_outcomes_do_not_change_proposals() -> None:
    observed, unchanged = Uniform(4, seed=5), Uniform(4, seed=5)
    observed.observe(0, [1, 2, 3][0], 1, 10**6)
    assert observed.propose(50).tolist() == unchanged.propose(50).tolist()
    assert observed.candidates() == 4
