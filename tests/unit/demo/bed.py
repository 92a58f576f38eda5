"""Demos without waiting, and their results."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from streamduel.cli.demo import IMPRESSIONS
from streamduel.demo.loop import Limit
from streamduel.demo.run import Clock as DemoClock
from streamduel.demo.run import Result, Settings, run_demo
from streamduel.policies import DEFAULT
from streamduel.simulation.policy_arguments import read_policies

BEGAN = 1_790_000_000.0


class Clock:
    """A clock that advances during sleeps, and a little at each reading."""

    def __init__(self, tick: float = 0.0) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += seconds


def settings(**changes: Any) -> Settings:
    """Those of `streamduel demo`, at full speed and without a page, but for some changes."""
    title = changes.pop("title", DEFAULT)
    [(policy, parameters)] = read_policies([title], [])
    bound = Limit(changes.pop("impressions", IMPRESSIONS), changes.pop("seconds", math.inf))
    defaults = {"arms": 6, "seed": 0, "speed": math.inf, "page": False, **changes}
    return Settings(policy=policy, parameters=parameters, title=title, limit=bound, **defaults)


def played(
    folder: Path,
    console: Console | None = None,
    stop: Callable[[], bool] = lambda: False,
    clock: Clock | None = None,
    ended: Callable[[Result, str | None, Callable[[], bool]], None] = lambda *_: None,
    **changes: Any,
) -> Result:
    """A demo from beginning to end."""
    clock = clock or Clock()
    console = console or Console(file=io.StringIO(), width=80)
    demo_clock = DemoClock(lambda: BEGAN, clock, clock.sleep)
    return run_demo(settings(**changes), folder, console, stop, demo_clock, ended)
