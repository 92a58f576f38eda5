"""Records by outcome: a panel of both dashboards."""

from __future__ import annotations

from configs.grafana.panel_kinds import About, Panel, chart


def outcomes(ours: str, whose: str, otherwise: str, alert: str) -> Panel:
    """Records per second, by outcome.

    Args:
        ours: the label selector of the records.
        whose: the same in words.
        otherwise: the cause if there are none.
        alert: about the same.
    """
    return chart(
        "Records per second, by outcome",
        About(
            f"{whose}, by outcome: applied (`accepted`), id seen before (`duplicate`), clicks that "
            "found no impression in time (`late`, `unjoined`), beyond the limit of duels per "
            "client (`capped`), or invalid (`dead letter`).",
            "nearly all `accepted`, following your users' day.",
            otherwise,
            alert,
        ),
        {
            "{{outcome}}": "sum by (outcome) "
            f"(rate(streamduel_records_total{{{ours}}}[$__rate_interval]))",
            "capped": f"sum(rate(streamduel_capped_total{{{ours}}}[$__rate_interval]))",
            "dead letter": "sum"
            f"(rate(streamduel_experiment_dead_letters_total{{{ours}}}[$__rate_interval]))",
        },
        unit="ops",
        stacked=True,
    )
