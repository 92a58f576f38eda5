"""What became of records: a panel that both dashboards have."""

from __future__ import annotations

from configs.grafana.panels import About, Panel, chart


def outcomes(ours: str, whose: str, otherwise: str) -> Panel:
    """Records per second, by outcome.

    Args:
        ours: the labels of those that are counted.
        whose: the same in words.
        otherwise: what is wrong if none come.
    """
    return chart(
        "Records per second, by outcome",
        About(
            f"What became of {whose}: used (`accepted`), seen before (`duplicate`), clicks that "
            "found no impression in time (`late`, `unjoined`), or of no use (`dead letter`).",
            "nearly all `accepted`, in the rhythm of your users' day.",
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
