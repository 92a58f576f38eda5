"""The overview: searched, sorted and paged, with any number of experiments."""

from __future__ import annotations

import time
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.history import History
from streamduel.monitoring.outlook import SURE, Outlook
from streamduel.monitoring.page.overview import (
    COLUMNS,
    MAX_SEARCH_LENGTH,
    PAGE_ROWS,
    Overview,
    Query,
    Row,
    overview,
)
from streamduel.monitoring.page.wording import last_record
from tests.unit.monitoring.fold import Clock, commit, config, duels, fold, task

ARMS = ("bm25", "ltr", "dense")


class Watched:
    """Some experiments with their monitoring."""

    def __init__(self, *names: str) -> None:
        self.clock = Clock()
        self.metrics, self.history = Metrics("files", self.clock), History()
        self.task = task(config(dict.fromkeys(names, ARMS), policy={"name": "rucb"}))
        self.commit()

    def commit(self) -> None:
        commit(self.metrics, self.task)
        list(self.history.update(self.metrics.figures))

    def fold(self, *records: bytes) -> None:
        fold(self.task, *records)
        self.commit()

    def shown(self, **query: str) -> Overview:
        return overview(self.metrics.figures, self.history, Query.parse(query))

    def last_record(self, row: Row) -> str:
        return last_record(row.view, self.metrics.figures)

    def names(self, **query: str) -> list[str]:
        return [row.view.name for row in self.shown(**query).rows]


def control(experiment: str, action: str) -> bytes:
    return (
        f'{{"type":"control","id":"{experiment}-{action}","experiment":"{experiment}",'
        f'"action":"{action}"}}'
    ).encode()


@pytest.fixture
def watched() -> Watched:
    made = Watched("Search", "ads", "größe")
    made.fold(*duels("ads", 0, "bm25", "ltr", "b" * 80), *duels("größe", 0, "bm25", "ltr", "aaa"))
    made.fold(*duels("ads", 100, "dense", "ltr", "b" * 80), control("größe", "pause"))
    return made


def test_a_row_has_the_state_of_an_experiment(watched: Watched) -> None:
    row = watched.shown().rows[0]
    view = row.view
    assert (view.name, view.status, view.arms[view.champion]) == ("ads", "running", "ltr")
    assert (view.duels, view.policy) == (160, "rucb")
    assert row.confidence == pytest.approx(view.confidence)
    assert view.confidence > 0.99
    assert watched.last_record(row).startswith("0")
    assert view.tallies["dead_letter"] == 0


def test_sort_by_dead_letters(watched: Watched) -> None:
    watched.fold(*duels("Search", 0, "nobody", "ltr", "aa"), *duels("ads", 900, "x", "ltr", "a"))
    assert [
        (row.view.name, row.view.tallies["dead_letter"]) for row in watched.shown(sort="-dead").rows
    ] == [("Search", 2), ("ads", 1), ("größe", 0)]


def test_names_are_sorted_ignoring_case(watched: Watched) -> None:
    assert watched.names() == ["ads", "größe", "Search"]
    assert watched.names(sort="-name") == ["Search", "größe", "ads"]


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("-duels", ["ads", "größe", "Search"]),
        ("duels", ["Search", "größe", "ads"]),
        ("-confidence", ["ads", "Search", "größe"]),
        ("status", ["größe", "ads", "Search"]),
        ("-epoch", ["ads", "größe", "Search"]),
        ("nonsense", ["ads", "größe", "Search"]),
    ],
)
def test_any_column_sorts(watched: Watched, sort: str, names: list[str]) -> None:
    found = watched.names(sort=sort)
    assert found[0] == names[0]
    assert sorted(found) == sorted(names)
    if "duels" in sort:
        assert found == names


def test_sort_by_last_record() -> None:
    watched = Watched("a", "b", "c")
    for name in ("c", "a", "b"):
        watched.clock.now += 60
        watched.fold(*duels(name, 0, "bm25", "ltr", "a"))
    assert watched.names(sort="-seen") == ["c", "a", "b"]
    assert watched.names(sort="seen") == ["b", "a", "c"]
    assert [watched.last_record(row)[0] for row in watched.shown(sort="seen").rows] == [
        "0",
        "1",
        "2",
    ]


