"""Many runs: in one process or several, interrupted or not, the results are the same."""

from __future__ import annotations

import math
import resource
import statistics
from pathlib import Path
from typing import Any

import pytest

from streamduel.errors import ConfigurationError, StreamduelError
from streamduel.simulation import simulate as simulate_module
from streamduel.simulation.certainty import Answer
from streamduel.simulation.journal import Journal
from streamduel.simulation.matrices import ARXIV
from streamduel.simulation.measurement import RunResult, measure
from streamduel.simulation.results import Results
from streamduel.simulation.settings import Settings
from streamduel.simulation.simulate import simulate
from tests.unit.simulation.bed import outcome, settings


def test_the_results_do_not_depend_on_the_number_of_processes() -> None:
    assert outcome(simulate(settings(), jobs=2)) == outcome(simulate(settings()))


def test_the_results_are_those_of_every_version() -> None:
    result = simulate(settings(horizon=1000)).policies()[0]
    assert result.champion_accuracy[-1] == 1.0
    assert result.mean[-1] == pytest.approx(52.846, rel=1e-12)


def test_figures_are_those_of_the_runs() -> None:
    asked = settings()
    runs = [measure(asked, asked.specs[0], run) for run in range(5)]
    result = simulate(asked).policies()[0]
    last = [run.regret[-1] for run in runs]
    assert result.runs == 5
    assert result.checkpoints == asked.checkpoints
    assert result.mean[-1] == pytest.approx(statistics.mean(last))
    assert result.std_error[-1] == pytest.approx(statistics.stdev(last) / math.sqrt(5))
    assert (result.min[-1], result.max[-1]) == (min(last), max(last))
    assert result.champion_accuracy[-1] == statistics.mean(run.right[-1] for run in runs)


def test_seconds_are_the_mean_of_the_runs() -> None:
    asked = settings(runs=2)
    results, n = Results(asked), len(asked.checkpoints)
    for run, seconds in enumerate((1.0, 3.0)):
        results.add(RunResult("rucb", asked.specs[0].params, run, [0.0] * n, [True] * n, seconds))
    assert results.policies()[0].seconds_per_run == 2.0


def test_a_single_run_has_no_error() -> None:
    result = simulate(settings(runs=1)).policies()[0]
    assert set(result.std_error) == {0.0}
    assert result.mean == result.min == result.max


def test_a_mean_lies_between_the_extremes() -> None:
    asked = settings(runs=3)
    results = Results(asked)
    for run in range(3):
        n = len(asked.checkpoints)
        results.add(RunResult("rucb", asked.specs[0].params, run, [0.1] * n, [True] * n, 1.0))
    result = results.policies()[0]
    assert set(result.mean) == {0.1}


def sure_of(*answers: Answer) -> dict[str, Any]:
    """What the report says of one policy's runs with these answers."""
    asked = settings(policies=[("rucb", {})], runs=len(answers), until_sure=0.9)
    results, n = Results(asked), len(asked.checkpoints)
    for run, answer in enumerate(answers):
        params = asked.specs[0].params
        results.add(RunResult("rucb", params, run, [0.1] * n, [True] * n, 1.0, answer))
    assert results.answers(0) == list(answers)
    sure: dict[str, Any] = results.report("x")["policies"][0]["sure"]
    return sure


def test_times_of_answers() -> None:
    found = [Answer("champion", 10 * (k + 1), k, wrong=k == 3) for k in range(9)]
    assert sure_of(*found[::-1], Answer(None, 200, 20.0, wrong=False)) == {
        "confidence": 0.9, "median": 50, "p90": 90, "never": 1, "none": 0, "wrong": 1,
        "regret": 5.6,
    }  # fmt: skip
    late = Answer(None, 200, 7.0, wrong=False)
    assert sure_of(late, late, Answer("none", 30, 1.0, wrong=True)) == {
        "confidence": 0.9, "median": 200, "p90": 200, "never": 2, "none": 1, "wrong": 1,
        "regret": 5.0,
    }  # fmt: skip
    assert sure_of(found[0])["median"] == sure_of(found[0])["p90"] == 10


def test_answers_are_reported_only_if_they_were_measured() -> None:
    assert not any("sure" in policy for policy in simulate(settings()).report("x")["policies"])


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int]] = []
    simulate(settings(), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 10) for done in range(11)]


@pytest.mark.parametrize("jobs", [0, -1, 1001, True, 1.5])
def test_a_wrong_number_of_jobs_is_refused(jobs: Any) -> None:
    with pytest.raises(ConfigurationError, match="number of jobs must be from 1 to 1000"):
        simulate(settings(), jobs=jobs)


class Stopped(Exception):  # noqa: N818 - what a test does, not what went wrong
    """Simulates Ctrl-C."""


def stop_after(count: int) -> Any:
    def progress(done: int, total: int) -> None:
        if done == count:
            raise Stopped

    return progress


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("count", [0, 1, 9])
def test_an_interrupted_simulation_resumes(
    tmp_path: Path, count: int, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.journal"
    with pytest.raises(Stopped):
        simulate(settings(), jobs=jobs, journal=path, progress=stop_after(count))
    with Journal(path, settings()) as journal:
        assert len(list(journal)) == count
    played: list[tuple[str, int]] = []

    def listen(asked: Settings, contestant: Any, run: int) -> RunResult:
        played.append((contestant.name, run))
        return measure(asked, contestant, run)

    monkeypatch.setattr(simulate_module, "measure", listen)
    resumed = simulate(settings(), journal=path)
    assert len(played) == len(set(played)) == 10 - count
    monkeypatch.undo()
    assert outcome(resumed) == outcome(simulate(settings()))


def test_a_journal_serves_more_runs_and_other_policies(tmp_path: Path) -> None:
    path = tmp_path / "runs.journal"
    simulate(settings(runs=3), journal=path)
    more = settings(runs=4, policies=[("ccb", {}), ("rucb", {}), ("rucb", {"alpha": 0.8})])
    assert outcome(simulate(more, journal=path)) == outcome(simulate(more))
    fewer = settings(runs=2)
    assert outcome(simulate(fewer, journal=path)) == outcome(simulate(fewer))


def test_a_process_that_dies_is_reported_and_finished_runs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate_module, "_measure_chunk", _die_at_run_3)
    path = tmp_path / "runs.journal"
    with pytest.raises(StreamduelError, match="a process of the simulation died"):
        simulate(settings(), jobs=2, journal=path)
    monkeypatch.undo()
    assert outcome(simulate(settings(), journal=path)) == outcome(simulate(settings()))


def test_processes_without_shared_memory_are_refused() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # shared memory is a file
    try:
        with pytest.raises(StreamduelError, match=r"need shared memory.*; use one job"):
            simulate(settings(), jobs=2)
        simulate(settings(), jobs=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _die_at_run_3(tasks: Any) -> list[RunResult]:
    import os  # noqa: PLC0415 - in a process of its own

    if any(run == 3 for _, run in tasks):
        os._exit(9)
    return simulate_module._measure_chunk(tasks)


def test_a_report_says_when_preferences_change() -> None:
    later = settings(changes={100: 1 - ARXIV, 20: ARXIV}, regret="copeland")
    report = Results(later).report("x", {100: "late.txt", 20: "early.txt"})
    assert report["changes"] == [
        {"t": 20, "matrix": "early.txt"}, {"t": 100, "matrix": "late.txt"}
    ]  # fmt: skip
    assert Results(later).report("x")["changes"][1] == {"t": 100, "matrix": None}
    assert Results(settings()).report("x")["changes"] == []
