"""One experiment of the fold: its hard state, and how a record changes it."""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

import msgspec
import numpy as np

from streamduel import policies
from streamduel.config import ExperimentSettings
from streamduel.connector import Message
from streamduel.errors import PolicyError
from streamduel.policies.batched_policy import BatchedPolicy
from streamduel.policies.change_of_arms import with_arms
from streamduel.preference.counts import MOST_DUELS, Integers
from streamduel.records import Assignment, Control, Duels, InputEvent, Rejected
from streamduel.stream import plan as plans
from streamduel.stream.batch_clock import NEVER, BatchClock
from streamduel.stream.coding import FIRST_WINS, OUTCOMES, Coder
from streamduel.stream.plan import Plan, Status
from streamduel.stream.roster import Roster
from streamduel.stream.stop_rule import StopRule

_encode = msgspec.json.Encoder().encode


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

    A duel is first noted as a small integer (`Coder`), so that a thousand of them between two
    decisions are learned in a few array operations. Duels reach the policy in the order of the
    log, and how the log was cut into batches leaves no trace.

    A decision is due after so many duels (`due`), for a batched policy when its batch may be
    complete, or at a stream time (`alarm`); and at once after a control record.

    Args:
        name: the experiment's.
        settings: its part of the configuration.
        seed: of its record keys in the dedupe window.
        started_at: the offset of the first record that can belong to it.
        state: what `state` returned in an earlier life; None for a fresh start.

    Attributes:
        pending: codes of duels that are not learned yet.
        due: a decision is due when so many are pending.
        alarm: a decision is due when stream time reaches this.
        alone: how often each arm has been served alone.
    """

    __slots__ = (
        "_changes", "_clock", "_coder", "_paused", "_since_decision", "_stop", "_stopped",
        "accepted", "alone", "codes", "dead_letters", "due", "duplicates", "epoch", "name",
        "pending", "plan", "policy", "roster", "seed", "settings", "started_at",
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
        self.pending = array("q")
        self._changes = 0
        self._clock = BatchClock(settings)
        self._stop = StopRule(settings.stop)
        if state is None:
            self.roster = Roster(name, settings.arms)
            self._begin()
        else:
            self.roster = Roster.resume(name, state)
            self._resume(state)
        self._coder = Coder(settings, self.roster)
        self.codes = self._coder.codes
        self.due = self._until_due()

    def _begin(self) -> None:
        self.epoch = 0
        self.plan: Plan | None = None
        self.accepted = self.duplicates = self.dead_letters = 0
        self._paused = False
        self._learn_anew()

    def _learn_anew(self) -> None:
        """Forget all duels."""
        self.policy = self.settings.create_policy(len(self.roster.arms))
        self.alone = [0] * len(self.roster.arms)
        self._since_decision = 0
        self._stopped = False
        self._stop = StopRule(self.settings.stop)

    def _resume(self, state: dict[str, Any]) -> None:
        self.policy = policies.from_state(state["policy"])
        self.alone = list(state["alone"])
        self.epoch = state["epoch"]
        self.plan = state["plan"] and Plan.resume(state["plan"])
        self._since_decision = state["since_decision"]
        self._paused, self._stopped = state["paused"], state["stopped"]
        self._clock = BatchClock(self.settings, **state["batch"])
        self._stop.look_at = state["stop"]["look_at"]
        tallies = state["tallies"]
        self.accepted = tallies["accepted"]
        self.duplicates = tallies["duplicate"]
        self.dead_letters = tallies["dead_letter"]

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
        self.accepted += noted
        room = MOST_DUELS - self.policy.duels
        if noted > room:
            del self.pending[room:]  # beyond it, a float64 cannot tell one duel more from none
        if noted == 1 and self.pending:  # a decision after every duel: no array is worth its making
            pair, outcome = divmod(self.pending.pop(), OUTCOMES)
            first, second = divmod(pair, len(self.alone))
            self.policy.observe(first, second, FIRST_WINS[outcome])
            if first == second:
                self.alone[first] += 1
        else:
            self._learn_many(np.frombuffer(self.pending, np.int64))
            del self.pending[:]
        self._passed(noted)

    def _learn_many(self, codes: Integers) -> None:
        firsts, seconds, outcomes = self._coder.by_code
        duels = policies.Duels(firsts[codes], seconds[codes], outcomes[codes])
        self.policy.learn(duels)
        by_themselves = duels.first[duels.first == duels.second]
        if len(by_themselves):
            counts = np.bincount(by_themselves, minlength=len(self.alone)).tolist()
            self.alone = [sum(both) for both in zip(self.alone, counts, strict=True)]

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
            return False  # no duel
        self.learn()
        first, second = self.roster.index[event.a], self.roster.index[event.b]
        told = [(1.0, event.wins_a), (0.0, event.wins_b)]
        if self.settings.ties == "half":
            told.append((0.5, event.ties))
        for first_wins, count in told:
            # Beyond what a float64 counts exactly, more duels could not be told apart anyway.
            if 0 < count <= MOST_DUELS - self.policy.duels:
                self.policy.observe(first, second, first_wins, count)
                self._passed(count)
        return self.due <= 0

    def _control(self, event: Control, offset: int) -> None:
        """Do what a control record says."""
        if event.action == "pause":
            self._paused = True
        elif event.action == "resume":
            self._paused = False
        elif event.action == "reset":
            self._learn_anew()
            self._clock = BatchClock(self.settings)
        else:
            assert event.arm is not None, "checked by the coder"
            self._change_arms(event.action, event.arm, offset)

    def _change_arms(self, action: str, arm: str, offset: int) -> None:
        kept: list[int | None] = list(range(len(self.roster.arms)))
        joins = action == "add_arm"
        if joins:
            self.roster.check_join(arm)
            kept.append(None)
        else:
            kept.pop(self.roster.check_leave(arm))
        try:
            self.policy = with_arms(self.policy, kept)
        except PolicyError as error:
            raise Rejected("invalid_record", f"arm '{arm[:80]}' cannot join: {error}") from None
        change = self.roster.join if joins else self.roster.leave
        change(arm, offset)
        self.alone = [0 if old is None else self.alone[old] for old in kept]
        if joins or (self.plan is not None and arm == self.plan.champion):
            self._stopped = False  # what was sure said nothing of who is champion now
        self._clock = BatchClock(self.settings)
        self._coder.renumber()

    def _passed(self, duels: int) -> None:
        if self._in_batch is None:
            self._since_decision += duels
        self.due = self._until_due()

    @property
    def _in_batch(self) -> BatchedPolicy | None:
        """The policy, if its open batch, and not a number of duels, says when to decide.

        That is so from the decision that has published a batch up to the one that publishes
        something else, whatever was learned since: when that was, leaves no trace.
        """
        policy, plan = self.policy, self.plan
        in_force = plan is not None and plan.status == "running"
        return policy if in_force and isinstance(policy, BatchedPolicy) else None

    def _until_due(self) -> int:
        """How many duels more until a decision is due.

        A batch may still lack some then, namely as many as were surplus; the decision then changes
        nothing at all.
        """
        policy = self._in_batch
        if policy is None:
            return self.settings.decide_every - self._since_decision
        overdue = self._clock.is_overdue(self._clock.published_at)
        lacking = policy.lacking(self.settings.batch_min_fill if overdue else 1.0)
        return min(lacking, policy.horizon - policy.duels, self._stop.until_look(policy))

    def decide(self, at: Position) -> Message | None:
        """Take a decision from all duels so far; an assignment if it changes the plan."""
        self.learn()
        self._since_decision = 0
        if self.status == "running":
            self._stopped = self._stop.is_reached(self.policy)
        before, self.plan = self.plan, self._decided(at.stream_time)
        self.due = self._until_due()
        if self.plan == before:
            return None
        self.epoch += 1
        return Message(self.name.encode(), _encode(self._assignment(self.plan, at)))

    def ring(self, at: Position) -> Message | None:
        """Take the decision that is due because stream time has reached `alarm`."""
        self._changes += 1
        return self.decide(at)

    @property
    def alarm(self) -> int:
        """The stream time at which a decision is due, whether or not there were duels."""
        return NEVER if self._in_batch is None else self._clock.alarm

    def _decided(self, now: int) -> Plan:
        """The plan from now on."""
        policy, arms = self.policy, self.roster.arms
        if self.status == "running":
            if isinstance(policy, BatchedPolicy):
                plan = self._decided_in_batch(policy, now)
            else:
                plan = plans.slate(policy, arms, self.settings.slate)
            if not policy.finished:  # it may have concluded so when it was asked
                return plan
        return plans.alone(arms[policy.champion()], self.status)

    def _decided_in_batch(self, policy: BatchedPolicy, now: int) -> Plan:
        clock, before = self._clock, policy.round
        if clock.is_overdue(now) and policy.lacking(self.settings.batch_min_fill) == 0:
            policy.close_batch()
        remaining = policy.open_batch()
        if policy.round != before or clock.begins(now):
            clock.open(now)
        elif now >= clock.alarm:
            clock.published_at = now
        elif self.plan is not None and self.plan.status == "running":
            return self.plan  # the batch is not complete; what it lacks was published lately
        return plans.batch(policy, self.roster.arms, remaining)

    def _assignment(self, plan: Plan, at: Position) -> Assignment:
        return Assignment(
            experiment=self.name,
            epoch=self.epoch,
            policy=self.settings.policy.name,
            champion=plan.champion,
            pairs=plan.shares(),
            duels=self.policy.duels,
            status=plan.status,
            partition=at.partition,
            offset=at.offset,
            ts=at.stream_time,
        )

    @property
    def batch(self) -> tuple[int, int] | None:
        """The number of a batched policy's open batch, and how many duels it lacks."""
        policy = self.policy
        return (policy.round, policy.lacking()) if isinstance(policy, BatchedPolicy) else None

    @property
    def status(self) -> Status:
        """Whether duels change the plan at present."""
        if self._paused:
            return "paused"
        return "finished" if self._stopped or self.policy.finished else "running"

    @property
    def records(self) -> int:
        """How often the hard state has changed; equal numbers, equal states."""
        counted = self.accepted + self.duplicates + self.dead_letters
        return counted + len(self.pending) + self._changes

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
        return {
            **self.roster.state(),
            "status": self.status,
            "epoch": self.epoch,
            "plan": self.plan and self.plan.state(),
            "since_decision": self._since_decision,
            "paused": self._paused,
            "stopped": self._stopped,
            "batch": self._clock.state(),
            "stop": self._stop.state(),
            "alone": list(self.alone),
            "tallies": self.tallies,
            "policy": self.policy.state_dict(),
        }
