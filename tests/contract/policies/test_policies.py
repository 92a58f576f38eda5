"""Every registered policy keeps every promise that policies make."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streamduel import policies
from tests.contract.policies import check_arms, check_observing, check_proposing, check_state

CHECKS = check_state.CHECKS + check_observing.CHECKS + check_proposing.CHECKS + check_arms.CHECKS


@pytest.mark.parametrize("policy", policies.names())
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Callable[[str], None], policy: str) -> None:
    check(policy)


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
