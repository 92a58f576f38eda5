"""Checks of the state of a policy: complete, exact, independent and bounded."""

from __future__ import annotations

import copy
import gc
import itertools
import json
import pickle
import tracemalloc
from typing import Any, Final

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies import Policy
from streamduel.testing.other_process import in_another_process
from streamduel.testing.policies.under_test import (
    ARMS,
    PolicyUnderTest,
    duels,
    examples,
    observe,
    play,
    raises,
    through_json,
)

_PROPOSALS: Final = 500
"""Enough for an object that each leaves to show; all policies together take some 15 s for them."""


def check_state_round_trip_is_exact(tested: PolicyUnderTest) -> None:
    """A restored policy continues identically."""
    for luck in examples():
        observed = duels(luck)
        policy = tested.new()
        _answers(policy)  # a policy may keep an answer, but not after what changes it
        observe(policy, observed)
        policy.propose(len(observed) % 9 + 1)
        state = policy.state_dict()
        restored = tested.kind.from_state(through_json(state))
        assert type(restored) is type(policy)
        assert restored.state_dict() == state
        assert _answers(restored) == _answers(policy)
        assert play(restored, 100, batch=2) == play(policy, 100, batch=2)
        assert restored.state_dict() == policy.state_dict()
        assert _answers(restored) == _answers(policy)


def _answers(policy: Policy) -> tuple[Any, ...]:
    """What a policy can be asked."""
    remaining, arms = policy.remaining(), [f"arm-{number}" for number in range(policy.n_arms)]
    return (
        policy.champion(),
        policy.candidates(),
        policy.finished,
        remaining if remaining is None else remaining.tolist(),
        [policy.explain(*pair, arms) for pair in itertools.permutations(range(policy.n_arms), 2)],
    )


def check_restoring_often_changes_nothing(tested: PolicyUnderTest) -> None:
    """Restoring many times changes nothing."""
    undisturbed, interrupted = tested.new(), tested.new()
    for part in range(40):
        play(undisturbed, 10, seed=part)
        play(interrupted, 10, seed=part)
        interrupted = tested.kind.from_state(through_json(interrupted.state_dict()))
    assert interrupted.state_dict() == undisturbed.state_dict()


def check_parameters_are_restored(tested: PolicyUnderTest) -> None:
    """The parameters are part of the state."""
    policy = tested.new()
    restored = tested.kind.from_state(through_json(policy.state_dict()))
    assert restored.parameters == policy.parameters
    declared = type(policy).declared.values()
    assert list(restored.parameters) == [
        each.name for each in declared if not each.optional or each.name in policy.parameters
    ]
    assert type(policy).check_parameters(policy.parameters) == policy.parameters


def check_copies_are_independent(tested: PolicyUnderTest) -> None:
    """Clones, copies and pickles are independent."""
    policy = tested.new()
    play(policy, 50)
    before = policy.state_dict()
    copies = [
        policy.clone(),
        copy.deepcopy(policy),
        pickle.loads(pickle.dumps(policy)),  # noqa: S301 - its own pickle
    ]
    for twin in copies:
        assert type(twin) is type(policy)
        assert twin.state_dict() == before
    futures = [play(twin, 50) for twin in copies]
    assert policy.state_dict() == before
    future = play(policy, 50)
    assert futures == [future] * len(copies)


def check_state_shares_nothing_with_the_policy(tested: PolicyUnderTest) -> None:
    """The returned state is a copy."""
    policy = tested.new()
    play(policy, 50)
    before, loose = json.dumps(policy.state_dict()), policy.state_dict()
    _ruin(loose)
    policy.parameters.clear()
    assert json.dumps(policy.state_dict()) == before


def check_damaged_states_are_refused(tested: PolicyUnderTest) -> None:
    """A state with missing or wrong parts is refused."""
    state = tested.new().state_dict()
    for key in state:
        with raises(PolicyError):
            tested.kind.from_state({other: part for other, part in state.items() if other != key})
        with raises(PolicyError):
            tested.kind.from_state({**state, key: "damaged"})
    with raises(PolicyError, "other numbers of arms"):
        tested.kind.from_state({**state, "n_arms": ARMS + 1})


def check_state_does_not_grow_with_duels(tested: PolicyUnderTest) -> None:
    """State and memory do not grow with the number of duels."""
    _growth(tested)  # fills the caches that all policies share
    early, late, held = _growth(tested)
    assert late <= early + ARMS * ARMS
    assert held < 50_000, "bytes held outside of the state"


def _growth(tested: PolicyUnderTest) -> tuple[int, int, int]:
    """State size after 20,000 and after 100,000 duels, and the bytes that the last 60,000 add."""
    policy, random = tested.new(), np.random.RandomState(5)

    def observe(times: int) -> int:
        for _ in range(times):
            first, second = random.randint(ARMS, size=(2, 1000))
            policy.observe(first, second, random.randint(2, size=1000))
            policy.propose(3)
        return _leaves(policy.state_dict())

    early = observe(20)
    tracemalloc.start()
    try:
        observe(20)
        before = tracemalloc.get_traced_memory()[0]
        late = observe(60)
        return early, late, tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def check_memory_does_not_grow_with_proposals(tested: PolicyUnderTest) -> None:
    """Proposals leave no objects in memory, neither in the policy nor in its class."""
    if not tested.remembers:  # what is cached by count changes all the time in a small window
        return
    _held(tested)  # fills the caches that all policies share
    held = _held(tested)
    # An integer in a list takes 40 bytes.
    assert held < 24 * _PROPOSALS, f"{_PROPOSALS} proposals leave {held} bytes in memory"


def _held(tested: PolicyUnderTest) -> int:
    """The bytes that proposals leave, one at a time, after duels that fill a window."""
    random = np.random.RandomState(5)
    first, second = random.randint(ARMS, size=(2, 5_000))
    tracemalloc.start()  # before all that proposals may replace
    try:
        policy = tested.new()
        policy.observe(first, second, random.randint(2, size=5_000))
        play(policy, 200, edge=0)
        gc.collect()  # cycles that it would free are no memory that grows
        before = tracemalloc.get_traced_memory()[0]
        play(policy, _PROPOSALS, edge=0)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def check_memory_is_quadratic_in_the_number_of_arms(tested: PolicyUnderTest) -> None:
    """With 200 arms, a policy needs less memory than 64 arrays of K x K numbers."""
    n_arms = 200
    tested.new(n_arms)  # what all policies share
    tracemalloc.start()
    try:
        policy = tested.new(n_arms)
        policy.propose(3)
        policy.observe([0, 1, 2], [3, 4, 5], [1, 0, 1])
        policy.propose()
        policy.champion()
        policy.candidates()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 8 * n_arms**2, f"{n_arms} arms need {peak} bytes"


def check_equal_seeds_give_equal_duels_in_another_process(tested: PolicyUnderTest) -> None:
    """Equal seeds give equal choices in another process, with another hash seed."""
    policy = tested.new()
    others, state_there = in_another_process(f"policy '{policy.name}'", _course, policy)
    choices, state = _course(policy)
    for number, (here, there) in enumerate(zip(choices, others, strict=True)):
        assert here == there, f"choice {number}"  # pytest takes minutes to show thousands together
    assert state == state_there


def _course(policy: Policy) -> tuple[list[list[int]], dict[str, Any]]:
    """What the policy chooses, and its state afterwards."""
    return play(policy, 3_000), policy.state_dict()


def check_different_seeds_give_different_duels(tested: PolicyUnderTest) -> None:
    """Different seeds give different choices."""
    courses = [play(tested.new(seed=seed), 40) for seed in (0, 1, 2, 2**80)]
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
