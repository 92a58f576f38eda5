"""Tables of the newest snapshots, for `inspect` and `run --until-end`."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streamduel.records import Reason
from streamduel.stream.inspection import ExperimentReport, Report

Z = 1.96
"""Standard normal quantile of a 95 % interval."""


def win_rate(wins: float, losses: float) -> tuple[float, float, float]:
    """A win rate with its 95 % Wilson interval.

    The interval is valid for a single look at independent duels. It is no measure of the champion's
    confidence, because the policy chooses the pairs and the table may be read at any time.

    Returns:
        Rate, lower and upper end; (nan, 0, 1) without duels.

    Source: Wilson, "Probable Inference, the Law of Succession, and Statistical Inference",
    JASA 22 (1927).

    >>> [round(x, 3) for x in win_rate(55, 45)]
    [0.55, 0.452, 0.644]
    """
    n = wins + losses
    if n == 0:
        return math.nan, 0.0, 1.0
    rate = wins / n
    centre = (rate + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(rate * (1 - rate) / n + Z * Z / (4 * n * n))
    return rate, centre - half, centre + half


def print_report(console: Console, report: Report) -> None:
    """Print each experiment's arms against the champion, then the dead letters."""
    if not report.experiments:
        console.print("There is no snapshot yet: has `streamduel run` been started?")
        return
    for name, experiment in report.experiments.items():
        console.print(_experiment_table(name, experiment))
    _print_dead_letters(console, report.dead_letters)
    if report.ignored:
        ignored = ", ".join(f"{reason} {count:,}" for reason, count in report.ignored.items())
        console.print(f"ignored: {escape(ignored)}", soft_wrap=True)


def _experiment_table(name: str, experiment: ExperimentReport) -> Table:
    summary = (
        f"{escape(experiment.policy)}{', steered by a prior' if experiment.prior else ''},"
        f" {experiment.status}, epoch {experiment.epoch:,}, "
        f"{_counted(experiment.duels, 'duel')}"
    )
    tallies = ", ".join(f"{count:,} {what}" for what, count in experiment.tallies.items() if count)
    caption = [summary, tallies.replace("_", " "), _open(experiment.open)]
    champion = escape(str(experiment.champion))
    table = Table(
        title=f"[bold]{escape(name)}[/]: champion [bold green]{champion}[/]",
        caption="\n".join(line for line in caption if line),
        title_justify="left",
        caption_justify="left",
    )
    for heading in ("arm", "beats", "duels", "champion wins against it", "95 % interval"):
        table.add_column(heading, justify="left" if heading == "arm" else "right")
    for row in _arm_rows(experiment):
        table.add_row(*row)
    return table


def _open(counts: Mapping[str, int]) -> str:
    """Open impressions and pending clicks: their join window has not closed yet."""
    impressions, clicks = counts["impressions"], counts["clicks"]
    parts = [_counted(impressions, "impression")] if impressions else []
    parts += [f"{_counted(clicks, 'click')} without impression yet"] if clicks else []
    return f"open: {', '.join(parts)}" if parts else ""


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _arm_rows(experiment: ExperimentReport) -> list[list[str]]:
    arms, wins = experiment.arms, experiment.wins
    every = range(len(arms))
    beats = [sum(wins[i][j] > wins[j][i] for j in every) for i in every]
    duels = [sum(wins[i][j] + wins[j][i] for j in every) for i in every]
    champion = arms.index(experiment.champion) if experiment.champion in arms else -1
    rows = []
    for i in sorted(every, key=lambda arm: (arm != champion, -beats[arm], arm)):
        rate, low, high = win_rate(wins[champion][i], wins[i][champion])
        against = ["champion", ""] if i == champion else [f"{rate:.3f}", f"{low:.3f} … {high:.3f}"]
        if math.isnan(rate) and i != champion:
            against = ["never met", ""]
        rows.append([escape(arms[i]), f"{beats[i]}", f"{duels[i]:,.0f}", *against])
    return rows


def _print_dead_letters(console: Console, dead_letters: Mapping[Reason, int]) -> None:
    if not dead_letters:
        console.print("No dead letters.")
        return
    table = Table(title="dead letters", title_justify="left")
    table.add_column("reason")
    table.add_column("records", justify="right")
    for reason, count in dead_letters.items():
        table.add_row(reason, f"{count:,}")
    console.print(table)
