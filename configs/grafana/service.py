"""The dashboard of the service: for who is woken at night because something is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as models

from configs.grafana.outcomes import outcomes
from configs.grafana.panels import (
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

OURS: Final = 'job=~"$job", instance=~"$instance"'


def variables() -> Sequence[Builder[models.VariableModel]]:
    """What is chosen at the top."""
    ours = 'streamduel_build_info{job=~"$job"}'
    return [
        data_source(),
        variable("job", "Job", "label_values(streamduel_build_info, job)", many=True),
        variable("instance", "Process", f"label_values({ours}, instance)", many=True),
    ]


def sections() -> Mapping[str, Sequence[Panel]]:
    """The panels, by the heading of their row."""
    return {
        "At a glance": _glance(),
        "Does it keep up?": _pace(),
        "What comes in": _input(),
        "What is committed": _commits(),
        "The processes": _processes(),
    }


def _glance() -> list[Panel]:
    return [
        figure(
            "Alerts",
            About(
                "How many alerts of streamduel fire at this moment.",
                "0.",
                "each alert has a section in docs/runbook.md.",
            ),
            'count(ALERTS{alertname=~"Streamduel.+", alertstate="firing"}) or vector(0)',
            unit="none",
            steps=[(1, "red")],
        ),
        figure(
            "Processes that answer",
            About(
                "How many processes Prometheus can ask.",
                "as many as you run.",
                "a missing one is down; others of its group take over its partitions.",
                "StreamduelDown",
            ),
            f"sum(up{{{OURS}}})",
            unit="none",
            steps=[(0, "red"), (1, "green")],
        ),
        figure(
            "Log in reach",
            About(
                "Whether every process reaches its click log (its broker, its file).",
                "`yes`.",
                "look at the broker and at the network between.",
                "StreamduelNotConnected",
            ),
            f"min(streamduel_connected{{{OURS}}})",
            unit="none",
            words={"1": ("yes", "green"), "0": ("no", "red")},
        ),
        figure(
            "Records that wait",
            About(
                "How many records of the click log are not folded yet, in all partitions.",
                "near 0.",
                "see `Lag by partition` for whether it grows.",
                "StreamduelLagGrowing",
            ),
            f"sum(streamduel_lag_records{{{OURS}}})",
            unit="short",
            steps=[(5000, "orange")],
        ),
        figure(
            "Restarts within an hour",
            About(
                "How often processes were started anew in the last hour.",
                "0, or once each after a deployment.",
                "a process that ends again and again says why in the last line of its log.",
                "StreamduelRestarting",
            ),
            f"sum(changes(process_start_time_seconds{{{OURS}}}[1h]))",
            unit="none",
            steps=[(3, "red")],
        ),
        name(
            "Version",
            About(
                "Which version runs.",
                "one; two while a deployment is under way.",
                "if two stay, a process was forgotten.",
            ),
            f"max by (version) (streamduel_build_info{{{OURS}}})",
            "{{version}}",
        ),
    ]


def _pace() -> list[Panel]:
    return [
        chart(
            "Lag by partition",
            About(
                "Records of each partition that are not folded yet, as of some seconds ago.",
                "near 0; after a restart or an outage a peak that falls at once.",
                "a line that rises: the process cannot keep up, or it cannot commit.",
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
            "Delay of the stream",
            About(
                "The present time less the time of the newest record that was folded.",
                "seconds while users search; it grows by itself at night, when nobody does.",
                "if it grows while `Lag by partition` is 0, no records come.",
                "StreamduelNoRecords",
            ),
            {
                "{{instance}} partition {{partition}}": "max by (instance, partition) "
                f"(time() - streamduel_stream_time_seconds{{{OURS}}})"
            },
            unit="s",
        ),
        chart(
            "Age of the snapshot",
            About(
                "Seconds since the newest snapshot of each partition was written or read.",
                "the commit interval, half a second, while records come; it grows while none do.",
                "if it grows while records wait, the process hangs.",
                "StreamduelSnapshotOld",
            ),
            {
                "{{instance}} partition {{partition}}": "max by (instance, partition) "
                f"(streamduel_snapshot_age_seconds{{{OURS}}})"
            },
            unit="s",
            steps=[(300, "red")],
        ),
    ]


def _input() -> list[Panel]:
    return [
        outcomes(
            OURS,
            "the records of all experiments",
            "nothing at all: producers have stopped, or the log is out of reach.",
        ),
        chart(
            "Dead letters, by reason",
            About(
                "Records that could not be used, by reason, within five minutes. Each stands in "
                "the dead-letter topic or file with a sentence that says what is wrong. A peak at "
                "a restart or a rebalance is the partition's past, not news.",
                "0.",
                "read some of them, and find the producer that writes them.",
                "StreamduelDeadLetterShare",
            ),
            {
                "{{reason}}": "sum by (reason) "
                f"(increase(streamduel_dead_letters_total{{{OURS}}}[5m]))"
            },
            unit="short",
            stacked=True,
        ),
        spread(
            "Records per poll",
            About(
                "How many records a look at the log brings; empty looks are not counted.",
                "dark at the bottom: what came since the last look.",
                "dark at 5,000 and above: the process is in arrears and takes all it can.",
                "StreamduelLagGrowing",
            ),
            f"streamduel_poll_records_bucket{{{OURS}}}",
            unit="short",
        ),
    ]


def _commits() -> list[Panel]:
    bucket = f"rate(streamduel_commit_seconds_bucket{{{OURS}}}[$__rate_interval])"
    return [
        spread(
            "Time of commits",
            About(
                "How long commits take: the darker, the more commits took that long.",
                "1 ms on files, 5 to 100 ms on Kafka.",
                "above half a second commits hold up everything else: look at the broker, or at "
                "the disk.",
                "StreamduelLagGrowing",
            ),
            f"streamduel_commit_seconds_bucket{{{OURS}}}",
            unit="s",
        ),
        chart(
            "Time of commits, median and worst",
            About(
                "Half of the commits were faster than `p50`, 99 of a hundred faster than `p99`.",
                "`p99` below half a second, the commit interval.",
                "look at the broker, or at the disk.",
                "StreamduelLagGrowing",
            ),
            {
                "p50": f"histogram_quantile(0.5, sum by (le) ({bucket}))",
                "p99": f"histogram_quantile(0.99, sum by (le) ({bucket}))",
            },
            unit="s",
            steps=[(0.5, "orange")],
        ),
        chart(
            "Failed commits, and restores",
            About(
                "Commits that came to nothing, and partitions whose state was read anew, within "
                "five minutes. Nothing is lost by either: the work is done again.",
                "0; at a start or a rebalance one restore for each partition.",
                "failures that go on mean that no assignment goes out any more.",
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
        ),
    ]


def _processes() -> list[Panel]:
    return [
        timeline(
            "Log in reach, by process",
            About(
                "Green while a process reaches its click log, red while it does not.",
                "green; a gap is a process that is down.",
                "look at the broker and at the network between; nothing is lost meanwhile.",
                "StreamduelNotConnected",
            ),
            {"{{instance}}": f"min by (instance) (streamduel_connected{{{OURS}}})"},
            {"1": ("in reach", "green"), "0": ("out of reach", "red")},
        ),
        chart(
            "Processor",
            About(
                "How many cores each process uses. One partition is folded by one core.",
                "far below 1.",
                "at 1 and above a process is at its end: more processes, if it has several "
                "partitions; otherwise count duels upstream.",
                "StreamduelLagGrowing",
            ),
            {
                "{{instance}}": "sum by (instance) "
                f"(rate(process_cpu_seconds_total{{{OURS}}}[$__rate_interval]))"
            },
            unit="short",
            steps=[(0.9, "orange")],
        ),
        chart(
            "Memory",
            About(
                "Memory in use, by process.",
                "grows until the dedupe window is full (110 MB for a million records), then flat.",
                "compare with the container's limit; make `dedupe.window_records` smaller.",
                "StreamduelRestarting",
            ),
            {"{{instance}}": f"max by (instance) (process_resident_memory_bytes{{{OURS}}})"},
            unit="bytes",
        ),
    ]
