"""Reports on the newest snapshots of several partitions."""

from __future__ import annotations

from streamduel.config import Config
from streamduel.connector import Snapshot
from streamduel.stream.inspection import inspect
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask
from streamduel.testing import Broker, Record, duel, encode
from tests.unit.stream.folding import Partition, config

ADS = {"arms": ["x", "y"], "owner": "team ads"}
SEARCH = {"arms": ["bm25", "ltr-v1"], "owner": "team search"}


def made_of(**experiments: object) -> Config:
    return config().model_validate(
        {"source": {}, "sink": {}, "snapshots": {}, "experiments": experiments}
    )


def test_the_counts_of_all_partitions_are_added() -> None:
    """Whatever they are of, and also those of a partition without experiments."""
    broker, made = Broker([]), config(source={"format": "ubi"})
    log = ClickLog("clicks", 2, lambda experiment: 0)
    login = encode({"action_name": "login", "query_id": "q"})
    scroll = encode({"action_name": "scroll", "query_id": "q"})
    for partition, values in enumerate(([login, scroll, b"?"], [login, b"?", b"?", b"[]"])):
        task = PartitionTask(made, log, partition)
        task.begin(0)
        task.fold([Record(at, value, 1000) for at, value in enumerate(values)])
        broker.snapshots[partition] = Snapshot(task.next_offset, task.take_commit().entries)
    report = inspect(broker.outlet(), made.experiments)
    assert sorted(report.ignored.values()) == [1, 2]
    assert report.dead_letters == {"invalid_json": 3, "invalid_record": 1}


def test_an_experiment_that_is_configured_again_is_not_until_the_service_continues_it() -> None:
    both, one = made_of(ads=ADS, search=SEARCH), made_of(search=SEARCH)
    partition = Partition(one, entries=Partition(both).entries)
    partition.fold(b"?")
    broker = Broker([], {0: Snapshot(1, partition.entries)})
    for made in (one, both):
        found = inspect(broker.outlet(), made.experiments).experiments
        told = {name: (it.configured, it.owner) for name, it in found.items()}
        assert told == {"ads": (False, None), "search": (True, "team search")}


def test_the_status_is_that_of_the_pairs_in_force() -> None:
    policy = {"name": "rmed2fh", "horizon": 50}
    partition = Partition(made_of(ads=ADS | {"policy": policy, "decide_every": 40}))
    shown = []
    for numbers in (range(50), range(50, 79), range(79, 80)):  # decisions follow duels 40 and 80
        partition.fold(*(duel("ads", number, "x", "y", "a") for number in numbers))
        broker = Broker([], {0: Snapshot(numbers.stop, partition.entries)})
        shown.append(inspect(broker.outlet(), {}).experiments["ads"].status)
    assert shown == ["running", "running", "finished"]
