"""A cut of the mutations of `snapshot_mutations`, of which a million were run once."""

from __future__ import annotations

from tests.unit.stream.snapshot_mutations import run


def test_every_damage_is_refused_or_harmless() -> None:
    outcomes = run(6000, seed=7)
    assert sum(outcomes.values()) == 6000
    refused = sum(count for outcome, count in outcomes.items() if outcome.endswith("refused"))
    assert refused > 5500, "a digit may become itself, and an unused setting anything"
