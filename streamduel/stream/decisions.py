"""When an experiment decides, what it decides, and what it publishes of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from streamduel import policies
from streamduel.config.experiment import ExperimentSettings
from streamduel.connector import Message
from streamduel.policies import Policy
from streamduel.policies.base.batched_policy import BatchedPolicy
from streamduel.records import Assignment
from streamduel.stream import plan as plans
from streamduel.stream.batch_clock import NEVER, BatchClock
from streamduel.stream.guardrails import Guardrails, guarded_shares
from streamduel.stream.plan import Plan, Status
from streamduel.stream.renewal import Renewal
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


class Decisions:
    """The decisions of one experiment: from what a policy has learned to assignments.

    A decision is due after so many duels (`until_due`), for a batched policy when its batch may be
    complete, or at a stream time (`alarm`); and at once after a control record. It is published if
    it changes the plan, or if the last assignment is to be renewed.

    Args:
        name: the experiment's.
        settings: its part of the configuration.
        roster: its arms, present and past.
        state: what `state` returned in an earlier life; None for a fresh start.

    Attributes:
        plan: the one in force; None before the first decision.
        epoch: of its assignment.
        assignment: the last one, as it was published; None before the first.
        guardrails: within which the policy has its way.
        paused: whether the champion is served alone because somebody said so.
    """

    __slots__ = (
        "_batched", "_clock", "_name", "_renewal", "_roster", "_settings", "_since_decision",
        "_stop", "_stopped", "assignment", "epoch", "guardrails", "paused", "plan",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        settings: ExperimentSettings,
        roster: Roster,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self._name, self._settings, self._roster = name, settings, roster
        self._batched = issubclass(policies.get(settings.policy.name), BatchedPolicy)
        rails, self._stop = settings.guardrails, StopRule(settings.stop)
        if state is None:
            self.plan: Plan | None = None
            self.assignment: Assignment | None = None
            self.epoch = self._since_decision = 0
            self.paused = self._stopped = False
            self._clock = BatchClock(settings)
            self._renewal, self.guardrails = Renewal(rails.fallback), Guardrails(rails)
            return
        self.plan = state["plan"] and Plan.resume(state["plan"])
        self.assignment = msgspec.convert(state["assignment"], Assignment | None)
        self.epoch, self._since_decision = state["epoch"], state["since_decision"]
        self.paused, self._stopped = state["paused"], state["stopped"]
        self._clock = BatchClock(settings, **state["batch"])
        self._stop.look_at = state["stop"]["look_at"]
        self._renewal = Renewal(rails.fallback, state["renewal"])
        self.guardrails = Guardrails(rails, state["guardrails"])
        if self.plan is not None:
            self.guardrails.watch(self.plan, roster.index)

    # What has happened.

    def learned(self, policy: Policy, duels: int) -> None:
        """The policy has been told so many duels."""
        if self._in_batch(policy) is None:
            self._since_decision += duels

    def begin_anew(self) -> None:
        """All duels are forgotten."""
        self._since_decision, self._stopped = 0, False
        self._stop = StopRule(self._settings.stop)
        self._clock = BatchClock(self._settings)
        self.guardrails.forget()

    def arm_joined(self) -> None:
        """An arm competes from now on: what was sure said nothing of it."""
        self._stopped = False
        self._clock = BatchClock(self._settings)

    def arm_left(self, arm: str) -> None:
        """An arm competes no more."""
        if self.plan is not None and arm == self.plan.champion:
            self._stopped = False
        self._clock = BatchClock(self._settings)
        self.guardrails.forget(arm)

    # When.

    def until_due(self, policy: Policy) -> int:
        """How many duels more until a decision is due.

        A batch may still lack some then, namely as many as were surplus; the decision then changes
        nothing at all.
        """
        batched = self._in_batch(policy)
        if self._renewal.lapses:
            return 0
        if batched is None:
            return self._settings.decide_every - self._since_decision
        overdue = self._clock.is_overdue(self._clock.published_at)
        lacking = batched.lacking(self._settings.batch_min_fill if overdue else 1.0)
        return min(lacking, batched.horizon - batched.duels, self._stop.until_look(policy))

    def alarm(self, policy: Policy) -> int:
        """The stream time at which `ring` is due, whether or not there were duels."""
        batch = NEVER if self._in_batch(policy) is None else self._clock.alarm
        return min(batch, self._renewal.alarm)

    def _in_batch(self, policy: Policy) -> BatchedPolicy | None:
        """The policy, if its open batch, and not a number of duels, says when to decide.

        That is so from the decision that has published a batch up to the one that publishes
        something else, whatever was learned since: when that was, leaves no trace.
        """
        if not self._batched:  # a flag, since to ask an abstract class takes half a microsecond
            return None
        return policy if isinstance(policy, BatchedPolicy) and self._policy_decides else None

    @property
    def _policy_decides(self) -> bool:
        """Whether the plan in force is the policy's own."""
        return self.plan is not None and self.plan.status == "running" and not self.plan.frozen

    # What.

    def status(self, policy: Policy) -> Status:
        """Whether duels change the plan at present."""
        if self.paused:
            return "paused"
        return "finished" if self._stopped or policy.finished else "running"

    def decide(self, policy: Policy, at: Position, records: int) -> Message | None:
        """Take a decision from all that the policy has learned.

        Args:
            policy: the experiment's.
            at: where in the log.
            records: how many the experiment has had.

        Returns:
            An assignment, if it says anything new.
        """
        self._since_decision = 0
        if self.status(policy) == "running":
            self._stopped = self._stop.is_reached(policy)
        plan = self._decided(policy, at.stream_time)
        before, self.plan = self.plan, plan
        self.guardrails.watch(plan, self._roster.index)
        if plan == before and not self._renewal.lapses:
            return None
        return self._publish(plan, policy, at, records)

    def ring(self, policy: Policy, at: Position, records: int) -> Message | None:
        """Do what is due because stream time has reached the alarm: decide, renew, or both."""
        assignment, renewal = None, self._renewal
        if self._in_batch(policy) is not None and self._clock.alarm <= at.stream_time:
            assignment = self.decide(policy, at, records)
        if assignment is None and renewal.alarm <= at.stream_time and renewal.look(records):
            assert self.plan is not None, "there is no alarm before the first decision"
            return self._publish(self.plan, policy, at, records)
        return assignment

    def _decided(self, policy: Policy, now: int) -> Plan:
        """The plan from now on."""
        arms, frozen = self._roster.arms, self.guardrails.frozen
        if self.status(policy) == "running":
            if frozen is not None:
                return plans.frozen(policy, arms, frozen)
            if self._batched and isinstance(policy, BatchedPolicy):
                plan = self._decided_in_batch(policy, now)
            else:
                plan = plans.slate(policy, arms, self._settings.slate)
            if not policy.finished:  # it may have concluded so when it was asked
                return plan
        return plans.alone(policy, arms, self.status(policy))

    def _decided_in_batch(self, policy: BatchedPolicy, now: int) -> Plan:
        clock, before = self._clock, policy.round
        if clock.is_overdue(now) and policy.lacking(self._settings.batch_min_fill) == 0:
            policy.close_batch()
        policy.open_batch()
        if policy.round != before or clock.begins(now):
            clock.open(now)
        elif now >= clock.alarm:
            clock.published_at = now
        elif self.plan is not None and self._policy_decides:
            return self.plan  # the batch is not complete; what it lacks was published lately
        return plans.batch(policy, self._roster.arms, policy.remaining())

    def _publish(self, plan: Plan, policy: Policy, at: Position, records: int) -> Message:
        self.epoch += 1
        valid_until, fallback = self._renewal.published(at.stream_time, records)
        self.assignment = Assignment(
            experiment=self._name,
            epoch=self.epoch,
            policy=self._settings.policy.name,
            champion=plan.champion,
            pairs=guarded_shares(plan, self._settings.guardrails),
            duels=policy.duels,
            status=plan.status,
            partition=at.partition,
            offset=at.offset,
            ts=at.stream_time,
            stage=plan.stage,
            valid_until=valid_until,
            fallback=fallback,
        )
        return Message(self._name.encode(), _encode(self.assignment))

    def state(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "epoch": self.epoch,
            "plan": self.plan and self.plan.state(),
            "assignment": msgspec.to_builtins(self.assignment),
            "since_decision": self._since_decision,
            "paused": self.paused,
            "stopped": self._stopped,
            "batch": self._clock.state(),
            "stop": self._stop.state(),
            "guardrails": self.guardrails.state(),
            "renewal": self._renewal.state(),
        }
