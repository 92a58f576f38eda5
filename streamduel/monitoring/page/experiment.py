"""One experiment as its page shows it: numbers already in words, in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from streamduel.monitoring.figures import Figures
from streamduel.monitoring.history import History, Point, regret_kind
from streamduel.monitoring.page.checks import Check, checks
from streamduel.monitoring.page.curve import Curve, confidence_curve, regret_curve
from streamduel.monitoring.page.freshness import last_record
from streamduel.monitoring.page.heat_map import MAX_SHOWN_ARMS, HeatMap, bounds, heat_map, ranking
from streamduel.monitoring.page.wording import (
    amount,
    at_least,
    count,
    legible,
    moment,
    percent,
)
from streamduel.monitoring.recent_dead_letters import RecentDeadLetter
from streamduel.monitoring.views import ExperimentView
from streamduel.records import Assignment

SURE: Final = 0.95
"""From here on, the champion is said to be the winner: the custom of statistics, and the alert."""

MOST_PAIRS: Final = 20
"""Shown of an assignment; thousands are possible, and the API has them all."""

MOST_POINTS: Final = 8
"""Rows of the table that has a curve's numbers."""

MOST_LETTERS: Final = 10
"""Shown of the newest dead letters."""


class Arm(NamedTuple):
    """A row of the table of rankers; shares and bars in per cent."""

    name: str
    champion: bool
    beats: str
    copeland: float
    duels: str
    won: str
    traffic: str
    against: str
    range: str


class PairRow(NamedTuple):
    """A row of the assignment: the pair, its share as text and as a bar, and what is wanted."""

    a: str
    b: str
    share: str
    bar: float
    remaining: str


@dataclass(frozen=True)
class Assigned:
    """The assignment in force.

    Attributes:
        pairs: those with the largest shares.
        left_out: how many pairs are not shown.
        at: the stream time of the decision, in words.
        valid_until: until when it holds; None if for good.
        lapsed: whether that time is over.
        fallback: the arm that is served alone then.
        batch: what is said of the open batch; None for other policies.
        batch_done: per cent of the batch, where known.
    """

    pairs: tuple[PairRow, ...]
    left_out: int
    at: str
    valid_until: str | None
    lapsed: bool
    fallback: str | None
    batch: str | None
    batch_done: float | None


class Regret(NamedTuple):
    """What the duels have cost: as estimated, at most, and how the page calls its kind."""

    kind: str
    estimate: str
    bound: str


class PointRow(NamedTuple):
    """A point of the curves in numbers."""

    at: str
    duels: str
    regret: str
    bound: str
    confidence: str


class Head(NamedTuple):
    """What stands above everything else: who leads, how sure that is, and of what."""

    name: str
    raw_name: str
    status: str
    policy: str
    seeks: str
    partition: int
    seen: str
    verdict: str
    champion: str
    confidence: str
    sureness: float
    sure: bool
    duels: str
    candidates: str
    n_arms: int
    epoch: str


@dataclass(frozen=True)
class ExperimentPage:
    """Everything on the page of one experiment.

    Attributes:
        head: what stands above.
        since: since when the curves go.
        regret: None while it is not worked out.
        regret_curve: None while there is no line yet.
        confidence_curve: None while there is no line yet.
        points: the curves in numbers.
        matrix: who beats whom.
        arms: the rankers, best first.
        assigned: None before the first assignment.
        checks: whether all this can be trusted.
        tallies: what became of the records.
        letters: its newest dead letters, the latest first.
        warnings: why no records are folded.
    """

    head: Head
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
    letters: tuple[RecentDeadLetter, ...]
    warnings: tuple[str, ...]


def experiment_page(
    figures: Figures,
    view: ExperimentView,
    partition: int,
    history: History,
    letters: Sequence[RecentDeadLetter],
    now: float,
) -> ExperimentPage:
    """The page of an experiment.

    Args:
        figures: what is known of everything.
        view: the experiment.
        partition: where it lives.
        history: how its figures came to be.
        letters: the newest dead letters of the process, the latest last.
        now: in seconds since 1970.
    """
    points, order = history.up_to(view), ranking(view)
    newest = points[-1] if points else None
    return ExperimentPage(
        head=_head(figures, view, partition, newest),
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
        letters=_letters(view, partition, letters),
        warnings=tuple(figures.why_not_ready()),
    )


