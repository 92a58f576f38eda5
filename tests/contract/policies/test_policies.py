"""Every policy passes the public contract checks."""

from __future__ import annotations

import tracemalloc

import pytest

from streamduel import policies
from streamduel.testing.policies import CHECKS, PolicyUnderTest
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
