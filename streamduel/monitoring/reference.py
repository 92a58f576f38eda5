"""Writes the reference of all metrics from their declarations.

python -m streamduel.monitoring.reference docs/metrics.md
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Final

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from streamduel.monitoring.assessment import CHEAP_ARMS
from streamduel.monitoring.assessments import FRESH_SECONDS, MOST_PER_SECOND
from streamduel.monitoring.catalogue import COMMIT_SECONDS, METRICS, POLL_RECORDS
from streamduel.monitoring.declaration import Counter as CounterMetric
from streamduel.monitoring.declaration import Declaration, Gauge, OfAssessments
from streamduel.monitoring.process_metrics import PROCESS_METRICS
from streamduel.monitoring.views import (
    ExperimentView,
    Figures,
    Guarded,
    PartitionView,
    Served,
    Tally,
)
from streamduel.stream.runner import LAG_INTERVAL

_BEGINNING: Final = """\
<!-- Made by `python -m streamduel.monitoring.reference docs/metrics.md`; do not edit. -->

# Metrics

With this page you can watch streamduel with Prometheus: it says how to collect its metrics, what
each of them means, and which questions they answer.

```console
$ curl --silent http://127.0.0.1:9400/metrics | grep ^streamduel_champion
streamduel_champion{arm="ltr-v3",experiment="search"} 1.0
streamduel_champion{arm="bm25",experiment="search"} 0.0
streamduel_champion{arm="ltr-v1",experiment="search"} 0.0
```

For Prometheus:

```yaml
scrape_configs:
  - job_name: streamduel
    static_configs:
      - targets: ["127.0.0.1:9400"]
```

