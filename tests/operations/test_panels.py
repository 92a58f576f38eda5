"""Every panel and alert, queried from a real Prometheus that scrapes a running streamduel."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import pytest

from tests.operations.running import Feed, Service
from tests.operations.users import Users
from tests.prometheus.repository import RULES, alerts, dashboard, queries, substituted
from tests.prometheus.server import Prometheus, Series, serving

pytestmark = pytest.mark.slow

EXPERIMENTS: Final = {
    "search": {
        "arms": ["bm25", "ltr-v1", "ltr-v2"], "policy": {"name": "rucb"}, "join_window_ms": 1000,
    },
    "shop": {
        "arms": ["tfidf", "bm25", "dense"], "policy": {"name": "c2b", "horizon": 1_000_000},
        "guardrails": {"control_arm": "tfidf", "min_share": 0.1},
    },
}  # fmt: skip

NO_DATA_BECAUSE: Final = {
    ("search", "Share of guardrails"): "search has no guardrails",
    ("search", "Regret of guardrails"): "search has no guardrails",
    ("search", "Remaining duels of the batch"): "rucb works without batches",
    ("search", "Batch"): "rucb works without batches",
}
"""Panels that are empty for an experiment, with the reason."""

FEED_SECONDS: Final = 16.0
"""Seconds of data before queries: twice `RATE_INTERVAL`."""

RATE_INTERVAL: Final = "8s"
"""Grafana's $__rate_interval: four scrape intervals."""

PATIENCE: Final = 120.0
"""Until all queries have data; some twenty seconds on an idle machine."""

FAULT_EVERY: Final = 10
"""Every tenth time a record is faulty, of some 290: below the thresholds of alerts."""


class Shoppers:
    """Users of both experiments, with every kind of record."""

    def __init__(self) -> None:
        self._search = Users("search", seed=1)
        self._shop = Users("shop", seed=2)
        self._shown: list[str] = []
        self._times = itertools.count(1)

    def records(self) -> Iterator[dict[str, object] | bytes]:
        """Their records in a fifth of a second."""
        search, shop = self._search, self._shop
        for _ in range(4):
            yield search.interleaving("bm25", "ltr-v2", a_wins=0.2)
            yield search.interleaving("ltr-v1", "ltr-v2", a_wins=0.2)
            for a, b in (("bm25", "dense"), ("tfidf", "bm25"), ("tfidf", "dense")):
                yield shop.interleaving(a, b, a_wins=0.3)
            yield shop.record("duel", a="tfidf", b="tfidf", winner=None)
        yield search.record("duel", a="bm25", b="ltr-v1", winner="tie")
        yield shop.record("duel", a="bm25", b="dense", winner="tie")
        impression = search.impression("bm25", "ltr-v2")
        self._shown.append(impression["id"])
        yield impression
        yield search.click(impression["id"])
        yield shop.impression("bm25", "dense")
        if next(self._times) % FAULT_EVERY == 0:
            yield search.click(self._shown[0])  # late, once a second has passed
            yield b"no record"


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("panels")
    (folder / "prometheus").mkdir()
    users = Shoppers()
    service = Service(folder / "service", EXPERIMENTS)
    with (
        service,
        Feed(lambda: service.write(users.records())),
        serving(
            folder / "prometheus", {"streamduel-0": service.port}, RULES.read_text()
        ) as running,
    ):
        # All that panels show is there once the first click is late and rates have their samples.
        lasting = f'streamduel_records_total{{outcome="late"}} offset {FEED_SECONDS:.0f}s > 0'
        running.until(lambda: service.running() and bool(running.query(lasting)), PATIENCE)
        yield running


def asked(prometheus: Prometheus, name: str, chosen: dict[str, str]) -> dict[str, bool]:
    """For each panel of a dashboard, whether all its queries have data."""
    answered: defaultdict[str, bool] = defaultdict(lambda: True)
    for query in queries(name):
        expression = substituted(query.expression, {"__rate_interval": RATE_INTERVAL, **chosen})
        found = (
            prometheus.query(expression)
            if query.instant
            else prometheus.query_range(expression, seconds=4)
        )
        answered[query.panel] &= any(map(has_number, found))
    return dict(answered)


def has_number(series: Series) -> bool:
    return any(map(math.isfinite, series.values))


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_panels_of_an_experiment_have_data(prometheus: Prometheus, experiment: str) -> None:
    chosen = {"job": "streamduel", "experiment": experiment, "arm": ".*", "kind": "strong"}
    answered = asked(prometheus, "experiment", chosen)
    empty = {(experiment, panel) for panel, there in answered.items() if not there}
    assert empty == {each for each in NO_DATA_BECAUSE if each[0] == experiment}


def test_panels_of_the_service_have_data(prometheus: Prometheus) -> None:
    answered = asked(prometheus, "service", {"job": ".*", "instance": ".*"})
    assert [panel for panel, there in answered.items() if not there] == []


def test_the_panel_of_the_champion_names_one_of_the_rankers(prometheus: Prometheus) -> None:
    (query,) = (it for it in queries("experiment") if it.panel == "Champion")
    chosen = {"job": "streamduel", "experiment": "search"}
    (champion,) = prometheus.query(substituted(query.expression, chosen))
    assert champion.labels["arm"] == "ltr-v2"  # wins 80 % of some hundred duels


@pytest.mark.parametrize("name", ["experiment", "service"])
def test_variables_have_values(prometheus: Prometheus, name: str) -> None:
    chosen = {"experiment": "shop", "job": "streamduel"}
    offered = {}
    for variable in dashboard(name)["templating"]["list"]:
        if variable["type"] == "query":
            asked_for = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            assert asked_for
            selector, label = substituted(asked_for[1], chosen), asked_for[2]
            offered[variable["name"]] = prometheus.values(label, selector)
    assert (
        offered
        == {
            "experiment": {
                "job": ["streamduel"],
                "experiment": ["search", "shop"],
                "arm": ["bm25", "dense", "tfidf"],
                "kind": ["condorcet", "copeland", "strong", "weak"],
            },
            "service": {"job": ["streamduel"], "instance": ["streamduel-0"]},
        }[name]
    )


@pytest.mark.parametrize("alert", alerts())
def test_metrics_of_alerts_are_exported(prometheus: Prometheus, alert: str) -> None:
    expression = alerts()[alert]["expr"]
    prometheus.query(expression)  # or a sentence of Prometheus that says what is wrong with it
    selectors = re.findall(
        r"(?<![\w_])(?:up|(?:streamduel|process)_\w+)(?:\{[^}]*\})?|\{__name__[^}]*\}", expression
    )
    assert selectors
    assert [it for it in selectors if not prometheus.query(it)] == []


def test_no_alert_fires_for_a_healthy_service(prometheus: Prometheus) -> None:
    # What pends counts too: nothing fires so soon, but what an alert looks for is seen at once.
    amiss = prometheus.query('ALERTS{severity!="info"}')
    assert [it.labels["alertname"] for it in amiss] == []
