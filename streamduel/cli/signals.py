"""Signals that end a command."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def exit_at_signals() -> Iterator[None]:
    """Let signals end the command as Ctrl-C does: it cleans up, and shows what it has found."""

    def leave(number: int, _frame: FrameType | None) -> None:
        for each in before:  # `timeout` sends its signal twice: to the process and to its group
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)  # the status that a shell shows for a signal

    caught = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}  # Windows has no SIGHUP
    before = {each: found for each in caught if (found := signal.getsignal(each)) != signal.SIG_IGN}
    for each in before:
        signal.signal(each, leave)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
