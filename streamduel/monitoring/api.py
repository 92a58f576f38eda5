"""The JSON answers of the monitoring port: their structs, of which the OpenAPI document is made."""

from __future__ import annotations

from math import isnan
from typing import Annotated, Final, Literal

import msgspec
import numpy as np
from msgspec import Meta

from streamduel.monitoring.history import History
from streamduel.monitoring.outlook import Outlook, WhyNot
from streamduel.monitoring.page.heat_map import ranking
from streamduel.monitoring.views import ExperimentView
from streamduel.preference.evidence import Winner
from streamduel.preference.segments import Disagreement, SegmentResult
from streamduel.preference.verdict import PairResult
from streamduel.records import Assignment, Name, Status
from streamduel.stream.examples import Example
from streamduel.stream.timeline import Moment

MAX_MATRIX_ARMS: Final = 100
"""10,000 numbers, some 60 kB. `streamduel inspect --json` has the whole matrix."""

Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Wins = Annotated[float, Meta(ge=0, description="A tie is half a win for each.")]


class Tallies(msgspec.Struct, frozen=True):
    """Records of the experiment by outcome."""

    accepted: Count
    duplicate: Count
    dead_letter: Count
    late: Count
    unjoined: Count
    capped: Count


class Open(msgspec.Struct, frozen=True):
    """Open impressions, and pending clicks: those that arrived before their impression."""

    impressions: Count
    clicks: Count


class Forecast(msgspec.Struct, frozen=True):
    """Seconds until there is a sure answer, at the traffic of the last day, by simulation.

    Half of the simulations were sure after `seconds`, one in ten after `low`, nine in ten after
    `high`, which is null if that is far away. All are 0 once there is one, and null when it cannot
    be said; `why_not` then says why.
    """

    seconds: Annotated[float, Meta(ge=0)] | None
    low: Annotated[float, Meta(ge=0)] | None
    high: Annotated[float, Meta(ge=0)] | None
    why_not: WhyNot | None

    @classmethod
    def of(cls, outlook: Outlook) -> Forecast:
        """The forecast of an experiment."""
        median, low, high = (None if isnan(each) else each for each in outlook[:3])
        return cls(median, low, high, outlook.why_not)


class Summary(msgspec.Struct, frozen=True):
    """One experiment as of the last commit.

    `assignment` is the record in force, as published; null before the first decision.
    `champion_confidence` is a lower bound, valid at any time. `champion_progress` is how much of
    the evidence for a confidence of 95 % there is. Without any, and as long as some arm may
    beat all others, `champion_decided` is false and people are shown "undecided". `copeland_scores`
    has for each arm the share of the other arms that it beats, `evidence` the evidence in nats that
    it does not beat all others, for the best 100 arms at most; an arm with at least
    `evidence_required` is out. `settings_differ` says, by key, what `streamduel control apply`
    would change, because the configuration differs from the running experiment.
    `impressions_per_client` is about how many impressions the client of an impression has on
    average; null if none names a client. If it is large, confidence may be too high.
    """

    assignment: Assignment | None
    status: Status
    policy: str
    stage: str
    champion: Name
    champion_confidence: Share
    epoch: Count
    duels: Count
    arms: list[Name]
    copeland_scores: dict[Name, Share]
    tallies: Tallies
    open: Open
    settings_differ: list[str]
    champion_progress: Share
    champion_decided: bool
    evidence: dict[Name, Annotated[float, Meta(ge=0)]]
    evidence_required: Annotated[float, Meta(ge=0)]
    forecast: Forecast
    impressions_per_client: Annotated[float, Meta(ge=1)] | None

    @classmethod
    def of(cls, view: ExperimentView, outlook: Outlook) -> Summary:
        """The summary of an experiment."""
        return cls(
            assignment=view.assignment,
            status=view.status,
            policy=view.policy,
            stage=view.stage,
            champion=view.arms[view.champion],
            champion_confidence=view.confidence,
            epoch=view.epoch,
            duels=view.duels,
            arms=list(view.arms),
            copeland_scores=dict(zip(view.arms, view.copeland, strict=True)),
            tallies=Tallies(**view.tallies),
            open=Open(**view.open),
            settings_differ=list(view.differences),
            champion_progress=view.verdict.progress,
            champion_decided=view.decided,
            evidence=_evidence(view),
            evidence_required=view.verdict.required,
            forecast=Forecast.of(outlook),
            impressions_per_client=view.impressions.per_client or None,
        )


