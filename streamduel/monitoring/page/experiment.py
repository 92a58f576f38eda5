"""The content of an experiment's page, numbers as text, in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from streamduel.monitoring.figures import Figures
from streamduel.monitoring.history import History, Point, regret_kind
from streamduel.monitoring.page.checks import Check, checks
from streamduel.monitoring.page.curve import Curve, confidence_curve, regret_curve
from streamduel.monitoring.page.heat_map import MAX_SHOWN_ARMS, HeatMap, bounds, heat_map, ranking
from streamduel.monitoring.page.wording import (
    amount,
    at_least,
    count,
    last_record,
    legible,
    moment,
    percent,
)
from streamduel.monitoring.recent_dead_letters import RecentDeadLetter
from streamduel.monitoring.views import ExperimentView
from streamduel.records import Assignment

SURE: Final = 0.95
"""From this confidence on, the champion is called the winner: the convention of statistics, and the
alert."""

MAX_PAIRS: Final = 20
"""Shown of an assignment; the API has all of them, perhaps thousands."""

MAX_POINTS: Final = 8
"""Rows of the table of the curves' numbers."""

MAX_SHOWN_DEAD_LETTERS: Final = 10


class Arm(NamedTuple):
    """A row of the table of rankers; `against`: the champion's share of wins, with its interval."""

    name: str
    champion: bool
    beats: str
    copeland: float
    duels: str
    won: str
    traffic: str
    against: str
    interval: str


class PairRow(NamedTuple):
    """A row of the assignment: the pair, its share as text and in per cent, and duels wanted."""

    a: str
    b: str
    share: str
    share_percent: float
    remaining: str


@dataclass(frozen=True)
class Assigned:
    """The assignment in force.

    Attributes:
        pairs: those with the largest shares.
        left_out: how many pairs are not shown.
        at: the stream time of the decision, as text.
        valid_until: the end of its validity; None if unlimited.
        expired: whether that time has passed.
        fallback: the arm that is served alone after it.
        batch: the open batch, as text; None for policies without batches.
        batch_percent: how much of it is done, where known.
    """

    pairs: tuple[PairRow, ...]
    left_out: int
    at: str
    valid_until: str | None
    expired: bool
    fallback: str | None
    batch: str | None
    batch_percent: float | None


class Regret(NamedTuple):
    """The cumulative regret: its kind, estimate and upper bound."""

    kind: str
    estimate: str
    bound: str


class PointRow(NamedTuple):
    """A point of the curves as text."""

    at: str
    duels: str
    regret: str
    bound: str
    confidence: str


class Summary(NamedTuple):
    """The summary at the top of the page; confidence as text and in per cent."""

    name: str
    raw_name: str
    status: str
    policy: str
    seeks: str
    partition: int
    last_record: str
    verdict: str
    champion: str
    confidence: str
    confidence_percent: float
    sure: bool
    duels: str
    candidates: str
    n_arms: int
    epoch: str


@dataclass(frozen=True)
class ExperimentPage:
    """Everything on the page of one experiment.

    Attributes:
        summary: champion, confidence and state.
        since: when the curves begin.
        regret: None until it is computed.
        regret_curve: None before the second point.
        confidence_curve: None before the second point.
        points: the curves in numbers.
        matrix: the preference matrix.
        arms: the rankers, best first.
        assigned: None before the first assignment.
        checks: of the data.
        tallies: records by outcome: name, number, meaning.
        dead_letters: its newest ones, the latest first.
        warnings: why no records are folded.
    """

    summary: Summary
    since: str
    regret: Regret | None
    regret_curve: Curve | None
    confidence_curve: Curve | None
    points: tuple[PointRow, ...]
    matrix: HeatMap
    arms: tuple[Arm, ...]
    assigned: Assigned | None
    checks: tuple[Check, ...]
    tallies: tuple[tuple[str, str, str], ...]
    dead_letters: tuple[RecentDeadLetter, ...]
    warnings: tuple[str, ...]


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
    points, order = history.up_to(view), ranking(view)
    newest = points[-1] if points else None
    return ExperimentPage(
        summary=_summary(figures, view, partition, newest),
        since=moment(history.since),
        regret=_regret(view, newest) if newest else None,
        regret_curve=regret_curve(points),
        confidence_curve=confidence_curve(points),
        points=_point_rows(points),
        matrix=heat_map(view, order),
        arms=_arms(view, order),
        assigned=_assigned(view, view.assignment, now) if view.assignment else None,
        checks=tuple(checks(view, figures, partition)),
        tallies=_tallies(view),
        dead_letters=_dead_letters(view, partition, dead_letters),
        warnings=tuple(figures.why_not_ready()),
    )


def _summary(
    figures: Figures, view: ExperimentView, partition: int, newest: Point | None
) -> Summary:
    champion = legible(view.arms[view.champion])
    confidence = newest.confidence if newest else 0.0
    return Summary(
        name=legible(view.name),
        raw_name=view.name,
        status=view.status,
        policy=view.policy if view.stage == view.policy else f"{view.policy}, now {view.stage}",
        seeks=view.seeks,
        partition=partition,
        last_record=last_record(view, figures),
        verdict=_verdict(view, champion, newest),
        champion=champion,
        confidence=at_least(confidence) if newest else "…",
        confidence_percent=100 * confidence,
        sure=confidence >= SURE,
        duels=count(view.duels),
        candidates=count(view.candidates),
        n_arms=len(view.arms),
        epoch=count(view.epoch),
    )


