"""`streamduel run` on a growing file, and its writer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import yaml

from tests.broker.local_kafka import free_port

TICK: Final = 0.2
"""Seconds between two writes: less than between two scrapes, so each scrape has new records."""

STOP_SECONDS: Final = 20.0
"""Seconds that a process has to end; it exits after eight."""

COMMAND: Final = [sys.executable, "-m", "streamduel", "run"]

Records = Iterable[Mapping[str, Any] | bytes]


class Service:
    """One process of streamduel.

    Args:
        folder: for its files.
        experiments: as in a configuration.
        others: the other parts of a configuration; files if they do not say.

    Attributes:
        port: of its metrics.
        log: its click log, if that is a file.
    """

    def __init__(
        self, folder: Path, experiments: Mapping[str, Any], **others: Mapping[str, Any]
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.port = free_port()
        self.log = folder / "clicks.jsonl"
        self.log.touch()
        self._stderr = folder / "stderr"
        self._config = folder / "streamduel.yaml"
        document = {
            "source": {"connector": "files", "path": "clicks.jsonl"},
            "sink": {"connector": "files", "path": "out/"},
            "snapshots": {"connector": "files", "path": "state/"},
            "commit": {"interval_ms": 100},
            "monitoring": {"host": "127.0.0.1", "port": self.port},
            "experiments": experiments,
            **others,
        }
        self._config.write_text(yaml.safe_dump(document))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._stderr.open("ab") as stderr:
            self._process = subprocess.Popen([*COMMAND, str(self._config)], stderr=stderr)
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        if error is not None:
            print(self.said())  # pytest shows it with the failure

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    def wait(self) -> int:
        """Wait for the end, and return the exit status."""
        assert self._process is not None
        return self._process.wait(STOP_SECONDS)

    def running(self) -> bool:
        """True.

        Raises:
            AssertionError: it has ended.
        """
        assert self._process is not None
        assert self._process.poll() is None, f"it has ended:\n{self.said()}"
        return True

    def said(self) -> str:
        """Its standard error so far."""
        return self._stderr.read_text(errors="replace")

    def write(self, records: Records) -> None:
        """Add records to its click log, all at once."""
        lines = [it if isinstance(it, bytes) else json.dumps(it).encode() for it in records]
        file = os.open(self.log, os.O_WRONLY | os.O_APPEND)
        try:
            text = memoryview(b"".join(line + b"\n" for line in lines))
            while text:
                text = text[os.write(file, text) :]
        finally:
            os.close(file)


class Feed:
    """Writes records repeatedly in a thread.

    Args:
        write: is called every `TICK` seconds, until the feed is closed.
    """

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(TICK):
            self._write()
