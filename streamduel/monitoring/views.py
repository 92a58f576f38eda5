"""What is shown of the state: immutable copies, made when a commit has become visible.

The fold makes them and goes on; whoever scrapes reads them from another thread, later, as often
as it likes. Neither ever waits for the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from streamduel.monitoring.assessment import CHEAP_ARMS, Assessment, WorkedOut
from streamduel.preference.arrays import Floats
from streamduel.preference.evidence import (
    Winner,
    confidence,
    log_evidence,
    unfairness,
    winner_possible_by,
)
from streamduel.preference.regret import estimated_regret, regret_bound, regret_of
from streamduel.preference.winners import copeland_scores
from streamduel.records import Assignment, Reason
from streamduel.stream.experiment import Experiment
from streamduel.stream.guardrails import share_taken
from streamduel.stream.task import PartitionTask
from streamduel.stream.trust import Coin

DELTA: Final = 0.05
"""What is shown as a bound, or as impossible, is wrong with at most this probability, at any time;
the custom of statistics."""


class Served(NamedTuple):
    """What interleaved impressions tell of the services that log them.

    Attributes:
        impressions: with clicks or without.
        ties: impressions, and duels, that were no win for either side.
        ranks: documents shown, of side a and of side b.
        unassigned: impressions of a pair that no assignment had named lately.
        coins: of the sides, and of each arm, how much they had of what should be even, and how much
            who stood against them had.
    """

    impressions: int
    ties: int
    ranks: tuple[int, int]
    unassigned: int
    coins: tuple[Coin, ...]

    @classmethod
    def of(cls, experiment: Experiment) -> Served:
        """Of an experiment."""
        trust = experiment.trust
        coins = trust.coins(experiment.roster.arms) if trust.impressions else ()
        return cls(trust.impressions, experiment.ties, trust.ranks, trust.unassigned, coins)


class Guarded(NamedTuple):
    """What guardrails do to an experiment.

    Attributes:
        share: of the impressions, that they take from the policy at present.
        pairs: two arms, and how many of their duels have been fought for a guardrail's sake.
    """

    share: float
    pairs: tuple[tuple[int, int, int], ...]

    @classmethod
    def of(cls, experiment: Experiment) -> Guarded | None:
        """Of an experiment; None if it has, and has had, no guardrail."""
        rails, plan, index = experiment.guardrails, experiment.plan, experiment.roster.index
        if not rails.at_work and not rails.served:
            return None
        pairs = tuple((index[a], index[b], duels) for (a, b), duels in rails.served.items())
        return cls(share_taken(plan, rails.settings) if plan else 0.0, pairs)


@dataclass(frozen=True, eq=False)
class ExperimentView:
    """One experiment as of a commit.

    What takes arithmetic is worked out when it is first asked for, by the thread that asks; of more
    than `CHEAP_ARMS` arms only by the one that has the time, in `work_out`.

    Attributes:
        records: how many had changed the experiment; equal numbers, equal views.
        tallies: how many records had which fate.
        open: how many impressions wait for clicks, and clicks for impressions.
        duels: all of them, those of an arm with itself included.
        champion: of the assignment in force, an index into `arms`.
        candidates: how many arms are not ruled out.
        epoch: of the assignment in force.
        assignment: the one in force, as it was published; None before the first decision.
        wins: (K, K), a copy.
        alone: (K,), how often each arm was served alone.
        fought: (K,), how many duels against other arms each has had.
        seeks: which winner the policy looks for.
        batch: the number of the open batch and how many duels it lacks, of a batched policy.
        policy: as configured.
        stage: the algorithm at work.
        status: whether duels change the plan.
        guardrails: which share of the impressions they take from the policy, and how many duels
            of which pairs have been fought for them; None without guardrails.
        fallback: what is served when no records come, and after how many seconds without any.
        changed_at: when its last record was seen, by the observer's clock; before there was one,
            when its state was restored.
        fed: whether there was one.
        served: what impressions tell of the services that log them.
        worked_out: what is known of an experiment of many arms, from it and from former views.
    """

    name: str
    arms: tuple[str, ...]
    records: int
    tallies: Mapping[str, int]
    open: Mapping[str, int]
    duels: int
    champion: int
    candidates: int
    epoch: int
    assignment: Assignment | None
    wins: Floats
    alone: tuple[int, ...]
    fought: tuple[int, ...]
    seeks: Winner
    batch: tuple[int, int] | None
    policy: str
    stage: str
    status: str
    guardrails: Guarded | None
    fallback: tuple[str, float] | None
    changed_at: float
    served: Served
    fed: bool = True
    worked_out: WorkedOut = field(default_factory=WorkedOut)

    @classmethod
    def of(
        cls, experiment: Experiment, now: float, former: ExperimentView | None = None
    ) -> ExperimentView:
        """The experiment as it is now, and as it was."""
        fallback = experiment.settings.guardrails.fallback
        news = former is not None and former.tallies != experiment.tallies
        plan, arms = experiment.plan, tuple(experiment.roster.arms)
        made = cls(
            name=experiment.name,
            arms=arms,
            records=experiment.records,
            tallies=experiment.tallies,
            open=experiment.open,
            duels=experiment.policy.duels,
            champion=arms.index(plan.champion) if plan else experiment.policy.champion(),
            candidates=experiment.policy.candidates(),
            epoch=experiment.epoch,
            assignment=experiment.assignment,
            wins=experiment.policy.wins.copy(),
            alone=tuple(experiment.by_arm.alone),
            fought=tuple(experiment.by_arm.fought),
            seeks=experiment.policy.seeks,
            batch=experiment.batch,
            policy=experiment.settings.policy.name,
            stage=experiment.policy.stage,
            status=experiment.status,
            guardrails=Guarded.of(experiment),
            fallback=(fallback.arm, fallback.idle_ms / 1000) if fallback.arm else None,
            changed_at=former.changed_at if former and not news else now,
            served=Served.of(experiment),
            fed=news or (former is not None and former.fed),
            worked_out=WorkedOut(),
        )
        if former is not None and made._continues(former):
            return replace(made, worked_out=former.worked_out)
        return made

    def _continues(self, former: ExperimentView) -> bool:
        """Whether what was worked out of a former view holds of this one; of few arms, no matter.

        With fewer duels than before the experiment has begun anew.
        """
        many = len(self.arms) > CHEAP_ARMS
        return many and self.duels >= former.duels and self.shape == former.shape

    def shows(self, experiment: Experiment) -> bool:
        """Whether the experiment is still as the view has it.

        What is open also changes while it is read again after a restart, which is no change of
        the experiment.
        """
        return self.records == experiment.records and self.open == experiment.open

    @cached_property
    def shape(self) -> tuple[object, ...]:
        """Equal shapes, the same series: their names and labels hang on nothing else."""
        parts = self.batch is None, self.guardrails is None
        return self.name, self.arms, self.policy, self.stage, self.seeks, parts

    @cached_property
    def champions(self) -> list[float]:
        """1 for the champion and 0 for the others, arm by arm."""
        marks = [0.0] * len(self.arms)
        marks[self.champion] = 1.0
        return marks

    @cached_property
    def copeland(self) -> list[float]:
        """The share of the other arms that each arm beats."""
        scores: list[float] = copeland_scores(self.wins).tolist()
        return scores

    @cached_property
    def regret(self) -> dict[str, float]:
        """The estimated cumulative regret, by kind."""
        return estimated_regret(self.wins, self.champion, self.alone)

    @cached_property
    def guardrail_regret(self) -> dict[str, float]:
        """What the duels that were fought for guardrails have cost, by kind."""
        pairs = self.guardrails.pairs if self.guardrails else ()
        return regret_of(pairs, self.wins, self.champion)

    @cached_property
    def team_mismatch(self) -> float:
        """How sure it is that services do not treat the sides alike."""
        return unfairness(self.served.coins)

    @property
    def assessment(self) -> Assessment:
        """All that takes arithmetic, without a wait: of many arms the newest that is worked out."""
        if len(self.arms) <= CHEAP_ARMS:
            return self._assess()
        known = self.worked_out.of(self.champion)
        known = known or Assessment.unknown(guarded=self.guardrails is not None)
        return known._replace(confidence=self.confidence, team_mismatch=self.team_mismatch)

    def work_out(self) -> None:
        """Take the time that the assessment of many arms needs; later views have it, too."""
        if len(self.arms) > CHEAP_ARMS:
            self.worked_out.keep(self.champion, self._assess())

    def _assess(self) -> Assessment:
        return Assessment(
            self.regret,
            self.regret_bound,
            self.guardrail_regret if self.guardrails else None,
            self.confidence,
            self.condorcet_winner_possible,
            self.team_mismatch,
        )

    @property
    def regret_bound(self) -> dict[str, float]:
        """An upper bound of the cumulative regret, by kind."""
        return self._sure[0]

    @cached_property
    def confidence(self) -> float:
        """That the champion is the winner the policy looks for, at least."""
        return confidence(self.wins, self.champion, self.seeks)

    @property
    def condorcet_winner_possible(self) -> bool:
        """Whether some arm may still beat all others."""
        return self._sure[1]

    @cached_property
    def _sure(self) -> tuple[dict[str, float], bool]:
        """Both come from the same evidence."""
        evidence = log_evidence(self.wins)
        bound = regret_bound(self.wins, self.alone, self.champion, DELTA, evidence)
        return bound, winner_possible_by(evidence, DELTA)

    @cached_property
    def summary(self) -> msgspec.Raw:
        """The experiment in JSON, as `/api/experiments` shows it."""
        summary = {
            "assignment": self.assignment,
            "status": self.status,
            "policy": self.policy,
            "stage": self.stage,
            "champion": self.arms[self.champion],
            "champion_confidence": self.confidence,
            "epoch": self.epoch,
            "duels": self.duels,
            "arms": self.arms,
            "copeland_scores": dict(zip(self.arms, self.copeland, strict=True)),
            "tallies": self.tallies,
            "open": self.open,
        }
        return msgspec.Raw(msgspec.json.encode(summary))


@dataclass(frozen=True, eq=False)
class PartitionView:
    """One partition as of a commit.

    Attributes:
        stream_time: in milliseconds; 0 before the first record with a time.
        saved_at: when its newest snapshot was written or read, by the observer's clock.
        experiments: those that live in it, by name.
        dead_letters: how many, by reason.
    """

    stream_time: int
    saved_at: float
    experiments: Mapping[str, ExperimentView]
    dead_letters: Mapping[Reason, int]

    @classmethod
    def of(cls, task: PartitionTask, now: float, former: PartitionView | None) -> PartitionView:
        """The partition as it is now; of experiments that stand still, the former view."""
        known = former.experiments if former else {}
        experiments = {}
        for name, experiment in task.experiments.items():
            view = known.get(name)
            if view is None or not view.shows(experiment):
                view = ExperimentView.of(experiment, now, view)
            experiments[name] = view
        return cls(task.stream_time, now, experiments, dict(task.dead_letters))


class Tally(NamedTuple):
    """Measurements sorted into buckets; to add one makes a new tally.

    Attributes:
        bounds: the largest value of each bucket, ascending; one more bucket takes the rest.
        counts: how many measurements are in each bucket.
        total: their sum.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float = 0.0

    @classmethod
    def empty(cls, *bounds: float) -> Tally:
        """A tally of nothing yet.

        >>> Tally.empty(1, 10).plus(10).plus(11).counts
        (0, 1, 1)
        """
        return cls(bounds, (0,) * (len(bounds) + 1))

    def plus(self, value: float) -> Tally:
        """The tally with one measurement more."""
        place = sum(bound < value for bound in self.bounds)
        counts = (*self.counts[:place], self.counts[place] + 1, *self.counts[place + 1 :])
        return Tally(self.bounds, counts, self.total + value)


