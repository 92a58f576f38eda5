"""What is to be seen of the demo at one moment, and what can show it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from streamduel.demo.search import Visit
from streamduel.monitoring.views import ExperimentView


@dataclass(frozen=True, eq=False)
class Picture:
    """The demo at one moment.

    Attributes:
        policy: its name, and its parameters.
        view: the experiment as of streamduel's last commit.
        shares: (K,) each ranker's share of the recent lists.
        shown: (K,) in how many impressions each ranker took part.
        visit: one of the latest, if there were any.
        impressions: how many there were.
        bound: how many there will be, if it does not end by the clock.
        speed: how many there are a second.
        seconds: since the beginning.
        url: of the status page, if there is one.
        lasts: how many seconds it takes, if it ends by the clock; otherwise infinite.
    """

    policy: str
    view: ExperimentView
    shares: Sequence[float]
    shown: Sequence[int]
    visit: Visit | None
    impressions: int
    bound: int
    speed: float
    seconds: float
    url: str | None
    lasts: float = math.inf

    @property
    def timed(self) -> bool:
        """Whether it ends by the clock; nobody knows then how many impressions there will be."""
        return math.isfinite(self.lasts)

    @property
    def counted(self) -> str:
        """The impressions so far, and of how many."""
        whole = "" if self.timed else f" of {self.bound:,}"
        return f"{self.impressions:,}{whole} impressions"

    @property
    def lasted(self) -> str:
        """The seconds so far, and of how many."""
        whole = f" of {self.lasts:g}" if self.timed else ""
        return f"{self.seconds:.0f}{whole} s"


class Display(Protocol):
    """Shows one picture after the other."""

    def show(self, picture: Picture) -> None:
        """A picture; some may be left out, for they come faster than one can look."""
        ...