def _head(figures: Figures, view: ExperimentView, partition: int, newest: Point | None) -> Head:
    champion = legible(view.arms[view.champion])
    confidence = newest.confidence if newest else 0.0
    return Head(
        name=legible(view.name),
        raw_name=view.name,
        status=view.status,
        policy=view.policy if view.stage == view.policy else f"{view.policy}, now {view.stage}",
        seeks=view.seeks,
        partition=partition,
        seen=last_record(view, figures),
        verdict=_verdict(view, champion, newest),
        champion=champion,
        confidence=at_least(confidence) if newest else "…",
        sureness=100 * confidence,
        sure=confidence >= SURE,
        duels=count(view.duels),
        candidates=count(view.candidates),
        n_arms=len(view.arms),
        epoch=count(view.epoch),
    )


def _verdict(view: ExperimentView, champion: str, newest: Point | None) -> str:
    """How it stands, in one sentence."""
    if newest is None:
        return f"{champion} leads; how sure that is is being worked out."
    if view.status == "finished":
        return f"Finished: {champion} is served to everybody."
    paused = "Paused; only the champion is served. " if view.status == "paused" else ""
    best = "beats every other ranker" if view.seeks == "condorcet" else "is a best ranker"
    if newest.confidence >= SURE:
        sure = at_least(newest.confidence)
        return f"{paused}{champion} {best}: that is at least {sure} sure."
    return f"{paused}{champion} leads, but the duels do not decide yet."


def _regret(view: ExperimentView, newest: Point) -> Regret:
    return Regret(regret_kind(view), amount(newest.regret), amount(newest.regret_bound))


def _point_rows(points: Sequence[Point]) -> tuple[PointRow, ...]:
    """Some points of the curve, the newest first."""
    step = max(1, -(-len(points) // MOST_POINTS))
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
                range="" if arm == best or not own + lost else _range(view, arm),
            )
        )
    return tuple(rows)


def _range(view: ExperimentView, arm: int) -> str:
    """Between which bounds the champion's wins against an arm are in truth."""
    pair = [view.champion, arm]
    lower, upper = bounds(view.wins[pair][:, pair], len(view.arms))
    return f"{percent(float(lower[0, 1]))} to {percent(float(upper[0, 1]))}"


def _traffic(assignment: Assignment | None) -> dict[str, float]:
    """In which share of the impressions each arm takes part."""
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
            for pair in pairs[:MOST_PAIRS]
        ),
        left_out=max(0, len(pairs) - MOST_PAIRS),
        at=_decided_at(assignment),
        valid_until=moment(until / 1000) if until is not None else None,
        lapsed=until is not None and until / 1000 < now,
        fallback=legible(assignment.fallback) if assignment.fallback else None,
        batch=f"{count(view.batch[0])}: {count(view.batch[1])} duels to come"
        if view.batch
        else None,
        batch_done=done,
    )


def _decided_at(assignment: Assignment) -> str:
    if assignment.ts:
        return f"{moment(assignment.ts / 1000)}, by the log's clock"
    return "the beginning" if assignment.epoch == 1 else "not known: the records bear no time"


def _tallies(view: ExperimentView) -> tuple[tuple[str, str, str], ...]:
    """What became of the records: what, how many, and what that means."""
    tallies, served = view.tallies, view.impressions
    return (
        ("accepted", count(tallies["accepted"]), "taken in"),
        ("duplicate", count(tallies["duplicate"]), "seen before, and not counted twice"),
        ("dead letter", count(tallies["dead_letter"]), "could not be used"),
        ("late", count(tallies["late"]), "clicks after their impression was over"),
        ("unjoined", count(tallies["unjoined"]), "clicks whose impression never came"),
        ("tie", count(served.ties), "half a win for each side, or none where ties are dropped"),
        ("open impression", count(view.open["impressions"]), "wait for clicks"),
        ("waiting click", count(view.open["clicks"]), "wait for their impression"),
    )


def _letters(
    view: ExperimentView, partition: int, letters: Sequence[RecentDeadLetter]
) -> tuple[RecentDeadLetter, ...]:
    """The newest dead letters that name the experiment, the latest first."""
    own = [
        letter
        for letter in reversed(letters)
        if letter.partition == partition and letter.experiment == view.name
    ]
    return tuple(own[:MOST_LETTERS])
