"""The control records that `validate` and `control apply` read ahead of the service."""

from __future__ import annotations

from typing import Any

from streamduel.cli.pending import ACTIONS
from streamduel.testing.simulation.workload import ARMS, CONTROLS
from tests.unit.stream.folding import CONTROL, Partition, config, text


def read_ahead(partition: Partition) -> tuple[Any, ...]:
    """What a pending record may change before the next one is written."""
    experiment = partition.task.experiments["search"]
    frozen = experiment.decisions.guardrails.frozen
    return experiment.settings, list(experiment.roster.arms), frozen


def test_every_action_that_changes_settings_arms_or_the_frozen_pair_is_read() -> None:
    changing = set()
    for number, control in enumerate(CONTROLS):
        action = control["action"]
        arms = [*ARMS, *([control["arm"]] if action == "retire_arm" else [])]
        partition = Partition(config(search={"arms": list(dict.fromkeys(arms))}))
        if action == "unfreeze_pair":
            partition.fold(text(CONTROL, id="f", action="freeze_pair", a="bm25", b="ltr"))
        before = read_ahead(partition)
        partition.fold(text({**CONTROL, "id": f"c-{number}", **control}))
        if read_ahead(partition) != before:
            changing.add(action)
    assert changing == set(ACTIONS)
