"""The regret of the demo as a plot of characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

LOOKS: Final = (("braille", "green"), ("·", "red"))
"""Symbol and colour of the curve and of the line: told apart without colour, too."""
WIDEST: Final = 100
"""Columns: a wider curve tells no more."""
HEIGHT: Final = 16
PARTS: Final = 4
"""Into which both axes are divided: three lines each, above one another."""


def plot_regret(
    curve: Sequence[tuple[int, float]], uniform: float, policy: str, width: int
) -> Text:
    """What the impressions have cost over time, and what all pairs alike would have cost.

    Args:
        curve: impressions and regret, from the beginning.
        uniform: the regret, at the end, of showing all pairs equally.
        policy: what the curve is called.
        width: columns.
    """
    import plotext  # noqa: PLC0415 - takes a fifth of a second, and is needed at the end only

    plotext.terminal.limit(False, False)  # whoever calls knows the width
    figure = plotext.figure
    figure.clear()
    figure.theme("colorless")
    figure.plot_size(min(width, WIDEST), HEIGHT)
    end = curve[-1][0]
    lines = (
        (policy, [at for at, _ in curve], [regret for _, regret in curve]),
        ("all pairs equally", [0, end], [0.0, uniform]),
    )
    for (label, x, y), (symbol, colour) in zip(lines, LOOKS, strict=True):
        marker = plotext.marker(symbol, plotext.pixel(colour))
        figure.draw(figure.signal(x, y, marker=marker).lines().label(label))
    figure.title("regret over impressions")
    for axis, most in (("x", end), ("y", max(uniform, curve[-1][1]))):
        ticks = sorted({round(most * part / PARTS) for part in range(PARTS + 1)})
        figure.ruler(axis).ticks(ticks, [f"{tick:,}" for tick in ticks])
    return Text.from_ansi(figure.build().string())
