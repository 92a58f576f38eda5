"""The page of metrics: formats, and a bounded share of a core however often it is scraped."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.exposition import CHEAP_SECONDS, REUSE, Exposition
from streamduel.monitoring.reference import example
from streamduel.monitoring.view_parts import GuardrailEffect
from streamduel.monitoring.views import ExperimentView, PartitionView
from tests.unit.monitoring.fold import Clock, commit, config, parse, task, value

ARMS = ("bm25", "ltr", "dense")
(SEARCH,) = example().experiments()

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8) | st.sampled_from(
    ['"', "\\", "\n", 'a"b\\c\nd', "%r %s %", "{}", "# x", "\u2028\x85", " 1.0"]
)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("kafka", Clock())


@st.composite
def views(draw: st.DrawFn) -> ExperimentView:
    """An experiment with unusual names and numbers."""
    numbers: st.SearchStrategy[Any] = st.integers(0, 10**20) | st.sampled_from([1e-5, 1e16])
    arms = draw(st.lists(texts, min_size=2, max_size=4, unique=True))
    rng = np.random.RandomState(draw(st.integers(0, 2**31)))
    wins = rng.randint(0, draw(st.sampled_from([1, 9, 10**7])), (len(arms), len(arms))) / 2.0
    np.fill_diagonal(wins, 0.0)
    return replace(
        SEARCH,
        name=draw(texts),
        arms=tuple(arms),
        wins=wins,
        alone=tuple(range(len(arms))),
        arm_duels=tuple(draw(numbers) for _ in arms),
        champion=draw(st.integers(0, len(arms) - 1)),
        duels=draw(numbers),
        epoch=draw(numbers),
        policy=draw(texts),
        stage=draw(texts),
        batch=draw(st.none() | st.tuples(numbers, numbers)),
        guardrails=draw(
            st.none() | st.builds(GuardrailEffect, numbers, st.just(((0, 1, 3), (1, 1, 4))))
        ),
    )


@given(views())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_name_and_number_can_be_read_back_in_both_formats(view: ExperimentView) -> None:
    metrics = Metrics("kafka", Clock())
    partition = PartitionView(0, 0.0, {view.name: view}, {"invalid_json": 2})
    metrics._figures = replace(example(), partitions={0: partition})
    exposition = Exposition(metrics.registry)
    text, _ = exposition.page("")
    samples = parse(text.decode())
    assert value(samples, "duels_total", experiment=view.name) == float(view.duels)
    for arm, duels_of_arm in zip(view.arms, view.arm_duels, strict=True):
        assert value(samples, "arm_duels_total", experiment=view.name, arm=arm) == float(
            duels_of_arm
        )
    openmetrics, _ = exposition.page("application/openmetrics-text")
    families = text_string_to_metric_families(openmetrics.decode())  # type: ignore[no-untyped-call]
    assert sum(len(family.samples) for family in families) == len(samples)


class TestReuse:
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    def exposition(self, metrics: Metrics, clock: Clock, *spent: float) -> Exposition:
        """An exposition whose renderings take so long."""

        def readings() -> Iterator[float]:
            for seconds in spent:
                yield from (0.0, seconds)

        readings_left = readings()
        return Exposition(metrics.registry, clock, lambda: next(readings_left))

    def test_a_cheap_page_is_rendered_for_each_request(
        self, metrics: Metrics, clock: Clock
    ) -> None:
        exposition = self.exposition(metrics, clock, CHEAP_SECONDS, CHEAP_SECONDS)
        before, _ = exposition.page("")
        metrics.polled(7)
        assert exposition.page("")[0] != before

    def test_an_expensive_page_takes_a_bounded_share_of_a_core(
        self, metrics: Metrics, clock: Clock
    ) -> None:
        exposition = self.exposition(metrics, clock, 0.5, 0.5)
        before, content_type = exposition.page("")
        metrics.polled(7)
        clock.now += 0.99 * REUSE * 0.5
        assert exposition.page("") == (before, content_type)
        clock.now += 0.01 * REUSE * 0.5
        assert exposition.page("")[0] != before

    def test_formats_are_kept_apart(self, metrics: Metrics, clock: Clock) -> None:
        exposition = self.exposition(metrics, clock, 0.5, 0.5)
        text, _ = exposition.page("")
        openmetrics, content_type = exposition.page("application/openmetrics-text")
        assert openmetrics.endswith(b"# EOF\n")
        assert content_type.startswith("application/openmetrics-text")
        assert exposition.page("")[0] == text


def test_series_of_lost_partitions_are_removed(metrics: Metrics) -> None:
    exposition = Exposition(metrics.registry)
    watched = task(config({"search": ARMS, "ads": ARMS}))
    commit(metrics, watched)
    labels = {label for _, found in parse(exposition.page("")[0].decode()) for label in found}
    assert {("experiment", "search"), ("experiment", "ads")} <= labels
    metrics.lost([0])
    labels = {label for _, found in parse(exposition.page("")[0].decode()) for label in found}
    assert not [name for name, _ in labels if name == "experiment"]
