"""The options of `streamduel simulate`, as its help shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Matrix = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The preferences: K lines of K numbers, row i column j the probability that arm i "
        "beats arm j. Also .npy and .npz.",
        show_default=False,
    ),
]
Environment = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Instead of a file, preferences drawn from the seed: bradley-terry, gaussian, "
        "condorcet or cyclic.",
        show_default=False,
    ),
]
Arms = Annotated[
    str | None, typer.Option(metavar="K", help="For --environment: how many.", show_default=False)
]
Gap = Annotated[
    float | None,
    typer.Option(
        metavar="G",
        help="For --environment condorcet the least, for cyclic the only |p - 1/2|.  [0.05]",
        show_default=False,
    ),
]
Change = Annotated[
    list[str] | None,
    typer.Option(
        metavar="T:FILE",
        help="Users change: after T duels, fewer than the horizon, these preferences hold. May be "
        "repeated.",
        show_default=False,
    ),
]
PolicyNames = Annotated[
    list[str],
    typer.Option(
        "--policy",
        metavar="NAME[:k=v,…]",
        help="A policy, perhaps with parameters of its own. May be repeated.",
        show_default=False,
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="[NAME.]k=v",
        help="A parameter for every policy that has it, or for one policy. May be repeated.",
        show_default=False,
    ),
]
Horizon = Annotated[str, typer.Option(metavar="T", help="Duels in each run.")]
Runs = Annotated[str, typer.Option(metavar="R", help="Runs of each policy.")]
Seed = Annotated[str, typer.Option(metavar="S", help="Equal seeds give equal results.")]
Regret = Annotated[
    str,
    typer.Option(metavar="KIND", help="What a duel costs: condorcet, strong, weak or copeland."),
]
Ties = Annotated[
    float,
    typer.Option(
        metavar="P",
        help="Probability that a duel is a tie; the preferences then hold when somebody wins.",
    ),
]
DelayText = Annotated[
    str | None,
    typer.Option(
        "--delay",
        metavar="N",
        help="Outcomes are known N duels late; also uniform:10-30 or geometric:20.",
        show_default=False,
    ),
]
Slate = Annotated[
    str, typer.Option(metavar="N", help="Duels proposed at a time, unaware of their outcomes.")
]
Checkpoints = Annotated[
    str, typer.Option(metavar="N", help="Checkpoints from a power of ten to the next.")
]
Jobs = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="Processes; results do not depend on it.  [as many as cores]",
        show_default=False,
    ),
]  # fmt: skip
JsonPath = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the results here.", show_default=False),
]
JournalPath = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        metavar="FILE",
        help="Keep finished runs here until all are done; the same command goes on from it. "
        " [the --json file's name with .journal]",
        show_default=False,
    ),
]
PlotPaths = Annotated[
    list[Path] | None,
    typer.Option(
        "--plot", metavar="FILE", help="Draw a .png, .svg or .pdf. May be repeated.",
        show_default=False,
    ),
]  # fmt: skip
Scale = Annotated[
    str | None,
    typer.Option(
        metavar="linear|log", help="Of the regret in the plot.  [linear]", show_default=False
    ),
]
Band = Annotated[
    str | None,
    typer.Option(
        metavar="error|quantiles",
        help="In the plot: the mean ± one standard error, or the middle 80 % of the runs.  [error]",
        show_default=False,
    ),
]
NoCompile = Annotated[
    bool, typer.Option("--no-compile", help="Do without compiled loops; results are the same.")
]