@dataclass(frozen=True, eq=False)
class Figures:
    """Everything that is known to whoever watches, at one moment.

    Attributes:
        connector: the source's.
        commit_seconds: how long commits took.
        poll_records: how many records polls brought.
        turned_at: when the runner's loop last went round; at first, when watching began.
        connected: whether the source's log can be reached.
        fenced: whether the last commit was refused, and its partitions have neither been restored
            nor taken away since.
        partitions: those at hand.
        lags: records not folded yet, by partition, where known.
        dead_letters: by reason, of every partition that was ever at hand.
        restores: how often a partition's state was restored.
        commit_failures: how often a commit came to nothing.
        now: by the clock that the other times were read from.
    """

    connector: str
    commit_seconds: Tally
    poll_records: Tally
    turned_at: float = 0.0
    connected: bool = False
    fenced: bool = False
    partitions: Mapping[int, PartitionView] = field(default_factory=dict)
    lags: Mapping[int, int] = field(default_factory=dict)
    dead_letters: Mapping[int, Mapping[Reason, int]] = field(default_factory=dict)
    restores: int = 0
    commit_failures: int = 0
    now: float = 0.0

    def experiments(self) -> Iterator[ExperimentView]:
        """Those of all partitions at hand."""
        for _, partition in sorted(self.partitions.items()):
            yield from partition.experiments.values()
