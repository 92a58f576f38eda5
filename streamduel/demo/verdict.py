"""How the demo ends: what streamduel found, next to what is true."""

from __future__ import annotations

from typing import Final

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamduel.demo.ledger import Ledger
from streamduel.demo.lines import say
from streamduel.demo.picture import Picture
from streamduel.demo.play import Played
from streamduel.demo.plot import plot_regret
from streamduel.demo.world import World

SURE: Final = 0.95
"""Where confidence counts as enough; the custom of statistics."""


def print_verdict(console: Console, played: Played) -> None:
    """The rankers with the truth beside them, the regret, and the result in a sentence.

    Args:
        console: where to.
        played: what has come of the demo.
    """
    world, ledger, picture = played
    if picture is None:
        say(console, "Ended before the first impression: nothing is known yet.")
        return
    console.print(_truth_table(world, picture))
    uniform = ledger.uniform_regret(ledger.impressions)
    curve = [*ledger.curve, (ledger.impressions, ledger.regret)]
    console.print(plot_regret(curve, uniform, picture.policy, console.width))
    result = sentence(world, ledger, picture)
    console.print(result, markup=False, highlight=False, soft_wrap=not console.is_terminal)


def _truth_table(world: World, picture: Picture) -> Table:
    """What streamduel saw of each ranker, and how good it is; the best first."""
    view, truth = picture.view, world.preferences[world.best]
    table = Table(title="what streamduel saw, and what is true", title_justify="left")
    table.add_column("ranker")
    for heading in ("shown", "duels", "wins", "beats", "the best one beats it"):
        table.add_column(heading, justify="right")
    for arm in sorted(range(len(world.arms)), key=lambda arm: (arm != world.best, truth[arm])):
        name = Text(world.arms[arm])
        if arm == view.champion:
            name.append(" ★", "bold green")
        beaten = "is the best" if arm == world.best else f"{truth[arm]:.1%} of the time"
        beats = f"{view.copeland[arm] * (len(world.arms) - 1):.0f} of {len(world.arms) - 1}"
        wins = f"{view.wins[arm].sum():,.0f}"
        seen = f"{picture.shown[arm]:,}", f"{view.arm_duels[arm]:,}", wins, beats
        table.add_row(name, *seen, Text(beaten))
    return table


def sentence(world: World, ledger: Ledger, picture: Picture) -> str:
    """The result: champion, truth, confidence, and what was saved."""
    view, n = picture.view, ledger.impressions
    champion = world.arms[view.champion]
    after = f"After {n:,} impression{'s' if n > 1 else ''}"
    found = f"{after} {picture.policy} says that {champion} is the best"
    if view.champion != world.best:
        truth = f"but {world.arms[world.best]} is"
        lead = world.preferences[world.best, view.champion]
        truth += f", which beats it {lead:.1%} of the time"
    else:
        truth = "and it is"
    sure = f"confidence {np.floor(view.confidence * 1000) / 1000:.3f}"
    if view.confidence < SURE:
        sure += ": not sure yet, that takes more impressions"
    uniform = ledger.uniform_regret(n)
    worse = len(world.worse_half)
    who = f"one of the {worse} worse rankers" if worse > 1 else "the worse ranker"
    saved = ledger.uniform_bad(n) - ledger.bad
    return (
        f"{found}, {truth} ({sure}). Showing all pairs equally would have cost a regret of "
        f"{uniform:,.0f} instead of {ledger.regret:,.0f}, and {max(0, saved):,.0f} more "
        f"impressions with {who}."
    )
