import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from streamduel.connector import Poll
from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.figures import MAX_SILENT_SECONDS, MAX_WAIT_SECONDS, REFUSED_SECONDS
from streamduel.stream.runner import Runner
from streamduel.testing import END_OF_POLL, Broker, Record, duel
from streamduel.testing.broker import MemorySource
from tests.unit.monitoring.fold import STREAM_TIME, Clock, commit, config, duels, fold, task

NO_PARTITION = "no partition is assigned to this process."
NO_LOG = "the click log cannot be reached."
REFUSED = "a commit was refused; the last committed state is being restored."


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> Metrics:
    return Metrics("kafka", clock)


def gain(metrics: Metrics, partition: int) -> None:
    gained = task(config({"search": ("x", "y")}), partition)
    metrics.restored(gained)
    commit(metrics, gained)


def test_alive_while_the_loop_turns(metrics: Metrics, clock: Clock) -> None:
    clock.now += MAX_SILENT_SECONDS
    assert not metrics.figures.why_not_live(), "the start counts as a turn"
    metrics.turned()
    clock.now += MAX_SILENT_SECONDS
    assert not metrics.figures.why_not_live()
    clock.now += 5
    assert metrics.figures.why_not_live() == (
        "the runner's loop has not turned for 65 s (allowed: 60 s).",
    )
    metrics.turned()
    assert not metrics.figures.why_not_live()


