"""How many impressions a client has: estimated, counted once, and over restarts."""

from __future__ import annotations

import json
import random

import pytest

from streamduel.stream.client_sketch import ClientSketch
from streamduel.testing import Record
from tests.unit.stream.folding import CONTROL, DUEL, INTERLEAVING, Partition, config, text
from tests.unit.stream.restarts import run
from tests.unit.stream.test_attribution import IMPRESSION, START


def sketch(partition: Partition) -> ClientSketch:
    return partition.task.experiments["search"].impressions.clients


@pytest.mark.parametrize(
    "sizes", [[1] * 5000, [50] * 200, [1] * 3000 + [500] * 5, [10_000]], ids=str
)
def test_the_estimate_is_near_the_truth(sizes: list[int]) -> None:
    """Within 0.45: five standard errors of a sketch with 256 counters."""
    found = ClientSketch()
    for number, size in enumerate(sizes):
        for _ in range(size):
            found.add(f"user-{number}")
    truth = sum(size * size for size in sizes) / sum(sizes)
    assert found.impressions == sum(sizes)
    assert found.per_client == pytest.approx(truth, rel=0.45)
    assert ClientSketch(found.state()).per_client == found.per_client


def test_duels_that_name_a_client_are_counted() -> None:
    partition = Partition()
    partition.fold(*(text(DUEL, id=f"{at % 40}", client="u") for at in range(50)))
    partition.fold(text(DUEL, id="tie", winner="tie", client="u"), text(DUEL, id="none"))
    assert (sketch(partition).impressions, sketch(partition).per_client) == (41, 41.0)


def test_impressions_that_name_a_client_are_counted() -> None:
    partition = Partition(config(search={"max_per_client": 2}))
    partition.fold(
        text(IMPRESSION, client="u"),
        text(INTERLEAVING, client="u"),
        text(INTERLEAVING, client="u"),  # a duplicate
        text(INTERLEAVING, id="3", client="u"),  # capped
        text(INTERLEAVING, id="4"),
    )
    assert (sketch(partition).impressions, sketch(partition).per_client) == (2, 2.0)
    partition.fold(text(CONTROL, action="reset"))
    assert sketch(partition).impressions == 0


def test_without_clients_the_state_is_that_of_earlier_releases() -> None:
    partition = Partition()
    partition.fold(text(INTERLEAVING))
    assert "clients" not in partition.task.experiments["search"].state()


def test_a_restart_counts_no_impression_again() -> None:
    rng = random.Random(1)
    log = [
        Record(at, text(IMPRESSION, id=f"i-{at}", client=f"u-{rng.randrange(9)}"), START + at)
        for at in range(100)
    ]
    undisturbed = run(config(), log, [], set())
    cuts = list(range(1, len(log), 9))
    assert run(config(), log, cuts, set(cuts)) == undisturbed
    state = json.loads(undisturbed.entries["experiment/search"])["state"]
    assert state["clients"]["impressions"] == 100
