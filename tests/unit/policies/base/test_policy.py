"""What the base class provides for a policy with only the required methods."""

from __future__ import annotations

import json

import numpy as np
import pytest

from streamduel import policies
from streamduel.policies import Policy
from streamduel.policies.base.parameter import Whole
from streamduel.preference.counts import MAX_DUELS


class Uniform(Policy):
    """Any two different arms: the smallest possible policy."""

    name = "uniform"
    summary = "any two different arms"
    paper = "none"

    def _choose(self, t: int) -> tuple[int, int]:
        first, second = self._generator.permutation(self.n_arms)[:2]
        return first, second

    def candidates(self) -> int:
        return self.n_arms


class Patient(Uniform):
    """A policy of the family with an additional parameter."""

    name = "patient"

    rounds = Whole(symbol="B", meaning="rounds", at_least=1)


def test_smallest_policy_observes_and_restores() -> None:
    policy = Uniform(4, seed=1)
    pairs = policy.propose(20)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    policy.observe(pairs[:, 0], pairs[:, 1], (pairs[:, 0] < pairs[:, 1]).astype(float))
    policy.observe(0, 3, 0.5, 2)
    assert policy.duels == 22
    assert policy.champion() == 0
    restored = Uniform.from_state(json.loads(json.dumps(policy.state_dict())))
    assert restored.propose(9).tolist() == policy.propose(9).tolist()
    assert restored.champion() == 0


def test_in_flight_marks_removed_when_choosing_fails() -> None:
    marks: list[tuple[int, int, int]] = []

    class Failing(Uniform):
        name = "failing"

        def _choose(self, t: int) -> tuple[int, int]:
            if t > 3:
                raise KeyboardInterrupt
            return 2, 1

        def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
            marks.append((first, second, in_flight))

    with pytest.raises(KeyboardInterrupt):
        Failing(3).propose(5)
    assert marks == [(2, 1, 1), (2, 1, 2), (2, 1, 3), (1, 2, 0)]


def test_subclass_adds_parameters() -> None:
    assert list(Uniform.declared) == []
    assert list(Patient.declared) == ["rounds"]
    assert Patient(3, rounds=4).rounds == 4


def test_no_more_duels_ahead_than_can_be_observed() -> None:
    class Finished(Uniform):
        name = "finished"

        def _choose(self, t: int) -> tuple[int, int]:
            return 2, 2

        def _winner(self) -> int:
            return 2

    pairs, times = Finished(3).propose_ahead(2**63)
    assert (pairs.tolist(), times.tolist()) == ([[2, 2]], [MAX_DUELS])


def test_class_registered_by_import_only() -> None:
    assert {"patient", "failing"}.isdisjoint(policies.names())
    assert policies.get("uniform") is policies.Uniform  # and not the one above


def test_champion_among_equals_depends_on_seed() -> None:
    champions = np.bincount([Uniform(4, seed=seed).champion() for seed in range(400)])
    assert (abs(champions - 100) < 35).all()
