"""Moves to other partitions, as an operator would make them: `streamduel repair repartition`."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from kafka import KafkaAdminClient

from tests.broker.fixture import Topics
from tests.faults.kafka_runs import EXPERIMENTS
from tests.faults.processes import streamduel
from tests.integration.repair_bed import (
    Configure,
    changed,
    duels,
    fold,
    produce,
    repaired,
    write_action,
)

pytestmark = pytest.mark.kafka


def test_a_repartitioning_is_shown_before_its_topics_exist(
    configure: Configure, topics: Topics
) -> None:
    run = configure("run")
    produce(run, 0, 300)
    fold(run)
    log, tag = topics(6), time.time_ns()

    def move(document: dict[str, Any]) -> None:
        document["source"] |= {
            "topic": log, "group": f"moved-{tag}", "control_topic": f"control-{tag}",
            "create_topics": True,
        }  # fmt: skip
        document["snapshots"]["topic"] = f"snapshots-{tag}"

    moved = changed(run, "moved.yaml", move)
    arguments = ("repartition", moved.config, "--from", run.config)
    shown = repaired(*arguments, "--dry-run").removesuffix("Nothing was written (--dry-run).\n")
    with KafkaAdminClient(bootstrap_servers=run.servers) as admin:
        assert not {it for it in admin.list_topics() if it.endswith(f"-{tag}")}
    assert repaired(*arguments) == f"{shown}Done; start the service.\n"
    fold(moved)
    assert duels(moved) == duels(run)


def test_a_repartitioning_warns_of_what_is_not_folded(configure: Configure, topics: Topics) -> None:
    log, controls = topics(6), topics(4)
    run = changed(
        configure("run"), "run.yaml", lambda it: it["source"].update(control_topic=controls)
    )
    produce(run, 0, 300)
    fold(run)
    source = {"topic": log, "group": f"moved-{log}", "control_topic": topics(6)}

    def move(document: dict[str, Any]) -> None:
        document["source"] |= source
        document["snapshots"]["topic"] = topics(6, compacted=True)

    moved = changed(run, "moved.yaml", move)
    arguments = ("repartition", moved.config, "--from", run.config, "--dry-run")
    assert "Warning" not in repaired(*arguments)
    produce(run, 300, 340)
    write_action(run, EXPERIMENTS[0], "pause")
    told = re.findall(
        r"Warning: (\d+) records? of partition \d of '(.*)' not", repaired(*arguments)
    )
    lost = {topic: sum(int(lag) for lag, name in told if name == topic) for _, topic in told}
    assert lost == {run.log: 40, controls: 1}
    with KafkaAdminClient(bootstrap_servers=run.servers) as admin:
        admin.delete_topics([run.log])
    assert "Warning: whether all former records are folded is unknown" in repaired(*arguments)


def test_snapshots_with_more_partitions_than_the_click_log_are_moved(
    configure: Configure, topics: Topics
) -> None:
    snapshots = topics(4, compacted=True)
    run = changed(configure("run"), "run.yaml", lambda it: it["snapshots"].update(topic=snapshots))
    produce(run, 0, 300)
    fold(run)
    with KafkaAdminClient(bootstrap_servers=run.servers) as admin:
        admin.create_partitions({snapshots: 5})
    done = streamduel("run", run.config, "--until-end")
    assert done.returncode == 1
    assert "repair repartition COPY --from CONFIG' moves the experiments" in done.stderr

    def move(document: dict[str, Any]) -> None:
        document["source"]["group"] = f"moved-{run.group}"
        document["snapshots"]["topic"] = topics(4, compacted=True)

    moved = changed(run, "moved.yaml", move)
    repaired("repartition", moved.config, "--from", run.config)
    produce(run, 300, 340)
    fold(moved)
    undisturbed = configure("undisturbed")
    fold(undisturbed)
    assert duels(moved) == duels(undisturbed)


@pytest.mark.parametrize("control_topic", [None, "control"])
def test_a_repartitioning_to_an_absent_topic_is_refused(
    configure: Configure, control_topic: str | None
) -> None:
    run = configure("run")
    log = f"absent-{time.time_ns()}"
    source = {
        "topic": log, "group": f"{run.group}-moved", "create_topics": True,
        "control_topic": control_topic and f"{control_topic}-{log}",
    }  # fmt: skip
    moved = changed(run, "moved.yaml", lambda it: it["source"].update(source))
    done = streamduel("repair", "repartition", moved.config, "--from", run.config, "--dry-run")
    assert done.returncode == 1
    assert done.stderr == (
        f"streamduel: source.topic '{log}' does not exist; create it before the repair, without "
        f"'streamduel run', which could begin with nothing.\n"
    )


def test_a_repartitioning_of_the_same_topic_needs_a_new_group(
    configure: Configure, topics: Topics
) -> None:
    run = configure("run")
    produce(run, 0, 300)
    fold(run)
    new = topics(4, compacted=True)
    same = changed(run, "same.yaml", lambda it: it["snapshots"].update(topic=new))
    done = streamduel("repair", "repartition", same.config, "--from", run.config, "--dry-run")
    assert done.returncode == 2
    assert f"source.group must be a new group (found '{run.group}' again)." in done.stderr
