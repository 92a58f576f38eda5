"""Declared parameters: validation, error messages, signature and repr."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from streamduel import policies
from streamduel.errors import PolicyError
from streamduel.policies.base.parameter import (
    Choice,
    Flag,
    Parameter,
    Real,
    Whole,
    check_parameters,
)
from streamduel.policies.rucb import RUCB


class Declared:
    width = Real(symbol="w", meaning="a width", default=1.0, above=0, at_most=2, reason="so it is")
    rounds = Whole(symbol="B", meaning="rounds", at_least=1, below=10)
    eager = Flag(symbol="", meaning="hurry", default=False)
    rule = Choice("kl", "hoeffding", symbol="", meaning="which rule", default="kl")
    limit = Whole(symbol="", meaning="a limit", at_least=5, optional=True)


DECLARED: dict[str, Parameter[Any]] = {
    name: item for name, item in vars(Declared).items() if isinstance(item, Parameter)
}


def check(**given: object) -> dict[str, Any]:
    return check_parameters("declared", DECLARED, {"rounds": 3, **given})


def test_defaults_for_missing_parameters() -> None:
    assert check() == {"width": 1.0, "rounds": 3, "eager": False, "rule": "kl"}


def test_optional_parameters_are_off_by_default() -> None:
    assert not Declared.limit.required
    assert Declared.limit.default_text == "none"
    assert check(limit=None) == check()
    assert check(limit=5)["limit"] == 5
    assert RUCB(3).window is None
    assert RUCB(3, window=16).window == 16


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"width": 2}, 2.0),
        ({"width": np.float32(0.5)}, 0.5),
        ({"rounds": 9}, 9),
        ({"rounds": 1e0}, 1),
        ({"rounds": np.int16(4)}, 4),
        ({"eager": True}, True),
        ({"eager": np.bool_(True)}, True),
        ({"rule": "hoeffding"}, "hoeffding"),
    ],
)
def test_values_converted_to_parameter_type(given: dict[str, object], kept: object) -> None:
    [name] = given
    value = check(**given)[name]
    assert value == kept
    assert type(value) is type(kept)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"width": 0}, "policy.width must be greater than 0 and at most 2 (found 0.0); so it is."),
        ({"width": 3}, "policy.width must be greater than 0 and at most 2 (found 3.0); so it is."),
        ({"width": "1"}, "policy.width must be a finite number (found '1')."),
        ({"width": True}, "policy.width must be a finite number (found true)."),
        ({"width": None}, "policy.width must be a finite number (found nothing)."),
        ({"width": [0.5] * 9}, "policy.width must be a finite number (found a list of 9)."),
        ({"width": float("nan")}, "policy.width must be a finite number (found nan)."),
        ({"width": float("inf")}, "policy.width must be a finite number (found inf)."),
        ({"width": 1j}, "policy.width must be a finite number (found 1j)."),
        ({"rounds": 0}, "policy.rounds must be at least 1 and less than 10 (found 0)."),
        ({"rounds": 10}, "policy.rounds must be at least 1 and less than 10 (found 10)."),
        ({"rounds": 2.5}, "policy.rounds must be an integer (found 2.5)."),
        ({"rounds": float("inf")}, "policy.rounds must be an integer (found inf)."),
        ({"rounds": False}, "policy.rounds must be an integer (found false)."),
        ({"eager": 1}, "policy.eager must be true or false (found 1)."),
        ({"eager": "yes"}, "policy.eager must be true or false (found 'yes')."),
        ({"rule": 7}, "policy.rule must be one of 'kl', 'hoeffding' (found 7)."),
        (
            {"rule": "hoefding"},
            "policy.rule must be one of 'kl', 'hoeffding' (found 'hoefding')"
            "; did you mean 'hoeffding'?",
        ),
        (
            {"widht": 1},
            "policy 'declared' has no parameter 'widht'; did you mean 'width'?"
            " It has 'width', 'rounds', 'eager', 'rule', 'limit'.",
        ),
        (
            {"zzz": 1},
            "policy 'declared' has no parameter 'zzz'; it has 'width', 'rounds', 'eager', 'rule',"
            " 'limit'.",
        ),
    ],
)
def test_messages_name_found_and_allowed_values(given: dict[str, object], message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        check(**given)
    assert str(refused.value) == message


def test_integer_beyond_floats_rejected() -> None:
    with pytest.raises(PolicyError, match="must be a finite number"):
        check(width=10**400)


def test_missing_required_parameter_rejected() -> None:
    with pytest.raises(PolicyError) as refused:
        check_parameters("declared", DECLARED, {})
    assert str(refused.value) == (
        "policy 'declared' needs policy.rounds, an integer at least 1 and less than 10 (rounds)."
    )


class Limitless:
    real = Real(symbol="x", meaning="any", default=0.0)
    whole = Whole(symbol="n", meaning="any", default=0)


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        (Limitless.real, 1e-300, "policy.real must be 0 or at least 1e-15 (found 1e-300)."),
        (Limitless.real, -1e308, "policy.real must be at most 1e+15 (found -1e+308)."),
        (
            Limitless.whole,
            10**400,
            f"policy.whole must be at most 2.2518e+15 (found 1{'0' * 78}…).",
        ),
    ],
)
def test_extreme_numbers_rejected(parameter: Parameter[Any], value: object, message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parameter.check(value)
    assert str(refused.value) == message
    assert (parameter.check(0), parameter.check(10**12)) == (0, 10**12)


def test_descriptions_of_allowed_values() -> None:
    assert [parameter.allowed for parameter in DECLARED.values()] == [
        "a finite number greater than 0 and at most 2",
        "an integer at least 1 and less than 10",
        "true or false",
        "one of 'kl', 'hoeffding'",
        "an integer at least 5",
    ]


def test_descriptions_of_defaults() -> None:
    derived = Real(symbol="δ", meaning="", derived=("1 / T", lambda _: 0.1), optional=True)
    parameters = [*DECLARED.values(), derived]
    assert [each.default_text for each in parameters] == [
        "1.0", "", "false", "kl", "none", "1 / T",
    ]  # fmt: skip


def test_signature_and_repr_show_parameters() -> None:
    shown = "(n_arms, *, seed=0, alpha=0.51, champion_set=False, window=None)"
    assert str(inspect.signature(RUCB)) == shown
    policy = RUCB(4, alpha=1)
    assert (policy.alpha, policy.champion_set) == (1.0, False)
    assert RUCB.alpha.symbol == "α"
    assert repr(policy) == "RUCB(n_arms=4, alpha=1.0, champion_set=False)"
    with pytest.raises(AttributeError, match="cannot be changed"):
        policy.alpha = 2.0


def test_policies_by_name() -> None:
    assert policies.names() == sorted(policies.names())
    assert policies.get("rucb") is RUCB
    assert isinstance(policies.create("rucb", 3, seed=1, alpha=0.7), RUCB)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rubc", "unknown policy 'rubc'; did you mean 'rucb'? 'streamduel policies' lists all."),
        ("zzz", "unknown policy 'zzz'; 'streamduel policies' lists all."),
        (None, "unknown policy 'None'; 'streamduel policies' lists all."),
        ([], "unknown policy '[]'; 'streamduel policies' lists all."),
    ],
)
def test_unknown_policy_rejected(name: Any, message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        policies.create(name, 3)
    assert str(refused.value) == message
    with pytest.raises(PolicyError):
        policies.from_state({**RUCB(3).state_dict(), "policy": name})


@pytest.mark.parametrize("state", [None, [], "rucb", {}, {"n_arms": 3}])
def test_invalid_states_rejected(state: Any) -> None:
    with pytest.raises(PolicyError, match="with the key 'policy'"):
        policies.from_state(state)


def test_state_of_another_policy_rejected() -> None:
    with pytest.raises(PolicyError, match="a state of policy 'other' does not fit 'rucb'"):
        RUCB.from_state({**RUCB(3).state_dict(), "policy": "other"})
