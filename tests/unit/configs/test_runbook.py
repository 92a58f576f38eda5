"""Panels, commands and pages that the runbook names exist."""

from __future__ import annotations

import re
from typing import get_args

from streamduel.records import Action, Reason
from tests.prometheus.repository import ROOT, RUNBOOK, dashboard

PANELS = {
    panel["title"] for name in ("experiment", "service") for panel in dashboard(name)["panels"]
} | {dashboard(name)["title"] for name in ("experiment", "service")}

TEMPLATES = ROOT / "streamduel" / "monitoring" / "page" / "templates"

HEADINGS = {
    heading
    for template in TEMPLATES.iterdir()
    for heading in re.findall(r"<h2[^>]*>([^<]+)</h2>", template.read_text(encoding="utf-8"))
}
"""Headings of the status page."""


def test_named_panels_exist() -> None:
    text = re.sub(r"```.*?```", "", RUNBOOK.read_text(), flags=re.DOTALL)
    text = text.replace("**", "")
    named = {" ".join(it.split()) for it in re.findall(r"\*([^*]+)\*", text)}
    assert named
    assert named <= PANELS | HEADINGS


def test_control_commands_exist() -> None:
    text = " ".join(RUNBOOK.read_text().split())
    used = re.findall(r"streamduel control streamduel\.yaml search ([a-z-]+)", text)
    assert used
    assert {it.replace("-", "_") for it in used} <= set(get_args(Action))


def test_named_reasons_exist() -> None:
    section = RUNBOOK.read_text().split("### StreamduelDeadLetterShare")[1].split("###")[0]
    named = set(re.findall(r"`(unknown_\w+|wrong_\w+|invalid_\w+|too_\w+)`", section))
    assert named
    assert named <= set(get_args(Reason))


def test_linked_pages_exist() -> None:
    for page in re.findall(r"\]\(([\w-]+\.md)", RUNBOOK.read_text()):
        assert (ROOT / "docs" / page).exists(), page


def test_commands_skip_records_of_the_click_log_that_are_not_json() -> None:
    blocks = re.findall(r"```console\n(.*?)```", RUNBOOK.read_text(), flags=re.DOTALL)
    lines = [it for block in blocks for it in block.replace("\\\n", "").splitlines()]
    parsed = [it for it in lines if "--topic clicks" in it and "| jq " in it]
    assert parsed
    assert [it for it in parsed if "jq -Rr 'fromjson? | " not in it] == []
