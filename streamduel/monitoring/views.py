"""Immutable copies of partitions and experiments, made when a commit has become visible.

The runner's thread makes them and continues; a scrape in another thread reads them later, any
number of times. Neither thread waits for the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan
from typing import Any, Final, NamedTuple

import numpy as np

from streamduel.config.experiment import ExperimentSettings
from streamduel.monitoring.view_parts import GuardrailEffect, Impressions, why_pair
from streamduel.preference.arrays import Floats
from streamduel.preference.evidence import Winner, unfairness
from streamduel.preference.regret import KINDS, estimated_regret, regret_bound, regret_of
from streamduel.preference.segments import SegmentReport, judge_segments
from streamduel.preference.verdict import LEVEL, Verdict
from streamduel.preference.winners import copeland_scores
from streamduel.records import Assignment, Reason, Status
from streamduel.stream.examples import Example
from streamduel.stream.experiment import Experiment
from streamduel.stream.segments import CountsOfSegments
from streamduel.stream.settings_change import pending
from streamduel.stream.task import PartitionTask
from streamduel.stream.timeline import Moment

DELTA: Final = 1 - LEVEL
"""Bounds of regret are wrong with at most this probability at any time."""

MAX_ARMS_ON_DEMAND: Final = 100
"""Up to this many arms an assessment takes at most some milliseconds and may be computed during a
request. With 500 arms it takes two seconds, too long for a health probe that waits behind it."""

_CREDITING: Final = ("credit", "ties", "no_click")
"""The settings that decide which impressions are duels, wins and ties."""


class Assessment(NamedTuple):
    """What the duels of an experiment imply, as of one moment; costly to compute.

    For more than `MAX_ARMS_ON_DEMAND` arms, that moment is the last update of the history.

    Attributes:
        regret: estimate, by kind.
        regret_bound: upper bound, by kind.
        guardrail_regret: the part caused by guardrails, by kind; None without guardrails.
        condorcet_winner_possible: whether some arm may still beat all others; NaN while unknown.
    """

    regret: Mapping[str, float]
    regret_bound: Mapping[str, float]
    guardrail_regret: Mapping[str, float] | None
    condorcet_winner_possible: float

    @classmethod
    def unknown(cls, *, guarded: bool) -> Assessment:
        """NaN for everything, before the first assessment."""
        regret = dict.fromkeys(KINDS, nan)
        return cls(regret, regret, regret if guarded else None, nan)


class Wanted(NamedTuple):
    """What the experiment waits for, and how its policy was made.

    Attributes:
        policy: as configured.
        parameters: of the policy, defaults included.
        confidence: of an answer, with which it is sure.
        min_duels: before which it is not.
        crediting: the settings of `_CREDITING`.
    """

    policy: str
    parameters: Mapping[str, Any]
    confidence: float
    min_duels: int
    crediting: tuple[Any, ...] = ()

    @classmethod
    def of(cls, experiment: Experiment) -> Wanted:
        """What an experiment waits for: the end of its policy or of the stop rule, the first."""
        settings, parameters = experiment.settings, experiment.policy.parameters
        stop = settings.stop
        ends = []
        if "confidence" in parameters:
            ends.append((parameters["confidence"], parameters["min_duels"]))
        if stop.confidence is not None:
            ends.append((stop.confidence, stop.min_duels))
        passed = [end for end in ends if end[1] <= experiment.policy.duels]
        confidence, min_duels = min(passed or ends, default=(LEVEL, stop.min_duels))
        return cls(
            settings.policy.name,
            parameters,
            confidence,
            min_duels,
            tuple(getattr(settings, key) for key in _CREDITING),
        )


@dataclass(frozen=True, eq=False)
class ExperimentView:
    """One experiment as of a commit.

    Costly figures are computed on first access, by the thread that asks. Those of an `Assessment`
    are the costliest: for more than `MAX_ARMS_ON_DEMAND` arms only the history's thread computes
    them, in `assess_many_arms`. Confidence takes a tenth of a second with 1000 arms.

    Attributes:
        version: the number of changes; equal numbers, equal views.
        records: the number of them so far, whatever their outcome, pending clicks included.
        tallies: records by outcome.
        open: open impressions and pending clicks.
        duels: all of them, those of an arm with itself included.
        champion: of the assignment in force, an index into `arms`.
        candidates: how many arms are not ruled out.
        epoch: of the assignment in force.
        assignment: the one in force, as published; None before the first decision.
        wins: (K, K), a copy.
        ties: (K, K), of each pair; a copy.
        alone: (K,), how often each arm was served alone.
        arm_duels: (K,), duels of each arm with other arms.
        seeks: which winner the policy looks for.
        batch: the number of the open batch and the duels it still needs, for a batched policy.
        policy: as configured.
        stage: the algorithm in use.
        status: of the plan in force, as of its assignment: running, paused or finished.
        guardrails: their effect; None without guardrails.
        fallback: the arm that is served when no records arrive, and after how many seconds.
        last_record_at: when its last record was seen, by the observer's clock; before the first,
            when its state was restored.
        active: whether a record has arrived since it was restored.
        prior: whether a prior steers its choices.
        why: why two arms are compared, or one is served alone, in a sentence.
        impressions: counts of interleaved impressions.
        settings: those in force.
        configured: those of the configuration.
        timeline: what happened, the oldest first.
        examples: impressions that users decided.
        differences: what its configuration would change, a text for each key.
        wanted: what it waits for.
        recredited: whether `apply` has changed how impressions are credited, so that early duels do
            not tell how frequent ties are.
        segments: the duels by segment; None without segments.
        assessed: the newest assessment by champion, for an experiment of many arms; shared by its
            successive views, written by the history's thread.
    """

    name: str
    arms: tuple[str, ...]
    version: int
    records: int
    tallies: Mapping[str, int]
    open: Mapping[str, int]
    duels: int
    champion: int
    candidates: int
    epoch: int
    assignment: Assignment | None
    wins: Floats
    ties: Floats
    alone: tuple[int, ...]
    arm_duels: tuple[int, ...]
    seeks: Winner
    batch: tuple[int, int] | None
    policy: str
    stage: str
    status: Status
    guardrails: GuardrailEffect | None
    fallback: tuple[str, float] | None
    last_record_at: float
    impressions: Impressions
    wanted: Wanted
    active: bool = True
    prior: bool = False
    why: str = ""
    settings: ExperimentSettings | None = None
    configured: ExperimentSettings | None = None
    timeline: tuple[Moment, ...] = ()
    examples: tuple[Example, ...] = ()
    differences: tuple[str, ...] = ()
    segments: CountsOfSegments | None = None
    recredited: bool = False
    assessed: dict[int, Assessment] = field(default_factory=dict)

    @classmethod
    def of(
        cls, experiment: Experiment, now: float, former: ExperimentView | None = None
    ) -> ExperimentView:
        """The present view of an experiment.

        Args:
            experiment: as of a commit.
            now: by the observer's clock.
            former: the previous view.
        """
        fallback = experiment.settings.guardrails.fallback
        new_records = former is not None and former.records != experiment.records
        plan, arms = experiment.decisions.plan, tuple(experiment.roster.arms)
        view = cls(
            name=experiment.name,
            arms=arms,
            version=experiment.version,
            records=experiment.records,
            tallies=experiment.tallies,
            open=experiment.open,
            duels=experiment.policy.duels,
            champion=arms.index(plan.champion) if plan else experiment.policy.champion(),
            candidates=experiment.policy.candidates(),
            epoch=experiment.decisions.epoch,
            assignment=experiment.decisions.assignment,
            wins=experiment.policy.wins.copy(),
            ties=experiment.duels.pair_ties.matrix.astype(np.float64),
            alone=tuple(experiment.duels.by_arm.alone),
            arm_duels=tuple(experiment.duels.by_arm.fought),
            seeks=experiment.policy.seeks,
            prior=experiment.policy.steered,
            batch=experiment.decisions.batch,
            policy=experiment.settings.policy.name,
            stage=experiment.policy.stage,
            status=experiment.decisions.status_in_force,
            guardrails=GuardrailEffect.of(experiment),
            fallback=(fallback.arm, fallback.idle_ms / 1000) if fallback.arm else None,
            last_record_at=former.last_record_at if former and not new_records else now,
            impressions=Impressions.of(experiment),
            why=why_pair(experiment),
            settings=experiment.settings,
            configured=experiment.configured,
            timeline=experiment.timeline.moments,
            examples=experiment.impressions.examples.newest_first,
            differences=tuple(map(str, pending(experiment))),
            wanted=Wanted.of(experiment),
            segments=experiment.duels.segments.copy() if experiment.duels.segments else None,
            active=new_records or (former is not None and former.active),
            recredited=not experiment.applied.keys().isdisjoint(_CREDITING),
        )
        if former is not None and view.continues(former):
            return replace(view, assessed=former.assessed)
        return view

    def continues(self, former: ExperimentView) -> bool:
        """Whether the former view's assessments apply: same arms, and not reset (fewer duels)."""
        same = (self.arms, self.seeks, self.guardrails is None) == (
            former.arms, former.seeks, former.guardrails is None,
        )  # fmt: skip
        return same and self.duels >= former.duels

    def shows(self, experiment: Experiment) -> bool:
        """Whether the experiment has not changed since this view.

        `open` also changes without a record if a restart finds that the click log has deleted some.
        """
        return self.version == experiment.version and self.open == experiment.open

    @cached_property
    def fought(self) -> int:
        """Duels of two different arms: only these are evidence."""
        return int(self.wins.sum())

    @cached_property
    def copeland(self) -> list[float]:
        """(K,), Copeland scores."""
        scores: list[float] = copeland_scores(self.wins).tolist()
        return scores

    @cached_property
    def regret(self) -> dict[str, float]:
        """Estimated cumulative regret, by kind."""
        return estimated_regret(self.wins, self.champion, self.alone)

    @cached_property
    def guardrail_regret(self) -> dict[str, float]:
        """Estimated regret of the duels that guardrails requested, by kind."""
        pairs = self.guardrails.pairs if self.guardrails else ()
        return regret_of(pairs, self.wins, self.champion)

    @cached_property
    def team_mismatch(self) -> float:
        """Confidence that services do not treat the sides alike."""
        return unfairness(self.impressions.coins)

    @cached_property
    def verdict(self) -> Verdict:
        """What the duels say of the winner."""
        margin = self.wanted.parameters.get("smallest_difference", 0.0)
        return Verdict.of(self.wins, self.ties, self.champion, self.seeks, margin=margin)

    @property
    def confidence(self) -> float:
        """Lower bound of the probability that the champion is the winner sought."""
        return self.verdict.confidence

    @cached_property
    def segment_report(self) -> SegmentReport:
        """What each segment says."""
        if self.segments is None:
            return SegmentReport({}, {})
        return judge_segments(*self.segments, self.arms)

    @property
    def is_sure(self) -> bool:
        """Whether there is an answer with the confidence that the experiment waits for.

        The answer is that the champion is the winner, or that no arm beats it by more than the
        margin.
        """
        sure = max(self.confidence, self.verdict.unbeaten)
        return sure >= self.wanted.confidence and self.duels >= self.wanted.min_duels

    @cached_property
    def regret_bound(self) -> dict[str, float]:
        """Upper bound of the cumulative regret, by kind."""
        return regret_bound(self.wins, self.alone, self.champion, DELTA)

    @cached_property
    def condorcet_winner_possible(self) -> bool:
        """Whether some arm may still beat all others."""
        return not self.verdict.out.all()

    @property
    def no_winner(self) -> bool:
        """Whether surely no arm beats all others; of many arms as of the newest assessment."""
        if len(self.arms) <= MAX_ARMS_ON_DEMAND:
            return not self.condorcet_winner_possible
        return self.assessment.condorcet_winner_possible == 0

    @property
    def decided(self) -> bool:
        """Whether there is evidence for the champion, or another answer; else it is "undecided"."""
        return self.verdict.decided or self.no_winner

    @property
    def assessment(self) -> Assessment:
        """The present assessment; for many arms the newest that the history has computed."""
        if len(self.arms) <= MAX_ARMS_ON_DEMAND:
            return self._assess()
        newest = self.assessed.get(self.champion)
        return newest or Assessment.unknown(guarded=self.guardrails is not None)

    def assess_many_arms(self) -> None:
        """Compute the assessment of an experiment of many arms, for this view and later ones."""
        if len(self.arms) > MAX_ARMS_ON_DEMAND:
            self.assessed[self.champion] = self._assess()

    def _assess(self) -> Assessment:
        return Assessment(
            self.regret,
            self.regret_bound,
            self.guardrail_regret if self.guardrails else None,
            self.condorcet_winner_possible,
        )


@dataclass(frozen=True, eq=False)
class PartitionView:
    """One partition as of a commit.

    Attributes:
        stream_time: in milliseconds; 0 before the first record with a timestamp.
        saved_at: when its newest snapshot was written or read, by the observer's clock.
        experiments: by name.
        dead_letters: counts by reason.
        time_outliers: records that stream time has not followed.
        missed: offsets that the click log lost before this process folded them.
    """

    stream_time: int
    saved_at: float
    experiments: Mapping[str, ExperimentView]
    dead_letters: Mapping[Reason, int]
    time_outliers: int = 0
    missed: int = 0

    @classmethod
    def of(cls, task: PartitionTask, now: float, former: PartitionView | None) -> PartitionView:
        """The present view of a partition; unchanged experiments keep their former view."""
        known = former.experiments if former else {}
        experiments = {}
        for name, experiment in task.experiments.items():
            view = known.get(name)
            if view is None or not view.shows(experiment):
                view = ExperimentView.of(experiment, now, view)
            experiments[name] = view
        return cls(
            task.stream_time,
            now,
            experiments,
            dict(task.dead_letters),
            task.time_outliers,
            task.missed,
        )