def _evidence(view: ExperimentView) -> dict[str, float]:
    """The evidence against each arm; of many arms, against the best."""
    if len(view.arms) <= MAX_MATRIX_ARMS:  # kept: ranker services ask for it every two seconds
        return dict(zip(view.arms, view.verdict.evidence.tolist(), strict=True))
    best = ranking(view)[:MAX_MATRIX_ARMS]
    evidence = view.verdict.evidence_of(best).tolist()
    return {view.arms[arm]: found for arm, found in zip(best, evidence, strict=True)}


class Experiments(msgspec.Struct, frozen=True):
    """The experiments whose partitions this process holds, by name; or the one asked for."""

    experiments: dict[Name, Summary]


class HistoryPoint(msgspec.Struct, frozen=True):
    """An experiment at one moment; `at` is in seconds since the Unix epoch."""

    at: Annotated[float, Meta(ge=0)]
    duels: Count
    champion_confidence: Share
    regret: Annotated[float, Meta(ge=0)]
    regret_bound: Annotated[float, Meta(ge=0)]
    champion_progress: Share


class HistoryAnswer(msgspec.Struct, frozen=True):
    """Confidence and regret since the process started.

    Some hundred points at most, the oldest first. `kind` is the kind of regret of all of them;
    `regret_bound` is its upper bound, with 95 % confidence at all times together.
    """

    experiment: Name
    since: Annotated[float, Meta(ge=0)]
    kind: Winner
    points: list[HistoryPoint]

    @classmethod
    def of(cls, view: ExperimentView, history: History) -> HistoryAnswer:
        """The history of an experiment."""
        points = [HistoryPoint(each.at, int(each.duels), *each[2:]) for each in history.up_to(view)]
        return cls(view.name, history.since, view.seeks, points)


class MatrixAnswer(msgspec.Struct, frozen=True):
    """The preference matrix in counts: `wins[i][j]` is how often arm i has beaten arm j.

    Of more than 100 arms, those with the largest Copeland scores; the best come first. `of` is the
    number of all arms. `pairs` has the pairs of `arms`, with 95 % intervals of all pairs of the
    experiment that hold together, at any time.
    """

    experiment: Name
    of: Count
    arms: list[Name]
    wins: list[list[Wins]]
    pairs: list[PairResult]

    @classmethod
    def of_view(cls, view: ExperimentView) -> MatrixAnswer:
        """The matrix of an experiment."""
        shown = ranking(view)[:MAX_MATRIX_ARMS]
        arms = [view.arms[arm] for arm in shown]
        wins = view.wins[np.ix_(shown, shown)].tolist()
        pairs = list(view.verdict.pairs(view.arms, shown))
        return cls(view.name, len(view.arms), arms, wins, pairs)


class SegmentsAnswer(msgspec.Struct, frozen=True):
    """What each configured segment says of the winner, by kind and name.

    Confidence and intervals are corrected for the number of segments, so all claims are right
    together, at all times, with 95 % probability. `disagreements` shows by kind whether segments
    differ by more than chance.
    """

    experiment: Name
    segments: dict[str, dict[str, SegmentResult]]
    disagreements: dict[str, Disagreement]

    @classmethod
    def of_view(cls, view: ExperimentView) -> SegmentsAnswer:
        """The segments of an experiment; empty without any."""
        return cls(view.name, view.segment_report.segments, view.segment_report.disagreements)


class RecordAnswer(msgspec.Struct, frozen=True):
    """What an experiment is for, from the configuration, and what happened to it.

    The moments are the oldest first; the number that is kept is bounded.
    """

    experiment: Name
    owner: str | None
    hypothesis: str | None
    links: list[str]
    notes: str | None
    timeline: list[Moment]

    @classmethod
    def of(cls, view: ExperimentView) -> RecordAnswer:
        """The record of an experiment."""
        about = view.configured
        assert about is not None, "every experiment that runs has settings"
        told = (about.owner, about.hypothesis, list(about.links), about.notes)
        return cls(view.name, *told, list(view.timeline))


class ExamplesAnswer(msgspec.Struct, frozen=True):
    """Impressions of the two leading rankers that users decided, at most 20.

    They are drawn at random from the impressions with `query` and `docs`; those of the leading pair
    come first, the newest of them before the others.
    """

    experiment: Name
    examples: list[Example]

    @classmethod
    def of(cls, view: ExperimentView) -> ExamplesAnswer:
        """The examples of an experiment."""
        return cls(view.name, list(view.examples))


class Refusal(msgspec.Struct, frozen=True):
    """Why there is no answer, in a sentence."""

    error: str


class Healthy(msgspec.Struct, frozen=True):
    """The process is healthy."""

    status: Literal["alive", "ready"]


class Unhealthy(msgspec.Struct, frozen=True):
    """What is wrong, a sentence each."""

    status: Literal["not alive", "not ready"]
    reasons: Annotated[list[str], Meta(min_length=1)]
