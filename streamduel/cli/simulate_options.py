"""The options of `streamduel simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamduel.policies import DEFAULT

Matrix = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The preference matrix: K lines of K numbers; row i, column j is the probability "
        "that arm i beats arm j. Also .npy and .npz.",
    ),
]
Environment = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Draw the preference matrix from the seed instead: bradley-terry, gaussian, "
        "condorcet or cyclic.",
    ),
]
Arms = Annotated[str | None, typer.Option(metavar="K", help="Number of arms, for --environment.")]
Gap = Annotated[
    float | None,
    typer.Option(
        metavar="G",
        help="Smallest |p - 1/2| of --environment condorcet; each |p - 1/2| of cyclic.  "
        "[default: 0.05]",
    ),
]
Change = Annotated[
    list[str] | None,
    typer.Option(
        metavar="T:FILE",
        help="Drift: the preference matrix after T duels, fewer than the horizon. May be repeated.",
    ),
]
PolicyNames = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[:k=v,…]",
        help="A policy, optionally with its own parameters. May be repeated.  "
        f"[default: {DEFAULT}]",
        show_default=False,
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME.]k=v",
        help="A parameter of every policy that has it, or of one policy. May be repeated.",
    ),
]
Horizon = Annotated[str, typer.Option(metavar="T", help="Duels in each run.")]
Runs = Annotated[str, typer.Option(metavar="R", help="Runs of each policy.")]
Seed = Annotated[str, typer.Option(metavar="S", help="Equal seeds give equal results.")]
Regret = Annotated[
    str, typer.Option(metavar="KIND", help="Kind of regret: condorcet, strong, weak or copeland.")
]
Ties = Annotated[
    float,
    typer.Option(
        metavar="P", help="Probability of a tie; the preference matrix holds for the other duels."
    ),
]
DelayText = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="Delay of each outcome, in duels; also uniform:10-30 or geometric:20."
    ),
]
Slate = Annotated[
    str,
    typer.Option(
        metavar="N", help="Duels proposed together, before any of their outcomes is known."
    ),
]
Checkpoints = Annotated[str, typer.Option(metavar="N", help="Checkpoints per power of ten.")]
UntilSure = Annotated[
    float | None,
    typer.Option(
        metavar="C",
        help="Also measure the duels until an answer with this confidence, such as 0.95: the "
        "champion is the winner that the policy seeks, no arm beats all others, or none beats the "
        "champion by more than the policy's smallest_difference.",
    ),
]
Jobs = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Processes; the results do not depend on their number.  [default: the cores]",
    ),
]
JsonPath = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the results here.")]
JournalPath = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Keep finished runs in this file until all are done; the same command continues "
        "from it.  [default: the name of --json with .journal]",
    ),
]
PlotPaths = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Draw a .png, .svg or .pdf. May be repeated."),
]
Scale = Annotated[
    str | None,
    typer.Option(metavar="linear|log", help="Scale of the regret in the plot.  [default: linear]"),
]
Band = Annotated[
    str | None,
    typer.Option(
        metavar="error|quantiles",
        help="Band in the plot: the mean ± one standard error, or the middle 80 % of the runs.  "
        "[default: error]",
    ),
]
NoCompile = Annotated[
    bool,
    typer.Option("--no-compile", help="Do not compile loops with numba; the results are the same."),
]
