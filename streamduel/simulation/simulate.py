"""Many runs of many policies: in this process or several, and written down as they finish."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Final

from streamduel.errors import ConfigurationError, StreamduelError
from streamduel.simulation.journal import Journal
from streamduel.simulation.measurement import RunResult, measure
from streamduel.simulation.results import Results
from streamduel.simulation.settings import PolicySpec, Settings

_CHUNKS: Final = 100
"""Each process gets its work in about so many parts, that a bar may move."""

Task = tuple[PolicySpec, int]
"""A policy, and the number of the run."""


def simulate(
    settings: Settings,
    *,
    jobs: int = 1,
    journal: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    results: Results | None = None,
) -> Results:
    """Play all runs.

    With several processes, a script must keep its own work under `if __name__ == "__main__":`, for
    each process imports it anew.

    Args:
        settings: what is simulated.
        jobs: in how many processes; the results do not depend on it.
        journal: a file for the finished runs. One that is there is gone on with; it stays.
        progress: is told how many runs are finished, and how many there are.
        results: takes the finished runs as they come, for a caller who may interrupt this.

    Returns:
        `results`, or new ones.

    Raises:
        ConfigurationError: the journal does not fit, or `jobs` is out of range.

    >>> preferences = [[0.5, 0.6, 0.7], [0.4, 0.5, 0.6], [0.3, 0.4, 0.5]]
    >>> settings = Settings(preferences, [("rucb", {})], horizon=1000, runs=3, seed=7)
    >>> result = simulate(settings).policies()[0]
    >>> result.checkpoints[-1], round(result.mean[-1], 3), result.champion_accuracy[-1]
    (1000, 31.367, 1.0)
    """
    if type(jobs) is not int or not 1 <= jobs <= 1000:
        raise ConfigurationError(f"the number of jobs must be from 1 to 1000 (found {jobs!r}).")
    found = results or Results(settings)
    total = settings.runs * len(settings.specs)
    with Journal(journal, settings) if journal else nullcontext() as written:
        for run in written or ():
            found.add(run)
        missing = found.missing()
        done = total - len(missing)
        if progress:
            progress(done, total)
        with closing(_played(settings, missing, jobs)) as runs:
            for count, run in enumerate(runs, start=1):
                found.add(run)
                if written:
                    written.add(run)
                if progress:
                    progress(done + count, total)
    return found


def _played(settings: Settings, tasks: list[Task], jobs: int) -> Generator[RunResult]:
    """The runs as they finish, in any order; closing the iterator stops all that is under way."""
    jobs = min(jobs, len(tasks))
    if jobs > 1:
        yield from _played_elsewhere(settings, tasks, jobs)
    else:
        yield from (measure(settings, *task) for task in tasks)


def _played_elsewhere(settings: Settings, tasks: list[Task], jobs: int) -> Iterator[RunResult]:
    """The runs as other processes finish them."""
    size = max(1, len(tasks) // (jobs * _CHUNKS))
    chunks = [tasks[start : start + size] for start in range(0, len(tasks), size)]
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_settle,
        initargs=(settings,),
    )
    try:
        with _without_interrupts():
            futures = [pool.submit(_measure_chunk, each) for each in chunks]
        for future in as_completed(futures):
            yield from future.result()
    except BrokenProcessPool as error:
        raise StreamduelError(
            "a process of the simulation died, perhaps for want of memory; try fewer jobs."
        ) from error
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that start in here never hear of Ctrl-C: this one ends them, without a traceback.

    A terminal sends it to all of them. What is blocked when a process starts stays so in it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_settings: Settings
"""In a process of its own: what is simulated."""


def _settle(settings: Settings) -> None:
    """Begin a process of its own, which ends with the one that started it."""
    global _settings  # noqa: PLW0603 - the only way in
    _settings = settings
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the process that started this one is gone, even by `kill -9`; then go too."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _measure_chunk(tasks: Sequence[Task]) -> list[RunResult]:
    """Some runs, one after the other."""
    return [measure(_settings, *task) for task in tasks]
