"""A run gives the same result stepped, compiled and with stops."""

from __future__ import annotations

import numpy as np
import pytest

from streamduel import policies
from streamduel.policies import Policy
from streamduel.simulation import compiled
from streamduel.simulation import run as run_module
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.matrices import ARXIV
from streamduel.simulation.measurement import start_run
from streamduel.simulation.run import SteppedRun

T = 1200


def created(name: str, seed: int = 5) -> Policy:
    horizon = {"horizon": T} if "horizon" in policies.get(name).declared else {}
    return policies.create(name, 6, seed=seed, **horizon)


def by_hand(name: str, until: int) -> tuple[Policy, np.ndarray]:
    """One duel after the other, as a service would have it."""
    policy, environment = created(name), MatrixEnvironment(ARXIV, ties=0.1, seed=5)
    plays = np.zeros((6, 6), dtype=np.int64)
    for _ in range(until):
        first, second = policy.propose()[0].tolist()
        policy.observe(first, second, environment.outcome(first, second))
        plays[first, second] += 1
    return policy, plays


def future(policy: Policy) -> tuple[object, ...]:
    """All that can be told of a policy from outside: its counts, its draws, and what it does next.

    Two states may differ in what has been concluded already and what will be when asked.
    """
    environment, pairs = MatrixEnvironment(ARXIV, seed=9), []
    policy = policy.clone()
    state = policy.state_dict()
    for _ in range(300):
        first, second = policy.propose()[0].tolist()
        policy.observe(first, second, environment.outcome(first, second))
        pairs.append((first, second, policy.champion(), policy.candidates()))
    return state["counts"], state["generator"], pairs, policy.state_dict()["generator"]


@pytest.mark.parametrize("name", policies.names())
def test_a_stepped_run_is_the_policy_one_duel_at_a_time(name: str) -> None:
    expected, plays = by_hand(name, T)
    way = SteppedRun(created(name), MatrixEnvironment(ARXIV, ties=0.1, seed=5))
    for until in (1, 10, 10, 333, 7, T):
        way.advance(until)
    assert way.t == T
    assert (way.plays == plays).all()
    assert way.champion() == expected.champion()
    assert future(way.policy()) == future(expected)


@pytest.mark.parametrize("name", policies.names())
def test_stops_on_the_way_change_nothing(name: str) -> None:
    ways = []
    for stops in ([T], [1, 2, 3, 50, 500, T]):
        way = SteppedRun(created(name), MatrixEnvironment(ARXIV, seed=5))
        for until in stops:
            way.advance(until)
            assert way.t == until == way.plays.sum() == way.policy().duels
        ways.append(way)
    assert future(ways[0].policy()) == future(ways[1].policy())
    assert (ways[0].plays == ways[1].plays).all()


def test_plays_are_a_copy() -> None:
    way = SteppedRun(created("rucb"), MatrixEnvironment(ARXIV, seed=5))
    way.plays[:] = 7
    assert not way.plays.any()


@pytest.mark.parametrize("compiled", [True, False])
def test_wins_are_those_of_the_policy_and_cannot_be_changed(compiled: bool) -> None:
    environment = MatrixEnvironment(ARXIV, ties=0.1, seed=5)
    way = start_run(created("rucb"), environment, use_compiled=compiled)
    for until in (100, T):
        way.advance(until)
        assert (way.wins == way.policy().wins).all()
    with pytest.raises(ValueError, match="read-only"):
        way.wins[0, 1] = 7


def test_long_stretches_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SteppedRun(created("c2b"), MatrixEnvironment(ARXIV, seed=5))
    whole.advance(T)
    monkeypatch.setattr(run_module, "_MAX_FORESEEN", 7)
    cut = SteppedRun(created("c2b"), MatrixEnvironment(ARXIV, seed=5))
    cut.advance(T)
    assert cut.policy().state_dict() == whole.policy().state_dict()
    assert (cut.plays == whole.plays).all()


def test_the_fastest_run_ends_in_the_state_of_the_stepped_one() -> None:
    # So for every policy that has a kernel: tests/unit/simulation/compiled.
    quick, stepped = (
        start_run(created("rucb"), MatrixEnvironment(ARXIV, ties=0.1, seed=5), use_compiled=use)
        for use in (True, False)
    )
    assert type(stepped) is SteppedRun
    for way in (quick, stepped):
        way.advance(400)
        way.advance(T)
    assert quick.t == stepped.t
    assert quick.champion() == stepped.champion()
    assert (quick.plays == stepped.plays).all()
    assert quick.policy().state_dict() == stepped.policy().state_dict()


def test_without_numba_a_run_is_stepped(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(compiled, "import_module", fail)
    assert compiled.find("rucb") is None
    way = start_run(created("rucb"), MatrixEnvironment(ARXIV, seed=5))
    assert type(way) is SteppedRun


def test_an_unknown_name_has_no_kernel() -> None:
    assert compiled.find("nobody") is None
    assert compiled.find("nobody") is None