def test_alive_when_the_metrics_observer_fails(
    metrics: Metrics, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fold continues, and the observer gets the next events."""

    def fail(records: int) -> None:
        raise ValueError(records)

    monkeypatch.setattr(metrics, "polled", fail)
    broker = Broker(duels("search", 0, "x", "y", "ab"))
    observers = [metrics]
    configured = config({"search": ("x", "y")})
    runner = Runner(configured, broker.source(), broker.outlet(), clock, observers)

    def late() -> bool:
        clock.now += 10
        return clock.now > 1200

    runner.run(late)
    assert not metrics.figures.why_not_live()


def test_becomes_ready_step_by_step(metrics: Metrics) -> None:
    assert metrics.figures.why_not_ready() == [NO_LOG, NO_PARTITION]
    metrics.connection(source=True)
    assert metrics.figures.why_not_ready() == [NO_PARTITION]
    gain(metrics, 2)
    assert metrics.figures.why_not_ready() == []


def test_not_ready_without_connection_partition_or_liveness(metrics: Metrics, clock: Clock) -> None:
    metrics.connection(source=True)
    gain(metrics, 1)
    gain(metrics, 2)
    metrics.connection(source=False)
    assert metrics.figures.why_not_ready() == [NO_LOG]
    metrics.connection(source=True)
    metrics.lost([1])
    assert metrics.figures.why_not_ready() == []
    metrics.lost([2])
    assert metrics.figures.why_not_ready() == [NO_PARTITION]
    clock.now += 61
    assert metrics.figures.why_not_ready() == [*metrics.figures.why_not_live(), NO_PARTITION]
    assert not Metrics("kafka", clock).figures.why_not_live()


class Unreadable(MemorySource):
    """A click log with a partition that cannot be read."""

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        return replace(super().poll(timeout, hold=hold), unreadable="partition 1 has no leader")


def test_not_ready_while_a_partition_cannot_be_read(metrics: Metrics) -> None:
    broker = Broker([duel("search", 0, "x", "y", "a")])
    settings = config({"search": ("x", "y")})
    source = Unreadable(broker)
    runner = Runner(settings, source, broker.outlet(), lambda: 0.0, observers=[metrics])
    runner.run(lambda: False, until_end=True)
    assert metrics.figures.why_not_ready() == ["partition 1 has no leader."]
    metrics.connection(source=False)
    assert metrics.figures.why_not_ready() == [NO_LOG]
    metrics.connection(source=True)
    metrics.unreadable("")
    assert metrics.figures.why_not_ready() == []


def test_not_ready_while_partitions_are_restored(metrics: Metrics) -> None:
    metrics.connection(source=True)
    metrics.gained([1, 2])
    assert metrics.figures.why_not_ready() == ["partitions 1, 2 are being restored."]
    gain(metrics, 1)
    assert metrics.figures.why_not_ready() == ["partition 2 is being restored."]
    assert not metrics.figures.why_not_live()
    gain(metrics, 2)
    assert metrics.figures.why_not_ready() == []
    metrics.gained([3])
    metrics.lost([3])
    assert metrics.figures.why_not_ready() == []


def test_not_ready_while_the_click_log_is_read_again(metrics: Metrics) -> None:
    first = task(config({"search": ("x", "y")}))
    fold(first, *duels("search", 0, "x", "y", "aab"))
    again = task(config({"search": ("x", "y")}), entries=first.take_commit().entries)
    metrics.connection(source=True)
    metrics.gained([0])
    metrics.restored(again)
    assert metrics.figures.why_not_ready() == ["partition 0 is being restored."]
    metrics.reread(again)
    assert metrics.figures.why_not_ready() == []


def test_not_ready_while_the_runner_waits(metrics: Metrics, clock: Clock) -> None:
    metrics.connection(source=True)
    gain(metrics, 1)
    metrics.turned()
    clock.now += MAX_WAIT_SECONDS
    assert metrics.figures.why_not_ready() == []
    clock.now += 0.5
    assert metrics.figures.why_not_ready() == [
        "no poll and no commit has completed for 3.5 s (allowed: 3 s)."
    ]
    assert not metrics.figures.why_not_live()
    metrics.committed([], 3.5)
    assert metrics.figures.why_not_ready() == []


def test_not_ready_during_a_commit_that_is_not_answered(metrics: Metrics, clock: Clock) -> None:
    """The state is that of the moment of the question, not of the last event."""
    during: list[Sequence[str]] = []

    def unanswered(step: str) -> None:
        during.append(metrics.figures.why_not_ready())
        clock.now += 3
        during.append(metrics.figures.why_not_ready())

    broker = Broker([END_OF_POLL, *duels("search", 0, "x", "y", "ab")])
    observers = [metrics]
    configured = config({"search": ("x", "y")})
    source, outlet = broker.source(), broker.outlet()
    runner = Runner(configured, source, outlet, clock, observers, unanswered)
    runner.run(lambda: False, until_end=True)
    first, *_, last = during[-6:]
    assert first == []
    assert last == ["no poll and no commit has completed for 9.0 s (allowed: 3 s)."]
    assert metrics.figures.why_not_ready() == []


def test_not_ready_from_fencing_to_restore(metrics: Metrics) -> None:
    metrics.connection(source=True)
    gain(metrics, 1)
    metrics.lost([1])
    metrics.fenced()
    assert metrics.figures.why_not_ready() == [REFUSED]
    gain(metrics, 1)
    assert metrics.figures.why_not_ready() == []


def test_not_ready_while_commits_are_refused_again_and_again(
    metrics: Metrics, clock: Clock
) -> None:
    metrics.connection(source=True)
    restored = task(config({"search": ("x", "y")}))
    commit(metrics, restored)
    for refused in (1, 2, 3):
        metrics.fenced()
        metrics.restored(restored)
        reason = f"the last {refused} commits were refused; the application log has the reason."
        assert metrics.figures.why_not_ready() == ([reason] if refused > 1 else [])
    clock.now += REFUSED_SECONDS
    metrics.turned()
    assert metrics.figures.why_not_ready() == []
    metrics.fenced()
    metrics.restored(restored)
    assert len(metrics.figures.why_not_ready()) == 1
    metrics.committed([], 0.1)
    assert metrics.figures.why_not_ready() == []


def test_fencing_ends_when_another_process_owns_the_partition(metrics: Metrics) -> None:
    metrics.connection(source=True)
    gain(metrics, 1)
    metrics.lost([1])
    metrics.fenced()
    metrics.lost([1])  # reported by the source with its partitions
    assert metrics.figures.why_not_ready() == [NO_PARTITION]


IDLE = {"fallback": {"arm": "x", "idle_ms": 90_000}}


def test_a_click_that_waits_for_its_impression_is_a_record(metrics: Metrics, clock: Clock) -> None:
    watched = task(config({"search": ("x", "y"), "ads": ("x", "y")}, join_window_ms=1000))
    metrics.restored(watched)
    commit(metrics, watched)
    clock.now += 60
    click = {"type": "click", "id": "c", "experiment": "search", "impression": "i", "rank": 0}
    fold(watched, json.dumps(click).encode())
    commit(metrics, watched)
    search = metrics.figures.partitions[0].experiments["search"]
    assert search.last_record_at == clock.now
    clock.now += 60
    for number in (1, 2):
        value = duel("ads", number, "x", "y", "a")
        watched.fold([Record(10 * number, value, STREAM_TIME + 60_000)])
    # The join window of the click has ended.
    commit(metrics, watched)
    after = metrics.figures.partitions[0].experiments["search"]
    assert (after.tallies["unjoined"], after.last_record_at) == (1, clock.now - 60)


def test_not_ready_without_records_of_an_experiment_with_a_fallback(
    metrics: Metrics, clock: Clock
) -> None:
    metrics.connection(source=True)
    watched = task(config({"search": ("x", "y"), "ads": ("x", "y")}, guardrails=IDLE))
    metrics.restored(watched)
    commit(metrics, watched)
    for number in range(3):
        clock.now += 60
        metrics.turned()
        fold(watched, *duels("search", number, "x", "y", "a"), *duels("ads", number, "x", "y", "a"))
        commit(metrics, watched)
        assert metrics.figures.why_not_ready() == []
    for number in range(3):
        clock.now += 60
        metrics.turned()
        fold(watched, *duels("search", 10 + number, "x", "y", "a"))
        commit(metrics, watched)
    assert metrics.figures.why_not_ready() == [
        "no record of experiment 'ads' has arrived for 180 s (allowed: 90 s); ranker services are "
        "told to serve 'x' alone."
    ]
    assert not metrics.figures.why_not_live(), "a restart would not help"
    fold(watched, *duels("ads", 20, "x", "y", "a"))
    commit(metrics, watched)
    assert metrics.figures.why_not_ready() == []


def test_the_silence_of_another_experiment_does_not_concern_an_experiment(
    metrics: Metrics, clock: Clock
) -> None:
    metrics.connection(source=True)
    metrics.restored(
        both := task(config({"search": ("x", "y"), "ads": ("x", "y")}, guardrails=IDLE))
    )
    commit(metrics, both)
    clock.now += 60
    fold(both, *duels("search", 0, "x", "y", "a"))
    commit(metrics, both)
    clock.now += 60
    metrics.turned()
    assert len(metrics.figures.why_not_ready()) == 1
    assert len(metrics.figures.why_not_ready("ads")) == 1
    assert metrics.figures.why_not_ready("search") == []
