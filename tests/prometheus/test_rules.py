"""The rules pass promtool's checks, and each alert is tried where it fires and where not."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
import yaml

from tests.prometheus.programs import promtool
from tests.prometheus.repository import PROMETHEUS, RULES, RUNBOOK, alerts

TRIED = PROMETHEUS / "rules_test.yml"
SEVERITIES = {"critical", "warning", "info"}


def test_promtool_accepts_the_rules() -> None:
    promtool("check", "rules", RULES)


def test_promtool_accepts_the_configuration() -> None:
    promtool("check", "config", PROMETHEUS / "prometheus.yml")


def test_alerts_fire_as_described() -> None:
    promtool("test", "rules", TRIED)


def test_every_alert_is_tried_with_a_healthy_series() -> None:
    for alert in alerts():
        groups = [it for it in yaml.safe_load(TRIED.read_text())["tests"] if it["name"] == alert]
        assert groups, f"{alert} is not tried in {TRIED.name}"
        asked = groups[0]["promql_expr_test"]
        labels = [sample["labels"] for each in asked for sample in each["exp_samples"]]
        fired = subjects(it for it in labels if f'alertname="{alert}"' in it)
        assert fired, f"{alert} never fires in {TRIED.name}"
        assert subjects(it["series"] for it in groups[0]["input_series"]) - fired, alert


def subjects(series: Iterable[str]) -> set[str]:
    """The subject of a series: the last of these labels."""
    return {re.findall(r'(?:job|instance|experiment)="([^"]+)"', it)[-1] for it in series}


@pytest.mark.parametrize("alert", alerts())
def test_alerts_have_severity_and_annotations(alert: str) -> None:
    rule = alerts()[alert]
    assert rule["labels"]["severity"] in SEVERITIES
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    runbook = "https://github.com/streamduel/streamduel/blob/main/docs/runbook.md"
    assert rule["annotations"]["runbook_url"] == f"{runbook}#{alert.lower()}"


@pytest.mark.parametrize("alert", alerts())
def test_thresholds_have_a_comment(alert: str) -> None:
    above, _ = RULES.read_text().split(f"- alert: {alert}\n")
    comment = re.search(r"((?:^ +#.*\n)+) +$", above, re.MULTILINE)
    assert comment, f"no comment stands above {alert}"
    rule = alerts()[alert]
    demanded = [f"> {it}" for it in re.findall(r"> (\d[\d.]*)", rule["expr"]) if it != "0"]
    demanded += [rule["for"]] if "for" in rule else ["No `for`"]
    assert [it for it in demanded if it not in comment[1]] == []


def test_alerts_and_sections_of_the_runbook_correspond() -> None:
    sections = re.findall(r"^### (\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert sections == list(alerts())


@pytest.mark.parametrize("alert", alerts())
def test_sections_of_the_runbook_are_complete(alert: str) -> None:
    section = re.split(r"^##", RUNBOOK.read_text().split(f"### {alert}\n")[1], flags=re.MULTILINE)
    for question in (
        "What it means", "What users notice", "Find the cause", "What to do", "When to ignore it",
    ):  # fmt: skip
        assert f"**{question}.**" in section[0], question
