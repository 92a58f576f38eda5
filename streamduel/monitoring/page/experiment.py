"""The content of an experiment's page, numbers as text, in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from streamduel.errors import legible
from streamduel.monitoring.figures import Figures
from streamduel.monitoring.history import History, Point
from streamduel.monitoring.page.checks import Check, checks
from streamduel.monitoring.page.curve import Curve, confidence_curve, regret_curve
from streamduel.monitoring.page.heat_map import HeatMap, heat_map, shown_arms
from streamduel.monitoring.page.wording import (
    at_least,
    count,
    last_record,
    moment,
    outlook,
    percent,
    percents,
)
from streamduel.monitoring.recent_dead_letters import RecentDeadLetter
from streamduel.monitoring.views import ExperimentView
from streamduel.preference.verdict import LEVEL, ends_within_margin
from streamduel.records import Assignment, PairShare
from streamduel.stream.timeline import Moment, ended_without_winner

MAX_PAIRS: Final = 20
"""Shown of an assignment; the API has all of them, perhaps thousands."""

EVIDENCE_MARK: Final = 75
"""Per cent of the bar at which an arm is out, so that evidence beyond it shows."""

MAX_POINTS: Final = 8
"""Rows of the table of the curves' numbers."""

MAX_SHOWN_DEAD_LETTERS: Final = 10
"""Of the experiment; on the overview, of those that name an experiment of their partition, and of
the others."""


class Arm(NamedTuple):
    """A row of the table of rankers.

    Attributes:
        against: the champion's share of wins against it, and `interval` its confidence sequence.
        out: whether it surely does not beat all others.
        evidence: for that, in nats; `evidence_percent` of the length of its bar.
        traffic: the share of the places in result lists that it gets.
    """

    name: str
    champion: bool
    beats: str
    copeland: float
    duels: str
    won: str
    traffic: str
    against: str
    interval: str
    evidence: str
    evidence_percent: float
    out: bool


@dataclass(frozen=True)
class Assigned:
    """The assignment in force.

    Attributes:
        pairs: those with the largest shares.
        left_out: how many pairs are not shown.
        at: the stream time of the decision, as text.
        expired: whether the end of its validity has passed.
    """

    pairs: Sequence[PairShare]
    left_out: int
    at: str
    expired: bool


@dataclass(frozen=True)
class ExperimentPage:
    """Everything on the page of one experiment.

    Attributes:
        view: the experiment.
        partition: its partition.
        last_record: the time since its last record, as text.
        verdict: the state of the experiment in a sentence.
        outlook: when it will be sure, in a sentence; empty if it is.
        since: when the curves begin, in seconds since 1970.
        newest: confidence and regret; None until they are computed.
        decided: whether there is evidence for the champion, or another answer.
        sure: whether the champion is called the winner.
        no_winner: whether surely no arm beats all others, so that the confidence stays 0.
        regret_curve: None before the second point.
        confidence_curve: None before the second point.
        points: some points of the curves, the newest first.
        matrix: the preference matrix.
        arms: the rankers that are shown, best first.
        assigned: None before the first assignment.
        checks: of the data.
        timeline: what happened, the newest first.
        dead_letters: the newest ones that name the experiment, the latest first.
        warnings: why no records are folded.
    """

    view: ExperimentView
    partition: int
    last_record: str
    verdict: str
    outlook: str
    since: float
    newest: Point | None
    decided: bool
    sure: bool
    no_winner: bool
    regret_curve: Curve | None
    confidence_curve: Curve | None
    points: Sequence[Point]
    matrix: HeatMap
    arms: Sequence[Arm]
    assigned: Assigned | None
    checks: Sequence[Check]
    timeline: Sequence[Moment]
    dead_letters: Sequence[RecentDeadLetter]
    warnings: Sequence[str]


