"""Metrics of the process: polls, commits, restores, and those of the operating system."""

import threading

import pytest
from prometheus_client.exposition import generate_latest

from streamduel import __version__
from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.exposition import Exposition
from streamduel.monitoring.figures import Distribution
from streamduel.monitoring.reference import PROCESS_METRICS
from tests.unit.monitoring.fold import (
    Clock,
    commit,
    config,
    duels,
    fold,
    parse,
    scrape,
    task,
    value,
)

ARMS = ("bm25", "ltr", "dense")


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("kafka", Clock())


class TestProcess:
    def test_says_its_version(self, metrics: Metrics) -> None:
        assert value(scrape(metrics.registry), "build_info", version=__version__) == 1

    def test_counts_restores_and_failed_commits(self, metrics: Metrics) -> None:
        configured = config({"search": ARMS})

        def counts() -> tuple[float, float]:
            now = scrape(metrics.registry)
            return value(now, "restores_total"), value(now, "commit_failures_total")

        assert counts() == (0, 0)
        for partition in (0, 1):
            metrics.restored(task(configured, partition))
        commit(metrics, task(configured))
        assert counts() == (2, 0)
        metrics.fenced()
        metrics.lost([0, 1])
        assert counts() == (2, 1)
        metrics.restored(task(configured))
        assert counts() == (3, 1)

    def test_has_the_metrics_of_any_process(self, metrics: Metrics) -> None:
        samples = parse(generate_latest(metrics.registry).decode())
        process = {name: found for (name, _), found in samples.items() if "process_" in name}
        assert list(process) == [name for name, *_ in PROCESS_METRICS]
        assert all(found > 0 for found in process.values())

    def test_histograms(self, metrics: Metrics) -> None:
        for records in (1, 5000, 60_000):
            metrics.polled(records)
        metrics.committed([], 0.0025)
        metrics.committed([], 0.3)
        now = scrape(metrics.registry)
        assert value(now, "poll_records_count") == 3
        assert value(now, "poll_records_sum") == 65_001
        assert value(now, "poll_records_bucket", le="1.0") == 1
        assert value(now, "poll_records_bucket", le="2500.0") == 1
        assert value(now, "poll_records_bucket", le="5000.0") == 2
        assert value(now, "poll_records_bucket", le="10000.0") == 2
        assert value(now, "poll_records_bucket", le="+Inf") == 3
        assert value(now, "commit_seconds_bucket", le="0.0025") == 1
        assert value(now, "commit_seconds_bucket", le="0.25") == 1
        assert value(now, "commit_seconds_bucket", le="0.5") == 2

    def test_a_distribution_is_immutable(self) -> None:
        before = Distribution.empty(1, 10)
        assert before.plus(3).counts == (0, 1, 0)
        assert before.counts == (0, 0, 0)

    def test_connected(self, metrics: Metrics) -> None:
        for connected in (False, True, True, False):
            metrics.connection(source=connected)
            found = value(scrape(metrics.registry), "connected", connector="kafka")
            assert found == connected

    def test_not_connected_to_every_partition(self, metrics: Metrics) -> None:
        metrics.connection(source=True)
        for why in ("partition 2 of 'clicks' has no leader", ""):
            metrics.unreadable(why)
            assert value(scrape(metrics.registry), "connected", connector="kafka") == (not why)

    def test_scrapes_and_the_fold_do_not_disturb_each_other(self, metrics: Metrics) -> None:
        """Many scrapes while partitions are gained, committed and lost: each sees one moment."""
        watched = task(config({"search": ARMS, "ads": ARMS}))
        page = Exposition(metrics.registry)
        stop, wrong, scrapes = threading.Event(), [], 0

        def scraper() -> None:
            nonlocal scrapes
            while not stop.is_set():
                now = parse(page.page("")[0].decode())
                scrapes += 1
                found = {dict(labels).get("experiment") for _, labels in now} - {None}
                if found not in (set(), {"search", "ads"}):
                    wrong.append(found)

        thread = threading.Thread(target=scraper)
        thread.start()
        number = 0
        while scrapes < 20 and thread.is_alive():
            number += 1
            fold(watched, *duels("search", number, "bm25", "ltr", "a"))
            commit(metrics, watched)
            metrics.polled(1)
            metrics.lagging({0: number})
            metrics.lost([0])
        stop.set()
        thread.join()
        assert wrong == []
        assert scrapes >= 20
