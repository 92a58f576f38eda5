"""A configuration that names no policy: a new experiment gets the default, others keep theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamduel.policies import DEFAULT
from streamduel.stream import settings_change
from streamduel.stream.replay import replay
from streamduel.testing import Broker, MemoryOutlet
from streamduel.testing.broker import run
from tests.unit.stream.folding import CONTROL, DUEL, Partition, config, text
from tests.unit.stream.sealing import changed

NEW_KEYS = ("aim", "smallest_difference")
"""Settings that releases with another default policy did not have."""


def older(**settings: Any) -> dict[str, bytes]:
    """The snapshot of a release whose default was `rucb`, with one duel."""
    partition = Partition(config(search={"policy": {"name": "rucb"}, **settings}))
    partition.fold(text(DUEL))

    def without_new_keys(entry: dict[str, Any]) -> None:
        for key in NEW_KEYS:
            del entry["settings"][key]

    return changed(partition.entries, "experiment/search", without_new_keys)


def policy(partition: Partition) -> str:
    return partition.task.experiments["search"].policy.name


def test_a_new_experiment_gets_the_default() -> None:
    assert policy(Partition()) == DEFAULT


@pytest.mark.parametrize("search", [{}, {"policy": {"name": "rucb"}}], ids=["unnamed", "named"])
def test_an_older_experiment_keeps_its_policy(search: dict[str, Any]) -> None:
    partition = Partition(config(search=search), entries=older())
    assert policy(partition) == "rucb"
    partition.fold(text(DUEL, id="2"))
    settings = json.loads(partition.entries["experiment/search"])["settings"]
    assert settings["policy"] == {"name": "rucb"}
    partition.fold(text(CONTROL, action="reset"))
    assert policy(partition) == policy(partition.restarted()) == "rucb"


def differences(partition: Partition) -> list[str]:
    return [str(it) for it in settings_change.pending(partition.task.experiments["search"])]


def test_its_parameters_differ() -> None:
    entries = older(policy={"name": "rucb", "window": 500})
    same = Partition(config(search={"policy": {"window": 500}}), entries=entries)
    assert (policy(same), differences(same)) == ("rucb", [])
    other = Partition(config(search={"policy": {"window": 50}}), entries=entries)
    assert policy(other) == "rucb"
    assert differences(other) == [
        'policy: {"name":"rucb","window":500} → {"name":"rucb","window":50}'
    ]


@pytest.mark.parametrize(
    "running", [{"name": "rucb", "window": 500}, {"name": "rmed2fh", "horizon": 1000}]
)
def test_without_a_policy_its_parameters_stay(running: dict[str, Any]) -> None:
    """The section may have been removed, or a control record may have set the policy."""
    partition = Partition(config(search={"slate": 2}), entries=older(policy=running))
    assert differences(partition) == ["slate: 1 → 2"]


def test_another_policy_that_is_named_differs() -> None:
    other = Partition(config(search={"policy": {"name": DEFAULT}}), entries=older())
    assert policy(other) == "rucb"
    assert differences(other) == [f'policy: {{"name":"rucb"}} → {{"name":"{DEFAULT}"}}']


def test_another_aim_differs() -> None:
    other = Partition(config(search={"aim": "earn"}), entries=older())
    assert differences(other) == ['aim: "identify" → "earn"']


def test_a_replay_takes_the_policy_of_the_snapshot() -> None:
    broker = Broker([text(DUEL, id=str(number)) for number in range(40)])
    run(config(search={"policy": {"name": "rucb"}}), broker)
    verdict = replay(unnamed := config(), broker.source(), MemoryOutlet(broker))
    assert (verdict.difference, verdict.records) == (None, 40)
    assert not unnamed.experiments["search"].policy.is_named
