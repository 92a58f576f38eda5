"""Results of a simulation: mean regret and its spread for each policy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from streamduel.simulation.certainty import Answer
from streamduel.simulation.measurement import RunResult
from streamduel.simulation.settings import PolicySpec, Settings


class Sure(NamedTuple):
    """When the runs of a policy had an answer; a run that had none counts with the horizon.

    Attributes:
        confidence: of the answers.
        median: number of duels after which half of the runs had an answer.
        p90: number of duels after which nine in ten had one.
        never: the number of runs without an answer.
        none: the number of runs whose answer was that no arm beats all others.
        wrong: the number of runs whose answer was wrong.
        regret: mean cumulative regret until the answer.
    """

    confidence: float
    median: int
    p90: int
    never: int
    none: int
    wrong: int
    regret: float


class PolicyResult(NamedTuple):
    """The aggregated runs of one policy; each list has an element for each checkpoint.

    Attributes:
        name: the policy's.
        params: all its parameters.
        runs: the number of finished runs.
        checkpoints: numbers of duels.
        mean: of the cumulative regret.
        std_error: of the mean, from the sample's deviation; 0 for a single run.
        min: the least regret of a run.
        max: the largest.
        champion_accuracy: the share of runs whose champion was right.
        seconds_per_run: on average.
        sure: when the runs had an answer, if that was measured.
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
    sure: Sure | None = None


class Results:
    """The finished runs of a simulation.

    Args:
        settings: of the simulation.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._runs: list[dict[int, RunResult]] = [{} for _ in settings.specs]

    def add(self, run: RunResult) -> None:
        """Add a finished run, unless its policy or number is not part of the settings."""
        if run.run < self.settings.runs:
            for spec, runs in zip(self.settings.specs, self._runs, strict=True):
                if spec == (run.name, run.params):
                    runs[run.run] = run

    def missing(self) -> list[tuple[PolicySpec, int]]:
        """The runs that have not finished.

        The first run of all policies comes first, then the second, so that an interrupted
        simulation has equally many runs of each policy.
        """
        return [
            (spec, run)
            for run in range(self.settings.runs)
            for spec, runs in zip(self.settings.specs, self._runs, strict=True)
            if run not in runs
        ]

    def regrets(self, place: int) -> list[list[float]]:
        """The regret of each finished run of the policy at an index, at each checkpoint."""
        return [run.regret for _, run in sorted(self._runs[place].items())]

    def answers(self, place: int) -> list[Answer]:
        """The answer of each finished run of the policy at an index, if that was measured."""
        return [run.answer for _, run in sorted(self._runs[place].items()) if run.answer]

    def policies(self) -> list[PolicyResult]:
        """The result of each policy with a finished run, in the order of the settings."""
        return [
            _aggregated(spec, self.settings, [runs[run] for run in sorted(runs)])
            for spec, runs in zip(self.settings.specs, self._runs, strict=True)
            if runs
        ]

    def report(
        self, matrix: str | None, changes: Mapping[int, str] | None = None
    ) -> dict[str, Any]:
        """The results as a JSON-compatible dictionary.

        Args:
            matrix: the source of the preferences.
            changes: the sources of later preferences by the number of duels after which they hold.
        """
        settings = self.settings
        listed = [_listed(result) for result in self.policies()]
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


def _listed(result: PolicyResult) -> dict[str, Any]:
    """The result of a policy in the report."""
    fields = result._asdict()
    del fields["runs"], fields["sure"]
    return fields if result.sure is None else {**fields, "sure": result.sure._asdict()}


def _aggregated(spec: PolicySpec, settings: Settings, runs: Sequence[RunResult]) -> PolicyResult:
    """The result of a policy from its runs."""
    columns = list(zip(*(run.regret for run in runs), strict=True))
    means = [_mean(column) for column in columns]
    right = zip(*(run.right for run in runs), strict=True)
    return PolicyResult(
        spec.name,
        spec.params,
        len(runs),
        list(settings.checkpoints),
        means,
        [_std_error(column, mean) for column, mean in zip(columns, means, strict=True)],
        [min(column) for column in columns],
        [max(column) for column in columns],
        [sum(column) / len(runs) for column in right],
        math.fsum(run.seconds for run in runs) / len(runs),
        _sure(settings.until_sure, [run.answer for run in runs if run.answer]),
    )


def _sure(confidence: float | None, answers: Sequence[Answer]) -> Sure | None:
    """When the runs had an answer, if that was measured."""
    if confidence is None or not answers:
        return None
    times = sorted(answer.duels for answer in answers)
    verdicts = Counter(answer.verdict for answer in answers)
    return Sure(
        confidence,
        # Times that occurred: interpolation would mix them with the horizon of runs without answer.
        median=times[-(-len(times) // 2) - 1],
        p90=times[-(-9 * len(times) // 10) - 1],
        never=verdicts[None],
        none=verdicts["none"],
        wrong=sum(answer.wrong for answer in answers),
        regret=_mean([answer.regret for answer in answers]),
    )


def _mean(sample: Sequence[float]) -> float:
    """The mean, kept between the least and the largest value despite rounding."""
    return min(max(math.fsum(sample) / len(sample), min(sample)), max(sample))


def _std_error(sample: Sequence[float], mean: float) -> float:
    """The standard error of a mean."""
    n = len(sample)
    if n == 1:
        return 0.0
    return math.sqrt(math.fsum((value - mean) ** 2 for value in sample) / (n - 1) / n)
