"""Log events of experiments: each once, when a commit has made it visible."""

from __future__ import annotations

import json
from typing import Any

import pytest
from structlog.typing import EventDict

from streamduel.monitoring.experiment_events import CHAMPION_SECONDS, ExperimentEvents
from streamduel.stream.task import PartitionTask
from tests.unit.monitoring.fold import Clock, config, duels, fold, task

NUMBERS = iter(range(10**6))


def control(action: str, **fields: Any) -> bytes:
    record = {"type": "control", "id": f"c-{next(NUMBERS)}", "experiment": "search"}
    return json.dumps({**record, "action": action, **fields}).encode()


def won(a: str, b: str, wins_a: int, wins_b: int) -> bytes:
    record = {"type": "duels", "id": f"d-{next(NUMBERS)}", "experiment": "search", "ties": 0}
    return json.dumps({**record, "a": a, "b": b, "wins_a": wins_a, "wins_b": wins_b}).encode()


class Experiment:
    """An experiment whose events are read after every commit."""

    def __init__(self, logged: list[EventDict], **settings: Any) -> None:
        self.logged, self.clock = logged, Clock()
        self.observer = ExperimentEvents(self.clock)
        self.task: PartitionTask = task(config({"search": ("x", "y", "z")}, **settings))
        self.observer.restored(self.task)

    def events(self, *records: bytes) -> list[EventDict]:
        fold(self.task, *records)
        self.task.take_commit()
        assert self.logged == [], "nothing before the commit"
        self.observer.committed([self.task], 0.1)
        return self.take()

    def take(self) -> list[EventDict]:
        """The lines since the last call, without experiment, epoch and level."""
        taken = [*self.logged]
        self.logged.clear()
        epoch = self.task.experiments["search"].decisions.epoch
        for line in taken:
            assert (line.pop("experiment"), line.pop("epoch")) == ("search", epoch)
            assert line.pop("log_level") == "info"
        return taken


def test_a_control_record_is_logged_with_its_actor(logged: list[EventDict]) -> None:
    search = Experiment(logged)
    fold(
        search.task,
        control("add_arm", arm="w", actor="alice@bastion"),
        control("freeze_pair", a="w", b="x"),
        control("retire_arm", arm="unknown", actor="mallory"),
    )
    search.observer.published([search.task.take_commit()])
    for line in logged:
        assert line.pop("id").startswith("c-")
    common = {"event": "control applied", "experiment": "search", "log_level": "info"}
    assert logged == [
        {**common, "action": "add_arm", "arm": "w", "actor": "alice@bastion"},
        {**common, "action": "freeze_pair", "a": "w", "b": "x", "actor": None},
    ]


def test_applied_settings_are_logged_as_values(logged: list[EventDict]) -> None:
    search = Experiment(logged)
    settings = {"decide_every": 5, "stop": {"confidence": 0.9}}
    fold(search.task, control("apply", settings=settings))
    search.observer.published([search.task.take_commit()])
    assert [(line["action"], line["settings"]) for line in logged] == [("apply", settings)]


def test_every_change_is_logged_once(logged: list[EventDict]) -> None:
    search = Experiment(logged)
    assert search.events(*duels("search", 0, "x", "y", "aaa")) == []
    assert search.events(control("pause")) == [{"event": "experiment paused", "champion": "x"}]
    assert search.events(*duels("search", 10, "x", "y", "aaa")) == []
    assert search.events(control("resume"), control("add_arm", arm="w")) == [
        {"event": "arm joined", "arm": "w"},
        {"event": "experiment resumed", "champion": "x"},
    ]
    assert search.events(control("retire_arm", arm="z")) == [{"event": "arm retired", "arm": "z"}]
    assert search.events(control("freeze_pair", a="w", b="x")) == [
        {"event": "pair frozen", "pair": ("x", "w")}
    ]
    assert search.events(control("unfreeze_pair")) == [
        {"event": "pair unfrozen", "pair": ("x", "w")}
    ]


def test_the_change_of_algorithm_is_logged(logged: list[EventDict]) -> None:
    search = Experiment(logged, policy={"name": "auto"})
    cycle = [won("x", "y", 900, 100), won("y", "z", 900, 100), won("z", "x", 900, 100)]
    changed = {"policy": "auto", "stage": "double_thompson", "before": "rmed1"}
    assert {"event": "algorithm changed", **changed} in search.events(*cycle)
    search.observer.restored(search.task)
    assert search.events(*duels("search", 0, "x", "y", "aaa")) == []


