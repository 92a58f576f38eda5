"""Every registered policy keeps every promise that policies make."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streamduel import policies
from tests.contract.policies import check_arms, check_observing, check_proposing, check_state
from tests.contract.policies.rehearsal import FORGETFUL

CHECKS = check_state.CHECKS + check_observing.CHECKS + check_proposing.CHECKS + check_arms.CHECKS
LASTING = {
    check_arms.check_a_new_arm_that_is_the_best_is_found,
    check_arms.check_what_has_found_its_winner_looks_again_at_a_new_arm,
    check_arms.check_without_the_best_arm_the_next_is_found,
    check_observing.check_self_duels_advance_time_and_teach_nothing,
    check_proposing.check_the_winner_is_found,
}
"""To find a winner, and to know it after a thousand duels that teach nothing, takes a memory of
more than some dozen duels."""
FORGETFUL_CASES = [
    pytest.param(check, name, id=f"{check.__name__}-{name}")
    for check in CHECKS
    for name, (_, parameters) in FORGETFUL.items()
    if check not in LASTING or parameters["window"] > 1_000
]


@pytest.mark.parametrize("policy", policies.names())
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Callable[[str], None], policy: str) -> None:
    check(policy)


@pytest.mark.parametrize(("check", "policy"), FORGETFUL_CASES)
def test_contract_of_the_forgetful(check: Callable[[str], None], policy: str) -> None:
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
