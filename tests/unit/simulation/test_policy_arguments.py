"""Policies and parameters of the command line."""

from __future__ import annotations

from typing import Any

import pytest

from streamduel.errors import ConfigurationError, PolicyError
from streamduel.simulation.policy_arguments import read_policies, read_value
from streamduel.simulation.settings import Settings

TWO = [[0.5, 0.7], [0.3, 0.5]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7), ("-3", -3), ("0.6", 0.6), ("1e6", 1e6), ("true", True), ("False", False),
        ("hoeffding", "hoeffding"), ("", ""),
    ],
)  # fmt: skip
def test_values_have_their_types(text: str, value: object) -> None:
    found = read_value(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("wanted", "assignments", "entries"),
    [
        (["rucb"], [], [("rucb", {})]),
        (["rucb"], ["alpha=0.6"], [("rucb", {"alpha": 0.6})]),
        # A parameter goes to every policy that has it.
        (
            ["rucb", "uniform", "ccb"], ["alpha=0.6"],
            [("rucb", {"alpha": 0.6}), ("uniform", {}), ("ccb", {"alpha": 0.6})],
        ),
        # One policy's own goes before that of all, in whichever order they are given.
        (
            ["rucb", "ccb"], ["rucb.alpha=0.8", "alpha=0.6"],
            [("rucb", {"alpha": 0.8}), ("ccb", {"alpha": 0.6})],
        ),
        (
            ["rucb:alpha=0.9,champion_set=true", "rucb"], ["rucb.alpha=0.8"],
            [("rucb", {"alpha": 0.9, "champion_set": True}), ("rucb", {"alpha": 0.8})],
        ),
        (
            ["c2b"], ["elimination=kl_anytime", "rounds=7"],
            [("c2b", {"elimination": "kl_anytime", "rounds": 7})],
        ),
    ],
)  # fmt: skip
def test_each_policy_gets_its_parameters(
    wanted: list[str], assignments: list[str], entries: list[tuple[str, dict[str, Any]]]
) -> None:
    assert read_policies(wanted, assignments) == entries


@pytest.mark.parametrize(
    ("wanted", "assignments", "sentence"),
    [
        (
            ["rucb"], ["alhpa=0.6"],
            "no simulated policy has a parameter 'alhpa'; did you mean 'alpha'? It has 'alpha',"
            " 'champion_set', 'window'.",
        ),
        (
            ["rucb"], ["nonsense=0.6"],
            "no simulated policy has a parameter 'nonsense'; it has 'alpha', 'champion_set',"
            " 'window'.",
        ),
        (
            ["rucb", "uniform"], ["nonsense=0.6"],
            "no simulated policy has a parameter 'nonsense'; they have 'alpha', 'champion_set',"
            " 'window'.",
        ),
        (
            ["rucb"], ["rucbb.alpha=0.6"],
            "--param rucbb.alpha is for a policy that is not simulated; there are 'rucb'; did you"
            " mean 'rucb'?",
        ),
        (
            ["rucb"], ["ccb.alpha=0.6"],
            "--param ccb.alpha is for a policy that is not simulated; there are 'rucb'.",
        ),
        (
            ["rucb"], ["alpha"],
            "a parameter must be written as alpha=0.6, or rucb.alpha=0.6 for one policy alone"
            " (found 'alpha').",
        ),
        (
            ["rucb:alpha"], [],
            "a parameter must be written as alpha=0.6, or rucb.alpha=0.6 for one policy alone"
            " (found 'alpha').",
        ),
        (["rucb"], ["alpha=0.6", "alpha=0.7"], "--param has 'alpha' twice."),
        (["rucb:alpha=1,alpha=2"], [], "--policy rucb:alpha=1,alpha=2 has 'alpha' twice."),
    ],
)  # fmt: skip
def test_mistakes_are_named(wanted: list[str], assignments: list[str], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        read_policies(wanted, assignments)
    assert str(error.value) == sentence


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(PolicyError, match="unknown policy 'rubc'; did you mean 'rucb'"):
        read_policies(["rubc"], [])


def test_labels_of_equal_names_show_the_differences() -> None:
    entries = read_policies(["rucb", "rucb:alpha=0.8", "rucb:champion_set=true", "uniform"], [])
    settings = Settings(TWO, entries, horizon=10, runs=1, seed=0)
    assert settings.labels() == [
        "rucb (alpha=0.51, champion_set=false)",
        "rucb (alpha=0.8, champion_set=false)",
        "rucb (alpha=0.51, champion_set=true)",
        "uniform",
    ]


@pytest.mark.parametrize(
    ("entry", "label"),
    [
        ("rucb", "rucb"),
        ("rucb:alpha=0.8", "rucb (alpha=0.8)"),
        ("rucb:alpha=0.51", "rucb"),
        ("rucb:champion_set=true,alpha=0.8", "rucb (alpha=0.8, champion_set=true)"),
        # What follows from the horizon of the simulation, or from another parameter, is no choice.
        ("rmed2fh", "rmed2fh"),
        ("c2b:horizon=10", "c2b"),
        ("c2b:horizon=99999", "c2b (horizon=99999)"),
    ],
)
def test_labels_show_parameters_that_are_not_defaults(entry: str, label: str) -> None:
    settings = Settings(TWO, read_policies([entry, "uniform"], []), horizon=10, runs=1, seed=0)
    assert settings.labels() == [label, "uniform"]
