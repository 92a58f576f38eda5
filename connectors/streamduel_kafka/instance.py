"""The name by which a process is known to the group, so that it is known again after a restart."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import socket
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog

log = structlog.stdlib.get_logger(__name__)

# More processes of one group on one host than cores on any host.
MAX_SLOTS = 1024

# Kafka allows 249 characters in an instance id; four digits and a dash are for the slot.
MAX_HOST = 244


class Instance:
    """A name that no other process of this host uses for the same purpose while we live.

    It is `<host>-<slot>`, the slot being the first whose lock file is free. The kernel frees a lock
    when its process ends, however it ends: a killed process gets its name back at once, and with
    it its partitions (static membership) and its open transaction (transactional id).

    Args:
        name: the configured name; used as it is, without a lock.
        purpose: what the name is for; names for different purposes do not disturb one another.
    """

    def __init__(self, name: str | None, purpose: str) -> None:
        self._lock: int | None = None
        self.name = name or f"{_host()}-{self._free_slot(purpose)}"

    def _free_slot(self, purpose: str) -> int:
        digest = hashlib.sha256(purpose.encode()).hexdigest()[:16]
        directory = Path(tempfile.gettempdir())
        for slot in range(MAX_SLOTS):
            try:
                self._lock = _lock(directory / f"streamduel-{digest}-{slot}.lock")
            except (BlockingIOError, PermissionError):
                continue  # another process's, or another user's
            except OSError as error:
                log.warning(
                    "lock file impossible", directory=str(directory), error=str(error),
                    advice="this process calls itself number 0; if another one of the group runs "
                    "on this host, give each its own source.instance",
                )  # fmt: skip
                return 0
            return slot
        return 0

    def close(self) -> None:
        """Free the name. The file stays: removing it would race with a process that opens it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _lock(path: Path) -> int:
    # O_NOFOLLOW: the temporary directory is everybody's, and may hold somebody's symbolic link.
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())[:MAX_HOST] or "host"
