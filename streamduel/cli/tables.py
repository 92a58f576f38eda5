"""Tables of the newest snapshots, for `inspect` and `run --until-end`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streamduel.cli.app import MAX_LINE
from streamduel.errors import counted, readable
from streamduel.preference.verdict import (
    INTERVALS,
    LEVEL,
    Interval,
    at_least,
    ends_within_margin,
    percent,
    some_include_half,
)
from streamduel.records import Reason
from streamduel.stream.client_sketch import DEPENDENT
from streamduel.stream.inspection import ExperimentReport, Report
from streamduel.stream.timeline import ended_without_winner

NOUNS: Final = {
    "duplicate": "duplicate",
    "dead_letter": "dead letter",
    "late": "late click",
    "unjoined": "unjoined click",
}
"""What has each outcome; the others are what records are: accepted or capped."""


def print_report(console: Console, report: Report) -> None:
    """Print each experiment's arms against the champion, then the dead letters."""
    for name, experiment in report.experiments.items():
        answer = f"[bold]{_shown(name)}[/]: {_answer(experiment)}"
        console.print(answer, highlight=False, soft_wrap=True)
        if (experiment.impressions_per_client or 0.0) > DEPENDENT:
            console.print(f"[yellow]{_dependent(experiment)}[/]", highlight=False, soft_wrap=True)
        console.print(_experiment_table(experiment))
        sure = experiment.confidence >= LEVEL
        if sure and some_include_half(str(experiment.champion), experiment.pairs):
            console.print(INTERVALS, style="dim italic", highlight=False, soft_wrap=True)
        for kind in experiment.segments:
            console.print(_segments_table(experiment, kind))
            if found := experiment.disagreements.get(kind):
                console.print(
                    _shown(found.sentence), style="dim italic", highlight=False, soft_wrap=True
                )
        for line in _summary(experiment):
            console.print(f"[dim]{line}[/]", highlight=False, soft_wrap=True)
    _print_dead_letters(console, report)
    if report.ignored:
        ignored = ", ".join(f"{reason} {count:,}" for reason, count in report.ignored.items())
        console.print(f"ignored: {_shown(ignored)}", soft_wrap=True)


def _summary(experiment: ExperimentReport) -> list[str]:
    prior = ", steered by a prior" if experiment.prior else ""
    frozen = ", ".join(experiment.frozen_pair or ())
    tallies = [_tally(what, count) for what, count in experiment.tallies.items() if count]
    lines = [
        f"{_shown(experiment.policy)}{prior}, {experiment.status}, epoch {experiment.epoch:,}, "
        f"{counted(experiment.duels, 'duel')}",
        _shown(f"frozen pair: {frozen}") if frozen else "",
        ", ".join(tallies),
        _open(experiment.open),
    ]
    return [line for line in lines if line]


def _tally(outcome: str, count: int) -> str:
    if outcome not in NOUNS:
        return f"{count:,} {outcome}"
    return f"{counted(count, NOUNS[outcome])}{' naming it' if outcome == 'dead_letter' else ''}"


def _shown(text: str) -> str:
    """A name or a sentence as it is, whatever markup or the terminal would make of it."""
    return escape(readable(text, MAX_LINE))


def _table(texts: list[str], numbers: list[str]) -> Table:
    """A table with columns of texts, which are never cut, and then of numbers."""
    table = Table()
    for heading in texts:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def _experiment_table(experiment: ExperimentReport) -> Table:
    first = "champion" if experiment.decided else "first arm"
    out = f"out at {experiment.required:.1f} nats"
    table = _table(["arm"], ["beats", "duels", f"{first} wins", "95 % at any time", out])
    for row in _arm_rows(experiment, first):
        table.add_row(*row)
    return table


def _segments_table(experiment: ExperimentReport, kind: str) -> Table:
    table = _table([_shown(kind), "champion"], ["confidence", "duels"])
    for name, each in experiment.segments[kind].items():
        ahead = f"undecided, {_shown(each.leader)} is ahead" if each.leader else "undecided"
        champion = ahead if each.champion is None else _shown(each.champion)
        table.add_row(_shown(name), champion, at_least(each.confidence), f"{each.duels:,}")
    return table