def test_the_last_record_before_a_restart_is_unknown() -> None:
    watched = Watched("a", "b")
    assert {watched.last_record(row) for row in watched.shown().rows} == {"none yet"}
    watched.fold(*duels("a", 0, "bm25", "ltr", "a"), *duels("b", 0, "bm25", "ltr", "a"))
    watched.metrics = Metrics("files", watched.clock)
    watched.commit()
    watched.clock.now += 7200
    watched.fold(*duels("a", 10, "bm25", "ltr", "a"))
    assert [watched.last_record(row).replace("\u202f", " ") for row in watched.shown().rows] == [
        "0 s ago", "none since the restart",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"q": "A"}, ["ads", "Search"]),
        ({"q": "GRÖSSE"}, ["größe"]),
        ({"q": "nowhere"}, []),
        ({"q": "LTR"}, ["ads"]),
        ({"status": "paused"}, ["größe"]),
        ({"status": "running"}, ["ads", "Search"]),
        ({"status": "running", "q": "sea"}, ["Search"]),
        ({"status": "lost"}, ["ads", "größe", "Search"]),
    ],
)
def test_search_and_filter(watched: Watched, query: dict[str, str], names: list[str]) -> None:
    assert watched.names(**query) == names


def test_a_heading_sorts_by_its_column_then_reverses(watched: Watched) -> None:
    for column in COLUMNS:
        first = next(each for each in watched.shown(q="s").headings if each.column == column)
        query = dict(parse_qsl(urlsplit(first.address).query))
        assert query["q"] == "s"
        again = next(each for each in watched.shown(**query).headings if each.column == column)
        assert again.sorted in {"ascending", "descending"}
        back = dict(parse_qsl(urlsplit(again.address).query))
        once_more = watched.shown(**back).headings
        assert {again.sorted, next(e for e in once_more if e.column == column).sorted} == {
            "ascending", "descending",
        }  # fmt: skip


def test_the_soonest_sure_comes_first_and_the_unknown_last() -> None:
    watched = Watched("a", "b", "c")
    watched.metrics.forecasts.outlooks = {
        "a": Outlook.unknown("no_end"), "b": Outlook(500.0, 100.0, 900.0), "c": SURE,
    }  # fmt: skip
    assert [row.view.name for row in watched.shown(sort="sure").rows] == ["c", "b", "a"]


def test_a_thousand_experiments_are_paged_and_cheap() -> None:
    watched = Watched(*(f"search-{number:04d}" for number in range(1000)))
    first = watched.shown()
    assert (len(first.rows), first.found, first.previous) == (PAGE_ROWS, 1000, None)
    seen, page = list(first.rows), first
    while page.next is not None:
        page = watched.shown(**dict(parse_qsl(urlsplit(page.next).query)))
        assert page.first == len(seen) + 1
        seen += page.rows
    assert [row.view.name for row in seen] == [f"search-{number:04d}" for number in range(1000)]
    assert watched.shown(page="1000000").rows == page.rows, "the last one there is"
    began = time.thread_time()
    watched.shown(sort="-confidence", q="search")
    assert time.thread_time() - began < 0.03


def test_the_page_computes_no_costly_figures() -> None:
    watched = Watched("search")
    fold(watched.task, *duels("search", 0, "bm25", "ltr", "b" * 80))
    commit(watched.metrics, watched.task)
    watched.shown(sort="confidence")
    (view,) = watched.metrics.figures.experiments()
    assert not {"confidence", "regret_bound", "regret"} & vars(view).keys()


def test_confidence_is_unknown_before_the_first_update() -> None:
    metrics = Metrics("files")
    commit(metrics, task(config({"search": ARMS})))
    (row,) = overview(metrics.figures, History(), Query()).rows
    assert row.confidence is None


@given(st.dictionaries(st.sampled_from(["q", "status", "sort", "page"]), st.text()))
def test_any_query_is_parsed(query: dict[str, str]) -> None:
    parsed = Query.parse(query)
    assert parsed.page >= 1
    assert len(parsed.q) <= MAX_SEARCH_LENGTH
    assert Query.parse(dict(parse_qsl(urlsplit(parsed.address).query))) == parsed
