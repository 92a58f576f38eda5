"""What impressions and clicks tell of the services that log them."""

from __future__ import annotations

from configs.grafana.outcomes import outcomes
from configs.grafana.panels import About, Panel, chart


def _share(part: str, whole: str) -> str:
    """The share that some records have in others, by the last quarter of an hour at least."""
    return f"sum(increase({part}[15m])) / sum(increase({whole}[15m]))"


def panels(ours: str) -> list[Panel]:
    """Those of the row.

    Args:
        ours: the labels of the experiment that is shown.
    """
    lost = f'streamduel_records_total{{{ours}, outcome=~"late|unjoined"}}'
    unassigned = f"streamduel_unassigned_impressions_total{{{ours}}}"
    return [
        outcomes(ours, "the experiment's records", "nothing at all: a producer has stopped."),
        chart(
            "Clicks that were of no use",
            About(
                "The share of records that are clicks whose impression was over (`late`) or never "
                "seen (`unjoined`).",
                "below 1 %.",
                "impressions are not logged, or clicks come later than `join_window_ms`.",
                "StreamduelClicksUnjoined",
            ),
            {"share": _share(lost, f"streamduel_records_total{{{ours}}}")},
            unit="percentunit",
            steps=[(0.05, "red")],
        ),
        chart(
            "Waiting for the other half",
            About(
                "Impressions that are open for clicks, and clicks that wait for their impression.",
                "impressions: the traffic of one `join_window_ms`; clicks: nearly none.",
                "many waiting clicks mean that impressions are logged late, or not at all.",
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
                "How sure it is that a ranker service favours a side, or a ranker, when it mixes "
                "two lists.",
                "near 0.",
                "above 99 % look at the service: what it logs decides nothing any more.",
                "StreamduelTeamMismatch",
            ),
            {"certainty": f"max(streamduel_team_mismatch{{{ours}}})"},
            unit="percentunit",
            steps=[(0.99, "red")],
            most=1,
        ),
        chart(
            "Impressions that nobody asked for",
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
                "a lasting distance between them: see `Unfair interleaving`.",
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