def test_the_end_is_logged(logged: list[EventDict]) -> None:
    search = Experiment(logged, stop={"confidence": 0.95})
    clear = [
        duels("search", start, "x", other, "a" * 400) for start, other in ((0, "y"), (500, "z"))
    ]
    assert search.events(*clear[0], *clear[1]) == [
        {"event": "experiment finished", "champion": "x"}
    ]


def test_the_end_is_logged_when_the_champion_is_served(logged: list[EventDict]) -> None:
    search = Experiment(logged, policy={"name": "rmed2fh", "horizon": 50}, decide_every=40)
    assert search.events(*duels("search", 0, "x", "y", "a" * 79)) == []
    ended = {"event": "experiment finished", "champion": "x"}
    assert search.events(*duels("search", 79, "x", "y", "a")) == [ended]


def test_the_end_of_a_batch_is_logged(logged: list[EventDict]) -> None:
    search = Experiment(logged, policy={"name": "c2b", "horizon": 1000})
    batch = search.task.experiments["search"].decisions.batch
    assert batch is not None
    pairs = [("x", "y"), ("y", "z"), ("z", "x")]
    closed = search.events(*(won(a, b, 60, 40) for a, b in pairs))
    assert closed[0]["event"] == "batch closed"
    assert closed[0]["batch"] == batch[0] < closed[0]["next"]


def test_a_reset_closes_no_batch(logged: list[EventDict]) -> None:
    search = Experiment(logged, policy={"name": "c2b", "horizon": 1000})
    for a, b in [("x", "y"), ("y", "z"), ("z", "x")]:
        search.events(won(a, b, 60, 40))
    before = search.task.experiments["search"].decisions.batch
    assert search.events(control("reset")) == []
    after = search.task.experiments["search"].decisions.batch
    assert before is not None
    assert after is not None
    assert after[0] < before[0]


class TestChampion:
    """Changes of the champion are logged at most once a minute."""

    @pytest.fixture
    def search(self, logged: list[EventDict]) -> Experiment:
        made = Experiment(logged, policy={"name": "double_thompson"}, seed=3)
        made.events(won("x", "y", 90, 10), won("x", "z", 90, 10), won("y", "z", 50, 50))
        made.clock.now += CHAMPION_SECONDS
        made.observer.turned()
        logged.clear()
        return made

    def champion(self, search: Experiment, champion: str, against: str) -> list[EventDict]:
        """Let one beat another one beyond all doubt."""
        others = [won(champion, other, 900, 10) for other in "xyz" if other != champion]
        return search.events(won(against, champion, 0, 1), *others)

    def test_a_change_is_logged_when_it_is_visible(self, search: Experiment) -> None:
        [line] = self.champion(search, "y", against="x")
        assert line.pop("duels") == search.task.experiments["search"].policy.duels
        assert line == {"event": "champion changed", "champion": "y", "before": "x", "changes": 1}

    def test_changes_within_a_minute_are_logged_together(self, search: Experiment) -> None:
        assert self.champion(search, "y", against="x")
        assert search.events(won("z", "y", 90_000, 1), won("z", "x", 90_000, 1)) == []
        search.clock.now += CHAMPION_SECONDS - 1
        search.observer.turned()
        assert search.take() == []
        search.clock.now += 1
        search.observer.turned()  # no record has come, and no commit
        [line] = search.take()
        assert (line["champion"], line["before"], line["changes"]) == ("z", "y", 1)
        search.clock.now += 2 * CHAMPION_SECONDS
        search.observer.turned()
        assert search.take() == []

    def test_a_champion_that_returns_within_a_minute_is_not_logged(
        self, search: Experiment
    ) -> None:
        assert self.champion(search, "y", against="x")
        assert search.events(won("z", "y", 90_000, 1), won("z", "x", 90_000, 1)) == []
        assert search.events(won("y", "z", 900_000, 1), won("y", "x", 900_000, 1)) == []
        search.clock.now += CHAMPION_SECONDS
        search.observer.turned()
        assert search.take() == []

    def test_a_change_is_not_logged_after_the_partition_is_lost(self, search: Experiment) -> None:
        assert self.champion(search, "y", against="x")
        assert search.events(won("z", "y", 90_000, 1), won("z", "x", 90_000, 1)) == []
        search.observer.lost([search.task.partition])
        search.clock.now += CHAMPION_SECONDS
        search.observer.turned()
        assert search.take() == []

    def test_restored_states_are_not_logged(self, search: Experiment) -> None:
        assert self.champion(search, "y", against="x")
        fold(search.task, won("z", "y", 90_000, 1), won("z", "x", 90_000, 1))
        search.task.take_commit()
        search.observer.restored(search.task)
        search.clock.now += CHAMPION_SECONDS
        search.observer.turned()
        assert search.events(*duels("search", 0, "z", "y", "a")) == []
