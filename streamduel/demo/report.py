"""The end of the demo: its result beside the truth, and a plot of the regret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamduel.demo.display import Progress, print_line
from streamduel.demo.rankers import Rankers
from streamduel.demo.run import Result
from streamduel.demo.statistics import Statistics

SURE: Final = 0.95
"""The confidence from which the champion counts as found."""

LINE_STYLES: Final = (("braille", "green"), ("·", "red"))
"""Symbol and colour of the policy's curve and of the line of all pairs."""
MAX_WIDTH: Final = 100
"""Columns of the plot at most."""
HEIGHT: Final = 16
TICKS: Final = 4
"""Ticks of each axis, besides 0."""


def print_report(console: Console, result: Result) -> None:
    """Print the rankers with their true quality, the regret, and a sentence."""
    rankers, statistics, progress = result
    if progress is None:
        print_line(console, "Ended before the first impression: nothing is known yet.")
        return
    console.print(_ranker_table(rankers, progress))
    uniform = statistics.uniform_regret(statistics.impressions)
    curve = [*statistics.curve, (statistics.impressions, statistics.regret)]
    console.print(plot_regret(curve, uniform, progress.policy, console.width))
    text = sentence(rankers, statistics, progress)
    console.print(text, markup=False, highlight=False, soft_wrap=not console.is_terminal)


def _ranker_table(rankers: Rankers, progress: Progress) -> Table:
    """The observed and the true figures of each ranker, the best first."""
    view, truth = progress.view, rankers.preferences[rankers.best]
    table = Table(title="measured counts and true win rates", title_justify="left")
    table.add_column("ranker")
    for heading in ("shown", "duels", "wins", "beats", "the best one beats it"):
        table.add_column(heading, justify="right")
    for arm in sorted(range(len(rankers.arms)), key=lambda arm: (arm != rankers.best, truth[arm])):
        name = Text(rankers.arms[arm])
        if arm == view.champion:
            name.append(" ★", "bold green")
        beaten = "is the best" if arm == rankers.best else f"{truth[arm]:.1%} of the time"
        beats = f"{view.copeland[arm] * (len(rankers.arms) - 1):.0f} of {len(rankers.arms) - 1}"
        wins = f"{view.wins[arm].sum():,.0f}"
        seen = f"{progress.shown[arm]:,}", f"{view.arm_duels[arm]:,}", wins, beats
        table.add_row(name, *seen, Text(beaten))
    return table


def sentence(rankers: Rankers, statistics: Statistics, progress: Progress) -> str:
    """The result: champion, truth, confidence, and the regret saved."""
    view, n = progress.view, statistics.impressions
    champion = rankers.arms[view.champion]
    after = f"After {n:,} impression{'s' if n > 1 else ''}"
    found = f"{after} {progress.policy} says that {champion} is the best"
    if view.champion != rankers.best:
        truth = f"but {rankers.arms[rankers.best]} is"
        lead = rankers.preferences[rankers.best, view.champion]
        truth += f", which beats it {lead:.1%} of the time"
    else:
        truth = "and it is"
    sure = f"confidence {np.floor(view.confidence * 1000) / 1000:.3f}"
    if view.confidence < SURE:
        sure += ": not sure yet, that takes more impressions"
    uniform = statistics.uniform_regret(n)
    worse = len(rankers.worse_half)
    who = f"one of the {worse} worse rankers" if worse > 1 else "the worse ranker"
    saved = statistics.uniform_bad(n) - statistics.bad
    return (
        f"{found}, {truth} ({sure}). Showing all pairs equally would have cost a regret of "
        f"{uniform:,.0f} instead of {statistics.regret:,.0f}, and {max(0, saved):,.0f} more "
        f"impressions with {who}."
    )


def plot_regret(
    curve: Sequence[tuple[int, float]], uniform: float, policy: str, width: int
) -> Text:
    """A plot of the regret over impressions, beside that of showing all pairs equally.

    The latter is a line to the final regret `uniform`.
    """
    import plotext  # noqa: PLC0415 - takes 0.2 s, and only the end needs it

    plotext.terminal.limit(False, False)  # the caller knows the width
    figure = plotext.figure
    figure.clear()
    figure.theme("colorless")
    figure.plot_size(min(width, MAX_WIDTH), HEIGHT)
    end = curve[-1][0]
    lines = (
        (policy, [at for at, _ in curve], [regret for _, regret in curve]),
        ("all pairs equally", [0, end], [0.0, uniform]),
    )
    for (label, x, y), (symbol, colour) in zip(lines, LINE_STYLES, strict=True):
        marker = plotext.marker(symbol, plotext.pixel(colour))
        figure.draw(figure.signal(x, y, marker=marker).lines().label(label))
    figure.title("regret over impressions")
    for axis, most in (("x", end), ("y", max(uniform, curve[-1][1]))):
        ticks = sorted({round(most * part / TICKS) for part in range(TICKS + 1)})
        figure.ruler(axis).ticks(ticks, [f"{tick:,}" for tick in ticks])
    return Text.from_ansi(figure.build().string())
