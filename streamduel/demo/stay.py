"""The demo's status page stays after the end, for whoever is still reading it."""

from __future__ import annotations

import select
import sys
import termios
from collections.abc import Callable

from rich.console import Console

from streamduel.demo.lines import say
from streamduel.demo.pace import LONGEST_NAP


def somebody_watches() -> bool:
    """Whether a person sits at the terminal: one who reads, and who can press a key."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def stay_until_enter(console: Console, url: str, stop: Callable[[], bool]) -> None:
    """Wait for the Enter key, for the end of the input, or until `stop()` says so.

    Args:
        console: where to say it.
        url: of the page that stays.
        stop: whether somebody wants it to be over now.
    """
    termios.tcflush(sys.stdin, termios.TCIFLUSH)  # keys pressed before it was said mean nothing
    say(console, f"The page {url} stays until you press Enter.")
    while not stop():
        if select.select([sys.stdin], [], [], LONGEST_NAP)[0]:
            sys.stdin.readline()  # else the shell would take it
            return
