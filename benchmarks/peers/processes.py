"""A program with everything that it starts: processor time, memory, and its end (Linux)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

TICKS: Final = os.sysconf("SC_CLK_TCK")
"""Of processor time, in a second."""

_SESSION, _USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM = 3, 11, 12, 13, 14
"""Positions in `/proc/PID/stat` behind the name of the program."""


class Program:
    """A process in a session of its own, so that all that it starts is found by the session.

    Args:
        command: the program and its arguments.
        environment: added to that of this process.
        directory: to work in.
        log: the file for all that it prints; appended to.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        log: Path,
    ) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **environment},
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._log = log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def ended(self) -> bool:
        """Whether the first process has ended."""
        return self._process.poll() is not None

    @property
    def last_lines(self) -> str:
        """The end of what it printed."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])

    def cpu_seconds(self) -> float:
        """Processor time of all processes and their ended children, user and system."""
        parts = (_USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM)
        ticks = sum(int(stat[part]) for _, stat in self._members() for part in parts)
        return ticks / TICKS

    def peak_bytes(self) -> int:
        """The largest resident sets of the processes that run, added up.

        Memory that processes share counts in each.
        """
        return sum(map(_peak, (number for number, _ in self._members())))

    def kill(self) -> None:
        """End all processes with SIGKILL."""
        while found := [number for number, stat in self._members() if stat[0] != "Z"]:
            for number in found:
                _signal(number)
        self._process.wait()

    def _members(self) -> Iterator[tuple[int, list[str]]]:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    stat = (entry / "stat").read_text().rpartition(")")[2].split()
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if int(stat[_SESSION]) == self._process.pid:
                    yield int(entry.name), stat


def _signal(number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # ended by itself
        os.kill(number, signal.SIGKILL)


def _peak(number: int) -> int:
    try:
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
