"""The fold without input and output, compared with decoding the same records with msgspec.

python benchmarks/fold.py [--quick]
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from benchmarks import records as made
from benchmarks.measure import Spread, in_turns, ratios
from benchmarks.records import Record, configuration, fresh_task
from benchmarks.report import Goal, Result, alone
from streamduel.config import Config
from streamduel.records import InputEvent
from streamduel.service import GC_THRESHOLDS

POLL = 5000
"""Records folded at once: as many as in a poll of the Kafka connector."""

METHOD = """\
Records in memory, in batches of 5,000; a new `PartitionTask` per repetition, with decisions of
`top_two`, the default, and assignments, without commits. The reference decodes the same list with
`msgspec.json.Decoder(InputEvent)`. Processor time of the process; fold and reference alternate;
median (min–max) of the repetitions, the ratio within each turn. The garbage collector has the
service's thresholds."""


@dataclass(frozen=True)
class Case:
    """A click log and its configuration.

    Attributes:
        name: in the table.
        config: with K and `decide_every`.
        log: the records.
        ratio: the goal for fold ÷ decode, or None.
        microseconds: the goal per record, or None.
    """

    name: str
    config: Config
    log: Sequence[Record]
    ratio: float | None = None
    microseconds: float | None = None


def cases(quick: bool) -> list[Case]:
    """The cases."""
    count = 50_000 if quick else 200_000
    duels = made.records(made.duel_values(count, 6))
    small = {"window_records": count // 8}
    every_100 = configuration(6, 100)
    shown = made.records(made.interleaving_values(count, 6))
    few = made.records(made.duel_values(count // 8, 64))
    return [
        Case("duels", every_100, duels, ratio=2.5),
        Case("duels, a decision per 10,000", configuration(6, 10_000), duels, ratio=2.5),
        Case("duels, RUCB", with_policy(every_100, "rucb"), duels),
        Case("duels, dedupe window full", configuration(6, 100, dedupe=small), duels),
        Case(
            "duels, each in a millisecond of its own",
            every_100,
            made.records(made.duel_values(count, 6), per_millisecond=1),
        ),
        Case("duels, 2 % duplicates, 1 % poison", every_100, _dirty(count)),
        Case("interleaved impressions", every_100, shown, ratio=4),
        Case(
            "interleaved impressions, a decision per 10,000",
            configuration(6, 10_000),
            shown,
            ratio=4,
        ),
        Case("duels, K = 64", configuration(64, 100), few),
        Case("duels, K = 64, a decision after each", configuration(64, 1), few, microseconds=40),
        Case(
            "duels, K = 64, a decision after each, RUCB",
            with_policy(configuration(64, 1), "rucb"),
            few,
            microseconds=15,
        ),
    ]


def with_policy(config: Config, name: str) -> Config:
    """The configuration with another policy than the default."""
    search = config.experiments["search"].model_dump()
    experiments = {"search": {**search, "policy": {"name": name}}}
    return Config.model_validate({**config.model_dump(), "experiments": experiments})


def _dirty(count: int) -> list[Record]:
    return made.records(made.dirty_values(count, 6))


def decode_seconds(log: Sequence[Record]) -> float:
    """The reference: decode all records."""
    decode = msgspec.json.Decoder(InputEvent).decode
    began = time.process_time()
    for record in log:
        try:
            decode(record.value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return time.process_time() - began


def fold_seconds(config: Config, log: Sequence[Record]) -> float:
    """Fold the whole click log."""
    task = fresh_task(config)
    batches = [log[start : start + POLL] for start in range(0, len(log), POLL)]
    began = time.process_time()
    for batch in batches:
        task.fold(batch)
    return time.process_time() - began


def measure(quick: bool) -> list[Result]:
    """Measure all cases in turn."""
    gc.set_threshold(*GC_THRESHOLDS)
    rows: list[list[str]] = []
    goals: list[Goal] = []
    for case in cases(quick):
        runs = {
            f"fold: {case.name}, decoding": partial(decode_seconds, case.log),
            f"fold: {case.name}, folding": partial(fold_seconds, case.config, case.log),
        }
        decoding, folding = in_turns(runs, 3 if quick else 9).values()
        row, found = _told(case, decoding, folding)
        rows.append(row)
        goals += found
    columns = ["log", "bytes", "decode, µs", "fold, µs", "fold ÷ decode", "goal"]
    return [Result("The fold of one partition", METHOD, columns, rows, goals)]


def _told(
    case: Case, decoding: Sequence[float], folding: Sequence[float]
) -> tuple[list[str], list[Goal]]:
    """The row and the goals of a case."""
    count = len(case.log)
    decode = Spread.of([seconds / count * 1e6 for seconds in decoding])
    fold = Spread.of([seconds / count * 1e6 for seconds in folding])
    ratio = ratios(folding, decoding)
    goals = []
    if case.ratio is not None:
        goals.append(Goal(f"fold ÷ decode of {case.name}", ratio.median, at_most=case.ratio))
    if case.microseconds is not None:
        goals.append(Goal(case.name, fold.median, at_most=case.microseconds, unit="µs"))
    size = sum(len(record.value) for record in case.log) / count
    bounds = ", ".join(goal.bound for goal in goals)
    row = [case.name, f"{size:.0f}", decode.text(), fold.text(), ratio.text(), bounds]
    return row, goals


if __name__ == "__main__":
    alone(measure, __doc__)
