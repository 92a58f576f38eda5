"""The page of metrics is the one that prometheus_client writes, and less work."""

import math
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.exposition import choose_encoder

from streamduel.monitoring.assessments import FRESH_SECONDS
from streamduel.monitoring.exposition import Exposition
from streamduel.monitoring.metrics import Metrics
from streamduel.monitoring.reference import example
from streamduel.monitoring.views import ExperimentView, Guarded, PartitionView
from tests.prometheus.programs import program
from tests.unit.monitoring.fold import Clock, commit, config, duels, fold, task
from tests.unit.monitoring.served import Service

ARMS = ("bm25", "ltr", "dense")

ACCEPTS = [
    "",
    "text/plain;version=0.0.4",
    "text/plain;version=1.0.0;escaping=allow-utf-8",
    "text/plain;version=1.0.0;escaping=dots",
    "text/plain;version=ten",
    "application/openmetrics-text",
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;q=0.4",
    "application/openmetrics-text;version=1.0.0;escaping=underscores",
    "application/openmetrics-text;version=1.0.0;escaping=values",
    "application/openmetrics-text;version=2.0.0",
]

FAST = ACCEPTS[::6]  # text and OpenMetrics

(SEARCH,) = example().experiments()

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8) | st.sampled_from(
    ['"', "\\", "\n", 'a"b\\c\nd', "%r %s %", "{}", "# x", "\u2028\x85", " 1.0"]
)
NUMBERS = st.floats() | st.integers(0, 10**20) | st.sampled_from([1e-4, 1e-5, 999_999.5, 1e6, 1e16])


@st.composite
def views(draw: st.DrawFn) -> ExperimentView:
    """An experiment that nothing real could look like."""
    numbers: st.SearchStrategy[Any] = NUMBERS
    arms = draw(st.lists(texts, min_size=2, max_size=4, unique=True))
    luck = np.random.RandomState(draw(st.integers(0, 2**31)))
    wins = luck.randint(0, draw(st.sampled_from([1, 9, 10**7])), (len(arms), len(arms))) / 2.0
    np.fill_diagonal(wins, 0.0)
    return replace(
        SEARCH,
        name=draw(texts),
        arms=tuple(arms),
        wins=wins,
        alone=tuple(range(len(arms))),
        fought=tuple(draw(numbers) for _ in arms),
        champion=draw(st.integers(0, len(arms) - 1)),
        duels=draw(numbers),
        epoch=draw(numbers),
        candidates=draw(numbers),
        policy=draw(texts),
        stage=draw(texts),
        seeks=draw(st.sampled_from(["condorcet", "copeland"])),
        batch=draw(st.none() | st.tuples(numbers, numbers)),
        guardrails=draw(st.none() | st.builds(Guarded, numbers, st.just(((0, 1, 3), (1, 1, 4))))),
    )


def show(metrics: Metrics, experiments: Sequence[ExperimentView]) -> None:
    """Have these experiments among the figures, and no others."""
    named = {view.name: view for view in experiments}
    partition = PartitionView(0, 0.0, named, {"invalid_json": 2})
    metrics._figures = replace(example(), partitions={0: partition})


def _with(**change: Any) -> ExperimentView:
    return replace(SEARCH, **change)


def without_process(page: bytes) -> list[bytes]:
    """All lines; of those of the process, which goes on meanwhile, not the number."""
    return [re.sub(rb"^(\S*process_\S+) .*", rb"\1", line) for line in page.split(b"\n")]


def assert_as_the_library(page: Exposition, metrics: Metrics, accept: str) -> None:
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):
        encode, content_type = choose_encoder("")
    text, found = page.page(accept)
    assert found == content_type
    assert without_process(text) == without_process(encode(metrics.registry))


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("kafka", Clock())


@pytest.mark.parametrize("accept", ACCEPTS)
def test_the_page_is_that_of_the_library_in_every_format(metrics: Metrics, accept: str) -> None:
    page = Exposition(metrics)
    assert_as_the_library(page, metrics, accept)
    for _ in range(2):
        show(metrics, [SEARCH, replace(SEARCH, name="ads", batch=None, guardrails=None)])
        assert_as_the_library(page, metrics, accept)


