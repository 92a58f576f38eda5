"""What a simulation has found: mean regret and its spread, policy by policy."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from streamduel.simulation.files import write_whole
from streamduel.simulation.measurement import RunResult
from streamduel.simulation.settings import PolicySpec, Settings


class PolicyResult(NamedTuple):
    """The runs of one policy, added up; each list has an entry for each checkpoint.

    Attributes:
        name: the policy's.
        params: all its parameters.
        runs: how many.
        checkpoints: after how many duels.
        mean: of the cumulative regret.
        std_error: of that mean, from the sample's deviation; 0 for a single run.
        min: the least regret of a run.
        max: the largest.
        champion_accuracy: the share of runs whose champion was right.
        seconds_per_run: on average.
    """

    name: str
    params: dict[str, Any]
    runs: int
    checkpoints: list[int]
    mean: list[float]
    std_error: list[float]
    min: list[float]
    max: list[float]
    champion_accuracy: list[float]
    seconds_per_run: float


class Results:
    """The finished runs of a simulation.

    Args:
        settings: what is simulated.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._runs: list[dict[int, RunResult]] = [{} for _ in settings.specs]

    def add(self, run: RunResult) -> None:
        """Take a finished run; one of a policy or number that was not asked for is left out.

        Args:
            run: of any policy.
        """
        if run.run < self.settings.runs:
            for spec, runs in zip(self.settings.specs, self._runs, strict=True):
                if spec == (run.name, run.params):
                    runs[run.run] = run

    def missing(self) -> list[tuple[PolicySpec, int]]:
        """The runs that are still to be played.

        The first run of all policies comes first, then the second: so that what is there when a
        simulation is interrupted compares the policies fairly.
        """
        return [
            (spec, run)
            for run in range(self.settings.runs)
            for spec, runs in zip(self.settings.specs, self._runs, strict=True)
            if run not in runs
        ]

    def regrets(self, place: int) -> list[list[float]]:
        """The regret of each finished run at each checkpoint.

        Args:
            place: of the policy among those asked for, from 0.
        """
        return [run.regret for _, run in sorted(self._runs[place].items())]

    def policies(self) -> list[PolicyResult]:
        """Each policy that has a finished run, in the order asked for."""
        return [
            _added_up(spec, self.settings.checkpoints, [runs[run] for run in sorted(runs)])
            for spec, runs in zip(self.settings.specs, self._runs, strict=True)
            if runs
        ]

    def report(
        self, matrix: str | None, changes: Mapping[int, str] | None = None
    ) -> dict[str, Any]:
        """All that was found, as JSON can hold it.

        Args:
            matrix: where the preferences came from.
            changes: where those came from that replace them after so many duels.
        """
        settings = self.settings
        listed = []
        for result in self.policies():
            fields = result._asdict()
            del fields["runs"]
            listed.append(fields)
        return {
            "matrix": matrix,
            "arms": settings.n_arms,
            "horizon": settings.horizon,
            "runs": settings.runs,
            "seed": settings.seed,
            "regret": settings.regret,
            "ties": float(settings.ties),
            "delay": None if settings.delay is None else str(settings.delay),
            "slate": settings.slate,
            "changes": [
                {"t": t, "matrix": (changes or {}).get(t)} for t in settings.truths if t > 0
            ],
            "policies": listed,
        }


def _added_up(spec: PolicySpec, times: Sequence[int], runs: Sequence[RunResult]) -> PolicyResult:
    """One policy's result from its runs."""
    columns = list(zip(*(run.regret for run in runs), strict=True))
    means = [_mean(column) for column in columns]
    right = zip(*(run.right for run in runs), strict=True)
    return PolicyResult(
        spec.name,
        spec.params,
        len(runs),
        list(times),
        means,
        [_std_error(column, mean) for column, mean in zip(columns, means, strict=True)],
        [min(column) for column in columns],
        [max(column) for column in columns],
        [sum(column) / len(runs) for column in right],
        math.fsum(run.seconds for run in runs) / len(runs),
    )


def _mean(sample: Sequence[float]) -> float:
    """The mean; between the least and the largest value even after rounding."""
    return min(max(math.fsum(sample) / len(sample), min(sample)), max(sample))


def _std_error(sample: Sequence[float], mean: float) -> float:
    """The standard error of a mean."""
    n = len(sample)
    if n == 1:
        return 0.0
    return math.sqrt(math.fsum((value - mean) ** 2 for value in sample) / (n - 1) / n)


def write_json(path: Path, report: dict[str, Any]) -> None:
    """Write a report whole or not at all.

    Args:
        path: an existing file is replaced.
        report: as JSON can hold it.

    Raises:
        StreamduelError: the file cannot be written.
    """
    text = json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(path, text.encode())
