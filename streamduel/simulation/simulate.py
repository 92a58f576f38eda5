"""All runs of a simulation, in one process or several, with a journal of finished runs."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Final

from streamduel.errors import ConfigurationError, StreamduelError
from streamduel.simulation.journal import Journal
from streamduel.simulation.measurement import RunResult, measure
from streamduel.simulation.results import Results
from streamduel.simulation.settings import PolicySpec, Settings

_CHUNKS: Final = 100
"""Parts of the work of each process; small enough for a progress bar to move."""

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
    """Measure all runs.

    With several processes, a script must keep its own work under `if __name__ == "__main__":`,
    because each process imports it again.

    Args:
        settings: of the simulation.
        jobs: the number of processes; the results do not depend on it.
        journal: a file for the finished runs. The runs in an existing one are not repeated.
        progress: called with the number of finished runs and of all runs.
        results: receives the finished runs, for a caller that may interrupt this function.

    Returns:
        `results`, or new ones.

    Raises:
        ConfigurationError: the journal has other settings, or `jobs` is out of range.
        StreamduelError: the processes cannot start, or one of them died.

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
        with closing(_measured(settings, missing, jobs)) as runs:
            for count, run in enumerate(runs, start=1):
                found.add(run)
                if written:
                    written.add(run)
                if progress:
                    progress(done + count, total)
    return found


def _measured(settings: Settings, tasks: list[Task], jobs: int) -> Generator[RunResult]:
    """The results as runs finish, in any order; closing the iterator stops the other runs."""
    jobs = min(jobs, len(tasks))
    if jobs > 1:
        yield from _measured_in_pool(settings, tasks, jobs)
    else:
        yield from (measure(settings, *task) for task in tasks)


def _measured_in_pool(settings: Settings, tasks: list[Task], jobs: int) -> Iterator[RunResult]:
    """The results as other processes finish their runs."""
    size = max(1, len(tasks) // (jobs * _CHUNKS))
    chunks = [tasks[start : start + size] for start in range(0, len(tasks), size)]
    others = set(multiprocessing.active_children())
    spawn = multiprocessing.get_context("spawn")
    try:
        pool = ProcessPoolExecutor(jobs, spawn, initializer=_initialize, initargs=(settings,))
    except OSError as error:  # as where a container may not write to /dev/shm
        raise StreamduelError(
            f"the processes of the simulation need shared memory, as in /dev/shm "
            f"({error.strerror}); use one job, which needs none."
        ) from error
    try:
        # The processes that start here block Ctrl-C, which a terminal sends to all of them; this
        # one ends them, without a traceback. A signal that is blocked at a start stays blocked.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            futures = [pool.submit(_measure_chunk, each) for each in chunks]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for future in as_completed(futures):
            yield from future.result()
    except BrokenProcessPool as error:
        raise StreamduelError(
            "a process of the simulation died, perhaps for lack of memory; try fewer jobs."
        ) from error
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


_settings: Settings
"""The settings, in a worker process."""


def _initialize(settings: Settings) -> None:
    """Initialize a worker process, which ends with the process that started it."""
    global _settings  # noqa: PLW0603 - an initializer has no other way
    _settings = settings
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the parent process has ended, even by `kill -9`, then exit."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _measure_chunk(tasks: Sequence[Task]) -> list[RunResult]:
    """Measure some runs, one after the other."""
    return [measure(_settings, *task) for task in tasks]