@given(st.lists(st.lists(views(), max_size=2), min_size=1, max_size=3), st.sampled_from(FAST))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_the_figures_and_names_are_and_become(
    moments: list[list[ExperimentView]], accept: str
) -> None:
    clock = Clock()
    metrics = Metrics("kafka", clock)
    page = Exposition(metrics)
    for number, moment in enumerate(moments):
        show(metrics, [replace(view, records=number) for view in moment])
        clock.now += FRESH_SECONDS
        assert_as_the_library(page, metrics, accept)


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, -0.0, -2.5e7, 2.5e7, 1e-5, 0.0])
def test_numbers_that_json_and_go_write_differently(metrics: Metrics, number: float) -> None:
    show(metrics, [_with(duels=number)])
    assert_as_the_library(Exposition(metrics), metrics, "")


@pytest.mark.parametrize(
    "change",
    [
        {"arms": ("ltr-v3", "bm25", "ltr-v2")},
        {"policy": "auto"},
        {"stage": "rucb"},
        {"seeks": "copeland"},
        {"batch": None},
        {"guardrails": None},
        {"status": "paused"},
        {"champion": 1},
    ],
)
def test_labels_follow_the_experiment(metrics: Metrics, change: dict[str, object]) -> None:
    page = Exposition(metrics)
    show(metrics, [SEARCH])
    before, _ = page.page("")
    show(metrics, [_with(**change)])
    assert without_process(page.page("")[0]) != without_process(before)
    assert_as_the_library(page, metrics, "")


def test_what_is_not_of_experiments_is_followed_too(metrics: Metrics) -> None:
    page = Exposition(metrics)
    watched = task(config({"search": ARMS}))
    commit(metrics, watched)
    news: list[Callable[[], None]] = [
        lambda: metrics.polled(7),
        lambda: metrics.lagging({0: 5}),
        lambda: metrics.lagging({0: 5, 1: 2}),
        lambda: metrics.connection(source=True),
        metrics.fenced,
        lambda: metrics.restored(watched),
        lambda: metrics.lost([0]),
    ]
    for told in news:
        before, _ = page.page("")
        told()
        after, _ = page.page("")
        assert without_process(after) != without_process(before)
        assert_as_the_library(page, metrics, "")


def test_lines_are_made_once_and_go_with_their_experiment(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Exposition(metrics)
    made: list[str] = []
    text = page._formats[False]
    lines_of = text._lines_of

    def noted(view: ExperimentView) -> list[list[bytes]]:
        made.append(view.name)
        return lines_of(view)

    monkeypatch.setattr(text, "_lines_of", noted)
    watched = task(config({"search": ARMS, "ads": ARMS}))
    for number in range(3):
        fold(watched, *duels("search", number, "bm25", "ltr", "a"))
        commit(metrics, watched)
        page.page("")
    assert sorted(made) == ["ads", "search"]
    metrics.lost([0])
    page.page("")
    assert not text._lines, "a partition that has gone takes no memory"


def test_promtool_has_nothing_to_say_about_the_metrics_of_a_process() -> None:
    service = Service()
    try:
        rails, policy = {"max_share": 0.5}, {"name": "c2b", "horizon": 1000}
        watched = task(config({'a"b\\c\nd': ARMS, "ads": ARMS}, guardrails=rails, policy=policy))
        fold(watched, *duels("ads", 0, "bm25", "ltr", "aab"), b"nonsense")
        commit(service.monitoring.observer, watched)
        service.monitoring.observer.lagging({0: 5})
        page = service.get("/metrics").content
    finally:
        service.close()
    assert b"streamduel_stream_time_seconds" in page
    assert b"process_start_time_seconds" in page
    checked = subprocess.run(
        [program("promtool"), "check", "metrics"], input=page, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")
