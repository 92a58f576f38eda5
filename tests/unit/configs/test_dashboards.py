"""The dashboards are up to date, complete, and described for the person on call."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest
import yaml

from configs.grafana.generate import dashboards
from streamduel.monitoring.metrics import METRICS
from streamduel.monitoring.reference import PROCESS_METRICS
from tests.prometheus.repository import GRAFANA, PROMETHEUS, alerts, dashboard

NAMES = ("experiment", "service")
OTHERS = {"up", "ALERTS"}
"""Made by Prometheus itself."""


def panels(name: str) -> list[dict[str, Any]]:
    return [panel for panel in dashboard(name)["panels"] if panel["type"] != "row"]


def expressions(panel: dict[str, Any]) -> list[str]:
    return [target["expr"] for target in panel["targets"]]


def test_the_files_are_up_to_date() -> None:
    folder = GRAFANA / "dashboards"
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert written == dashboards(), "run: python -m configs.grafana.generate " + str(folder)


@pytest.mark.parametrize("name", NAMES)
def test_grafana_11_knows_the_schema(name: str) -> None:
    found = dashboard(name)
    assert found["schemaVersion"] == 41
    assert found["uid"] == f"streamduel-{name}"
    assert "id" not in found  # Grafana gives its own
    assert not found["editable"]


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_unique(name: str) -> None:
    ids = [panel["id"] for panel in dashboard(name)["panels"]]
    assert ids == list(range(1, len(ids) + 1))


@pytest.mark.parametrize("name", NAMES)
def test_the_grid_is_filled_without_overlap(name: str) -> None:
    lines: dict[int, int] = {}
    places = [panel["gridPos"] for panel in dashboard(name)["panels"]]
    for place in places:
        lines[place["y"]] = lines.get(place["y"], 0) + place["w"]
    assert set(lines.values()) == {24}
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)


@pytest.mark.parametrize("name", NAMES)
def test_panels_query_the_chosen_prometheus(name: str) -> None:
    for panel in panels(name):
        for part in (panel, *panel["targets"]):
            assert part["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


@pytest.mark.parametrize("name", NAMES)
def test_panels_have_a_unit_and_a_description(name: str) -> None:
    for panel in panels(name):
        assert panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"], panel["title"]
        assert "\n\n**Normal:** " in panel["description"], panel["title"]
        assert "\n\n**Otherwise:** " in panel["description"], panel["title"]


def test_regret_per_duel_may_be_negative_and_is_absent_without_duels() -> None:
    title = "Regret per 1,000 duels"
    (panel,) = (it for it in panels("experiment") if it["title"] == title)
    assert "below 0" in panel["description"]
    assert "min" not in panel["fieldConfig"]["defaults"]
    (expression,) = expressions(panel)
    assert re.search(r"/ on \(\) group_left \(\) \(sum\(.+\) > 0\)$", expression)


def test_dead_letters_of_no_experiment_are_on_the_panel_that_is_named_for_them() -> None:
    title = "Records per second, by outcome"
    (panel,) = (it for it in panels("service") if it["title"] == title)
    assert "no configured experiment: see `Dead letters, by reason`" in panel["description"]


@pytest.mark.parametrize("name", NAMES)
def test_titles_are_unique(name: str) -> None:
    titles = [panel["title"] for panel in panels(name)]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("name", NAMES)
def test_alerts_named_by_panels_exist(name: str) -> None:
    for panel in panels(name):
        for alert, anchor in re.findall(
            r"Alert (\w+): docs/runbook\.md#(\w+)", panel["description"]
        ):
            assert alert in alerts(), panel["title"]
            assert anchor == alert.lower()


@pytest.mark.parametrize("name", NAMES)
def test_a_panel_named_in_a_description_is_on_the_same_dashboard(name: str) -> None:
    titles = {panel["title"] for panel in panels(name)}
    for panel in panels(name):
        for named in re.findall(r"(?:see|at) `([A-Z][^`]+)`", panel["description"]):
            assert named in titles, panel["title"]


def test_every_alert_is_named_by_a_panel() -> None:
    told = " ".join(panel["description"] for name in NAMES for panel in panels(name))
    assert [alert for alert in alerts() if f"Alert {alert}:" not in told] == []


@pytest.mark.parametrize("name", NAMES)
def test_queried_metrics_are_exported(name: str) -> None:
    exported = OTHERS | {it.name for it in METRICS} | {name for name, *_ in PROCESS_METRICS}
    for panel in panels(name):
        for expression in expressions(panel):
            asked = re.findall(r"\b(\w+)\{", expression)
            assert asked, panel["title"]
            assert {it.removesuffix("_bucket") for it in asked} <= exported, panel["title"]


def test_every_metric_of_an_experiment_is_on_a_dashboard() -> None:
    asked = " ".join(it for name in NAMES for panel in panels(name) for it in expressions(panel))
    assert [metric.name for metric in METRICS if metric.name not in asked] == []


@pytest.mark.parametrize(
    ("name", "demanded"),
    [
        ("experiment", 'job="$job", experiment="$experiment"'),
        ("service", 'job=~"$job", instance=~"$instance"'),
    ],
)
def test_queries_use_the_chosen_values(name: str, demanded: str) -> None:
    for panel in panels(name):
        for expression in expressions(panel):
            selectors = re.findall(r"(?!ALERTS)\b\w+\{[^}]*\}", expression)
            assert all(demanded in selector for selector in selectors), panel["title"]


@pytest.mark.parametrize("name", NAMES)
def test_variables_of_queries_exist(name: str) -> None:
    offered = {variable["name"] for variable in dashboard(name)["templating"]["list"]}
    for panel in panels(name):
        used = re.findall(r"\$(\w+)", " ".join(expressions(panel)))
        assert set(used) <= offered | {"__rate_interval"}, panel["title"]


def test_the_scrape_interval_is_provisioned() -> None:
    (source,) = yaml.safe_load(
        (GRAFANA / "provisioning" / "datasources" / "prometheus.yml").read_text()
    )["datasources"]
    scraping = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    assert source["jsonData"]["timeInterval"] == scraping["global"]["scrape_interval"]


def test_the_dashboards_are_provisioned() -> None:
    (provider,) = yaml.safe_load(
        (GRAFANA / "provisioning" / "dashboards" / "streamduel.yml").read_text()
    )["providers"]
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
