"""What a policy's state promises: all of it, exact, independent, and bounded."""

from __future__ import annotations

import copy
import itertools
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import streamduel
from streamduel import policies
from streamduel.errors import PolicyError
from tests.contract.policies.rehearsal import (
    ARMS,
    Duel,
    duels,
    examples,
    fresh,
    play,
    tell,
    through_json,
)


def check_state_round_trip_is_exact(name: str) -> None:
    @examples
    @given(duels())
    def holds(told: list[Duel]) -> None:
        policy = fresh(name)
        tell(policy, told)
        policy.propose(len(told) % 9 + 1)
        state = policy.state_dict()
        restored = policies.from_state(through_json(state))
        assert type(restored) is type(policy)
        assert restored.state_dict() == state
        assert play(restored, 100, batch=2) == play(policy, 100, batch=2)
        assert restored.state_dict() == policy.state_dict()

    holds()


def check_interrupting_changes_nothing(name: str) -> None:
    undisturbed, interrupted = fresh(name), fresh(name)
    for part in range(40):
        play(undisturbed, 10, seed=part)
        play(interrupted, 10, seed=part)
        interrupted = policies.from_state(through_json(interrupted.state_dict()))
    assert interrupted.state_dict() == undisturbed.state_dict()


def check_restored_parameters_are_those_given(name: str) -> None:
    policy = fresh(name)
    restored = policies.from_state(through_json(policy.state_dict()))
    assert restored.parameters == policy.parameters
    declared = type(policy).declared.values()
    assert list(restored.parameters) == [
        each.name for each in declared if not each.optional or each.name in policy.parameters
    ]
    assert type(policy).check_parameters(policy.parameters) == policy.parameters


def check_copies_are_independent(name: str) -> None:
    policy = fresh(name)
    play(policy, 50)
    before = policy.state_dict()
    copies = [policy.clone(), copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))]
    for twin in copies:
        assert type(twin) is type(policy)
        assert twin.state_dict() == before
    futures = [play(twin, 50) for twin in copies]
    assert policy.state_dict() == before
    future = play(policy, 50)
    assert futures == [future] * len(copies)


def check_state_shares_nothing_with_the_policy(name: str) -> None:
    policy = fresh(name)
    play(policy, 50)
    before, loose = json.dumps(policy.state_dict()), policy.state_dict()
    _ruin(loose)
    policy.parameters.clear()
    assert json.dumps(policy.state_dict()) == before


def check_damaged_states_are_refused(name: str) -> None:
    state = fresh(name).state_dict()
    for key in state:
        with pytest.raises(PolicyError):
            policies.from_state({other: part for other, part in state.items() if other != key})
        with pytest.raises(PolicyError):
            policies.from_state({**state, key: "damaged"})
    with pytest.raises(PolicyError, match="other numbers of arms"):
        policies.from_state({**state, "n_arms": ARMS + 1})


def check_state_does_not_grow_with_duels(name: str) -> None:
    policy, random = fresh(name), np.random.RandomState(5)

    def observe(times: int) -> int:
        for _ in range(times):
            first, second = random.randint(ARMS, size=(2, 1000))
            policy.observe(first, second, random.randint(2, size=1000))
            policy.propose(3)
        return _leaves(policy.state_dict())

    early = observe(20)
    tracemalloc.start()
    observe(20)
    held = tracemalloc.get_traced_memory()[0]
    late = observe(60)
    grown = tracemalloc.get_traced_memory()[0] - held
    tracemalloc.stop()
    assert policy.duels == 100_000
    assert late <= early + ARMS * ARMS
    assert grown < 50_000, "bytes held outside of the state"


def check_equal_seeds_give_equal_duels_in_another_process(name: str) -> None:
    code = (
        "import json, sys; sys.path[:0] = json.loads(sys.argv[1]);"
        "from tests.contract.policies.rehearsal import fresh, play;"
        "policy = fresh(sys.argv[2]); print(json.dumps([play(policy, 300), policy.state_dict()]))"
    )
    root = [str(Path(streamduel.__file__).parents[1])]
    run = subprocess.run(
        [sys.executable, "-c", code, json.dumps(root), name],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        check=True,
        capture_output=True,
        text=True,
    )
    policy = fresh(name)
    assert json.loads(run.stdout) == [play(policy, 300), policy.state_dict()]


def check_different_seeds_give_different_duels(name: str) -> None:
    courses = [play(fresh(name, seed=seed), 40) for seed in (0, 1, 2, 2**80)]
    assert all(one != other for one, other in itertools.pairwise(courses))


def _leaves(state: Any) -> int:
    """How many values a state holds, lists and dictionaries taken apart."""
    if isinstance(state, dict):
        return sum(map(_leaves, state.values()))
    return sum(map(_leaves, state)) if isinstance(state, list) else 1


def _ruin(state: Any) -> None:
    """Overwrite every list and dictionary of a state from within."""
    for part in state.values() if isinstance(state, dict) else state:
        if isinstance(part, dict | list):
            _ruin(part)
    state.clear()


CHECKS = [check for name, check in list(globals().items()) if name.startswith("check_")]
