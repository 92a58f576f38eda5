import re
import subprocess
import sys
from pathlib import Path

from streamduel.monitoring.catalogue import METRICS
from streamduel.monitoring.reference import reference

ROOT = Path(__file__).parents[3]


def test_the_page_is_what_the_declarations_say() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert page == reference(), (
        "docs/metrics.md is out of date: python -m streamduel.monitoring.reference docs/metrics.md"
    )


def test_every_metric_has_its_section_and_sample() -> None:
    page = reference()
    for metric in METRICS:
        section = page.split(f"## `{metric.name}`\n")[1].split("\n## ")[0]
        assert f"- type: {metric.kind}" in section
        (sample,) = re.findall(r"^```\n(.+)\n```$", section, re.MULTILINE)
        assert sample.startswith(metric.name)
        assert all(f'{label}="' in sample for label in metric.labels)


def test_questions_name_only_metrics_that_exist() -> None:
    names = {metric.name for metric in METRICS}
    assert set(re.findall(r"streamduel_\w+", reference())) <= names | {
        "streamduel_commit_seconds_bucket",
        "streamduel_poll_records_bucket",
    }


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    page = tmp_path / "metrics.md"
    command = [sys.executable, "-m", "streamduel.monitoring.reference", str(page)]
    subprocess.run(command, check=True, cwd=ROOT)
    assert page.read_text(encoding="utf-8") == reference()
