"""Every policy passes the public contract checks."""

from __future__ import annotations

import math
import tracemalloc
from types import SimpleNamespace

import pytest

from streamduel import policies
from streamduel.errors import PolicyError
from streamduel.testing.policies import CHECKS, PolicyUnderTest
from streamduel.testing.policies.state import (
    check_equal_seeds_give_equal_duels_in_another_process,
    check_parameters_are_restored,
)
from streamduel.testing.policies.under_test import ARMS, Check

UNDER_TEST = {
    **{name: PolicyUnderTest(policies.get(name)) for name in policies.names()},
    # The small window forgets in every check; the large one remembers enough to find a winner.
    **{
        f"{name}, window {window}": PolicyUnderTest(policies.get(name), {"window": window})
        for name in ("rucb", "double_thompson")
        for window in (40, 1_500)
    },
}


@pytest.mark.parametrize("policy", UNDER_TEST)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Check, policy: str) -> None:
    check(UNDER_TEST[policy])


def test_a_state_that_json_cannot_hold_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies.get("uniform"), "save", lambda _: {"mean": math.nan})
    with pytest.raises(AssertionError, match=r"policy 'uniform' cannot be saved .*'mean': nan"):
        check_parameters_are_restored(UNDER_TEST["uniform"])


def test_an_error_in_another_process_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = SimpleNamespace(returncode=1, stdout=b"", stderr=b"ImportError: no module 'mine'")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: failed)
    with pytest.raises(AssertionError, match="'uniform' in another process: ImportError: no mod"):
        check_equal_seeds_give_equal_duels_in_another_process(UNDER_TEST["uniform"])


@pytest.mark.parametrize("policy", policies.names())
def test_a_damaged_state_of_its_own_is_refused(policy: str) -> None:
    kind, state = policies.get(policy), UNDER_TEST[policy].new().state_dict()
    own = state["own"]
    for key in own:
        others = {other: part for other, part in own.items() if other != key}
        with pytest.raises(PolicyError):
            kind.from_state({**state, "own": others})
        with pytest.raises(PolicyError):
            kind.from_state({**state, "own": {**own, key: "damaged"}})


@pytest.mark.parametrize("policy", policies.names())
def test_a_policy_describes_itself(policy: str) -> None:
    described = policies.get(policy)
    assert described.name == policy
    assert "\n" not in described.summary
    assert described.paper
    assert described.__doc__
    assert ">>>" in described.__doc__
    for parameter in described.declared.values():
        assert parameter.symbol
        assert parameter.meaning
        assert parameter.allowed
        assert parameter.required or parameter.default_text
        if parameter.default is not None:
            assert parameter.check(parameter.default) == parameter.default


@pytest.mark.parametrize("policy", UNDER_TEST)
def test_a_further_policy_takes_little_memory(policy: str) -> None:
    UNDER_TEST[policy].new()  # what all policies of a process share
    tracemalloc.start()
    try:
        kept = UNDER_TEST[policy].new(seed=1)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept.n_arms == ARMS
    assert taken < 65_536, "a thousand experiments would take more than 64 MiB"
