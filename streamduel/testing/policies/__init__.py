"""The checks that every policy must pass, also a third party's.

A check raises AssertionError. With `pytest.register_assert_rewrite("streamduel.testing")` in your
conftest.py, pytest shows the values that differ. A test runs each check:

    from streamduel.testing.policies import CHECKS, PolicyUnderTest

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_policy(check):
        check(PolicyUnderTest(MyPolicy, {"width": 0.5}))

The class of the policy must be importable: a check starts another process.

>>> from streamduel import policies
>>> uniform = PolicyUnderTest(policies.get("uniform"))
>>> for check in CHECKS[:3]:
...     check(uniform)
"""

from __future__ import annotations

from streamduel.testing.policies import arms, observing, proposing, state
from streamduel.testing.policies.under_test import Check, PolicyUnderTest

__all__ = ["CHECKS", "PolicyUnderTest"]

CHECKS: list[Check] = [
    check
    for module in (state, observing, proposing, arms)
    for name, check in vars(module).items()
    if name.startswith("check_")
]
