import re
from collections import Counter

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.metrics import METRICS, OUTCOMES
from streamduel.monitoring.reference import PROCESS_METRICS, example, series
from streamduel.stream.routing import ClickLog
from streamduel.stream.tallies import Outcomes
from streamduel.stream.task import PartitionTask
from streamduel.testing import encode
from tests.unit.monitoring.fold import (
    STREAM_TIME,
    Clock,
    commit,
    config,
    duels,
    fold,
    fold_ahead,
    scrape,
    task,
    value,
)

ARMS = ("bm25", "ltr", "dense")

DECLARED = {metric.name: (metric.kind, metric.labels) for metric in METRICS}

RELEASED = {
    "streamduel_build_info": ("gauge", ("version",)),
    "streamduel_experiment_info": ("gauge", ("experiment", "policy", "stage", "seeks")),
    "streamduel_experiment_status": ("gauge", ("experiment", "status")),
    "streamduel_records_total": ("counter", ("experiment", "outcome")),
    "streamduel_dead_letters_total": ("counter", ("reason",)),
    "streamduel_experiment_dead_letters_total": ("counter", ("experiment",)),
    "streamduel_capped_total": ("counter", ("experiment",)),
    "streamduel_duels_total": ("counter", ("experiment",)),
    "streamduel_regret": ("gauge", ("experiment", "kind", "bound")),
    "streamduel_impressions_total": ("counter", ("experiment",)),
    "streamduel_ties_total": ("counter", ("experiment",)),
    "streamduel_team_ranks_total": ("counter", ("experiment", "side")),
    "streamduel_team_mismatch": ("gauge", ("experiment",)),
    "streamduel_unassigned_impressions_total": ("counter", ("experiment",)),
    "streamduel_open_impressions": ("gauge", ("experiment",)),
    "streamduel_waiting_clicks": ("gauge", ("experiment",)),
    "streamduel_guardrail_share": ("gauge", ("experiment",)),
    "streamduel_guardrail_regret": ("gauge", ("experiment", "kind")),
    "streamduel_champion": ("gauge", ("experiment", "arm")),
    "streamduel_arm_copeland_score": ("gauge", ("experiment", "arm")),
    "streamduel_arm_duels_total": ("counter", ("experiment", "arm")),
    "streamduel_candidates": ("gauge", ("experiment",)),
    "streamduel_champion_confidence": ("gauge", ("experiment",)),
    "streamduel_champion_progress": ("gauge", ("experiment",)),
    "streamduel_forecast_seconds": ("gauge", ("experiment",)),
    "streamduel_condorcet_winner_possible": ("gauge", ("experiment",)),
    "streamduel_batch_round": ("gauge", ("experiment",)),
    "streamduel_batch_remaining": ("gauge", ("experiment",)),
    "streamduel_assignment_epoch": ("gauge", ("experiment",)),
    "streamduel_assignments_total": ("counter", ("experiment",)),
    "streamduel_lag_records": ("gauge", ("partition",)),
    "streamduel_stable_offset_lag_records": ("gauge", ("partition",)),
    "streamduel_stream_time_seconds": ("gauge", ("partition",)),
    "streamduel_time_outliers_total": ("counter", ("partition",)),
    "streamduel_records_missed_total": ("counter", ("partition",)),
    "streamduel_restoring_partitions": ("gauge", ()),
    "streamduel_restores_total": ("counter", ()),
    "streamduel_commit_failures_total": ("counter", ()),
    "streamduel_commit_seconds": ("histogram", ()),
    "streamduel_poll_records": ("histogram", ()),
    "streamduel_snapshot_age_seconds": ("gauge", ("partition",)),
    "streamduel_connected": ("gauge", ("connector",)),
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> Metrics:
    return Metrics("kafka", clock)


class TestDeclarations:
    def test_no_released_metric_is_renamed_or_removed(self) -> None:
        assert RELEASED.items() <= DECLARED.items()
        assert len(METRICS) == len(DECLARED)

    def test_every_metric_is_in_the_table_above(self) -> None:
        assert DECLARED.keys() == RELEASED.keys()

    def test_what_is_scraped_is_what_is_declared(self, metrics: Metrics) -> None:
        metrics._figures = example()
        text = generate_latest(metrics.registry).decode()
        types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
        process = {name: kind for name, kind, *_ in PROCESS_METRICS}
        assert types == {name: kind for name, (kind, _) in DECLARED.items()} | process
        for name, labels in scrape(metrics.registry):
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            assert {key for key, _ in labels} - {"le"} == set(DECLARED[family][1]), name

    def test_series_are_as_many_as_documented(self, metrics: Metrics) -> None:
        # Only a batched policy with guardrails has all series.
        policy, rails = {"name": "c2b", "horizon": 1000}, {"max_share": 0.5}
        configured = config({"search": ARMS, "ads": ("x", "y")}, policy=policy, guardrails=rails)
        watched = task(configured)
        fold(watched, *duels("search", 0, "bm25", "ltr", "ab"))
        commit(metrics, watched)
        metrics.lagging({0: 5})
        metrics.stable_offset_lagging({0: 0})
        there_are = {"experiment": 2, "arm": 5, "partition": 1, "process": 1}
        found = Counter(
            re.sub(r"_(bucket|sum|count)$", "", name) for name, _ in scrape(metrics.registry)
        )
        figures = example()
        assert found == {
            metric.name: series(metric, figures) * there_are[metric.per] for metric in METRICS
        }

    def test_openmetrics_accepts_them(self, metrics: Metrics) -> None:
        metrics._figures = example()
        text = generate_openmetrics(metrics.registry).decode()  # type: ignore[no-untyped-call]
        families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        assert len(list(families)) == len(METRICS) + len(PROCESS_METRICS)

    def test_nothing_is_in_the_global_registry(self) -> None:
        from prometheus_client import REGISTRY  # noqa: PLC0415

        names = [family.name for family in REGISTRY.collect()]
        assert not [name for name in names if name.startswith("streamduel")]


class TestExperiments:
    def test_info_has_policy_algorithm_and_winner_sought(self, metrics: Metrics) -> None:
        watched = task(config({"search": ARMS}, policy={"name": "auto"}))
        commit(metrics, watched)
        labels = {"policy": "auto", "stage": "rmed1", "seeks": "copeland"}
        now = scrape(metrics.registry)
        assert value(now, "experiment_info", experiment="search", **labels) == 1
        assert len([name for name, _ in now if name == "streamduel_experiment_info"]) == 1

    def test_status(self, metrics: Metrics) -> None:
        watched = task(config({"search": ARMS}))
        for action, expected in (("resume", "running"), ("pause", "paused")):
            record = {"type": "control", "id": action, "experiment": "search", "action": action}
            fold(watched, encode(record))
            commit(metrics, watched)
            now = scrape(metrics.registry)
            found = {
                status: value(now, "experiment_status", experiment="search", status=status)
                for status in ("running", "paused", "finished")
            }
            assert found == {status: float(status == expected) for status in found}

    def test_share_and_regret_of_guardrails(self, metrics: Metrics) -> None:
        rails = {"control_arm": "bm25", "min_share": 0.25, "max_share": 0.5}
        watched = task(config({"search": ARMS}, guardrails=rails))
        fold(
            watched,
            *duels("search", 0, "ltr", "bm25", "aaab"),  # bm25 is 1/4 worse than the champion
            *duels("search", 10, "ltr", "dense", "aaaa"),
            *duels("search", 20, "bm25", "bm25", "tttttt"),
            *duels("search", 30, "dense", "dense", "tt"),  # what no guardrail has asked for
        )
        commit(metrics, watched)
        now = scrape(metrics.registry)
        regret = {
            kind: value(now, "guardrail_regret", experiment="search", kind=kind)
            for kind in ("condorcet", "strong", "weak", "copeland")
        }
        assert regret == {"condorcet": 1.5, "strong": 3, "weak": 1.5, "copeland": 6 * 2 * 1.0}
        plan = watched.experiments["search"].decisions.plan
        assert plan is not None
        [pair] = plan.pairs
        # The cap leaves it half of all impressions, of which the control arm has had its floor.
        kept = 0.25 if "bm25" in {pair.first, pair.second} else 0.5
        assert value(now, "guardrail_share", experiment="search") == pytest.approx(1 - kept)

    def test_no_guardrail_series_without_guardrails(self, metrics: Metrics) -> None:
        watched = task(config({"search": ARMS}))
        commit(metrics, watched)
        assert not [name for name, _ in scrape(metrics.registry) if "guardrail" in name]

    def test_records_beyond_the_cap_of_their_client(self, metrics: Metrics) -> None:
        watched = task(config({"search": ARMS}, max_per_client=2))
        record = {"type": "duel", "experiment": "search", "a": "bm25", "b": "ltr", "winner": "a"}
        fold(watched, *(encode({**record, "id": f"{n}", "client": "u-1"}) for n in range(4)))
        commit(metrics, watched)
        assert value(scrape(metrics.registry), "capped_total", experiment="search") == 2

    def test_values_after_a_fold(self, metrics: Metrics) -> None:
        watched = task(config({"search": ARMS}))
        fold(
            watched,
            *duels("search", 0, "bm25", "ltr", "aaab"),
            *duels("search", 3, "bm25", "ltr", "b"),  # its id was seen
            *duels("search", 10, "dense", "ltr", "t"),
            *duels("search", 20, "dense", "dense", "t"),
            b"nonsense",
        )
        commit(metrics, watched)
        now = scrape(metrics.registry)
        tallies = {"accepted": 6, "duplicate": 1, "late": 0, "unjoined": 0}
        for outcome, count in tallies.items():
            found = value(now, "records_total", experiment="search", outcome=outcome)
            assert found == count, outcome
        assert value(now, "dead_letters_total", reason="invalid_json") == 1
        assert value(now, "dead_letters_total", reason="unknown_arm") == 0
        assert value(now, "duels_total", experiment="search") == 6
        per_arm = {
            arm: (
                value(now, "champion", experiment="search", arm=arm),
                value(now, "arm_copeland_score", experiment="search", arm=arm),
                value(now, "arm_duels_total", experiment="search", arm=arm),
            )
            for arm in ARMS
        }
        assert per_arm == {"bm25": (1, 0.5, 4), "ltr": (0, 0, 5), "dense": (0, 0, 1)}
        experiment = watched.experiments["search"]
        assert value(now, "candidates", experiment="search") == experiment.policy.candidates()
        assert value(now, "assignment_epoch", experiment="search") == experiment.decisions.epoch
        assert value(now, "assignments_total", experiment="search") == experiment.decisions.epoch

        regret = {
            kind: value(now, "regret", experiment="search", kind=kind, bound="estimate")
            for kind in ("condorcet", "strong", "weak", "copeland")
        }
        # ltr has lost 3 of 4 to the champion, so its gap is 1/4; it was in 5 duels. dense, which
        # has met ltr once and itself once, beats no arm, and its gap is unknown.
        assert regret == {"condorcet": 0.625, "strong": 1.25, "weak": 0, "copeland": 4}
        for kind, estimate in regret.items():
            bound = value(now, "regret", experiment="search", kind=kind, bound="upper")
            assert bound > estimate

    def test_show_only_what_is_committed(self, metrics: Metrics) -> None:
        watched = task(config({"search": ARMS}))
        commit(metrics, watched)
        before = scrape(metrics.registry)
        fold(watched, *duels("search", 0, "bm25", "ltr", "aab"), b"nonsense")
        assert scrape(metrics.registry) == before
        commit(metrics, watched)
        assert value(scrape(metrics.registry), "duels_total", experiment="search") == 3

    def test_a_new_experiment_is_shown_with_its_first_assignment(self, metrics: Metrics) -> None:
        watched = task(config({"search": ARMS}))
        metrics.restored(watched)
        assert not [labels for name, labels in scrape(metrics.registry) if "duels" in name]
        commit(metrics, watched)
        assert value(scrape(metrics.registry), "assignment_epoch", experiment="search") == 1

    def test_counters_survive_a_restart(self, clock: Clock) -> None:
        configured = config({"search": ARMS})
        first, before = task(configured), Metrics("kafka", clock)
        fold(first, *duels("search", 0, "bm25", "ltr", "aabba"), b"nonsense")
        entries = first.take_commit().entries
        before.committed([first], 0.02)

        after = Metrics("kafka", clock)
        after.restored(task(configured, entries=entries))
        restored = scrape(after.registry)
        fresh = {"streamduel_commit_seconds", "streamduel_restores_total"}
        expected = {
            key: count
            for key, count in scrape(before.registry).items()
            if not any(key[0].startswith(name) for name in fresh)
        }
        assert {key: restored[key] for key in expected} == expected

    def test_an_unchanged_experiment_keeps_its_view(self, metrics: Metrics) -> None:
        watched = task(config({"search": ARMS, "ads": ARMS}))
        commit(metrics, watched)
        before = metrics.figures.partitions[0].experiments
        fold(watched, *duels("search", 0, "bm25", "ltr", "a"))
        commit(metrics, watched)
        after = metrics.figures.partitions[0].experiments
        assert after["ads"] is before["ads"]
        assert after["search"] is not before["search"]

    def test_a_view_is_a_copy(self, metrics: Metrics) -> None:
        watched = task(config({"search": ARMS}))
        commit(metrics, watched)
        view = metrics.figures.partitions[0].experiments["search"]
        fold(watched, *duels("search", 0, "bm25", "ltr", "aaaa"))
        assert view.wins.sum() == 0
        assert view.duels == 0

    def test_names_are_escaped(self, metrics: Metrics) -> None:
        name, arm = 'a"b\\c\nd', "ä\n"
        commit(metrics, task(config({name: (arm, "other")})))
        assert value(scrape(metrics.registry), "champion", experiment=name, arm=arm) in {0, 1}


class TestPartitions:
    def test_time_outliers(self, metrics: Metrics) -> None:
        watched = task(config({"search": ("x", "y")}), partition=3)
        fold_ahead(watched, 3_600_000)
        commit(metrics, watched)
        now = scrape(metrics.registry)
        assert value(now, "time_outliers_total", partition="3") == 1
        assert value(now, "stream_time_seconds", partition="3") == STREAM_TIME / 1000

    def test_records_missed_since_the_restore(self, metrics: Metrics) -> None:
        settings = config({"search": ("x", "y")})
        first = task(settings, partition=3)
        fold(first, *duels("search", 0, "x", "y", "aab"))
        again = PartitionTask(
            settings, ClickLog("clicks", 1, lambda _: 3), 3, first.take_commit().entries
        )
        again.begin(10)  # it was down, and 7 records were deleted
        commit(metrics, again)
        assert value(scrape(metrics.registry), "records_missed_total", partition="3") == 7
        again.miss(9)  # nothing new
        again.miss(15)
        commit(metrics, again)
        assert value(scrape(metrics.registry), "records_missed_total", partition="3") == 12
        assert again.next_offset == 15

    def test_stream_time_lag_and_age(self, metrics: Metrics, clock: Clock) -> None:
        watched = task(config({"search": ARMS}), partition=3)
        fold(watched, *duels("search", 0, "bm25", "ltr", "ab"))
        commit(metrics, watched)
        metrics.lagging({3: 17})
        metrics.stable_offset_lagging({3: 4})
        clock.now += 12.5
        now = scrape(metrics.registry)
        assert value(now, "stream_time_seconds", partition="3") == (STREAM_TIME + 1) / 1000
        assert value(now, "lag_records", partition="3") == 17
        assert value(now, "stable_offset_lag_records", partition="3") == 4
        assert value(now, "time_outliers_total", partition="3") == 0
        assert value(now, "snapshot_age_seconds", partition="3") == 12.5
        commit(metrics, watched)
        assert value(scrape(metrics.registry), "snapshot_age_seconds", partition="3") == 0

    def test_stream_time_is_absent_before_there_is_one(self, metrics: Metrics) -> None:
        commit(metrics, task(config({"search": ARMS})))
        names = {name for name, _ in scrape(metrics.registry)}
        assert "streamduel_stream_time_seconds" not in names
        assert "streamduel_snapshot_age_seconds" in names

    def test_all_series_of_a_lost_partition_vanish(self, metrics: Metrics) -> None:
        gone = task(config({"search": ARMS}), partition=1)
        kept = task(config({"ads": ARMS}), partition=2)
        fold(gone, *duels("search", 0, "bm25", "ltr", "a"), b"nonsense")
        fold(kept, *duels("ads", 0, "bm25", "ltr", "a"), b"nonsense")
        commit(metrics, gone, kept)
        metrics.lagging({1: 5, 2: 6})
        metrics.stable_offset_lagging({1: 5, 2: 6})
        metrics.lost([1, 7])
        now = scrape(metrics.registry)
        labels = {label for _, labels in now for label in labels}
        assert ("partition", "2") in labels
        assert ("experiment", "ads") in labels
        assert ("partition", "1") not in labels
        assert ("experiment", "search") not in labels
        assert value(now, "dead_letters_total", reason="invalid_json") == 2, "a counter fell"

    def test_a_partition_that_comes_back_counts_its_dead_letters_once(
        self, metrics: Metrics
    ) -> None:
        configured = config({"search": ARMS})
        watched = task(configured)
        fold(watched, b"nonsense", b"more of it")
        entries = watched.take_commit().entries
        metrics.committed([watched], 0.02)
        metrics.fenced()
        metrics.lost([0])
        metrics.restored(task(configured, entries=entries))
        assert value(scrape(metrics.registry), "dead_letters_total", reason="invalid_json") == 2


def test_every_outcome_of_records_has_a_metric() -> None:
    of_their_own = {"dead_letter", "capped"}
    assert set(OUTCOMES) == {*Outcomes.__struct_fields__} - of_their_own
