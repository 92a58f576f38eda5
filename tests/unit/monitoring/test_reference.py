import re
import subprocess
import sys
from pathlib import Path

from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.exposition import Exposition
from streamduel.monitoring.metrics import METRICS
from streamduel.monitoring.reference import PROCESS_METRICS, reference
from tests.unit.monitoring.fold import Clock, commit, config, duels, fold, parse, task

ROOT = Path(__file__).parents[3]


def test_the_page_is_up_to_date() -> None:
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
    named = {*re.findall(r"`(process_[a-z_]+)", reference())}
    assert named == {name for name, *_ in PROCESS_METRICS}
    assert set(re.findall(r"streamduel_\w+", reference())) <= names | {
        "streamduel_commit_seconds_bucket",
        "streamduel_poll_records_bucket",
    }


def test_the_formula_gives_the_number_of_series_of_a_real_page() -> None:
    formula = re.search(
        r"(\d+) series per process, (\d+) of them `process_…`, (\d+) per partition,\s"
        r"(\d+) per experiment and (\d+) per arm",
        reference(),
    )
    assert formula is not None
    process, of_them, partition, experiment, arm = map(int, formula.groups())
    numbers = [2, 5, 9]  # of arms
    policy, rails = {"name": "c2b", "horizon": 1000}, {"max_share": 0.5}
    arms = {f"e{n_arms}": [f"arm{each}" for each in range(n_arms)] for n_arms in numbers}
    metrics = Metrics("kafka", Clock())
    watched = task(config(arms, policy=policy, guardrails=rails))
    fold(watched, *duels("e5", 0, "arm1", "arm2", "ab"))
    commit(metrics, watched)
    metrics.lagging({0: 5})
    metrics.stable_offset_lagging({0: 0})
    series = parse(Exposition(metrics.registry).page("")[0].decode())
    assert len(series) == process + partition + experiment * len(numbers) + arm * sum(numbers)
    assert len([name for name, _ in series if name.startswith("process_")]) == of_them


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    page = tmp_path / "metrics.md"
    command = [sys.executable, "-m", "streamduel.monitoring.reference", str(page)]
    subprocess.run(command, check=True, cwd=ROOT)
    assert page.read_text(encoding="utf-8") == reference()
