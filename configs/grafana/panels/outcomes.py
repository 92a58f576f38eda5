"""Records by outcome: a panel of both dashboards."""

from __future__ import annotations

from configs.grafana.panel_kinds import About, Panel, chart


def outcomes(ours: str, whose: str, otherwise: str) -> Panel:
    """Records per second, by outcome.

    Args:
        ours: the label selector of the records.
        whose: the same in words.
        otherwise: the cause if there are none.
    """
    return chart(
        "Records per second, by outcome",
        About(
            f"{whose}, by outcome: applied (`accepted`), id seen before (`duplicate`), clicks that "
            "found no impression in time (`late`, `unjoined`), or invalid (`dead letter`).",
            "nearly all `accepted`, following your users' day.",
            otherwise,
            "StreamduelNoRecords",
        ),
        {
            "{{outcome}}": "sum by (outcome) "
            f"(rate(streamduel_records_total{{{ours}}}[$__rate_interval]))",
            "dead letter": "sum"
            f"(rate(streamduel_experiment_dead_letters_total{{{ours}}}[$__rate_interval]))",
        },
        unit="ops",
        stacked=True,
    )
