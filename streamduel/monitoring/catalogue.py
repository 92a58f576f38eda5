"""All metrics, each declared once: its name, its labels, what it means, where its value is from.

Those of the process are the library's own: `process_metrics`.
"""

from __future__ import annotations

from typing import Final, get_args

from streamduel import __version__
from streamduel.monitoring.assessment import Assessment
from streamduel.monitoring.declaration import (
    Counter,
    Declaration,
    Gauge,
    Histogram,
    OfExperiments,
    Samples,
    of_arms,
    of_assessment,
    of_experiment,
    of_labels,
    of_partitions,
    of_some,
)
from streamduel.monitoring.views import Figures
from streamduel.preference.regret import KINDS
from streamduel.records import Reason
from streamduel.stream.plan import Status

COMMIT_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""A commit to files takes about a millisecond, a Kafka transaction 5 to 100. Above 0.5, the default
commit interval, commits set the pace; at 30 the connector for Kafka has long given up."""

POLL_RECORDS: Final = (1, 10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000)
"""5000 is what a poll of Kafka brings at most by default: a reader with arrears fills that bucket,
one that keeps up stays far below."""

OUTCOMES: Final = ("accepted", "duplicate", "late", "unjoined")
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
STATUSES: Final[tuple[Status, ...]] = get_args(Status)


def _dead_letters(figures: Figures) -> Samples:
    for reason in REASONS:
        yield (reason,), sum(letters.get(reason, 0) for letters in figures.dead_letters.values())


def _regret(found: Assessment) -> list[float]:
    bounds = found.regret, found.regret_bound
    return [regret[kind] for kind in KINDS for regret in bounds]


def _guardrail_regret(found: Assessment) -> list[float]:
    regret = found.guardrail_regret
    return [] if regret is None else [regret[kind] for kind in KINDS]


METRICS: Final[tuple[Declaration, ...]] = (
    Gauge(
        "streamduel_build_info",
        ("version",),
        "Always 1; its label says which version runs.",
        "process",
        lambda _: [((__version__,), 1.0)],
    ),
    Gauge(
        "streamduel_experiment_info",
        ("experiment", "policy", "stage", "seeks"),
        "Always 1; its labels say which policy is configured, which algorithm is at work (`auto` "
        "goes over from one to another), and which winner the policy seeks: condorcet or copeland.",
        "experiment",
        OfExperiments(lambda view: [(view.policy, view.stage, view.seeks)], lambda _: (1.0,)),
    ),
    Gauge(
        "streamduel_experiment_status",
        ("experiment", "status"),
        "1 for the status that the experiment is in, 0 for the other two.",
        "experiment",
        of_labels(
            [(status,) for status in STATUSES],
            lambda view: [float(status == view.status) for status in STATUSES],
        ),
        times=len(STATUSES),
    ),
    Counter(
        "streamduel_records_total",
        ("experiment", "outcome"),
        "Records of the experiment by what became of them. A duplicate's id was seen within the "
        "dedupe window; late and unjoined are clicks that found no impression in time. Records "
        "that became dead letters are counted by streamduel_dead_letters_total.",
        "experiment",
        of_labels(
            [(outcome,) for outcome in OUTCOMES],
            lambda view: [view.tallies[outcome] for outcome in OUTCOMES],
        ),
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
        "streamduel_experiment_dead_letters_total",
        ("experiment",),
        "Of these, the records that named the experiment and could be read so far.",
        "experiment",
        of_experiment(lambda view: view.tallies["dead_letter"]),
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
        of_assessment(
            [(kind, bound) for kind in KINDS for bound in ("estimate", "upper")], _regret
        ),
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
        of_labels([("a",), ("b",)], lambda view: view.served.ranks),
        times=2,
    ),
    Gauge(
        "streamduel_team_mismatch",
        ("experiment",),
        "How sure it is, from 0 to 1, that services do not interleave fairly: that a side, or a "
        "ranker on whichever side, has more documents, top ranks or prominent ranks than coins "
        "would give it. Valid at any time; above 0.99, look at the service. Balanced and optimised "
        "interleaving have no such coins.",
        "experiment",
        of_assessment([()], lambda found: [found.team_mismatch]),
    ),
    Counter(
        "streamduel_unassigned_impressions_total",
        ("experiment",),
        "Interleaved impressions of a pair that was not assigned: not by the assignment whose "
        "`epoch` the record has or, where it has none, by none of the last hour of stream time. A "
        "service that follows assignments has none. Whether it keeps to their shares, this does "
        "not tell.",
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
        of_some(lambda view: view.guardrails, [()], lambda guarded: [guarded.share]),
    ),
    Gauge(
        "streamduel_guardrail_regret",
        ("experiment", "kind"),
        "The part of streamduel_regret (estimate) that comes from duels fought because guardrails "
        "wanted them: of the control arm alone, and of a frozen pair. What a cap costs, learning "
        "that takes longer, is not in it. Only of experiments with guardrails.",
        "experiment",
        of_assessment(
            [(kind,) for kind in KINDS],
            _guardrail_regret,
            lambda view: view.guardrails is not None,
        ),
        times=len(KINDS),
    ),
    Gauge(
        "streamduel_champion_confidence",
        ("experiment",),
        "A lower bound of the probability that the champion is the winner that the policy seeks. "
        "It is valid at any time, however often one looks, and stays near 0 until the duels "
        "decide: 0.95 is to be read as `sure enough to stop`.",
        "experiment",
        of_assessment([()], lambda found: [found.confidence]),
    ),
    Gauge(
        "streamduel_condorcet_winner_possible",
        ("experiment",),
        "1 as long as some ranker may beat all others; 0 once each has lost to another one, with "
        "95 % confidence at any time. Then a policy that seeks such a ranker explores for ever.",
        "experiment",
        of_assessment([()], lambda found: [found.condorcet_winner_possible]),
    ),
    Gauge(
        "streamduel_batch_round",
        ("experiment",),
        "Number of the open batch, from 1. Only of policies that work in batches.",
        "experiment",
        of_some(lambda view: view.batch, [()], lambda batch: batch[:1]),
    ),
    Gauge(
        "streamduel_batch_remaining",
        ("experiment",),
        "Duels that the open batch still lacks. Only of policies that work in batches.",
        "experiment",
        of_some(lambda view: view.batch, [()], lambda batch: batch[1:]),
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
        "Duels of the arm against other arms, those included that the policy has forgotten or that "
        "were against arms that have left. Each duel is counted with both of its arms.",
        "arm",
        of_arms(lambda view: view.fought),
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
    Counter(
        "streamduel_restores_total",
        (),
        "Partitions whose state this process has restored: at its start, when it was given one, "
        "and after a commit that came to nothing. Zero while a snapshot cannot be read.",
        "process",
        lambda figures: [((), figures.restores)],
    ),
    Counter(
        "streamduel_commit_failures_total",
        (),
        "Commits of this process that were refused, or that failed or had no answer in time, which "
        "with Kafka is some 15 seconds. Nothing is lost: the work is done again from the last "
        "snapshot. The next commit is not tried before that is read, so a broker that is away "
        "counts once: watch streamduel_connected, and streamduel_snapshot_age_seconds, which is "
        "absent meanwhile. A failure that waiting will not mend, a full disk or a missing "
        "permission, ends the process instead: watch `up`.",
        "process",
        lambda figures: [((), figures.commit_failures)],
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