def _answer(experiment: ExperimentReport) -> str:
    """The champion and its confidence, or that the duels have not decided yet."""
    ended = "" if experiment.configured else " [yellow](no longer in the configuration)[/]"
    within = _within_margin(experiment)
    former = experiment.status == "finished" and ended_without_winner(experiment.timeline)
    if former and not (within or experiment.no_winner or experiment.confidence >= LEVEL):
        return (
            f"champion [bold green]{_shown(str(experiment.champion))}[/]; no arm beat all others at"
            f" the end, later duels lowered the evidence{ended}"
        )
    if not (experiment.decided or within):
        return f"[bold]undecided[/], no evidence for any champion yet{ended}"
    if experiment.no_winner:  # also if the policy seeks a Copeland winner, of which it is sure
        return (
            f"no arm beats all others; {_unsurpassed(experiment)}"
            f"{f'; {within}' if within else ''}{ended}"
        )
    if within:
        return f"champion [bold green]{_shown(str(experiment.champion))}[/], {within}{ended}"
    least = "at least " if experiment.confidence else ""
    progress = f", {percent(experiment.progress)} of the evidence for 95 %"
    return (
        f"champion [bold green]{_shown(str(experiment.champion))}[/], "
        f"confidence {least}{at_least(experiment.confidence)}"
        f"{progress if experiment.progress < 1 else ''}{ended}"
    )


def _unsurpassed(experiment: ExperimentReport) -> str:
    """Whether the champion is known to beat as many others as any arm."""
    champion = f"[bold green]{_shown(str(experiment.champion))}[/]"
    if experiment.unsurpassed < LEVEL:
        return f"{champion} is the champion, but another one may beat more"
    confidence = at_least(experiment.unsurpassed)
    return f"champion {champion} beats as many as any, confidence {confidence}"


def _within_margin(experiment: ExperimentReport) -> str:
    """That no arm is better by a difference that matters, if that is the answer."""
    unbeaten = experiment.unbeaten
    if not ends_within_margin(experiment.confidence, unbeaten, experiment.status):
        return ""
    return (
        f"no arm beats it by more than {experiment.margin:g}, "
        f"confidence at least {at_least(unbeaten)}"
    )


def _dependent(experiment: ExperimentReport) -> str:
    """That the confidence above may be too high."""
    return (
        f"On average, the client of an impression has about "
        f"{experiment.impressions_per_client:.0f} impressions: "
        "duels of one client are not independent, so the confidence may be too high. "
        "`streamduel analyze` takes clients as the unit."
    )


def _open(counts: Mapping[str, int]) -> str:
    """Open impressions and pending clicks: their join window has not closed yet."""
    impressions, clicks = counts["impressions"], counts["clicks"]
    parts = [counted(impressions, "impression")] if impressions else []
    parts += [f"{counted(clicks, 'click')} without impression yet"] if clicks else []
    return f"open: {', '.join(parts)}" if parts else ""


def _arm_rows(experiment: ExperimentReport, first: str) -> list[list[str]]:
    arms, wins = experiment.arms, experiment.wins
    every = range(len(arms))
    beats = [sum(wins[i][j] > wins[j][i] for j in every) for i in every]
    duels = [sum(wins[i][j] + wins[j][i] for j in every) for i in every]
    champion = arms.index(experiment.champion) if experiment.champion in arms else -1
    of_champion = _pairs_of(experiment)
    rows = []
    for i in sorted(every, key=lambda arm: (arm != champion, -beats[arm], arm)):
        pair = of_champion.get(arms[i])
        if i == champion:
            against = [first, ""]
        elif pair is None or pair.rate is None:
            against = ["never met", ""]
        else:
            against = [f"{pair.rate:.3f}", f"{pair.low:.3f} … {pair.high:.3f}"]
        evidence = experiment.evidence[i]
        out = f"{evidence:.1f}{' out' if evidence >= experiment.required else ''}"
        rows.append([_shown(arms[i]), f"{beats[i]}", f"{duels[i]:,.0f}", *against, out])
    return rows


def _pairs_of(experiment: ExperimentReport) -> dict[str, Interval]:
    """The champion's win rate against each other arm, by its name."""
    found = {}
    for pair in experiment.pairs:
        low, high = pair.interval
        if pair.a == experiment.champion:
            found[pair.b] = Interval(pair.win_rate, low, high)
        elif pair.b == experiment.champion:
            rate = None if pair.win_rate is None else 1 - pair.win_rate
            found[pair.a] = Interval(rate, 1 - high, 1 - low)
    return found


def _print_dead_letters(console: Console, report: Report) -> None:
    dead_letters: Mapping[Reason, int] = report.dead_letters
    if not dead_letters:
        console.print("No dead letters.")
        return
    total = sum(dead_letters.values())
    named = sum(each.tallies["dead_letter"] for each in report.experiments.values())
    rest = total - named
    are = "is" if rest == 1 else "are"
    without = f", of which {rest:,} {are} counted for no experiment" if rest else ""
    console.print(f"dead letters: {total:,}{without}", highlight=False, soft_wrap=True)
    table = _table(["reason"], ["records"])
    for reason, count in dead_letters.items():
        table.add_row(reason, f"{count:,}")
    console.print(table)
