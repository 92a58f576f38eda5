"""What takes arithmetic is worked out seldom, and never too late."""

from dataclasses import replace
from typing import Any

import pytest

from streamduel.monitoring import assessments
from streamduel.monitoring.assessments import FRESH_SECONDS, MOST_PER_SECOND, Assessments
from streamduel.monitoring.exposition import Exposition
from streamduel.monitoring.metrics import Metrics
from streamduel.monitoring.reference import example
from streamduel.monitoring.views import Assessment, ExperimentView
from tests.unit.monitoring.fold import Clock, commit, config, duels, fold, parse, task, value

(SEARCH,) = example().experiments()
ARMS = ("bm25", "ltr", "dense")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The experiments that were assessed, in order."""
    names: list[str] = []
    hold = assessments._hold

    def noted(view: ExperimentView, now: float) -> Any:
        names.append(view.name)
        return hold(view, now)

    monkeypatch.setattr(assessments, "_hold", noted)
    return names


def views(number: int, records: int, **change: Any) -> list[ExperimentView]:
    """Experiments that are alike."""
    fields: dict[str, Any] = {"records": records, "wins": SEARCH.wins * (1 + records), **change}
    return [replace(SEARCH, name=f"e{each}", **fields) for each in range(number)]


def test_a_new_experiment_is_assessed_at_once(made: list[str]) -> None:
    kept = Assessments()
    first = views(3, records=1)
    assert kept.of(first, 100.0) == [view.assessment for view in first]
    assert made == ["e0", "e1", "e2"]


def test_one_that_stands_still_is_assessed_once(made: list[str]) -> None:
    kept = Assessments()
    for now in range(100, 200):
        kept.of(views(3, records=1), float(now))
    assert len(made) == 3


def test_one_that_changes_is_assessed_when_it_is_due(made: list[str]) -> None:
    kept = Assessments()
    found: list[Assessment] = []
    for second in range(31):
        found += kept.of(views(1, records=second), 100.0 + second)
    assert len(made) == 1 + 30 // FRESH_SECONDS
    assert found[9] == found[0]
    assert found[10] == views(1, records=10)[0].assessment


def test_the_last_state_is_assessed_soon_after_the_last_change() -> None:
    kept = Assessments()
    kept.of(views(1, records=1), 100.0)
    last = views(1, records=2)
    assert kept.of(last, 100.5) != [last[0].assessment]
    assert kept.of(last, 100.0 + FRESH_SECONDS) == [last[0].assessment]


@pytest.mark.parametrize(
    "change",
    [{"champion": 1}, {"arms": ("x", "y", "z")}, {"seeks": "copeland"}, {"guardrails": None}],
)
def test_one_with_another_champion_or_other_arms_is_assessed_at_once(
    change: dict[str, Any],
) -> None:
    kept = Assessments()
    kept.of(views(1, records=1), 100.0)
    (changed,) = views(1, records=2, **change)
    assert kept.of([changed], 100.5) == [changed.assessment]


def test_after_a_pause_all_that_are_due_are_made(made: list[str]) -> None:
    kept, number = Assessments(), 5 * MOST_PER_SECOND
    kept.of(views(number, records=1), 100.0)
    made.clear()
    kept.of(views(number, records=2), 115.0)
    assert len(made) == number


def test_scrapes_in_quick_succession_share_what_is_allowed(made: list[str]) -> None:
    kept, number = Assessments(), 5 * MOST_PER_SECOND
    kept.of(views(number, records=0), 100.0)
    kept.of(views(number, records=0), 109.5)
    made.clear()
    counts: list[int] = []
    for step in range(1, 12):
        kept.of(views(number, records=step), 109.5 + step / 2)
        counts.append(len(made) - sum(counts))
    assert max(counts) == counts[0] == MOST_PER_SECOND
    assert set(counts[1:-2]) == {MOST_PER_SECOND // 2}
    assert len(made) == len(set(made)) == number, "all had their turn, and none had two"


def test_what_is_gone_takes_no_memory() -> None:
    kept = Assessments()
    kept.of(views(3, records=1), 100.0)
    kept.of([], 101.0)
    assert not kept._held


def test_on_the_page_counters_are_fresh_and_regret_follows() -> None:
    clock = Clock()
    metrics = Metrics("kafka", clock)
    page = Exposition(metrics)

    def figure(name: str, **labels: str) -> float:
        return value(parse(page.page("")[0].decode()), name, experiment="search", **labels)

    watched = task(config({"search": ARMS}))
    fold(watched, *duels("search", 0, "ltr", "bm25", "aaab"))
    commit(metrics, watched)
    regret = {"kind": "strong", "bound": "estimate"}
    assert (figure("duels_total"), figure("regret", **regret)) == (4, 1.0)
    fold(watched, *duels("search", 10, "ltr", "bm25", "aaaabbaa"))
    commit(metrics, watched)
    assert (figure("duels_total"), figure("regret", **regret)) == (12, 1.0)
    clock.now += FRESH_SECONDS
    assert (figure("duels_total"), figure("regret", **regret)) == (12, 3.0)
