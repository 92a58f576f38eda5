"""Queries of panels, evaluated by promtool on series for which the answer is known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from tests.prometheus.programs import promtool
from tests.prometheus.repository import queries, substituted

CHOSEN: Final = {"job": "streamduel", "experiment": "search", "kind": "strong"}

OURS: Final = 'job="streamduel", experiment="search"'


def test_regret_per_duel_is_right_in_the_first_hour_and_after_a_move(tmp_path: Path) -> None:
    for minutes, instances in ((10, ("a",)), (40, ("a", "b"))):
        series = {}
        for number, instance in enumerate(instances):
            for name, labels, rate in (
                ("regret", ', kind="strong", bound="estimate"', 12), ("duels_total", "", 60),
            ):  # fmt: skip
                # 20 minutes each
                start = 20 * rate * number
                values = f"{'_x20 ' if number else ''}{start}+{rate}x20 stale"
                series[f'streamduel_{name}{{{OURS}, instance="{instance}"{labels}}}'] = values
        answers(tmp_path, "Regret per 1,000 duels", series, f"{minutes}m", '{kind="strong"}', 200)


def test_assignments_of_an_experiment_that_came_back_are_counted_once(tmp_path: Path) -> None:
    series = {
        f'streamduel_assignments_total{{{OURS}, instance="a"}}': "0+1x20 stale _x19 41+1x30",
        f'streamduel_assignments_total{{{OURS}, instance="b"}}': "_x20 21+1x19 stale",
    }
    answers(tmp_path, "Assignments per hour", series, "1h", "{}", 60)


def answers(
    folder: Path,
    panel: str,
    series: Mapping[str, str],
    at: str,
    labels: str,
    value: float,
) -> None:
    """Let promtool compare the rounded answer of a panel with the expected one."""
    (query,) = (it for it in queries("experiment") if it.panel == panel)
    expected = [{"labels": labels, "value": value}]
    group = {
        "interval": "1m",
        "input_series": [{"series": it, "values": values} for it, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f"round({substituted(query.expression, CHOSEN)})",
                "eval_time": at,
                "exp_samples": expected,
            }
        ],
    }
    file = folder / "panel_test.yml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [group]}))
    promtool("test", "rules", file)
