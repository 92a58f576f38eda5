"""All metrics, each declared once: its name, its labels, what it means, where its value is from."""

from __future__ import annotations

from typing import Final, get_args

from streamduel.monitoring.declaration import (
    Counter,
    Declaration,
    Gauge,
    Histogram,
    Samples,
    of_arms,
    of_experiment,
    of_experiments,
    of_partitions,
)
from streamduel.monitoring.views import ExperimentView, Figures
from streamduel.preference.regret import KINDS
from streamduel.records import Reason

COMMIT_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""A commit to files takes about a millisecond, a Kafka transaction 5 to 100. Above 0.5, the default
commit interval, commits set the pace; at 30 the connector for Kafka has long given up."""

POLL_RECORDS: Final = (1, 10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000)
"""5000 is what a poll of Kafka brings at most by default: a reader with arrears fills that bucket,
one that keeps up stays far below."""

OUTCOMES: Final = ("accepted", "duplicate", "late", "unjoined")
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)


def _dead_letters(figures: Figures) -> Samples:
    for reason in REASONS:
        yield (reason,), sum(letters.get(reason, 0) for letters in figures.dead_letters.values())


def _regret(view: ExperimentView) -> Samples:
    for kind in KINDS:
        yield (kind, "estimate"), view.regret[kind]
        yield (kind, "upper"), view.regret_bound[kind]


def _guardrail_regret(view: ExperimentView) -> Samples:
    if view.guardrails:
        for kind in KINDS:
            yield (kind,), view.guardrail_regret[kind]


METRICS: Final[tuple[Declaration, ...]] = (
    Counter(
        "streamduel_records_total",
        ("experiment", "outcome"),
        "Records of the experiment by what became of them. A duplicate's id was seen within the "
        "dedupe window; late and unjoined are clicks that found no impression in time. Records "
        "that became dead letters are counted by streamduel_dead_letters_total.",
        "experiment",
        of_experiments(lambda view: (((name,), view.tallies[name]) for name in OUTCOMES)),
        times=len(OUTCOMES),
    ),
    Counter(
        "streamduel_dead_letters_total",
        ("reason",),
        "Records that could not be used, of the partitions that this process has or has had, "
        "since the beginning of the log. It does not fall when a partition is lost; it rises by "
        "the partition's past when one is gained.",
        "process",
        _dead_letters,
        times=len(REASONS),
    ),
    Counter(
        "streamduel_duels_total",
        ("experiment",),
        "Duels that the policy has learned, those of an arm with itself included.",
        "experiment",
        of_experiment(lambda view: view.duels),
    ),
    Gauge(
        "streamduel_regret",
        ("experiment", "kind", "bound"),
        "Cumulative regret of all duels so far under the current estimate of the preference "
        "matrix, with the champion as the best arm. An arm that has the better of the champion "
        "has gap 0. The estimate judges old duels anew, so it may fall. `upper` is a bound that "
        "holds at all times together with 95 % confidence.",
        "experiment",
        of_experiments(_regret),
        times=2 * len(KINDS),
    ),
    Counter(
        "streamduel_impressions_total",
        ("experiment",),
        "Interleaved impressions: `impression` and `interleaving` records.",
        "experiment",
        of_experiment(lambda view: view.served.impressions),
    ),
    Counter(
        "streamduel_ties_total",
        ("experiment",),
        "Impressions and duels that were no win for either side, those that are dropped included. "
        "A share that changes suddenly is a change in logging more often than in users.",
        "experiment",
        of_experiment(lambda view: view.served.ties),
    ),
    Counter(
        "streamduel_team_ranks_total",
        ("experiment", "side"),
        "Documents shown in interleaved impressions, by the side whose they were.",
        "experiment",
        of_experiments(lambda view: zip((("a",), ("b",)), view.served.ranks, strict=True)),
        times=2,
    ),
    Gauge(
        "streamduel_team_mismatch",
        ("experiment",),
        "How sure it is, from 0 to 1, that services do not interleave fairly: that one side has "
        "the longer team, or the top rank, more often than a coin would give it. Valid at any "
        "time; above 0.95, look at the service. Optimised interleaving has no such coin.",
        "experiment",
        of_experiment(lambda view: view.team_mismatch),
    ),
    Counter(
        "streamduel_unassigned_impressions_total",
        ("experiment",),
        "Interleaved impressions of a pair that no assignment of the last hour of stream time has "
        "named. A service that follows assignments has none.",
        "experiment",
        of_experiment(lambda view: view.served.unassigned),
    ),
    Gauge(
        "streamduel_open_impressions",
        ("experiment",),
        "Impressions that wait for clicks.",
        "experiment",
        of_experiment(lambda view: view.open["impressions"]),
    ),
    Gauge(
        "streamduel_waiting_clicks",
        ("experiment",),
        "Clicks that wait for their impression; they are in no outcome of streamduel_records_total "
        "yet.",
        "experiment",
        of_experiment(lambda view: view.open["clicks"]),
    ),
    Gauge(
        "streamduel_guardrail_share",
        ("experiment",),
        "The share of the impressions that guardrails take from what the policy proposes, at "
        "present. Only of experiments with guardrails.",
        "experiment",
        of_experiments(lambda view: [((), view.guardrails.share)] if view.guardrails else []),
    ),
    Gauge(
        "streamduel_guardrail_regret",
        ("experiment", "kind"),
        "The part of streamduel_regret (estimate) that comes from duels fought because guardrails "
        "wanted them: of the control arm alone, and of a frozen pair. What a cap costs, learning "
        "that takes longer, is not in it. Only of experiments with guardrails.",
        "experiment",
        of_experiments(_guardrail_regret),
        times=len(KINDS),
    ),
    Gauge(
        "streamduel_champion_confidence",
        ("experiment",),
        "A lower bound of the probability that the champion is the winner that the policy seeks. "
        "It is valid at any time, however often one looks, and stays near 0 until the duels "
        "decide: 0.95 is to be read as `sure enough to stop`.",
        "experiment",
        of_experiment(lambda view: view.confidence),
    ),
    Gauge(
        "streamduel_condorcet_winner_possible",
        ("experiment",),
        "1 as long as some ranker may beat all others; 0 once each has lost to another one, with "
        "95 % confidence at any time. Then a policy that seeks such a ranker explores for ever.",
        "experiment",
        of_experiment(lambda view: float(view.condorcet_winner_possible)),
    ),
    Gauge(
        "streamduel_batch_round",
        ("experiment",),
        "Number of the open batch, from 1. Only of policies that work in batches.",
        "experiment",
        of_experiments(lambda view: [((), view.batch[0])] if view.batch else []),
    ),
    Gauge(
        "streamduel_batch_remaining",
        ("experiment",),
        "Duels that the open batch still lacks. Only of policies that work in batches.",
        "experiment",
        of_experiments(lambda view: [((), view.batch[1])] if view.batch else []),
    ),
    Gauge(
        "streamduel_champion",
        ("experiment", "arm"),
        "1 for the champion of the assignment in force, 0 for the other arms.",
        "arm",
        of_arms(lambda view: view.champions),
    ),
    Gauge(
        "streamduel_arm_copeland_score",
        ("experiment", "arm"),
        "The share of the other arms that the arm beats, from 0 to 1: the number of arms against "
        "which it has won more than half of the duels, divided by K - 1.",
        "arm",
        of_arms(lambda view: view.copeland),
    ),
    Counter(
        "streamduel_arm_duels_total",
        ("experiment", "arm"),
        "Duels of the arm against other arms. Each duel is counted with both of its arms.",
        "arm",
        of_arms(lambda view: view.arm_duels),
    ),
    Gauge(
        "streamduel_candidates",
        ("experiment",),
        "Arms that the policy has not ruled out. It is 0 when the policy seeks a Condorcet winner "
        "and every arm has confidently lost to some arm.",
        "experiment",
        of_experiment(lambda view: view.candidates),
    ),
    Gauge(
        "streamduel_assignment_epoch",
        ("experiment",),
        "Epoch of the assignment in force.",
        "experiment",
        of_experiment(lambda view: view.epoch),
    ),
    Counter(
        "streamduel_assignments_total",
        ("experiment",),
        "Assignments published since the experiment began.",
        "experiment",
        of_experiment(lambda view: view.epoch),  # it grows by one with every assignment
    ),
    Gauge(
        "streamduel_lag_records",
        ("partition",),
        "Records of the partition that are not folded yet, as of some seconds ago.",
        "partition",
        of_partitions(lambda figures: figures.lags),
    ),
    Gauge(
        "streamduel_stream_time_seconds",
        ("partition",),
        "The largest broker timestamp folded, in seconds since 1970. Absent until there is one.",
        "partition",
        of_partitions(
            lambda figures: {
                number: view.stream_time / 1000
                for number, view in figures.partitions.items()
                if view.stream_time
            }
        ),
    ),
    Gauge(
        "streamduel_snapshot_age_seconds",
        ("partition",),
        "Seconds since this process wrote or read the newest snapshot of the partition. It grows "
        "also while no records come, so watch it together with streamduel_lag_records.",
        "partition",
        of_partitions(
            lambda figures: {
                number: max(0.0, figures.now - view.saved_at)
                for number, view in figures.partitions.items()
            }
        ),
    ),
    Histogram(
        "streamduel_commit_seconds",
        (),
        "How long commits took, from the first write until all of it was visible.",
        "process",
        lambda figures: figures.commit_seconds,
        times=len(COMMIT_SECONDS) + 3,  # and +Inf, the sum and the count
    ),
    Histogram(
        "streamduel_poll_records",
        (),
        "How many records a poll of the source brought; empty polls are not counted.",
        "process",
        lambda figures: figures.poll_records,
        times=len(POLL_RECORDS) + 3,  # and +Inf, the sum and the count
    ),
    Gauge(
        "streamduel_connected",
        ("connector",),
        "1 while the source's log can be reached, else 0.",
        "process",
        lambda figures: [((figures.connector,), float(figures.connected))],
    ),
)
