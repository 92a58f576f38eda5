"""What is to be seen of the demo at one moment, and what can show it."""

from __future__ import annotations

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
        bound: how many there will be.
        speed: how many there are a second.
        seconds: since the beginning.
        url: of the status page, if there is one.
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


class Display(Protocol):
    """Shows one picture after the other."""

    def show(self, picture: Picture) -> None:
        """A picture; some may be left out, for they come faster than one can look."""
        ...
