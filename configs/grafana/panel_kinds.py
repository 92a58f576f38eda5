"""The kinds of panels of the dashboards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    timeseries,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as looks
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

Panel: TypeAlias = Builder[models.Panel]
"""A panel without its place."""

Kind = TypeVar("Kind", timeseries.Panel, statetimeline.Panel, heatmap.Panel, stat.Panel)

Steps: TypeAlias = Sequence[tuple[float, str]]
"""Values with the colours that begin there; green below the first."""

SOURCE: Final = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
"""The data source is chosen on the dashboard, so the same file works in every Grafana."""

RUNBOOK: Final = "docs/runbook.md"

SHORT, TALL = 4, 8
"""Heights of a figure and of a chart."""

SIXTH, QUARTER, THIRD, HALF = 4, 6, 8, 12
"""Widths; a line of the grid is 24 wide, and must be filled."""

NO_STEPS: Final[Steps] = ()


@dataclass(frozen=True)
class About:
    """The description of a panel, for the person on call.

    Attributes:
        shows: what the panel shows.
        normal: its normal state.
        otherwise: what to do in other states.
        alert: the one about the same; the runbook has a section of its name.
    """

    shows: str
    normal: str
    otherwise: str
    alert: str | None = None

    def __str__(self) -> str:
        text = f"{self.shows}\n\n**Normal:** {self.normal}\n\n**Otherwise:** {self.otherwise}"
        if self.alert is None:
            return text
        return f"{text}\n\nAlert {self.alert}: {RUNBOOK}#{self.alert.lower()}"


def chart(
    title: str,
    about: About,
    queries: Mapping[str, str],
    *,
    unit: str,
    steps: Steps = NO_STEPS,
    least: float | None = 0,
    most: float | None = None,
    width: int = THIRD,
    stacked: bool = False,
) -> Panel:
    """Lines over time.

    Args:
        title: a few words.
        about: its description.
        queries: by legend; `{{arm}}` in a legend is the label of a series.
        unit: as Grafana names it.
        steps: drawn as lines.
        least: the bottom of the axis; None if values may be below 0.
        most: the top of the axis, if values have a limit.
        width: of 24.
        stacked: whether the series have a meaningful sum.
    """
    panel = (
        _begin(timeseries.Panel(), title, about, TALL, width)
        .unit(unit)
        .thresholds(_thresholds(steps))
        .line_width(1)
        .fill_opacity(25 if stacked else 5)
        .show_points(looks.VisibilityMode.NEVER)
        .legend(_legend())
        .tooltip(common.VizTooltipOptions().mode(looks.TooltipDisplayMode.MULTI))
    )
    if stacked:
        panel.stacking(common.StackingConfig().mode(looks.StackingMode.NORMAL))
    if steps:
        drawn = looks.GraphThresholdsStyleMode.DASHED
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(drawn))
    if least is not None:
        panel.min(least)
    if most is not None:
        panel.max(most)
    return panel.targets(_queries(queries))


def figure(
    title: str,
    about: About,
    query: str,
    *,
    unit: str,
    steps: Steps = NO_STEPS,
    words: Mapping[str, tuple[str, str]] | None = None,
    none: str = "none",
) -> Panel:
    """One number, large, as of now.

    Args:
        title: a few words.
        about: its description.
        query: of one series.
        unit: as Grafana names it.
        steps: colours by value.
        words: text and colour instead of a value.
        none: text without a series.
    """
    panel = _figure(title, about, none).unit(unit).thresholds(_thresholds(steps))
    panel.text_mode(looks.BigValueTextMode.VALUE).mappings(_mappings(words or {}))
    return panel.targets([_query(query, "", "A").instant()])


def name(title: str, about: About, query: str, legend: str, *, none: str = "none") -> Panel:
    """A label of a series, large, as of now.

    Args:
        title: a few words.
        about: its description.
        query: of one series.
        legend: which label.
        none: text without a series.
    """
    panel = _figure(title, about, none).unit("string").thresholds(_thresholds(NO_STEPS))
    panel.text_mode(looks.BigValueTextMode.NAME)
    return panel.targets([_query(query, legend, "A").instant()])


def timeline(
    title: str,
    about: About,
    queries: Mapping[str, str],
    words: Mapping[str, tuple[str, str]],
    *,
    width: int = THIRD,
) -> Panel:
    """Bars coloured by state.

    Args:
        title: a few words.
        about: its description.
        queries: by legend.
        words: text and colour of each value.
        width: of 24.
    """
    return (
        _begin(statetimeline.Panel(), title, about, TALL, width)
        .unit("short")
        .thresholds(_thresholds(NO_STEPS))
        .mappings(_mappings(words))
        .merge_values(True)
        .show_value(looks.VisibilityMode.NEVER)
        .legend(_legend())
        .targets(_queries(queries))
    )


def spread(title: str, about: About, histogram: str, *, unit: str, width: int = THIRD) -> Panel:
    """The distribution of measurements over time.

    Args:
        title: a few words.
        about: its description.
        histogram: its name and label selector, as `seconds_bucket{instance="a"}`.
        unit: of the measurements.
        width: of 24.
    """
    colours = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Blues").steps(32)
    query = f"sum by (le) (increase({histogram}[$__rate_interval]))"
    return (
        _begin(heatmap.Panel(), title, about, TALL, width)
        .unit("short")
        .thresholds(_thresholds(NO_STEPS))
        .calculate(False)
        .color(colours)
        .y_axis(heatmap.YAxisConfig().unit(unit))
        .targets([_query(query, "{{le}}", "A").format(PromQueryFormat.HEATMAP)])
    )


def variable(
    label_name: str, label: str, query: str, *, many: bool = False
) -> Builder[models.VariableModel]:
    """A choice on the dashboard among the values of a label.

    Args:
        label_name: of the variable.
        label: its text.
        query: as `label_values(metric, label)`.
        many: whether several can be chosen; all by default.
    """
    chosen = (
        dashboard.QueryVariable(label_name)
        .label(label)
        .datasource(SOURCE)
        .query({"query": query, "refId": label_name})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )
    if many:
        chosen.multi(True).include_all(True).all_value(".*")
        chosen.current(models.VariableOption(text=["All"], value=["$__all"]))
    return chosen


def data_source() -> Builder[models.VariableModel]:
    """The choice of the Prometheus data source."""
    return dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")


def _begin(panel: Kind, title: str, about: About, height: int, width: int) -> Kind:
    """Set what every panel has."""
    described = panel.title(title).description(str(about)).datasource(SOURCE)
    return described.height(height).span(width)


def _figure(title: str, about: About, none: str) -> stat.Panel:
    return (
        _begin(stat.Panel(), title, about, SHORT, SIXTH)
        .no_value(none)
        .graph_mode(looks.BigValueGraphMode.NONE)
        .color_mode(looks.BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )


def _queries(queries: Mapping[str, str]) -> list[Builder[Dataquery]]:
    return [
        _query(query, legend, chr(ord("A") + number))
        for number, (legend, query) in enumerate(queries.items())
    ]


def _query(query: str, legend: str, ref_id: str) -> prometheus.Dataquery:
    made = prometheus.Dataquery().datasource(SOURCE).expr(query).ref_id(ref_id)
    return made.legend_format(legend) if legend else made


def _thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    made = [models.Threshold(value=None, color="green")]
    made += [models.Threshold(value=value, color=colour) for value, colour in steps]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(made)


def _mappings(words: Mapping[str, tuple[str, str]]) -> list[models.ValueMapping]:
    options = {
        value: models.ValueMappingResult(text=text, color=colour, index=index)
        for index, (value, (text, colour)) in enumerate(words.items())
    }
    return [models.ValueMap(options=options)] if options else []


def _legend() -> common.VizLegendOptions:
    shown = looks.LegendDisplayMode.LIST
    bottom = looks.LegendPlacement.BOTTOM
    return common.VizLegendOptions().display_mode(shown).placement(bottom).show_legend(True)
