"""A plan for programs, and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from streamduel.simulation.ab_test import POWER
from streamduel.simulation.planning import Duration, Plan
from streamduel.simulation.plot import check_plot, drawing, style

_LOOKS: Final[tuple[dict[str, Any], ...]] = (
    {"color": "#0072B2"},
    {"color": "#D55E00", "linestyle": (0, (5, 1.5))},
)
"""Of the palette of Okabe and Ito; the dashes distinguish the lines without colour."""


def report(plan: Plan) -> dict[str, Any]:
    """The plan as a JSON-compatible dictionary."""
    asked, test = plan.question, plan.ab_test
    return {
        "arms": asked.arms,
        "difference": asked.difference,
        "others": asked.others,
        "impressions_per_day": asked.impressions_per_day,
        "click_share": asked.click_share,
        "no_click": asked.no_click,
        "confidence": asked.confidence,
        "seed": asked.seed,
        "policies": [_listed(plan, duration) for duration in plan.durations],
        "ab_test": {
            "impressions": test.impressions,
            "days": plan.days(test.impressions),
            "power": POWER,
            "click_rates": {"best": test.best, "other": test.other},
            "shared_clicks": asked.shared,
        },
    }


def _listed(plan: Plan, duration: Duration) -> dict[str, Any]:
    shares = {"median": 0.5, "p90": 0.9}
    impressions = {name: plan.impressions(duration, share) for name, share in shares.items()}
    return {
        "name": duration.name,
        "params": duration.params,
        "duels": {name: duration.duels(share) for name, share in shares.items()},
        "impressions": impressions,
        "days": {
            name: None if count is None else plan.days(count) for name, count in impressions.items()
        },
        "runs": len(duration.endings),
        "never": duration.never,
        "wrong": duration.wrong,
        "horizon": duration.horizon,
    }


def _steps(plan: Plan, duration: Duration) -> tuple[list[float], list[float]]:
    """Days, and the share of the runs that had an answer by then; up to the last run's end."""
    endings = sorted(duration.endings, key=plan.impressions_of)
    days = [plan.days(plan.impressions_of(ending)) for ending in endings]
    answers = np.cumsum([ending.verdict is not None for ending in endings]) / len(endings)
    return [days[0], *days], [0.0, *answers.tolist()]


def draw_plan(plan: Plan, path: Path) -> None:
    """The share of runs with an answer over the days, and the length of the A/B test.

    Args:
        plan: what to draw.
        path: .png, .svg or .pdf; equal plans give equal bytes.

    Raises:
        ConfigurationError: matplotlib is missing, or the name has another ending.
        StreamduelError: the file cannot be written.
    """
    check_plot(path)
    with drawing(path, 4.2) as figure:
        panel, asked = figure.subplots(), plan.question
        for duration, look in zip(plan.durations, _LOOKS, strict=False):
            panel.step(
                *_steps(plan, duration), where="post", label=f"{duration.name}, interleaved", **look
            )
        fixed = plan.days(plan.ab_test.impressions)
        panel.axvline(fixed, color="#009E73", linestyle=":", label="A/B test, at its fixed end")
        style(panel)
        panel.set_xlabel(f"days at {asked.impressions_per_day:,.10g} impressions a day")
        panel.set_ylabel(f"share of runs {100 * asked.confidence:.10g} % sure")
        panel.set_ylim(-0.03, 1.03)
        panel.set_yticks([0, 0.5, 0.9, 1])
        panel.set_title(
            f"{asked.arms} arms, the best wins {50 + 100 * asked.difference:.10g} % of its duels",
            loc="left", fontsize=10,
        )  # fmt: skip
        panel.legend(frameon=False)
