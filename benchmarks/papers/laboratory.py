"""The resources of an experiment: matrices, resumable simulations, and a folder for plots."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamduel.preference.arrays import Floats
from streamduel.preference.matrix import read
from streamduel.simulation.journal import Journal
from streamduel.simulation.measurement import RunResult, measure
from streamduel.simulation.results import Results
from streamduel.simulation.settings import PolicySpec, Settings

Task = tuple[str, PolicySpec, int]
"""A part of an experiment, a policy and the number of the run."""

Tell = Callable[[str], None]

_SILENCE: Final = 20.0
"""Seconds between two lines of progress."""


@dataclass
class Laboratory:
    """The resources of experiments.

    Attributes:
        cache: the folder for finished runs.
        images: the folder for pictures.
        matrices: the folder of published matrices, or None.
        jobs: the number of processes.
        quick: whether the run is a trial.
        tell: called with lines of progress.
    """

    cache: Path
    images: Path
    matrices: Path | None = None
    jobs: int = 1
    quick: bool = False
    tell: Tell = lambda _: None

    def matrix(self, name: str) -> Floats:
        """Read a published matrix."""
        assert self.matrices is not None
        return read(self.matrices / name)

    def either(self, thorough: int, quick: int) -> int:
        """A number of runs, of subsets or of duels."""
        return quick if self.quick else thorough

    def simulate(self, parts: Mapping[str, Settings]) -> dict[str, Results]:
        """Run some simulations, the slowest runs first.

        A finished run is written to the cache at once and never repeated, neither after an
        interruption nor for another figure with the same part.

        Args:
            parts: simulations by name, which is also the name of the cache file.
        """
        results = {name: Results(settings) for name, settings in parts.items()}
        longest_first = sorted(parts, key=lambda name: -parts[name].horizon)
        with ExitStack() as stack:
            journals = {}
            for name in longest_first:
                journal = Journal(self._journal(name, parts[name]), parts[name])
                journals[name] = stack.enter_context(journal)
                for run in journal:
                    results[name].add(run)
            tasks = [(name, *task) for name in longest_first for task in results[name].missing()]
            played = stack.enter_context(closing(self._played(parts, tasks)))
            told = time.monotonic()
            for count, (name, run) in enumerate(played, start=1):
                results[name].add(run)
                journals[name].add(run)
                told = self._tell_seldom(told, f"{count:,} of {len(tasks):,} runs")
        return results

    def _journal(self, name: str, settings: Settings) -> Path:
        """The cache file of a part; other settings have another file."""
        digest = hashlib.sha256(json.dumps(settings.header()).encode()).hexdigest()[:10]
        folder = self.cache / ("quick" if self.quick else "thorough")
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{name}-{digest}.jsonl"

    def _tell_seldom(self, told: float, line: str) -> float:
        """Print progress at most every few seconds; returns the time of the last line."""
        if time.monotonic() - told < _SILENCE:
            return told
        self.tell(line)
        return time.monotonic()

    def _played(
        self, parts: Mapping[str, Settings], tasks: Sequence[Task]
    ) -> Generator[tuple[str, RunResult]]:
        """The runs as they finish, with the names of their parts."""
        if self.jobs == 1 or len(tasks) < 2:
            yield from ((name, measure(parts[name], who, run)) for name, who, run in tasks)
            return
        others = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(
            min(self.jobs, len(tasks)),
            multiprocessing.get_context("spawn"),
            _settle,
            (dict(parts),),
        )
        try:
            futures = [pool.submit(_play, *task) for task in tasks]
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def processor_seconds() -> float:
    """Processor time of this process and of its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


_parts: dict[str, Settings]
"""The settings, in a worker process."""


def _settle(parts: dict[str, Settings]) -> None:
    """Initialize a worker process, which ignores Ctrl-C and ends with its parent."""
    global _parts  # noqa: PLW0603 - an initializer has no other way
    _parts = parts
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _play(name: str, contestant: PolicySpec, run: int) -> tuple[str, RunResult]:
    return name, measure(_parts[name], contestant, run)
