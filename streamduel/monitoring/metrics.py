"""All metrics, each declared once: name, labels, description, and where its value is read.

`docs/metrics.md` is generated from this file. The metrics `process_…` are prometheus_client's own.
"""

from __future__ import annotations

from typing import Final, get_args

from streamduel import __version__
from streamduel.monitoring.declaration import (
    Counter,
    Declaration,
    Gauge,
    Histogram,
    Samples,
    per_arm,
    per_experiment,
    per_experiment_and,
    per_partition,
    per_view,
)
from streamduel.monitoring.figures import Figures
from streamduel.monitoring.views import ExperimentView
from streamduel.preference.regret import KINDS
from streamduel.records import Reason, Status

COMMIT_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""A commit to files takes about a millisecond, a Kafka transaction 5 to 100. Above 0.5, the default
commit interval, commits limit throughput; at 30 the Kafka connector has long given up."""

POLL_RECORDS: Final = (1, 10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000)
"""A poll of Kafka brings at most 5000 records by default: a consumer that lags fills that bucket,
one that keeps up stays far below."""

OUTCOMES: Final = ("accepted", "duplicate", "late", "unjoined")
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
STATUSES: Final[tuple[Status, ...]] = get_args(Status)


def _dead_letters(figures: Figures) -> Samples:
    for reason in REASONS:
        by_partition = figures.dead_letters.values()
        yield (reason,), sum(counts.get(reason, 0) for counts in by_partition)


def _regret(view: ExperimentView) -> Samples:
    found = view.assessment
    for kind in KINDS:
        yield (kind, "estimate"), found.regret[kind]
        yield (kind, "upper"), found.regret_bound[kind]


def _guardrail_regret(view: ExperimentView) -> Samples:
    found = view.assessment.guardrail_regret or {}
    return [((kind,), regret) for kind, regret in found.items()]


METRICS: Final[tuple[Declaration, ...]] = (
    Gauge(
        "streamduel_build_info",
        ("version",),
        "Always 1; the label is the running version.",
        lambda _: [((__version__,), 1.0)],
    ),
    Gauge(
        "streamduel_experiment_info",
        ("experiment", "policy", "stage", "seeks"),
        "Always 1; the labels are the configured policy, the algorithm in use (`auto` switches "
        "from one to another), and the winner that the policy seeks: condorcet or copeland.",
        per_experiment_and(lambda view: [((view.policy, view.stage, view.seeks), 1.0)]),
    ),
    Gauge(
        "streamduel_experiment_status",
        ("experiment", "status"),
        "1 for the present status of the experiment, 0 for the other two.",
        per_experiment_and(
            lambda view: [((status,), float(status == view.status)) for status in STATUSES]
        ),
    ),
    Counter(
        "streamduel_records_total",
        ("experiment", "outcome"),
        "Records of the experiment by outcome. A duplicate's id was seen within the dedupe window; "
        "late and unjoined are clicks that found no impression in time. Dead letters are counted "
        "by streamduel_dead_letters_total, and capped records by streamduel_capped_total.",
        per_experiment_and(
            lambda view: [((outcome,), view.tallies[outcome]) for outcome in OUTCOMES]
        ),
    ),
    Counter(
        "streamduel_dead_letters_total",
        ("reason",),
        "Dead letters since the beginning of the click log, of all partitions that this process "
        "has or has had. It does not fall when a partition is lost; it rises by the partition's "
        "total when one is gained.",
        _dead_letters,
    ),
    Counter(
        "streamduel_experiment_dead_letters_total",
        ("experiment",),
        "Dead letters whose record names the experiment, in its field `experiment` or else by its "
        "key.",
        per_experiment(lambda view: view.tallies["dead_letter"]),
    ),
    Counter(
        "streamduel_capped_total",
        ("experiment",),
        "Records beyond the cap of their client (`max_per_client`), which count as no duel. "
        "A steady increase is a robot, a shared client name, or a cap that is too low.",
        per_experiment(lambda view: view.tallies["capped"]),
    ),
    Counter(
        "streamduel_duels_total",
        ("experiment",),
        "Duels that the policy has observed, those of an arm with itself included.",
        per_experiment(lambda view: view.duels),
    ),
    Gauge(
        "streamduel_regret",
        ("experiment", "kind", "bound"),
        "Cumulative regret of all duels so far under the current estimate of the preference "
        "matrix, with the champion as the best arm. An arm that wins more than half of its duels "
        "with the champion has gap 0. New duels change the estimate for old ones, so it may fall. "
        "`upper` is an upper bound with 95 % confidence, valid at all times together.",
        per_experiment_and(_regret),
    ),
    Counter(
        "streamduel_impressions_total",
        ("experiment",),
        "Interleaved impressions: `impression` and `interleaving` records.",
        per_experiment(lambda view: view.impressions.shown),
    ),
    Counter(
        "streamduel_ties_total",
        ("experiment",),
        "Impressions and duels without a winner, dropped ties included. A sudden change of their "
        "share is more often a change in logging than in users.",
        per_experiment(lambda view: view.impressions.ties),
    ),
    Counter(
        "streamduel_team_ranks_total",
        ("experiment", "side"),
        "Documents shown in interleaved impressions, by the side that contributed them.",
        per_experiment_and(
            lambda view: [(("a",), view.impressions.ranks[0]), (("b",), view.impressions.ranks[1])]
        ),
    ),
    Gauge(
        "streamduel_team_mismatch",
        ("experiment",),
        "Confidence, from 0 to 1, that services interleave unfairly: that a side, or a ranker on "
        "either side, gets more documents, top ranks or prominent ranks than fair coins would give "
        "it. Valid at any time; above 0.99, check the service. Balanced and optimised interleaving "
        "have no such coins.",
        per_experiment(lambda view: view.team_mismatch),
    ),
    Counter(
        "streamduel_unassigned_impressions_total",
        ("experiment",),
        "Interleaved impressions of a pair that was not assigned: no assignment of the last hour "
        "of stream time contains it, or the record's `epoch` is later than the last one that does. "
        "A service that follows assignments has none. Deviations from the assigned shares are not "
        "counted, and neither is a pair that comes back after it was replaced.",
        per_experiment(lambda view: view.impressions.unassigned),
    ),
    Gauge(
        "streamduel_open_impressions",
        ("experiment",),
        "Open impressions: their join window has not closed.",
        per_experiment(lambda view: view.open["impressions"]),
    ),
    Gauge(
        "streamduel_waiting_clicks",
        ("experiment",),
        "Pending clicks: they arrived before their impression, and are not in "
        "streamduel_records_total yet.",
        per_experiment(lambda view: view.open["clicks"]),
    ),
    Gauge(
        "streamduel_guardrail_share",
        ("experiment",),
        "Share of impressions that guardrails take from what the policy proposes, at present. Only "
        "for experiments with guardrails.",
        per_experiment(lambda view: view.guardrails.share if view.guardrails else None),
    ),
    Gauge(
        "streamduel_guardrail_regret",
        ("experiment", "kind"),
        "The part of streamduel_regret (estimate) from duels that guardrails requested: of the "
        "control arm alone, and of a frozen pair. The cost of a cap, slower learning, is not in "
        "it. Only for experiments with guardrails.",
        per_experiment_and(_guardrail_regret),
    ),
    Gauge(
        "streamduel_champion_confidence",
        ("experiment",),
        "Lower bound of the probability that the champion is the winner that the policy seeks. It "
        "is valid at any time, however often it is read, and stays near 0 until the duels decide: "
        "at 0.95 it is safe to stop.",
        per_experiment(lambda view: view.confidence),
    ),
    Gauge(
        "streamduel_champion_progress",
        ("experiment",),
        "How much of the evidence for a confidence of 95 % there is, from 0 to 1: the mean over "
        "the champion's rivals. It rises before streamduel_champion_confidence does, and is 1 when "
        "that reaches 0.95. While both are 0 and there is no other answer, the champion is shown "
        "to people as undecided.",
        per_experiment(lambda view: view.verdict.progress),
    ),
    Gauge(
        "streamduel_forecast_seconds",
        ("experiment",),
        "Seconds until there is a sure answer, at the traffic of the last day: the median of "
        "simulations that begin at the present counts. 0 once there is one. NaN when it cannot be "
        "said, as without traffic, with few duels, or with no end in sight; the status page says "
        "why.",
        lambda figures: (
            ((view.name,), figures.outlook(view.name).median) for view in figures.experiments()
        ),
    ),
    Gauge(
        "streamduel_condorcet_winner_possible",
        ("experiment",),
        "1 while some ranker may be the Condorcet winner; 0 once each has lost to another one with "
        "95 % confidence, valid at any time. Then a policy that seeks a Condorcet winner explores "
        "until its horizon, or permanently if it has none; except top_two and batched_top_two, "
        "which then seek a Copeland winner.",
        per_experiment(lambda view: view.assessment.condorcet_winner_possible),
    ),
    Gauge(
        "streamduel_batch_round",
        ("experiment",),
        "Number of the open batch, from 1. Only for batched policies.",
        per_experiment(lambda view: view.batch[0] if view.batch else None),
    ),
    Gauge(
        "streamduel_batch_remaining",
        ("experiment",),
        "Duels that the open batch still needs. Only for batched policies.",
        per_experiment(lambda view: view.batch[1] if view.batch else None),
    ),
    Gauge(
        "streamduel_champion",
        ("experiment", "arm"),
        "1 for the champion of the assignment in force, 0 for the other arms.",
        per_arm(lambda view: [float(arm == view.champion) for arm in range(len(view.arms))]),
    ),
    Gauge(
        "streamduel_arm_copeland_score",
        ("experiment", "arm"),
        "Copeland score of the arm, from 0 to 1: the number of arms against which it has won more "
        "than half of the duels, divided by K - 1.",
        per_arm(lambda view: view.copeland),
    ),
    Counter(
        "streamduel_arm_duels_total",
        ("experiment", "arm"),
        "Duels of the arm with other arms, including duels that the policy has forgotten and duels "
        "with retired arms. Each duel counts for both of its arms.",
        per_arm(lambda view: view.arm_duels),
    ),
    Gauge(
        "streamduel_candidates",
        ("experiment",),
        "Arms that the policy has not ruled out. 0 when the policy seeks a Condorcet winner and "
        "every arm has confidently lost to some arm.",
        per_experiment(lambda view: view.candidates),
    ),
    Gauge(
        "streamduel_assignment_epoch",
        ("experiment",),
        "Epoch of the assignment in force.",
        per_experiment(lambda view: view.epoch),
    ),
    Counter(
        "streamduel_assignments_total",
        ("experiment",),
        "Assignments published since the experiment began.",
        per_experiment(lambda view: view.epoch),  # it grows by one with every assignment
    ),
    Gauge(
        "streamduel_lag_records",
        ("partition",),
        "Lag of the partition: records not yet folded, as of some seconds ago. Includes those "
        "behind an open transaction. Not updated while the click log cannot be reached.",
        per_partition(lambda figures: figures.lags),
    ),
    Gauge(
        "streamduel_stable_offset_lag_records",
        ("partition",),
        "Records of the partition behind the oldest open transaction of a producer of the click "
        "log: no reader gets them before it ends. 0 for files. It is above 0 for moments if "
        "producers use transactions; if it stays, a producer is stuck or has left one open. Not "
        "updated while the click log cannot be reached.",
        per_partition(lambda figures: figures.stable_offset_lags),
    ),
    Gauge(
        "streamduel_stream_time_seconds",
        ("partition",),
        "Stream time, in seconds since 1970: the largest record timestamp folded, without time "
        "outliers. Absent until there is one.",
        per_view(lambda view, _: view.stream_time / 1000 if view.stream_time else None),
    ),
    Counter(
        "streamduel_time_outliers_total",
        ("partition",),
        "Records since the beginning of the click log whose timestamp was too far ahead of the "
        "records around them: stream time did not follow. Some producer's clock is wrong; the "
        "warning `time outliers` in the application log names the newest record.",
        per_view(lambda view, _: view.time_outliers),
    ),
    Counter(
        "streamduel_records_missed_total",
        ("partition",),
        "Offsets that the click log deleted before this process could fold them, since it restored "
        "the partition: its records are not in any result. The error `records missed` in the "
        "application log has the first and the last of them.",
        per_view(lambda view, _: view.missed),
    ),
    Gauge(
        "streamduel_snapshot_age_seconds",
        ("partition",),
        "Seconds since this process wrote or read the newest snapshot of the partition. It also "
        "grows while no records arrive, so combine it with streamduel_lag_records.",
        per_view(lambda view, figures: max(0.0, figures.now - view.saved_at)),
    ),
    Gauge(
        "streamduel_restoring_partitions",
        (),
        "Partitions that this process owns and whose state is being read, or the stretch of the "
        "click log in the dedupe window. No process folds them meanwhile.",
        lambda figures: [((), float(len(figures.restoring)))],
    ),
    Counter(
        "streamduel_restores_total",
        (),
        "Partitions restored by this process: at its start, when it gained one, and after a failed "
        "commit. 0 while a snapshot cannot be read.",
        lambda figures: [((), figures.restores)],
    ),
    Counter(
        "streamduel_commit_failures_total",
        (),
        "Commits of this process that were refused, failed, or were not answered in time (some 15 "
        "seconds with Kafka). Nothing is lost: the records are folded again from the last "
        "snapshot. The next commit is not tried before that snapshot is read, so an unreachable "
        "broker counts once: watch streamduel_connected, and streamduel_snapshot_age_seconds, "
        "which is absent meanwhile. A permanent error, such as a full disk or a missing "
        "permission, ends the process instead: watch `up`.",
        lambda figures: [((), figures.commit_failures)],
    ),
    Histogram(
        "streamduel_commit_seconds",
        (),
        "Duration of commits, from the first write until all of it is visible.",
        lambda figures: figures.commit_seconds,
    ),
    Histogram(
        "streamduel_poll_records",
        (),
        "Records per poll of the source; empty polls are not counted.",
        lambda figures: figures.poll_records,
    ),
    Gauge(
        "streamduel_connected",
        ("connector",),
        "1 while the click log is reachable, with all partitions of this process, and standard "
        "input, if it is read, has not ended; else 0.",
        lambda figures: [
            ((figures.connector,), float(figures.connected and not figures.unreadable))
        ],
    ),
)
