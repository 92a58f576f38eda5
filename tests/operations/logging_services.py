"""Services that write to one click log, each with its own fault, and an experiment for each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tests.operations.users import FAIR, Record, Users

TWO: Final = {"arms": ["x", "y"]}
THREE: Final = {"arms": ["x", "y", "z"]}

EXPERIMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "fair": TWO,
    "silent": TWO,
    "unfair": TWO,
    "cyclic": {**THREE, "policy": {"name": "rucb"}},
    "stuck": {**THREE, "policy": {"name": "c2b", "horizon": 10_000}},
    "slow-clicks": {**TWO, "join_window_ms": 500},
    "disobedient": {**THREE, "guardrails": {"freeze_pair": ["x", "y"]}},
    "crowded": {**TWO, "max_per_client": 2},
}

EACH: Final = 4
"""Records of each service at a time, 20 per second; an even number, so that coins are even."""

LATE: Final = 10
"""A slow click follows that many impressions, two seconds, later: four times the window."""


class Services:
    """All of them.

    Attributes:
        silenced: whether the one that is to stop has stopped.
    """

    def __init__(self) -> None:
        self.silenced = False
        self._shown: deque[str] = deque(maxlen=LATE)
        self._users = {name: Users(name, seed) for seed, name in enumerate(EXPERIMENTS)}
        self._services: Mapping[str, Callable[[Users], Iterator[Record]]] = {
            "fair": self._even,
            "silent": self._even,
            "unfair": self._unfair,
            "cyclic": self._cyclic,
            "stuck": self._one_pair,
            "slow-clicks": self._slow,
            "disobedient": self._disobedient,
            "crowded": self._crowded,
        }

    def records(self) -> Iterator[Record]:
        """Their records in a fifth of a second."""
        for name, service in self._services.items():
            if not (name == "silent" and self.silenced):
                yield from service(self._users[name])

    def _even(self, users: Users) -> Iterator[Record]:
        """Two equally good rankers, fairly interleaved."""
        for number in range(EACH):
            teams = FAIR[number % 2]
            yield users.record("interleaving", a="x", b="y", teams=teams, clicks=[])

    def _unfair(self, users: Users) -> Iterator[Record]:
        """Side a always picks first, and has one document more."""
        for _ in range(EACH):
            yield users.record("interleaving", a="x", b="y", teams=[*"aba"], clicks=[])

    def _cyclic(self, users: Users) -> Iterator[Record]:
        """Rock, paper, scissors."""
        for a, b in (("x", "y"), ("y", "z"), ("z", "x")):
            yield users.record("duel", a=a, b=b, winner="a")

    def _one_pair(self, users: Users) -> Iterator[Record]:
        """Only x and y, whatever else the batch wants."""
        for _ in range(EACH):
            yield users.record("duel", a="x", b="y", winner="tie")

    def _slow(self, users: Users) -> Iterator[Record]:
        """Clicks arrive long after their join window."""
        impression = users.impression("x", "y")
        yield impression
        if len(self._shown) == LATE:
            yield users.click(self._shown[0])
        self._shown.append(impression["id"])

    def _disobedient(self, users: Users) -> Iterator[Record]:
        """x and z, though x and y are frozen."""
        for number in range(EACH):
            teams = FAIR[number % 2]
            yield users.record("interleaving", a="x", b="z", teams=teams, clicks=[])

    def _crowded(self, users: Users) -> Iterator[Record]:
        """Every second record is that of one crawler."""
        for number in range(EACH):
            teams = FAIR[number % 4 // 2]
            client = "crawler" if number % 2 else f"session-{users.random.random()}"
            yield users.record("interleaving", a="x", b="y", teams=teams, clicks=[], client=client)
