"""The dashboard of the service, for the person on call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as models

from configs.grafana.panel_kinds import (
    QUARTER,
    About,
    Panel,
    chart,
    data_source,
    figure,
    name,
    spread,
    timeline,
    variable,
)
from configs.grafana.panels.outcomes import outcomes

OURS: Final = 'job=~"$job", instance=~"$instance"'


def variables() -> Sequence[Builder[models.VariableModel]]:
    """The choices at the top."""
    ours = 'streamduel_build_info{job=~"$job"}'
    return [
        data_source(),
        variable("job", "Job", "label_values(streamduel_build_info, job)", many=True),
        variable("instance", "Process", f"label_values({ours}, instance)", many=True),
    ]


def sections() -> Mapping[str, Sequence[Panel]]:
    """The panels, by the heading of their row."""
    return {
        "Overview": _overview(),
        "Lag and delay": _lag(),
        "Input": _input(),
        "Commits": _commits(),
        "Processes": _processes(),
    }


def _overview() -> list[Panel]:
    return [
        figure(
            "Alerts",
            About(
                "Alerts of streamduel that fire now.",
                "0.",
                "each alert has a section in docs/runbook.md.",
            ),
            'count(ALERTS{alertname=~"Streamduel.+", alertstate="firing"}) or vector(0)',
            unit="none",
            steps=[(1, "red")],
        ),
        figure(
            "Processes up",
            About(
                "Processes that Prometheus can scrape.",
                "as many as you run.",
                "the missing one is down; others of its group take over its partitions.",
                "StreamduelDown",
            ),
            f"sum(up{{{OURS}}})",
            unit="none",
            steps=[(0, "red"), (1, "green")],
        ),
        figure(
            "Click log reachable",
            About(
                "Whether every process reaches its click log (its broker, its file).",
                "`yes`.",
                "check the broker and the network.",
                "StreamduelNotConnected",
            ),
            f"min(streamduel_connected{{{OURS}}})",
            unit="none",
            words={"1": ("yes", "green"), "0": ("no", "red")},
        ),
        figure(
            "Lag",
            About(
                "Records of the click log that are not folded yet, in all partitions.",
                "near 0.",
                "check in `Lag by partition` whether it grows.",
                "StreamduelLagGrowing",
            ),
            f"sum(streamduel_lag_records{{{OURS}}})",
            unit="short",
            steps=[(5000, "orange")],
        ),
        figure(
            "Restarts within an hour",
            About(
                "Restarts of processes in the last hour.",
                "0, or once each after a deployment.",
                "the last line of the process's application log has the reason.",
                "StreamduelStartFailing",
            ),
            f"sum(changes(process_start_time_seconds{{{OURS}}}[1h]))",
            unit="none",
            steps=[(3, "red")],
        ),
        name(
            "Version",
            About(
                "The running version.",
                "one; two during a deployment.",
                "if two remain, a process was not updated.",
            ),
            f"max by (version) (streamduel_build_info{{{OURS}}})",
            "{{version}}",
        ),
    ]


def _lag() -> list[Panel]:
    return [
        chart(
            "Lag by partition",
            About(
                "Records of each partition that are not folded yet, some seconds old.",
                "near 0; a peak after a restart or an outage, which falls quickly.",
                "if it rises, the process cannot keep up, or cannot commit.",
                "StreamduelLagGrowing",
            ),
            {
                "{{instance}} partition {{partition}}": "max by (instance, partition) "
                f"(streamduel_lag_records{{{OURS}}})"
            },
            unit="short",
            steps=[(5000, "orange")],
        ),
        chart(
            "Records behind open transactions",
            About(
                "Records of each partition that no reader may see yet, because a producer has an "
                "open transaction before them.",
                "0; with producers that use transactions a line that keeps falling to 0.",
                "if it only rises, a transaction hangs and the partition stands still.",
                "StreamduelStableOffsetStuck",
            ),
            {
                "{{instance}} partition {{partition}}": "max by (instance, partition) "
                f"(streamduel_stable_offset_lag_records{{{OURS}}})"
            },
            unit="short",
        ),
        chart(
            "Snapshot age",
            About(
                "Seconds since the newest snapshot of each partition was written or read.",
                "the commit interval, half a second, while records arrive; else it grows.",
                "if it grows while there is a lag, the process hangs.",
                "StreamduelSnapshotOld",
            ),
            {
                "{{instance}} partition {{partition}}": "max by (instance, partition) "
                f"(streamduel_snapshot_age_seconds{{{OURS}}})"
            },
            unit="s",
            steps=[(300, "red")],
        ),
        chart(
            "Stream time delay",
            About(
                "The present time minus stream time, the largest timestamp folded.",
                "seconds while users search; it grows at night without traffic.",
                "if it grows while `Lag by partition` is 0, no records arrive.",
                "StreamduelNoRecords",
            ),
            {
                "{{instance}} partition {{partition}}": "max by (instance, partition) "
                f"(time() - streamduel_stream_time_seconds{{{OURS}}})"
            },
            unit="s",
        ),
        chart(
            "Time outliers",
            About(
                "Records within five minutes whose timestamp was so far ahead that stream time did "
                "not follow it.",
                "0.",
                "the clock of a producer is wrong; the application log has the records.",
                "StreamduelTimeOutliers",
            ),
            {
                "{{instance}} partition {{partition}}": "max by (instance, partition) "
                f"(increase(streamduel_time_outliers_total{{{OURS}}}[5m]))"
            },
            unit="short",
        ),
        chart(
            "Records missed",
            About(
                "Offsets that the click log deleted before they were folded, since the process "
                "restored the partition.",
                "0.",
                "the retention of the click log is shorter than the time that the service lagged "
                "or was down; the application log has the offsets.",
                "StreamduelRecordsMissed",
            ),
            {
                "{{instance}} partition {{partition}}": "max by (instance, partition) "
                f"(streamduel_records_missed_total{{{OURS}}})"
            },
            unit="short",
            steps=[(1, "red")],
        ),
        spread(
            "Records per poll",
            About(
                "Records per poll of the click log; empty polls are not counted.",
                "dark at the bottom.",
                "dark at 5,000 and above: the process lags and polls as much as it can.",
                "StreamduelLagGrowing",
            ),
            f"streamduel_poll_records_bucket{{{OURS}}}",
            unit="short",
            width=24,
        ),
    ]


def _input() -> list[Panel]:
    return [
        outcomes(
            OURS,
            "Records of all experiments",
            "if there are none, producers have stopped, the click log is unreachable, or records "
            "name no configured experiment: see `Dead letters, by reason`.",
            "StreamduelNoRecords",
        ),
        chart(
            "Dead letters, by reason",
            About(
                "Invalid records by reason, within five minutes. The dead-letter topic or file "
                "has each with an error sentence. A peak at a restart or a rebalance is the total "
                "of a gained partition.",
                "0.",
                "read some of them, and find their producer.",
                "StreamduelDeadLetterShare",
            ),
            {
                "{{reason}}": "sum by (reason) "
                f"(increase(streamduel_dead_letters_total{{{OURS}}}[5m]))"
            },
            unit="short",
            stacked=True,
        ),
        chart(
            "Refused for their size",
            About(
                "Records and compressed batches over the limits, within five minutes. A refused "
                "batch counts once.",
                "0.",
                "the dead letters have the offsets and sizes; find the producer.",
                "StreamduelRecordsTooLarge",
            ),
            {
                "{{instance}}": "sum by (instance) "
                f'(increase(streamduel_dead_letters_total{{{OURS}, reason="too_large"}}[5m]))'
            },
            unit="short",
        ),
    ]


def _commits() -> list[Panel]:
    bucket = f"rate(streamduel_commit_seconds_bucket{{{OURS}}}[$__rate_interval])"
    return [
        spread(
            "Commit duration",
            About(
                "Duration of commits: the darker, the more commits.",
                "1 ms on files, 5 to 100 ms on Kafka.",
                "above half a second commits limit throughput: check the broker, or the disk.",
                "StreamduelLagGrowing",
            ),
            f"streamduel_commit_seconds_bucket{{{OURS}}}",
            unit="s",
            width=QUARTER,
        ),
        chart(
            "Commit duration, p50 and p99",
            About(
                "Half of the commits are faster than `p50`, 99 of a hundred faster than `p99`.",
                "`p99` below half a second, the commit interval.",
                "check the broker, or the disk.",
                "StreamduelLagGrowing",
            ),
            {
                "p50": f"histogram_quantile(0.5, sum by (le) ({bucket}))",
                "p99": f"histogram_quantile(0.99, sum by (le) ({bucket}))",
            },
            unit="s",
            steps=[(0.5, "orange")],
            width=QUARTER,
        ),
        chart(
            "Partitions being restored",
            About(
                "Partitions that a process owns and whose state it is reading.",
                "0; a peak of some seconds at a start, a rebalance or a failed commit.",
                "if it lasts, no process folds these partitions.",
                "StreamduelFailoverSlow",
            ),
            {"{{instance}}": f"max by (instance) (streamduel_restoring_partitions{{{OURS}}})"},
            unit="short",
            width=QUARTER,
        ),
        chart(
            "Failed commits and restores",
            About(
                "Failed commits, and partitions whose state was restored, within five minutes. "
                "Nothing is lost: the records are folded again.",
                "0; at a start or a rebalance one restore for each partition.",
                "while failures continue, no assignments are published.",
                "StreamduelCommitFailing",
            ),
            {
                "{{instance}} failed commits": "sum by (instance) "
                f"(increase(streamduel_commit_failures_total{{{OURS}}}[5m]))",
                "{{instance}} restores": "sum by (instance) "
                f"(increase(streamduel_restores_total{{{OURS}}}[5m]))",
            },
            unit="short",
            steps=[(3, "red")],
            width=QUARTER,
        ),
    ]


def _processes() -> list[Panel]:
    return [
        timeline(
            "Click log reachable, by process",
            About(
                "Green while a process reaches its click log, red otherwise.",
                "green; in a gap the process is down.",
                "check the broker and the network; nothing is lost meanwhile.",
                "StreamduelNotConnected",
            ),
            {"{{instance}}": f"min by (instance) (streamduel_connected{{{OURS}}})"},
            {"1": ("reachable", "green"), "0": ("unreachable", "red")},
            width=QUARTER,
        ),
        chart(
            "Partitions, by process",
            About(
                "Partitions of the click log that each process owns.",
                "in all, as many as the click log has.",
                "if no process owns one, the click log may have been deleted.",
                "StreamduelNoPartitions",
            ),
            {"{{instance}}": f"count by (instance) (streamduel_snapshot_age_seconds{{{OURS}}})"},
            unit="none",
            least=0,
            width=QUARTER,
        ),
        chart(
            "CPU",
            About(
                "Cores used by each process. One core folds one partition.",
                "far below 1.",
                "at 1 and above the process is at its limit: add processes if it has several "
                "partitions; otherwise count duels upstream.",
                "StreamduelLagGrowing",
            ),
            {
                "{{instance}}": "sum by (instance) "
                f"(rate(process_cpu_seconds_total{{{OURS}}}[$__rate_interval]))"
            },
            unit="short",
            steps=[(0.9, "orange")],
            width=QUARTER,
        ),
        chart(
            "Memory",
            About(
                "Memory in use, by process.",
                "grows until the dedupe window is full (150 MB for a million records), then flat.",
                "compare it with the container's limit; reduce `dedupe.window_records`.",
                "StreamduelRestarting",
            ),
            {"{{instance}}": f"max by (instance) (process_resident_memory_bytes{{{OURS}}})"},
            unit="bytes",
            width=QUARTER,
        ),
    ]
