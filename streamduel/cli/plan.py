"""`streamduel plan`: how long an experiment will take."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from streamduel.cli.app import INTERRUPTED, err, out, say
from streamduel.cli.outputs import check_places, check_writable
from streamduel.cli.progress import counting_progress
from streamduel.cli.simulate import whole
from streamduel.cli.simulate_tables import print_titled, table_of_numbers
from streamduel.errors import ConfigurationError, PolicyError, PreferenceError, counted
from streamduel.files import write_json
from streamduel.policies import DEFAULT
from streamduel.simulation.ab_test import POWER
from streamduel.simulation.planning import Duration, Plan, Question, make_plan
from streamduel.simulation.planning_report import draw_plan, report
from streamduel.simulation.plot import check_plot
from streamduel.simulation.policy_arguments import read_policies

PUBLISHED: Final = (10, 100)
"""How many times as many impressions A/B tests took in published comparisons: O. Chapelle et al.,
"Large-scale validation and analysis of interleaved search evaluation", ACM TOIS 30(1), 2012; 60 in
N. Bi et al., "Debiased balanced interleaving at Amazon Search", CIKM 2022."""


def plan(
    arms: Annotated[str, typer.Option(metavar="K", help="Number of rankers to compare.")],
    difference: Annotated[
        float,
        typer.Option(
            metavar="D",
            help="The smallest difference worth finding: the best ranker wins a share of 0.5 + D "
            "of its duels with each other one. 0.05 is a clear, 0.01 a small improvement.",
        ),
    ],
    impressions_per_day: Annotated[
        float, typer.Option(metavar="N", help="Result lists that the experiment may show a day.")
    ],
    click_share: Annotated[
        float,
        typer.Option(
            metavar="S",
            help="Share of the lists whose clicks prefer one ranker; most lists get no click.",
        ),
    ] = 1.0,
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME[:k=v,…]",
            help="The policy that chooses the pairs; see `streamduel policies`.",
        ),
    ] = DEFAULT,
    confidence: Annotated[
        float,
        typer.Option(
            metavar="C",
            help="Confidence of the answer, valid however often you look at it.",
        ),
    ] = 0.95,
    others: Annotated[
        str,
        typer.Option(
            metavar="equal|bradley-terry",
            help="How the other rankers compare: all equal, a hard case, or each better than "
            "the next one, as the best is better than the second.",
        ),
    ] = "equal",
    no_click: Annotated[
        str,
        typer.Option(
            metavar="drop|tie",
            help="What the other lists are, as in the configuration: no duel, or a tie, which "
            "takes far longer if there are many.",
        ),
    ] = "drop",
    shared_clicks: Annotated[
        float,
        typer.Option(
            metavar="C",
            help="For the A/B test: share of the users who click although they are shown only the "
            "ranker that they prefer less. 0 is the best case of an A/B test.",
        ),
    ] = 0.0,
    runs: Annotated[
        str | None,
        typer.Option(
            metavar="R",
            help="Simulated experiments.  [default: as many as take some seconds, at most 100]",
        ),
    ] = None,
    horizon: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help="Duels after which an experiment counts as never sure.  [default: as many as "
            "can be simulated in some seconds]",
        ),
    ] = None,
    seed: Annotated[str, typer.Option(metavar="S", help="Equal seeds give equal plans.")] = "0",
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the plan here, for programs.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw a .png, .svg or .pdf: sure experiments over days."),
    ] = None,
) -> None:
    """Estimate how many impressions and days it takes until the champion is known.

    Simulates experiments with the policy itself, until the service would report an answer with the
    confidence. Half of the experiments take at most the impressions and days that are shown; nine
    in ten, those in the columns 'in 90 %'. For comparison, the table shows pairs chosen uniformly,
    and an A/B test of fixed length.

    For example, four rankers, 20,000 lists a day, of which 30 % get clicks that prefer a ranker:

        streamduel plan --arms 4 --difference 0.03 --impressions-per-day 20000 --click-share 0.3
    """
    question = Question(
        arms=whole("arms", arms),
        difference=difference,
        impressions_per_day=impressions_per_day,
        click_share=click_share,
        confidence=confidence,
        others=others,
        no_click=no_click,
        seed=whole("seed", seed),
        runs=None if runs is None else whole("runs", runs),
        horizon=None if horizon is None else whole("horizon", horizon),
        shared=shared_clicks,
    )
    files = [(name, path) for name, path in (("--json", json), ("--plot", plot)) if path]
    if plot is not None:
        check_plot(plot)
    check_places(files, {})
    check_writable(files)
    try:
        [(name, parameters)] = read_policies([policy], [])
        with counting_progress(err, "simulating") as progress:
            made = make_plan(question, name, parameters, progress=progress)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except (PolicyError, PreferenceError) as error:
        raise ConfigurationError(str(error)) from error
    try:
        if json is not None:
            write_json(json, report(made))
        if plot is not None:
            draw_plan(made, plot)
    finally:
        _print(made)  # last: its reader may end early, as `head` does


def _print(made: Plan) -> None:
    question = made.question
    percent = f"{100 * question.confidence:.10g} %"
    title = f"until the best of {question.arms} rankers is known with {percent} confidence"
    print_titled(out, title, _table(made))
    for sentence in _sentences(made):
        say(out, sentence)


def _table(made: Plan) -> Table:
    """A row for each way to find the champion."""
    rows = []
    for duration in made.durations:
        counts = [_count(made, duration, share) for share in (0.5, 0.9)]
        rows.append(
            [
                f"interleaving by {duration.name}",
                *(f"{more}{count:,}" for more, count in counts),
                *(f"{more}{days(made.days(count))}" for more, count in counts),
                f"{duration.wrong} of {len(duration.endings)}",
            ]
        )
    test = made.ab_test.impressions
    fixed = [f"{test:,}"] * 2 + [days(made.days(test))] * 2
    at_best = "" if made.question.shared else ", at best"
    rows.append([f"A/B test{at_best}", *fixed, ""])
    return table_of_numbers(["method", "impressions", "in 90 %", "days", "in 90 %", "wrong"], rows)


def _count(made: Plan, duration: Duration, share: float) -> tuple[str, int]:
    """Impressions, and a sign before them if it takes longer than was simulated."""
    count = made.impressions(duration, share)
    return ("> ", made.least_impressions(duration, share)) if count is None else ("", count)


def days(number: float) -> str:
    """Days with two digits, and all before the point.

    >>> days(0.0123), days(2.14), days(1234.5)
    ('0.012', '2.1', '1,234')
    """
    digits = 1 - math.floor(math.log10(number)) if number > 0 else 0
    return f"{number:,.{max(0, digits)}f}"


def _sentences(made: Plan) -> list[str]:
    """What the numbers assume."""
    asked, test = made.question, made.ab_test
    percent = f"{100 * (0.5 + asked.difference):.10g} %"
    order = {
        "equal": "with each other one; the others are equal, which is a hard case",
        "bradley-terry": "with the second-best one, that one as many with the third-best one, and "
        "so on (Bradley-Terry)",
    }[asked.others]
    rest = {
        "drop": "the others are no duels, for which the experiment's configuration needs no_click: "
        f"drop: with its default, tie, it takes at least {1 / asked.click_share:.2g} times the "
        "impressions (--no-click tie)",
        "tie": "the others are ties (no_click: tie)",
    }[asked.no_click]
    told = f"{100 * asked.click_share:.10g} % of the lists get clicks that prefer a ranker; {rest}"
    if asked.click_share == 1:
        told = "every list gets clicks that prefer a ranker (--click-share)"
    sentences = [
        f"Simulated: the best ranker wins {percent} of its duels {order}; "
        f"{told}. Outcomes come without delay, and users are independent. Half of the simulated "
        "experiments took at most what 'impressions' and 'days' say.",
        f"A/B test: {100 * test.best:.10g} % of the best ranker's lists are clicked and "
        f"{100 * test.other:.10g} % of each other one's, power {100 * POWER:.0f} %, read once at "
        "the end." + _link(made),
    ]
    margin = made.durations[0].params.get("smallest_difference", 0.0)
    if margin:
        sentences[0] += (
            f" An experiment also ends when no ranker beats the champion by more than {margin:g} "
            "(smallest_difference)."
        )
    late = [duration for duration in made.durations if duration.never]
    return sentences + [_never(duration, asked.confidence) for duration in late]


def _link(made: Plan) -> str:
    """The assumption that relates the A/B test to the duels."""
    if made.question.shared:
        return (
            f" That assumes that {100 * made.question.shared:.10g} % of the users click also if "
            "shown only the list that they prefer less (--shared-clicks)."
        )
    low, high = PUBLISHED
    return (
        " That is its best case: every user who prefers a ranker would not click at all on the "
        "other one's list. Most users click anyway (--shared-clicks): published A/B tests took "
        f"{low} to {high} times as many impressions as interleaving."
    )


def _never(duration: Duration, confidence: float) -> str:
    """Why simulated experiments had no answer, and what helps."""
    own = duration.params.get("confidence", confidence)
    advice = "--horizon simulates longer ones"
    if own < confidence:
        advice = f"it explores only until its own confidence of {100 * own:.10g} %"
    return (
        f"{duration.name} was not sure in {duration.never} of {len(duration.endings)} simulated "
        f"experiments of {counted(duration.horizon, 'duel')}; {advice}."
    )
