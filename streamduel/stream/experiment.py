"""One experiment of the fold: its hard state, and how a record changes it."""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np

from streamduel import policies
from streamduel.config import ExperimentSettings
from streamduel.connector import Message
from streamduel.errors import nearest
from streamduel.interleaving.credit import CREDITS
from streamduel.preference.counts import MOST_DUELS, Floats, Integers
from streamduel.records import (
    MAX_COUNT,
    Assignment,
    Duel,
    Duels,
    InputEvent,
    Interleaving,
    PairShare,
    Rejected,
)

NO_DUEL: Final = -1
"""The code of a record that is accepted and is no duel: a tie under `ties: drop`."""
BULK: Final = -2
"""The code of a record that stands for many duels."""
MAX_CODES: Final = 4096
"""Codes of `duel` records that are looked up at once: all of them for up to 36 arms."""
_B_WINS, _A_WINS, _TIE = 0, 1, 2
_OUTCOMES: Final = 3
_FIRST_WINS: Final = (0.0, 1.0, 0.5)

_encode = msgspec.json.Encoder().encode

Status = Literal["running", "paused", "finished"]


class Plan(NamedTuple):
    """What ranker services are to do until the next decision.

    Attributes:
        champion: the arm to serve if exploration ended now.
        pairs: (first arm, second arm, duels of the slate), the most frequent first.
    """

    champion: int
    pairs: tuple[tuple[int, int, int], ...]


class Position(NamedTuple):
    """Where in the log something happened.

    Attributes:
        partition: of the log.
        offset: of the record, -1 before the first.
        stream_time: after that record, in milliseconds.
    """

    partition: int
    offset: int
    stream_time: int


