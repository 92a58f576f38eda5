"""A service that kills itself with SIGKILL, at a moment or at a step of a commit.

    python -m tests.faults.victim CONFIG '{"seconds": 0.04}'
    python -m tests.faults.victim CONFIG '{"step": "before finish", "times": 3}'
    python -m tests.faults.victim CONFIG '{}'

It is the product's own `serve` with a failpoint handed in; the product knows no such switch.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from streamduel.config import load
from streamduel.service import serve


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Killer:
    """The failpoint: counts the passes of its step, or starts the clock at the first commit."""

    def __init__(self, step: str = "", times: int = 1, seconds: float | None = None) -> None:
        self._step = step
        self._left = times
        self._seconds = seconds
        self._started = False

    def __call__(self, step: str, /) -> None:
        if self._seconds is not None and not self._started:
            self._started = True
            threading.Thread(target=self._wait, args=(self._seconds,), daemon=True).start()
        if step == self._step:
            self._left -= 1
            if self._left == 0:
                die()

    def _wait(self, seconds: float) -> None:
        time.sleep(seconds)
        die()


def main() -> None:
    path, plan = sys.argv[1:]
    how: dict[str, Any] = json.loads(plan)
    serve(load(Path(path)), lambda: False, until_end=True, failpoint=Killer(**how))


if __name__ == "__main__":
    main()