The address is `monitoring.host` and `monitoring.port` of the configuration. Beside the metrics,
`/healthz` answers 200 while the service is alive, and `/readyz` while it also reaches its log,
holds at least one partition, and gets records for each experiment that has a
[fallback](experiments.md#fallback); otherwise they answer 503 and say why. Until
the first record comes, its absence counts from the moment the process took over the partition.
Restart a process that is not alive; do not restart one that is only not ready. `/api/experiments`
has the assignments and what else is known of each experiment [as JSON](client.md#over-http).

| question | answer |
|---|---|
| Who leads? | `streamduel_champion == 1` |
| Is it settled? | `streamduel_champion_confidence > 0.95` |
| Can it ever be? | for a Condorcet policy, not while `streamduel_condorcet_winner_possible == 0` |
| What has exploring cost at most? | `streamduel_regret{kind="strong", bound="upper"}` |
| Is a batch stuck? | `streamduel_batch_remaining`, which should fall |
| What have hold-out and frozen pairs cost? | `streamduel_guardrail_regret{kind="strong"}` |
| What does exploring cost now? | `deriv(streamduel_regret{kind="strong", bound="estimate"}[1h])` |
| Does the service keep up? | `streamduel_lag_records`, which should hover around 0 |
| Has a partition stopped? | `streamduel_snapshot_age_seconds > 60 and streamduel_lag_records > 0` |
| Is something wrong with the input? | `increase(streamduel_dead_letters_total[10m]) > 0` |
| Is the log out of reach? | `streamduel_connected == 0` |
| Do commits fail? | `increase(streamduel_commit_failures_total[10m]) > 0` |
| Does it restart again and again? | `changes(process_start_time_seconds[1h]) > 2` |
| Which experiments have ended? | `streamduel_experiment_status{status="finished"} == 1` |

Everything about experiments is read from the committed state. A counter therefore goes on where it
was after a restart, counts no record twice after a crash, and is never ahead of what the sinks
show. Only the histograms, `streamduel_restores_total`, `streamduel_commit_failures_total` and
`process_…` begin anew with each process. The series of an experiment are exported by the process
that holds its partition, and vanish from it when it loses the partition.

"""

_FRESHNESS: Final = """\
Figures are as fresh as the last commit, which is twice a second while records come
(`commit.interval_ms`); all of a partition in one scrape are of the same commit. Some of them take
arithmetic:
{names}.
A thread that rests fifty times as long as it works sees to them: of a hundred experiments of 16
arms they are some seconds old. Those that are {fresh:g} seconds old are worked out when they are
asked for, of at most {most} experiments in each second since the last scrape, the oldest first; and
at once when the champion or the arms have changed. So of 1000 experiments they are less than
{thousand:g} seconds old; and they always arrive at the last state of one that stands still.

Of an experiment with more than {cheap} arms, `streamduel_regret`, `streamduel_guardrail_regret` and
`streamduel_condorcet_winner_possible` take seconds, and only that thread sees to them: with 1000
arms they are some minutes old, and NaN while not worked out yet for the present champion and arms.

`process_…` is up to {fresh:g} seconds old, `streamduel_lag_records` up to {lag:g}.

Scrape as often as you like: one of a hundred experiments of 16 arms that all have traffic takes
some 6 ms from the fold; at one a second that is little more than half a percent
([benchmarks](../benchmarks/RESULTS.md)).

"""

_END: Final = """\
## What is not promised

- The `estimate` of `streamduel_regret` comes from the very duels that it judges. It has no
  guarantee, and with few duels it says little. `upper` holds with 95 % confidence, and is far above
  the truth while duels are few.
- Confidence assumes that a pair's preference stays what it is, and that duels are independent.
- `streamduel_dead_letters_total` has no label for partitions. In a group of several processes, a
  partition that moves brings its past along to its new process, and its old process keeps its own
  part: `increase` shows a jump at a rebalance, and the sum over processes counts some twice. The
  exact number is in `streamduel inspect --json`, and each letter is in the sink.
- For a moment during a rebalance, two processes or none may export an experiment.
- New metrics and new values of labels may come; none is renamed or dropped.
"""


def example() -> Figures:
    """Made-up figures, of which the reference shows a sample of each metric."""
    arms = ("ltr-v3", "bm25", "ltr-v1")
    wins = np.array([[0.0, 610.0, 395.5], [190.0, 0.0, 70.0], [204.5, 80.0, 0.0]])
    tallies = {"accepted": 2034, "duplicate": 12, "late": 0, "unjoined": 0, "dead_letter": 2}
    view = ExperimentView(
        name="search",
        arms=arms,
        records=2046,
        tallies=tallies,
        open={"impressions": 40, "clicks": 2},
        duels=2030,
        champion=0,
        candidates=1,
        epoch=17,
        assignment=None,
        wins=wins,
        alone=(480, 0, 0),
        fought=tuple(map(round, wins.sum(axis=1) + wins.sum(axis=0))),
        seeks="condorcet",
        batch=(4, 512),
        policy="c2b",
        stage="c2b",
        status="running",
        guardrails=Guarded(0.1, ((1, 1, 150),)),
        fallback=("bm25", 600.0),
        changed_at=0.0,
        served=Served(1500, 410, (7480, 7520), 3, ((110, 170), (760, 740))),
    )
    stream_time = 1_790_000_000_000
    commit_seconds, poll_records = Tally.empty(*COMMIT_SECONDS), Tally.empty(*POLL_RECORDS)
    return Figures(
        connector="kafka",
        commit_seconds=commit_seconds.plus(0.0125),
        poll_records=poll_records.plus(400),
        connected=True,
        partitions={3: PartitionView(stream_time, 0.0, {"search": view}, {"invalid_json": 2})},
        lags={3: 120},
        dead_letters={3: {"invalid_json": 2}},
        restores=1,
        commit_failures=1,
        now=0.25,
    )


def reference() -> str:
    """The page."""
    figures = example()
    sections = [_section(metric, figures) for metric in METRICS]
    return "".join([_BEGINNING, _freshness(), _numbers(), *sections, _process(), _END])


def _freshness() -> str:
    seldom = (f"`{each.name}`" for each in METRICS if isinstance(each, (Gauge, CounterMetric))
              and isinstance(each.read, OfAssessments))  # fmt: skip
    return _FRESHNESS.format(
        names=",\n".join(seldom),
        fresh=FRESH_SECONDS,
        most=MOST_PER_SECOND,
        thousand=1000 / MOST_PER_SECOND,
        lag=LAG_INTERVAL,
        cheap=CHEAP_ARMS,
    )


def _numbers() -> str:
    series: Counter[str] = Counter()
    for metric in METRICS:
        series[metric.per] += metric.times
    series["process"] += len(PROCESS_METRICS)
    return (
        f"There are {series['process']} series per process, {len(PROCESS_METRICS)} of them "
        f"`process_…`, {series['partition']} per partition,\n{series['experiment']} per experiment "
        f"and {series['arm']} per arm of each experiment; a few less of an experiment without\n"
        f"guardrails or batches. Their number grows with the arms, never with pairs, users or "
        f"documents.\n\n"
    )


def _process() -> str:
    """What prometheus_client says of any process; its lines are alike, so they share a section."""
    rows = [f"| `{name}` | {kind} | {meaning} |" for name, kind, meaning, _ in PROCESS_METRICS]
    samples = [f"{metric.name} {metric.sample}" for metric in PROCESS_METRICS]
    table = "\n".join(["| name | type | meaning |", "|---|---|---|", *rows])
    return (
        f"## `process_…`\n\nWhat every process is asked, under the names that every program gives "
        f"it. Read from `/proc`,\nso only Linux has them.\n\n{table}\n\n"
        f"- labels: none\n- series: 1 each\n\n" + "```\n" + "\n".join(samples) + "\n```\n\n"
    )


def _section(metric: Declaration, figures: Figures) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels) or "none"
    each = "" if metric.per == "process" else f" for each {metric.per}"
    return (
        f"## `{metric.name}`\n\n{metric.meaning}\n\n"
        f"- type: {metric.kind}\n- labels: {labels}\n- series: {metric.times}{each}\n\n"
        f"```\n{_sample(metric.family(figures))}\n```\n\n"
    )


def _sample(family: Metric) -> str:
    """The first sample with a value other than 0, as it is scraped."""
    registry = CollectorRegistry()
    registry.register(_Only(family))
    lines = generate_latest(registry).decode().splitlines()
    return next(line for line in lines if not line.startswith("#") and not line.endswith(" 0.0"))


class _Only:
    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> list[Metric]:
        return [self._family]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