class Experiment:
    """Turns credited records into duels, duels into decisions, decisions into assignments.

    A duel is first noted as a small integer (`code`), so that a thousand of them between two
    decisions are learned in a few array operations: code = (first arm · K + second arm) · 3 +
    outcome. Duels reach the policy in the order of the log, and how the log was cut into
    batches leaves no trace.

    Args:
        name: the experiment's.
        settings: its part of the configuration.
        seed: of its record keys in the dedupe window.
        started_at: the offset of the first record that can belong to it.
        state: what `state` returned in an earlier life; None for a fresh start.
    """

    __slots__ = (
        "_arms_known", "_credit", "_duel_of", "_noted_codes", "_since_decision", "_winners",
        "accepted", "codes", "dead_letters", "due", "duplicates", "epoch", "name", "pending",
        "plan", "policy", "seed", "settings", "started_at",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        settings: ExperimentSettings,
        seed: int,
        started_at: int,
        state: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.started_at = started_at
        self.seed = seed
        self.codes: dict[str, dict[str, dict[str | None, int]]] = {}
        self._noted_codes = 0
        self.pending = array("q")
        self._arms_known = {arm: index for index, arm in enumerate(settings.arms)}
        self._duel_of = _duels_by_code(len(settings.arms))
        self._credit = CREDITS[settings.credit.name]
        tie = _TIE if settings.ties == "half" else NO_DUEL
        self._winners = {"a": _A_WINS, "b": _B_WINS, "tie": tie}
        if state is None:
            self._begin()
        else:
            self._resume(state)

    def _begin(self) -> None:
        self.policy = self.settings.create_policy()
        self._since_decision = 0
        self.due = self.settings.decide_every
        self.epoch = 0
        self.plan: Plan | None = None
        self.accepted = self.duplicates = self.dead_letters = 0

    def _resume(self, state: dict[str, Any]) -> None:
        self.policy = policies.from_state(state["policy"])
        self._since_decision = state["since_decision"]
        self.due = self.settings.decide_every - self._since_decision
        self.epoch = state["epoch"]
        plan = state["plan"]
        self.plan = plan and Plan(plan["champion"], tuple(tuple(pair) for pair in plan["pairs"]))
        tallies = state["tallies"]
        self.accepted = tallies["accepted"]
        self.duplicates = tallies["duplicate"]
        self.dead_letters = tallies["dead_letter"]

    def code(self, event: InputEvent) -> int:
        """What an event says, as one integer: a duel's code, `NO_DUEL` or `BULK`.

        What a `duel` says follows from a, b and winner: `codes[a][b][winner]` remembers it.

        Raises:
            Rejected: it names an unknown arm, or contradicts itself.
        """
        code = self._work_out(event)
        if type(event) is Duel and self._noted_codes < MAX_CODES:
            self._noted_codes += 1
            self.codes.setdefault(event.a, {}).setdefault(event.b, {})[event.winner] = code
        return code

    def _work_out(self, event: InputEvent) -> int:
        known = self._arms_known
        try:
            first, second = known[event.a], known[event.b]
        except KeyError as missing:
            raise self._unknown_arm(missing.args[0]) from None
        if type(event) is Duel:
            if first == second:
                return (first * len(known) + first) * _OUTCOMES + _TIE
            outcome = self._winners.get(event.winner)  # type: ignore[arg-type]  # None: no winner
            if outcome is None:
                raise Rejected(
                    "invalid_record",
                    "winner must be 'a', 'b' or 'tie' in a duel of two arms (found null).",
                )
        else:
            if first == second:
                raise Rejected(
                    "invalid_record",
                    f"a and b must be two arms (found '{event.a}' twice); only a 'duel' may have "
                    f"one arm on both sides.",
                )
            if isinstance(event, Duels):
                return _bulk_code(event)
            assert isinstance(event, Interleaving)
            outcome = self._credited(event)
        if outcome < 0:
            return NO_DUEL
        return (first * len(known) + second) * _OUTCOMES + outcome

    def _credited(self, event: Interleaving) -> int:
        ranks = [click if isinstance(click, int) else click.rank for click in event.clicks]
        try:
            first_wins = self._credit(event.teams, ranks)
        except IndexError:
            length = len(event.teams)
            outside = next(rank for rank in ranks if rank >= length)
            raise Rejected(
                "invalid_record",
                f"clicks has rank {outside}, outside the list: 'teams' has {length} ranks, from 0.",
            ) from None
        return self._winners["tie" if first_wins == 0.5 else "a" if first_wins else "b"]

    def _unknown_arm(self, arm: str) -> Rejected:
        arms = self.settings.arms
        listed = ", ".join(arms[:10]) + (", …" if len(arms) > 10 else "")
        hint = nearest(arm, arms)
        return Rejected(
            "unknown_arm",
            f"unknown arm '{arm[:80]}' in experiment '{self.name}'"
            f"{f'{hint} Its' if hint else '; its'} arms are {listed}.",
        )

    def learn(self) -> None:
        """Tell counts and policy the duels noted in `pending`, in their order."""
        noted = len(self.pending)
        if noted == 0:
            return
        self.accepted += noted
        room = MOST_DUELS - self.policy.duels
        if noted > room:
            del self.pending[room:]  # beyond it, a float64 cannot tell one duel more from none
        if noted == 1 and self.pending:  # a decision after every duel: no array is worth its making
            pair, outcome = divmod(self.pending.pop(), _OUTCOMES)
            first, second = divmod(pair, len(self._arms_known))
            first_wins = _FIRST_WINS[outcome]
            self.policy.observe(first, second, first_wins)
        else:
            codes = np.frombuffer(self.pending, np.int64)
            firsts, seconds, outcomes = self._duel_of
            duels = policies.Duels(firsts[codes], seconds[codes], outcomes[codes])
            self.policy.learn(duels)
            del codes, self.pending[:]
        self._passed(noted)

    def learn_special(self, event: InputEvent) -> bool:
        """Take in a record whose code is negative; True when a decision is due."""
        self.accepted += 1
        if not isinstance(event, Duels):
            return False  # no duel
        self.learn()
        first, second = self._arms_known[event.a], self._arms_known[event.b]
        told = [(1.0, event.wins_a), (0.0, event.wins_b)]
        if self.settings.ties == "half":
            told.append((0.5, event.ties))
        for first_wins, count in told:
            # Beyond what a float64 counts exactly, more duels could not be told apart anyway.
            if 0 < count <= MOST_DUELS - self.policy.duels:
                self.policy.observe(first, second, first_wins, count)
                self._passed(count)
        return self.due <= 0

    def _passed(self, duels: int) -> None:
        self._since_decision += duels
        self.due = self.settings.decide_every - self._since_decision

    def decide(self, at: Position) -> Message | None:
        """Take a decision from all duels so far; an assignment if it changes the plan."""
        self.learn()
        self._since_decision = 0
        self.due = self.settings.decide_every
        plan = self._propose()
        if plan == self.plan:
            return None
        self.plan = plan
        self.epoch += 1
        return Message(self.name.encode(), _encode(self._assignment(plan, at)))

    def _propose(self) -> Plan:
        slate = self.policy.propose(self.settings.slate).tolist()
        champion = self.policy.champion()
        if len(slate) == 1:
            first, second = slate[0]
            return Plan(champion, ((min(first, second), max(first, second), 1),))
        duels = Counter((min(pair), max(pair)) for pair in slate)
        pairs = sorted(
            ((first, second, count) for (first, second), count in duels.items()),
            key=lambda pair: (-pair[2], pair),
        )
        return Plan(champion, tuple(pairs))

    def _assignment(self, plan: Plan, at: Position) -> Assignment:
        arms, slate = self.settings.arms, self.settings.slate
        return Assignment(
            experiment=self.name,
            epoch=self.epoch,
            policy=self.settings.policy.name,
            champion=arms[plan.champion],
            pairs=[PairShare(arms[i], arms[j], count / slate) for i, j, count in plan.pairs],
            duels=self.policy.duels,
            status=self.status,
            partition=at.partition,
            offset=at.offset,
            ts=at.stream_time,
        )

    @property
    def status(self) -> Status:
        """Whether duels change the plan at present."""
        return "running"

    @property
    def records(self) -> int:
        """How many records have changed the hard state; equal numbers, equal states."""
        return self.accepted + self.duplicates + self.dead_letters + len(self.pending)

    @property
    def tallies(self) -> dict[str, int]:
        """How many records of the experiment had which fate."""
        return {
            "accepted": self.accepted,
            "duplicate": self.duplicates,
            "dead_letter": self.dead_letters,
            "late": 0,
            "unjoined": 0,
        }

    def state(self) -> dict[str, Any]:
        """The hard state, as JSON has it; `Experiment(…, state=…)` goes on from it exactly."""
        self.learn()
        plan = self.plan
        return {
            "arms": list(self.settings.arms),
            "status": self.status,
            "epoch": self.epoch,
            "plan": plan and {"champion": plan.champion, "pairs": [list(p) for p in plan.pairs]},
            "since_decision": self._since_decision,
            "tallies": self.tallies,
            "policy": self.policy.state_dict(),
        }


def _duels_by_code(n_arms: int) -> tuple[Integers, Integers, Floats]:
    """First arm, second arm and outcome of every code, to look many up at once."""
    pairs, outcomes = np.divmod(np.arange(n_arms * n_arms * _OUTCOMES), _OUTCOMES)
    first, second = np.divmod(pairs, n_arms)
    return first, second, np.array(_FIRST_WINS)[outcomes]


def _bulk_code(event: Duels) -> int:
    total = event.wins_a + event.wins_b + event.ties
    if not 1 <= total <= MAX_COUNT:
        raise Rejected(
            "invalid_record",
            f"wins_a, wins_b and ties must add up to between 1 and 2^40 (found {total}).",
        )
    return BULK
