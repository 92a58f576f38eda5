"""The screenshot of `streamduel demo` in the README and in docs/demo.md.

    python -m benchmarks.demo_picture

The demo runs without waiting; the same seed gives the same image.
"""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console

from streamduel.cli.demo import ARMS, IMPRESSIONS, SPEED
from streamduel.demo.loop import Limit
from streamduel.demo.run import PORT, Clock, Settings, run_demo
from streamduel.demo.screen import frame
from streamduel.policies import DEFAULT
from streamduel.simulation.policy_arguments import read_policies

PICTURE: Final = Path(__file__).parents[1] / "docs" / "images" / "demo.svg"

TAKEN_AT: Final = 400
"""Impressions after which the confidence in the champion rises."""

WIDTH, HEIGHT = 80, 22


class _Clock:
    """A clock that advances only during sleeps."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def svg() -> str:
    """The picture."""
    [(policy, parameters)] = read_policies([DEFAULT], [])
    settings = Settings(
        policy=policy, parameters=parameters, title=DEFAULT, arms=ARMS, seed=0,
        limit=Limit(TAKEN_AT, math.inf), speed=SPEED, page=False,
    )  # fmt: skip
    clock = _Clock()
    console = Console(
        record=True, file=io.StringIO(), width=WIDTH, height=HEIGHT,
        force_terminal=True, color_system="truecolor",
    )  # fmt: skip
    with TemporaryDirectory() as folder:
        played = run_demo(
            settings, Path(folder), Console(file=io.StringIO()), lambda: False,
            Clock(clock, clock, clock.sleep),
        )  # fmt: skip
    assert played.progress is not None
    picture = replace(played.progress, limit=IMPRESSIONS, url=f"http://127.0.0.1:{PORT}/")
    console.print(frame(picture, picture.visit, WIDTH, HEIGHT))
    drawn = console.export_svg(title="streamduel demo", unique_id="demo")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)  # no requests


if __name__ == "__main__":
    PICTURE.write_text(svg(), encoding="utf-8")