def experiment_page(
    figures: Figures,
    view: ExperimentView,
    partition: int,
    history: History,
    dead_letters: Sequence[RecentDeadLetter],
    now: float,
) -> ExperimentPage:
    """The page of an experiment.

    Args:
        figures: the present figures of the process.
        view: the experiment.
        partition: the experiment's.
        history: past confidence and regret.
        dead_letters: the newest of the process, the latest last.
        now: in seconds since 1970.
    """
    points, shown = history.up_to(view), shown_arms(view)
    newest = points[-1] if points else None
    own = [
        each
        for each in reversed(dead_letters)
        if each.partition == partition and each.experiment == view.name
    ]
    return ExperimentPage(
        view=view,
        partition=partition,
        last_record=last_record(view, figures),
        verdict=_verdict(view, newest),
        outlook=outlook(figures.outlook(view.name)),
        since=history.since,
        newest=newest,
        decided=view.decided,
        sure=newest is not None and newest.confidence >= LEVEL,
        no_winner=view.seeks == "condorcet" and view.no_winner,
        regret_curve=regret_curve(points),
        confidence_curve=confidence_curve(points),
        points=points[:: -max(1, -(-len(points) // MAX_POINTS))],
        matrix=heat_map(view, shown),
        arms=_arms(view, shown),
        assigned=_assigned(view.assignment, now) if view.assignment else None,
        checks=checks(view, figures, partition),
        timeline=view.timeline[::-1],
        dead_letters=own[:MAX_SHOWN_DEAD_LETTERS],
        warnings=figures.why_not_ready(view.name),
    )


def _verdict(view: ExperimentView, newest: Point | None) -> str:
    champion = legible(view.arms[view.champion])
    if newest is None:
        return f"{champion} is the champion; its confidence is being computed."
    answer = _answer(view, champion, newest.confidence)
    if view.status == "finished":
        if not answer:
            return f"Finished; only the champion, {champion}, is served."
        return f"Finished; only the champion is served. {answer}"
    served = "" if view.status == "running" else "Paused; only the champion is served. "
    otherwise = f"{champion} is the champion, but the duels are not decisive yet."
    return f"{served}{answer or otherwise}"


def _answer(view: ExperimentView, champion: str, confidence: float) -> str:
    """What the duels say, in a sentence; empty if they are not decisive yet."""
    within = ""
    if ends_within_margin(confidence, view.verdict.unbeaten, view.status):
        within = (
            f"No ranker beats {champion} by more than {view.verdict.margin:g}, with at least "
            f"{at_least(view.verdict.unbeaten)} confidence."
        )
    former = view.status == "finished" and ended_without_winner(view.timeline)
    if former and not (within or view.no_winner or confidence >= LEVEL):
        return "No ranker beat all others at the end; later duels lowered the evidence."
    if not (view.decided or within):
        return "Undecided: no duel tells yet which ranker is best."
    if confidence >= LEVEL:
        title = f"{champion} is {_title(view)} with at least {at_least(confidence)} confidence"
        none = f": no ranker beats all others, and {champion} beats as many as any"
        return f"{title}{none if view.no_winner else ''}."
    if view.no_winner:
        none = f"No ranker beats all others; {_unsurpassed(view, champion)}"
        return f"{none} {within}".rstrip()
    return within


def _unsurpassed(view: ExperimentView, champion: str) -> str:
    """Whether the champion is known to beat as many others as any arm."""
    confidence = view.verdict.unsurpassed
    if confidence < LEVEL:
        return f"{champion} is the champion, but another one may beat more."
    return f"{champion} beats as many as any, with at least {at_least(confidence)} confidence."


def _title(view: ExperimentView) -> str:
    """What a sure champion is; several arms may beat the most others."""
    if view.seeks == "condorcet":
        return "the Condorcet winner"
    best = max(view.copeland)
    return f"{'a' if sum(each == best for each in view.copeland) > 1 else 'the'} Copeland winner"


def _arms(view: ExperimentView, shown: Sequence[int]) -> list[Arm]:
    best, wins, verdict = view.champion, view.wins, view.verdict
    won = wins.sum(axis=1)
    duels = (won + wins.sum(axis=0)).tolist()
    traffic = percents(_traffic(view, view.assignment))
    rows = []
    for arm, evidence in zip(shown, verdict.evidence_of(shown).tolist(), strict=True):
        rate, low, high = verdict.against(best, arm)
        rows.append(
            Arm(
                name=legible(view.arms[arm]),
                champion=arm == best,
                beats=count(round(view.copeland[arm] * (len(view.arms) - 1))),
                copeland=100 * view.copeland[arm],
                duels=count(duels[arm]),
                won=percent(float(won[arm]) / duels[arm]) if duels[arm] else "–",
                traffic=traffic[arm] if view.assignment else "–",
                against="–" if rate is None else percent(rate),
                interval="" if rate is None else f"{percent(low)} to {percent(high)}",
                evidence=f"{evidence:.1f}",
                evidence_percent=min(100.0, EVIDENCE_MARK * evidence / verdict.required),
                out=evidence >= verdict.required,
            )
        )
    return rows


def _traffic(view: ExperimentView, assignment: Assignment | None) -> list[float]:
    """The share of each arm: of a pair that is interleaved, each gets half."""
    shares = dict.fromkeys(view.arms, 0.0)
    for pair in assignment.pairs if assignment else ():
        for arm in (pair.a, pair.b):
            if arm in shares:
                shares[arm] += pair.share / 2
    return list(shares.values())


def _assigned(assignment: Assignment, now: float) -> Assigned:
    pairs = sorted(assignment.pairs, key=lambda pair: -pair.share)
    until = assignment.valid_until
    return Assigned(
        pairs=pairs[:MAX_PAIRS],
        left_out=max(0, len(pairs) - MAX_PAIRS),
        at=_decided_at(assignment),
        expired=until is not None and until / 1000 < now,
    )


def _decided_at(assignment: Assignment) -> str:
    if assignment.ts:
        return f"{moment(assignment.ts / 1000)} (stream time)"
    return "the start" if assignment.epoch == 1 else "unknown: the records have no timestamps"
