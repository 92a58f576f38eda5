"""Decisions of an experiment: its policy, the plan in force, and the assignments it publishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from streamduel import policies
from streamduel.config.experiment import ExperimentSettings
from streamduel.errors import PolicyError
from streamduel.policies import Duels
from streamduel.policies.base.batched_policy import BatchedPolicy
from streamduel.policies.base.change_of_arms import with_arms, with_counts_of
from streamduel.policies.base.like_arm import with_arm_like
from streamduel.records import Assignment, Rejected, Status
from streamduel.stream import plan as plans
from streamduel.stream.guardrails import Guardrails, guarded_shares
from streamduel.stream.plan import Plan
from streamduel.stream.roster import Roster
from streamduel.stream.stop_rule import StopRule
from streamduel.stream.timers import NEVER, BatchTimer, RenewalTimer


class Decisions:
    """Owns what an experiment decides: policy, plan, guardrails, batch and pause.

    A decision is due after a number of duels (`until_due`), for a batched policy when its batch may
    be complete, or at a stream time (`timer`); and immediately after a control record. It is
    published if it changes the plan, or if the last assignment must be renewed.

    Args:
        name: name of the experiment.
        settings: its section of the configuration.
        partition: its partition.
        roster: its arms, present and past.
        state: a former `state()`; None for a new experiment.

    Attributes:
        policy: learns from duels and proposes the next ones.
        plan: the plan in force; None before the first decision.
        assignment: the last one published; None before the first decision.
        guardrails: limits on the policy's plans, and the frozen pair.
        paused: whether a control record asked for the champion alone.
    """

    __slots__ = (
        "_batch_timer", "_batched", "_configured", "_name", "_partition", "_renewal", "_roster",
        "_settings", "_since_decision", "_stop", "_stopped", "assignment", "guardrails", "paused",
        "plan", "policy",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        settings: ExperimentSettings,
        partition: int,
        roster: Roster,
        state: Mapping[str, Any] | None,
    ) -> None:
        self._name, self._settings, self._partition = name, settings, partition
        self._roster = roster
        self._batched = issubclass(policies.get(settings.policy.name), BatchedPolicy)
        self._configured = False  # since the last decision, which is then published in any case
        rails = settings.guardrails
        saved = state or {}
        self.policy = policies.from_state(state["policy"]) if state else settings.create_policy()
        self.plan = msgspec.convert(saved.get("plan"), Plan | None)
        self.assignment = msgspec.convert(saved.get("assignment"), Assignment | None)
        self._since_decision: int = saved.get("since_decision", 0)
        self.paused: bool = saved.get("paused", False)
        self._stopped: bool = saved.get("stopped", False)
        self._batch_timer = BatchTimer(settings, **saved.get("batch", {}))
        self._stop = StopRule(settings.stop, **saved.get("stop", {}))
        self._renewal = RenewalTimer(rails.fallback, **saved.get("renewal", {}))
        self.guardrails = Guardrails(rails, saved.get("guardrails"))
        if self.plan is not None:
            self.guardrails.watch(self.plan, roster.index)

    @property
    def epoch(self) -> int:
        """The number of the last assignment; 0 before the first."""
        return 0 if self.assignment is None else self.assignment.epoch

    @property
    def status(self) -> Status:
        """Whether duels change the plan."""
        if self.paused:
            return "paused"
        ended = self._stopped or (self.policy.final and self.policy.finished)
        return "finished" if ended else "running"

    @property
    def status_in_force(self) -> Status:
        """The status of the plan in force.

        A policy may pass its horizon between two decisions: its pairs are served until the next.
        """
        return self.plan.status if self.plan else self.status

    @property
    def champion(self) -> str:
        """The policy's champion now; the plan in force may name an earlier one."""
        return self._roster.arms[self.policy.champion()]

    @property
    def batch(self) -> tuple[int, int] | None:
        """The round of a batched policy, and the duels that its open batch lacks."""
        policy = self.policy
        return (policy.round, policy.lacking()) if isinstance(policy, BatchedPolicy) else None

    # Duels.

    def observe(self, first: int, second: int, first_wins: float, count: int = 1) -> None:
        """Let the policy observe duels of one pair with the same outcome."""
        self.policy.observe(first, second, first_wins, count)
        self.guardrails.count(first, second, count)

    def learn(self, duels: Duels) -> None:
        """Let the policy learn many duels."""
        self.policy.learn(duels)
        self.guardrails.count_many(duels.first, duels.second)

    def advance(self, duels: int) -> None:
        """Count the duels since the last decision; call it after `observe` and `learn`."""
        if self._open_batch is None:
            self._since_decision += duels

    # Control records.

    def reset(self) -> None:
        """Forget all duels."""
        self.policy = self._settings.create_policy(self._roster.arms)
        self._since_decision, self._stopped = 0, False
        self._stop = StopRule(self._settings.stop)
        self._batch_timer = BatchTimer(self._settings)
        self.guardrails.forget()

    def add_arm(self, arm: str, like: int | None = None) -> None:
        """Let the policy compare one more arm; earlier confidence does not cover it.

        Args:
            arm: its name.
            like: the arm whose posterior is its prior, discounted and capped as `prior` of the
                settings says.

        Raises:
            Rejected: the policy cannot take another arm, or such a prior.
        """
        policy, prior = self.policy, self._settings.prior
        try:
            if like is None:
                self.policy = with_arms(policy, [*range(policy.n_arms), None])
            else:
                self.policy = with_arm_like(policy, like, prior.discount, prior.cap)
        except PolicyError as error:
            raise Rejected("invalid_record", f"arm '{arm[:80]}' cannot be added: {error}") from None
        self._stopped = False
        self._batch_timer = BatchTimer(self._settings)

    def retire_arm(self, arm: str, index: int) -> None:
        """Remove an arm from the policy.

        Raises:
            Rejected: a guardrail needs the arm.
        """
        if why := self.guardrails.needed(arm):
            raise Rejected("invalid_record", f"arm '{arm[:80]}' must stay: {why}.")
        others = [other for other in range(self.policy.n_arms) if other != index]
        self.policy = with_arms(self.policy, others)
        if self.plan is not None and arm == self.plan.champion:
            self._stopped = False
        self._batch_timer = BatchTimer(self._settings)
        self.guardrails.forget(arm)

    def configure(self, settings: ExperimentSettings, arms: Sequence[str]) -> None:
        """Continue with other settings and arms; then change the roster.

        Args:
            settings: the new ones.
            arms: those of the roster that stay, in their order, then the new ones.

        Raises:
            PolicyError: no policy can take them; nothing has changed.
        """
        before, policy = self._settings, self._policy_for(settings, arms)
        timer = {} if policy is not self.policy else self._batch_timer.state()
        if policy is not self.policy or settings.stop != before.stop:
            self._stopped, self._stop = False, StopRule(settings.stop)
        self._settings, self.policy = settings, policy
        self._batched = isinstance(policy, BatchedPolicy)
        self._batch_timer = BatchTimer(settings, **timer)
        self._renewal = RenewalTimer(settings.guardrails.fallback)
        pair = settings.guardrails.freeze_pair
        if pair != before.guardrails.freeze_pair:
            ordered = [arm for arm in arms if arm in (pair or ())]
            self.guardrails.frozen = (ordered[0], ordered[1]) if pair else None
        self.guardrails.settings = settings.guardrails
        for arm in self._roster.arms:
            if arm not in arms:
                self.guardrails.forget(arm)
        self._configured = True

    def _policy_for(self, settings: ExperimentSettings, arms: Sequence[str]) -> policies.Policy:
        """The present policy if nothing changes it, or another one that has its counts."""
        kept = [self._roster.index.get(arm) for arm in arms]
        fresh = settings.create_policy(arms)
        try:
            former = self._settings.create_policy(arms)
        except PolicyError:  # such as a horizon that is too short for the new number of arms
            former = None
        if former is None or (fresh.name, fresh.parameters) != (former.name, former.parameters):
            return with_counts_of(fresh, self.policy, kept)
        return self.policy if list(arms) == self._roster.arms else with_arms(self.policy, kept)

    # When a decision is due.

    @property
    def until_due(self) -> int:
        """Duels until a decision is due.

        A batch may still lack some duels then, if other pairs had surplus duels: call again when
        the duels are learned.
        """
        batched = self._open_batch
        if self._renewal.expires:
            return 0
        if batched is None:
            return self._settings.decide_every - self._since_decision
        overdue = self._batch_timer.is_overdue(self._batch_timer.published_at)
        lacking = batched.lacking(self._settings.batch_min_fill if overdue else 1.0)
        return min(lacking, batched.horizon - batched.duels, self._stop.until_check(batched))

    @property
    def timer(self) -> int:
        """The stream time at which `expire` is due, with or without duels."""
        batch = NEVER if self._open_batch is None else self._batch_timer.at
        return min(batch, self._renewal.at)

    @property
    def _open_batch(self) -> BatchedPolicy | None:
        """The policy, if its open batch, and not a number of duels, determines the next decision.

        The batch determines it from the decision that publishes the batch to the next one that
        publishes something else, whatever is learned meanwhile, so the times of learning do not
        matter.
        """
        if not self._batched:  # a flag: isinstance with an abstract class takes 0.5 µs
            return None
        policy = self.policy
        return policy if isinstance(policy, BatchedPolicy) and self._is_policys_plan else None

    @property
    def _is_policys_plan(self) -> bool:
        return self.plan is not None and self.plan.status == "running" and not self.plan.frozen

    # Decisions.

    def decide(self, offset: int, now: int, records: int) -> Assignment | None:
        """Take a decision from all that the policy has learned.

        Args:
            offset: the last record that it takes into account.
            now: stream time.
            records: the number of the experiment's records so far.

        Returns:
            An assignment, if the plan changed or the last assignment must be renewed.
        """
        self._since_decision = 0
        if self.status == "running":
            # The answer of a policy that is sure is kept, whatever later duels say.
            self._stopped = self.policy.finished or self._stop.is_reached(self.policy)
        before, self.plan = self.plan, self._next_plan(now)
        self.guardrails.watch(self.plan, self._roster.index)
        if self.plan == before and not self._renewal.expires and not self._configured:
            return None
        self._configured = False
        return self._publish(self.plan, offset, now, records)

    def expire(self, offset: int, now: int, records: int) -> Assignment | None:
        """Decide or renew the assignment, whichever is due because the timer has expired."""
        assignment, renewal = None, self._renewal
        if self._open_batch is not None and self._batch_timer.at <= now:
            assignment = self.decide(offset, now, records)
        if assignment is None and renewal.at <= now and renewal.check(records):
            assert self.plan is not None, "there is no timer before the first decision"
            return self._publish(self.plan, offset, now, records)
        return assignment

    def rewind(self, offset: int, now: int, records: int) -> Assignment | None:
        """Stream time was set back to `now`, before the record after `offset`.

        Returns:
            The last assignment again, if it is dated later: its validity was too long.
        """
        self._batch_timer.rewind(now)
        if self.plan is None or self.assignment is None or self.assignment.ts <= now:
            return None
        return self._publish(self.plan, offset, now, records)

    def _next_plan(self, now: int) -> Plan:
        policy, arms, frozen = self.policy, self._roster.arms, self.guardrails.frozen
        if self.status == "running":
            if frozen is not None:
                return plans.frozen(policy, arms, frozen)
            if self._batched and isinstance(policy, BatchedPolicy):
                plan = self._batch_plan(policy, now)
            else:
                plan = plans.slate(policy, arms, self._settings.slate)
            if not policy.finished:  # a policy may notice that it has finished when asked
                return plan
        return plans.alone(policy, arms, self.status)

    def _batch_plan(self, policy: BatchedPolicy, now: int) -> Plan:
        timer, before = self._batch_timer, policy.round
        if timer.is_overdue(now) and policy.lacking(self._settings.batch_min_fill) == 0:
            policy.close_batch()
        policy.open_batch()
        if policy.round != before or timer.starts(now):
            timer.start(now)
        elif now >= timer.at:
            timer.published_at = now
        elif self.plan is not None and self._is_policys_plan:
            return self.plan  # the batch is open and was published recently
        return plans.batch(policy, self._roster.arms, policy.remaining())

    def _publish(self, plan: Plan, offset: int, now: int, records: int) -> Assignment:
        valid_until, fallback = self._renewal.published(now, records)
        self.assignment = Assignment(
            experiment=self._name,
            epoch=self.epoch + 1,
            policy=self._settings.policy.name,
            champion=plan.champion,
            pairs=guarded_shares(plan, self._settings.guardrails),
            duels=self.policy.duels,
            status=plan.status,
            partition=self._partition,
            offset=offset,
            ts=now,
            stage=plan.stage,
            valid_until=valid_until,
            fallback=fallback,
        )
        return self.assignment

    def state(self) -> dict[str, Any]:
        """What restores the object, as plain JSON values."""
        return {
            "status": self.status,
            "plan": msgspec.to_builtins(self.plan),
            "assignment": msgspec.to_builtins(self.assignment),
            "since_decision": self._since_decision,
            "paused": self.paused,
            "stopped": self._stopped,
            "batch": self._batch_timer.state(),
            "stop": self._stop.state(),
            "guardrails": self.guardrails.state(),
            "renewal": self._renewal.state(),
            "policy": self.policy.state_dict(),
        }
