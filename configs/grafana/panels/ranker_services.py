"""Panels about ranker services: complete logging, fair interleaving, assignments followed."""

from __future__ import annotations

from configs.grafana.panel_kinds import About, Panel, chart
from configs.grafana.panels.outcomes import outcomes


def _share(part: str, whole: str) -> str:
    """The share of a part of the records, in the last quarter of an hour."""
    return f"sum(increase({part}[15m])) / sum(increase({whole}[15m]))"


def panels(ours: str) -> list[Panel]:
    """The panels of the row.

    Args:
        ours: the labels of the experiment that is shown.
    """
    lost = f'streamduel_records_total{{{ours}, outcome=~"late|unjoined"}}'
    unassigned = f"streamduel_unassigned_impressions_total{{{ours}}}"
    return [
        outcomes(
            ours,
            "Records of the experiment",
            "if there are none, a producer has stopped; if many are `capped`, a few clients send "
            "most of them.",
            "StreamduelClientsCapped",
        ),
        chart(
            "Late and unjoined clicks",
            About(
                "The share of records that are clicks after their join window (`late`) or without "
                "an impression (`unjoined`).",
                "below 1 %.",
                "impressions are not logged, or clicks arrive later than `join_window_ms`.",
                "StreamduelClicksUnjoined",
            ),
            {"share": _share(lost, f"streamduel_records_total{{{ours}}}")},
            unit="percentunit",
            steps=[(0.05, "red")],
        ),
        chart(
            "Open impressions and pending clicks",
            About(
                "Impressions whose join window is open, and clicks that arrived before theirs.",
                "impressions: the traffic of one `join_window_ms`; clicks: nearly none.",
                "with many pending clicks, impressions are logged late, or not at all.",
                "StreamduelClicksUnjoined",
            ),
            {
                "impressions": f"max(streamduel_open_impressions{{{ours}}})",
                "clicks": f"max(streamduel_waiting_clicks{{{ours}}})",
            },
            unit="short",
        ),
        chart(
            "Unfair interleaving",
            About(
                "Confidence that a ranker service favours a side, or a ranker.",
                "near 0.",
                "above 99 % check the service: the results of the experiment are wrong.",
                "StreamduelTeamMismatch",
            ),
            {"confidence": f"max(streamduel_team_mismatch{{{ours}}})"},
            unit="percentunit",
            steps=[(0.99, "red")],
            most=1,
        ),
        chart(
            "Unassigned impressions",
            About(
                "The share of interleaved impressions whose pair was not assigned.",
                "0.",
                "a ranker service does not follow assignments, or follows an old topic.",
                "StreamduelUnassignedImpressions",
            ),
            {"share": _share(unassigned, f"streamduel_impressions_total{{{ours}}}")},
            unit="percentunit",
            steps=[(0.01, "red")],
        ),
        chart(
            "Documents shown, by side",
            About(
                "The share of shown documents that came from side a and from side b.",
                "both at 50 %.",
                "if the distance lasts, check `Unfair interleaving`.",
                "StreamduelTeamMismatch",
            ),
            {
                "{{side}}": f"sum by (side) (increase(streamduel_team_ranks_total{{{ours}}}[15m])) "
                f"/ on () group_left sum(increase(streamduel_team_ranks_total{{{ours}}}[15m]))"
            },
            unit="percentunit",
            most=1,
        ),
    ]