def _verdict(view: ExperimentView, champion: str, newest: Point | None) -> str:
    """The state of the experiment in a sentence."""
    if newest is None:
        return f"{champion} is the champion; its confidence is being computed."
    if view.status == "finished":
        return f"Finished: only {champion} is served."
    paused = "Paused; only the champion is served. " if view.status == "paused" else ""
    winner = "Condorcet" if view.seeks == "condorcet" else "Copeland"
    if newest.confidence >= SURE:
        confidence = at_least(newest.confidence)
        return f"{paused}{champion} is the {winner} winner with at least {confidence} confidence."
    return f"{paused}{champion} is the champion, but the duels are not decisive yet."


def _regret(view: ExperimentView, newest: Point) -> Regret:
    return Regret(regret_kind(view), amount(newest.regret), amount(newest.regret_bound))


def _point_rows(points: Sequence[Point]) -> tuple[PointRow, ...]:
    """Some points of the curves, the newest first."""
    step = max(1, -(-len(points) // MAX_POINTS))
    return tuple(
        PointRow(
            moment(point.at),
            count(point.duels),
            amount(point.regret),
            amount(point.regret_bound),
            at_least(point.confidence),
        )
        for point in points[::-1][::step]
    )


def _arms(view: ExperimentView, order: Sequence[int]) -> tuple[Arm, ...]:
    shown, best = list(order[:MAX_SHOWN_ARMS]), view.champion
    wins = view.wins
    won = wins.sum(axis=1)
    duels = (won + wins.sum(axis=0)).tolist()
    traffic = _traffic(view.assignment)
    rows = []
    for arm in shown:
        own, lost = float(wins[best, arm]), float(wins[arm, best])
        against = percent(own / (own + lost)) if own + lost else "–"
        rows.append(
            Arm(
                name=legible(view.arms[arm]),
                champion=arm == best,
                beats=count(round(view.copeland[arm] * (len(view.arms) - 1))),
                copeland=100 * view.copeland[arm],
                duels=count(duels[arm]),
                won=percent(float(won[arm]) / duels[arm]) if duels[arm] else "–",
                traffic=percent(traffic.get(view.arms[arm], 0.0)) if traffic else "–",
                against="" if arm == best else against,
                interval="" if arm == best or not own + lost else _interval(view, arm),
            )
        )
    return tuple(rows)


def _interval(view: ExperimentView, arm: int) -> str:
    """The confidence interval of the champion's share of wins against an arm."""
    pair = [view.champion, arm]
    lower, upper = bounds(view.wins[pair][:, pair], len(view.arms))
    return f"{percent(float(lower[0, 1]))} to {percent(float(upper[0, 1]))}"


def _traffic(assignment: Assignment | None) -> dict[str, float]:
    """The share of impressions in which each arm takes part."""
    shares: dict[str, float] = {}
    for pair in assignment.pairs if assignment else ():
        for arm in {pair.a, pair.b}:
            shares[arm] = shares.get(arm, 0.0) + pair.share
    return shares


def _assigned(view: ExperimentView, assignment: Assignment, now: float) -> Assigned:
    pairs = sorted(assignment.pairs, key=lambda pair: -pair.share)
    until = assignment.valid_until
    wanted = sum(pair.remaining or 0 for pair in pairs)
    done = None
    if view.batch and wanted:
        done = 100 * (1 - min(1.0, view.batch[1] / wanted))
    return Assigned(
        pairs=tuple(
            PairRow(
                legible(pair.a),
                legible(pair.b),
                percent(pair.share),
                100 * pair.share,
                "" if pair.remaining is None else count(pair.remaining),
            )
            for pair in pairs[:MAX_PAIRS]
        ),
        left_out=max(0, len(pairs) - MAX_PAIRS),
        at=_decided_at(assignment),
        valid_until=moment(until / 1000) if until is not None else None,
        expired=until is not None and until / 1000 < now,
        fallback=legible(assignment.fallback) if assignment.fallback else None,
        batch=f"{count(view.batch[0])}: {count(view.batch[1])} duels remaining"
        if view.batch
        else None,
        batch_percent=done,
    )


def _decided_at(assignment: Assignment) -> str:
    if assignment.ts:
        return f"{moment(assignment.ts / 1000)} (stream time)"
    return "the start" if assignment.epoch == 1 else "unknown: the records have no timestamps"


def _tallies(view: ExperimentView) -> tuple[tuple[str, str, str], ...]:
    """Records by outcome, and what is open: name, number, meaning."""
    tallies, served = view.tallies, view.impressions
    return (
        ("accepted", count(tallies["accepted"]), "applied"),
        ("duplicate", count(tallies["duplicate"]), "id seen before; not counted again"),
        ("dead letter", count(tallies["dead_letter"]), "invalid; see below"),
        ("late", count(tallies["late"]), "clicks after their join window closed"),
        ("unjoined", count(tallies["unjoined"]), "clicks without an impression"),
        ("tie", count(served.ties), "half a win for each side, or dropped"),
        ("open impression", count(view.open["impressions"]), "join window not closed"),
        ("pending click", count(view.open["clicks"]), "arrived before the impression"),
    )


def _dead_letters(
    view: ExperimentView, partition: int, dead_letters: Sequence[RecentDeadLetter]
) -> tuple[RecentDeadLetter, ...]:
    """The newest dead letters that name the experiment, the latest first."""
    own = [
        each
        for each in reversed(dead_letters)
        if each.partition == partition and each.experiment == view.name
    ]
    return tuple(own[:MAX_SHOWN_DEAD_LETTERS])
