"""The name of a process in its group, kept across restarts."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import tempfile
import time
from pathlib import Path
from typing import Self

import structlog
from filelock import lock_descriptor

log = structlog.stdlib.get_logger(__name__)

MAX_SLOTS = 1024
"""More processes of one group on one host than any host has cores."""

MAX_HOST = 244
"""Kafka allows 249 characters in an instance id; four digits and a dash are for the slot."""

TOUCH_SECONDS = 3600.0
"""Systems clean the temporary directory of files that were not used for some days, locked or
not."""


class Instance:
    """A name that no other process of this host uses for the same purpose at the same time.

    It is `<host>-<slot>`, the slot being the first whose lock file is free. The kernel frees a lock
    when its process ends, in any way: a killed process gets its name back immediately, and with it
    its partitions (static membership) and its open transaction (transactional id).

    Args:
        name: the configured name; used as it is, without a lock.
        purpose: names for different purposes are independent.
    """

    def __init__(self, name: str | None, purpose: str) -> None:
        self._lock: int | None = None
        self._touched = time.monotonic()
        self.name = name or f"{_host()}-{self._free_slot(purpose)}"

    def _free_slot(self, purpose: str) -> int:
        digest = hashlib.sha256(purpose.encode()).hexdigest()[:16]
        directory = None
        try:
            directory = tempfile.gettempdir()
            for slot in range(MAX_SLOTS):
                with contextlib.suppress(PermissionError):  # another user's
                    self._lock = _lock(Path(directory, f"streamduel-{digest}-{slot}.lock"))
                if self._lock is not None:
                    return slot
        except OSError as error:
            log.warning(
                "lock file impossible", directory=directory, error=str(error),
                advice="this process is number 0 of its host; if the group has another one here, "
                "give each its own source.instance",
            )  # fmt: skip
        return 0

    def keep(self) -> None:
        """Keep the lock file in use: if it is deleted, the next process gets the same name.

        To be called from time to time.
        """
        now = time.monotonic()
        if self._lock is None or now - self._touched < TOUCH_SECONDS:
            return
        self._touched = now
        if os.utime in os.supports_fd:
            with contextlib.suppress(OSError):
                os.utime(self._lock)

    def close(self) -> None:
        """Free the name. The file stays: removing it would race with a process that opens it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def transactional_id(purpose: str, name: str) -> str:
    """The transactional id of the process with this name: the same after a restart.

    Args:
        purpose: the consumer group or, without one, the topic of the assignments.
        name: unique among the processes of that purpose.
    """
    return f"streamduel-{purpose}-{name}"


def likely_name(name: str | None) -> str:
    """The name that a first process on this host gets."""
    return name or f"{_host()}-0"


def _lock(path: Path) -> int | None:
    """Open and lock a file; None if another process has locked it."""
    # O_NOFOLLOW: another user may have put a symbolic link into the temporary directory.
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    file = os.open(path, flags, 0o600)
    if lock_descriptor(file, blocking=False):
        return file
    os.close(file)
    return None


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:MAX_HOST] or "host"
