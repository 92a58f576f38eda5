"""What the runbook names is there: panels, commands, pages."""

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
"""What the status page calls its parts."""


def test_every_panel_that_is_named_is_on_a_dashboard_or_on_the_status_page() -> None:
    text = re.sub(r"```.*?```", "", RUNBOOK.read_text(), flags=re.DOTALL)
    text = text.replace("**", "")
    named = {" ".join(it.split()) for it in re.findall(r"\*([^*]+)\*", text)}
    assert named
    assert named <= PANELS | HEADINGS


def test_every_control_command_is_one_that_there_is() -> None:
    text = " ".join(RUNBOOK.read_text().split())
    used = re.findall(r"streamduel control streamduel\.yaml search ([a-z-]+)", text)
    assert used
    assert {it.replace("-", "_") for it in used} <= set(get_args(Action))


def test_every_reason_of_a_dead_letter_that_is_named_is_one_that_there_is() -> None:
    section = RUNBOOK.read_text().split("### StreamduelDeadLetterShare")[1].split("###")[0]
    named = set(re.findall(r"`(unknown_\w+|wrong_\w+|invalid_\w+|too_\w+)`", section))
    assert named
    assert named <= set(get_args(Reason))


def test_every_page_that_is_linked_is_there() -> None:
    for page in re.findall(r"\]\(([\w-]+\.md)", RUNBOOK.read_text()):
        assert (ROOT / "docs" / page).exists(), page
