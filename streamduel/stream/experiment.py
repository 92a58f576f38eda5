"""One experiment of the fold: its hard state, and how a record changes it."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from streamduel import policies
from streamduel.config import DedupeSettings
from streamduel.config.experiment import ExperimentSettings
from streamduel.connector import LogRecord, Message
from streamduel.errors import PolicyError
from streamduel.policies import Policy
from streamduel.policies.base.batched_policy import BatchedPolicy
from streamduel.policies.base.change_of_arms import with_arms
from streamduel.preference.arrays import Integers
from streamduel.preference.counts import MAX_DUELS
from streamduel.records import (
    Assignment,
    Click,
    Control,
    Duels,
    Impression,
    InputEvent,
    Interleaving,
    Rejected,
)
from streamduel.stream.arm_tallies import ArmTallies
from streamduel.stream.attribution import Attribution
from streamduel.stream.coding import FIRST_WINS, OUTCOMES, TIE, Coder
from streamduel.stream.decisions import Decisions, Position
from streamduel.stream.dedupe import DedupeWindow, record_key
from streamduel.stream.guardrails import Guardrails
from streamduel.stream.plan import Plan, Status
from streamduel.stream.roster import Roster
from streamduel.stream.trust import Trust


class Experiment:
    """Turns credited records into duels, tells them to the policy, and lets it decide.

    A duel is first noted as a small integer (`Coder`), so that a thousand of them between two
    decisions are learned in a few array operations. Duels reach the policy in the order of the
    log, and how the log was cut into batches leaves no trace. What follows from what was learned,
    and when, is in `Decisions`.

    Args:
        name: the experiment's.
        settings: its part of the configuration.
        dedupe: how long the dedupe window remembers.
        seed: of its record keys in the dedupe window.
        started_at: the offset of the first record that can belong to it.
        state: what `state` returned in an earlier life; None for a fresh start.

    Attributes:
        pending: codes of duels that are not learned yet.
        due: a decision is due when so many are pending.
        by_arm: how often each arm has fought, and has been served alone.
        attribution: the impressions that are open, and clicks that wait for theirs.
        ties: how many impressions and duels were no win for either side, dropped ones included.
        trust: what impressions tell of the services that log them.
    """

    __slots__ = (
        "_changes", "_coder", "_decisions", "_settled", "accepted", "attribution", "by_arm",
        "codes", "dead_letters", "due", "duplicates", "late", "name", "pending", "policy", "roster",
        "seed", "settings", "started_at", "ties", "trust", "unjoined",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        settings: ExperimentSettings,
        dedupe: DedupeSettings,
        seed: int,
        started_at: int,
        state: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.started_at = started_at
        self.seed = seed
        self.pending = array("q")
        self._changes = 0
        self._settled = 0  # of those pending, from impressions, which were counted when they came
        window_ms = settings.join_window(dedupe.window_ms)
        self.attribution = Attribution(window_ms, dedupe.window_records)
        if state is None:
            self.roster = Roster(name, settings.arms)
            self.policy = settings.create_policy()
            self.accepted = self.duplicates = self.dead_letters = self.late = self.unjoined = 0
            self.ties, self.trust = 0, Trust()
        else:
            self.roster = Roster.resume(name, state)
            self.policy = policies.from_state(state["policy"])
            tallies = state["tallies"]
            self.accepted = tallies["accepted"]
            self.duplicates = tallies["duplicate"]
            self.dead_letters = tallies["dead_letter"]
            self.late, self.unjoined = tallies["late"], tallies["unjoined"]
            self.ties, self.trust = state["ties"], Trust(state["trust"])
        self.by_arm = ArmTallies(len(self.roster.arms), state and state["by_arm"])
        self._decisions = Decisions(name, settings, self.roster, state)
        self._coder = Coder(settings, self.roster)
        self.codes = self._coder.codes
        self.due = self._decisions.until_due(self.policy)

    def code(self, event: InputEvent) -> int:
        """What an event says, as one integer: see `Coder`.

        Raises:
            Rejected: it names an unknown arm, or contradicts itself.
        """
        return self._coder.code(event)

    def check_at(self, event: InputEvent, offset: int) -> None:
        """Whether the event was no mistake at its offset, where perhaps other arms competed.

        Raises:
            Rejected: it was.
        """
        self._coder.check_at(event, offset)

    def learn(self) -> None:
        """Tell counts and policy the duels noted in `pending`, in their order."""
        noted = len(self.pending)
        if noted == 0:
            return
        self.accepted += noted - self._settled
        self._settled = 0
        room = MAX_DUELS - self.policy.duels
        if noted > room:
            del self.pending[room:]  # beyond it, a float64 cannot tell one duel more from none
        if noted == 1 and self.pending:  # a decision after every duel: no array is worth its making
            pair, outcome = divmod(self.pending.pop(), OUTCOMES)
            first, second = divmod(pair, len(self.roster.arms))
            self.policy.observe(first, second, FIRST_WINS[outcome])
            self.by_arm.count(first, second)
            self.ties += first != second and outcome == TIE
            self._decisions.guardrails.count(first, second, 1)
        else:
            self._learn_many(np.frombuffer(self.pending, np.int64))
            del self.pending[:]
        self._passed(noted)

    def _learn_many(self, codes: Integers) -> None:
        firsts, seconds, outcomes = self._coder.by_code
        duels = policies.Duels(firsts[codes], seconds[codes], outcomes[codes])
        self.policy.learn(duels)
        self._decisions.guardrails.count_many(duels.first, duels.second)
        self.by_arm.count_many(duels.first, duels.second)
        ties = (duels.first != duels.second) & (codes % OUTCOMES == TIE)
        self.ties += int(np.count_nonzero(ties))

    def learn_special(self, event: InputEvent, offset: int) -> bool:
        """Take in a record whose code is negative; True when a decision is due.

        Raises:
            Rejected: a control record asks for what cannot be; nothing has changed.
        """
        if isinstance(event, Control):
            self.learn()
            self._control(event, offset)
            self.accepted += 1
            return True
        self.accepted += 1
        if not isinstance(event, Duels):
            self.ties += 1  # which was dropped
            return False
        self.ties += event.ties
        self.learn()
        first, second = self.roster.index[event.a], self.roster.index[event.b]
        told = [(1.0, event.wins_a), (0.0, event.wins_b)]
        if self.settings.ties == "half":
            told.append((0.5, event.ties))
        for first_wins, count in told:
            # Beyond what a float64 counts exactly, more duels could not be told apart anyway.
            if 0 < count <= MAX_DUELS - self.policy.duels:
                self.policy.observe(first, second, first_wins, count)
                self.by_arm.count(first, second, count)
                self._decisions.guardrails.count(first, second, count)
                self._passed(count)
        return self.due <= 0

    # Impressions, and clicks that come apart from them.

    def saw(self, event: Impression | Interleaving, now: int) -> None:
        """Take note of how a ranker service interleaves."""
        self.trust.shown(event.a, event.b, event.teams, event.epoch, now)

    def show(
        self, event: Impression, key: int, offset: int, now: int
    ) -> Iterator[tuple[LogRecord, Rejected]]:
        """An impression has come; what is yielded are clicks before it that do not fit it."""
        self.accepted += 1
        self.saw(event, now)
        for record, verdict in self.attribution.open(key, event, offset, now):
            if verdict is None:
                self.accepted += 1
            else:
                yield record, verdict

    def click(self, event: Click, record: LogRecord, now: int, window: DedupeWindow) -> None:
        """A click has come.

        Raises:
            Rejected: it does not fit its impression.
        """
        key = record_key(event.impression, self.seed)
        fate = self.attribution.click(key, event, record, now, window)
        if fate == "joined":
            self.accepted += 1
        elif fate == "late":
            self.late += 1

    def close(self, offset: int, now: int) -> Iterator[bool]:
        """End the windows that are over; after each duel of that, whether a decision is due."""
        given_up = self.attribution.give_up(offset, now)
        self.unjoined += given_up
        self._changes += given_up  # which `records` had before, as clicks that wait
        for shown in self.attribution.close(offset, now):
            self._changes += 1
            code = self._coder.outcome(shown)
            if code >= 0:
                self.pending.append(code)
                self._settled += 1
                yield len(self.pending) >= self.due
            elif {shown.a, shown.b} <= self.roster.index.keys():
                self.ties += 1
        if given_up:
            yield False

    def remember(
        self, event: Impression | Click, key: int, record: LogRecord, now: int, window: DedupeWindow
    ) -> None:
        """Do once more what was done in an earlier life, but for what came of it."""
        self.end_remembering(now, record.offset)
        if isinstance(event, Impression):
            self.attribution.open(key, event, record.offset, now)
            return
        with suppress(Rejected):
            impression = record_key(event.impression, self.seed)
            self.attribution.click(impression, event, record, now, window)

    def end_remembering(self, now: int, offset: int = 0) -> None:
        """What was over by then was ended in an earlier life."""
        self.attribution.give_up(offset, now)
        deque(self.attribution.close(offset, now), maxlen=0)

    def _passed(self, duels: int) -> None:
        self._decisions.learned(self.policy, duels)
        self.due = self._decisions.until_due(self.policy)

    def _control(self, event: Control, offset: int) -> None:
        """Do what a control record says."""
        decisions = self._decisions
        match event.action:
            case "pause":
                decisions.paused = True
            case "resume":
                decisions.paused = False
            case "freeze_pair":
                decisions.guardrails.frozen = self.roster.pair(str(event.a), str(event.b))
            case "unfreeze_pair":
                decisions.guardrails.frozen = None
            case "reset":
                self.policy = self.settings.create_policy(len(self.roster.arms))
                self.by_arm = ArmTallies(len(self.roster.arms))
                decisions.begin_anew()
            case "add_arm":
                self._add_arm(str(event.arm), offset)
            case "retire_arm":
                self._retire_arm(str(event.arm), offset)

    def _add_arm(self, arm: str, offset: int) -> None:
        self.roster.check_join(arm)
        try:
            self.policy = with_arms(self.policy, [*range(len(self.roster.arms)), None])
        except PolicyError as error:
            raise Rejected("invalid_record", f"arm '{arm[:80]}' cannot join: {error}") from None
        self.by_arm.join()
        self.roster.join(arm, offset)
        self._decisions.arm_joined()
        self._coder.renumber()

    def _retire_arm(self, arm: str, offset: int) -> None:
        index = self.roster.check_leave(arm)
        if why := self._decisions.guardrails.needed(arm):
            raise Rejected("invalid_record", f"arm '{arm[:80]}' must stay: {why}.")
        others = [other for other in range(len(self.roster.arms)) if other != index]
        self.policy = with_arms(self.policy, others)
        self.by_arm.leave(index)
        self.roster.leave(arm, offset)
        self._decisions.arm_left(arm)
        self.trust.left(arm)
        self._coder.renumber()

    def decide(self, at: Position) -> Message | None:
        """Take a decision from all duels so far; an assignment if it changes the plan."""
        self.learn()
        return self._decided(self._decisions.decide, at)

    def _decided(
        self, how: Callable[[Policy, Position, int], Message | None], at: Position
    ) -> Message | None:
        before = self._decisions.plan
        assignment = how(self.policy, at, self._seen)
        self.due = self._decisions.until_due(self.policy)
        after = self._decisions.plan
        if after is not None and after != before:
            self.trust.decided(before, after, self._decisions.epoch, at.stream_time)
        return assignment

    def ring(self, at: Position) -> Message | None:
        """Do what is due because stream time has reached `alarm`."""
        self._changes += 1
        self.learn()
        return self._decided(self._decisions.ring, at)

    @property
    def alarm(self) -> int:
        """The stream time at which `ring` is due, whether or not there were duels."""
        return min(self._decisions.alarm(self.policy), self.attribution.alarm)

    # What is known of it.

    @property
    def plan(self) -> Plan | None:
        """The plan in force; None before the first decision."""
        return self._decisions.plan

    @property
    def epoch(self) -> int:
        """Of the last assignment."""
        return self._decisions.epoch

    @property
    def assignment(self) -> Assignment | None:
        """The last one, as it was published; None before the first decision."""
        return self._decisions.assignment

    @property
    def guardrails(self) -> Guardrails:
        """Within which the policy has its way."""
        return self._decisions.guardrails

    @property
    def status(self) -> Status:
        """Whether duels change the plan at present."""
        return self._decisions.status(self.policy)

    @property
    def batch(self) -> tuple[int, int] | None:
        """The number of a batched policy's open batch, and how many duels it lacks."""
        policy = self.policy
        return (policy.round, policy.lacking()) if isinstance(policy, BatchedPolicy) else None

    @property
    def records(self) -> int:
        """How often the hard state has changed; equal numbers, equal states."""
        return self._seen + self._changes

    @property
    def _seen(self) -> int:
        """How many records it has had, those that were no use included."""
        told = self.accepted + len(self.pending) - self._settled
        unattributed = self.late + self.unjoined + self.attribution.waiting
        return told + self.duplicates + self.dead_letters + unattributed

    @property
    def tallies(self) -> dict[str, int]:
        """How many records of the experiment had which fate."""
        return {
            "accepted": self.accepted,
            "duplicate": self.duplicates,
            "dead_letter": self.dead_letters,
            "late": self.late,
            "unjoined": self.unjoined,
        }

    @property
    def open(self) -> dict[str, int]:
        """How many impressions wait for clicks, and clicks, in no tally yet, for impressions."""
        return {"impressions": len(self.attribution), "clicks": self.attribution.waiting}

    def state(self) -> dict[str, Any]:
        """The hard state, as JSON has it; `Experiment(…, state=…)` goes on from it exactly."""
        self.learn()
        return {
            **self.roster.state(),
            "status": self.status,
            **self._decisions.state(),
            "by_arm": self.by_arm.state(),
            "tallies": self.tallies,
            "ties": self.ties,
            "trust": self.trust.state(),
            "open": self.open,
            "policy": self.policy.state_dict(),
        }
