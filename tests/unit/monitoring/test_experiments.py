"""`/api/experiments`: the summary of each experiment, and that the client can follow it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from streamduel.client import Assignments, Draw
from streamduel.errors import MAX_COMPARED
from streamduel.testing import Record, encode
from tests.unit.client.bed import eventually
from tests.unit.monitoring.fold import STREAM_TIME, commit, config, duels, fold, scrape, task, value
from tests.unit.monitoring.served import Service

ARMS = ("bm25", "ltr", "dense")

UNUSUAL = (
    "a/b", "/", "a/", "../up", "Größe & Preis", "100 %", "%2F", "who?", "#1", "a+b", "two\nlines",
    "end\n", "\t", "🔎", "metrics", "x" * 256,
)  # fmt: skip


def impression(number: str) -> bytes:
    return encode(
        {"type": "impression", "experiment": "search", "id": number, "a": "bm25", "b": "ltr",
         "teams": ["a", "b"]}
    )  # fmt: skip


def click(number: str, on: str) -> bytes:
    return encode(
        {"type": "click", "experiment": "search", "id": number, "impression": on, "rank": 0}
    )


def control(action: str, **fields: str) -> bytes:
    return encode(
        {"type": "control", "experiment": "search", "id": action, "action": action, **fields}
    )


def shown(service: Service, path: str = "/api/experiments") -> dict[str, Any]:
    answer = service.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = json.loads(answer.content)
    assert found.keys() == {"experiments"}
    experiments: dict[str, Any] = found["experiments"]
    return experiments


def test_before_the_first_commit_there_is_nothing(service: Service) -> None:
    assert shown(service) == {}


def test_the_summary_of_an_experiment(service: Service) -> None:
    watched = task(config({"search": ARMS}, decide_every=10))
    fold(watched, *duels("search", 0, "bm25", "ltr", "bbbtbbabb"), b"{")
    fold(watched, *duels("search", 0, "bm25", "ltr", "a"), impression("i-1"), click("c-1", "?"))
    fold(watched, *duels("search", 10, "ltr", "dense", "a"))
    published = watched.take_commit().assignments[-1].value
    service.monitoring.observer.committed([watched], 0.02)
    answer = service.get("/api/experiments")
    assert b'"search":{"assignment":' + published + b"," in answer.content
    found = shown(service)["search"]
    (view,) = service.monitoring.observer.figures.experiments()
    metrics = scrape(service.monitoring.observer.registry)
    assert found == {
        "assignment": json.loads(published),
        "status": "running",
        "policy": "top_two",
        "stage": "top_two",
        "champion": "ltr",
        "champion_confidence": value(metrics, "champion_confidence", experiment="search"),
        "epoch": found["assignment"]["epoch"],
        "duels": 10,
        "arms": ["bm25", "ltr", "dense"],
        "copeland_scores": {"bm25": 0.0, "ltr": 1.0, "dense": 0.0},
        "tallies": {
            "accepted": 11,
            "duplicate": 1,
            "dead_letter": 0,
            "late": 0,
            "unjoined": 0,
            "capped": 0,
        },
        "open": {"impressions": 1, "clicks": 1},
        "champion_progress": value(metrics, "champion_progress", experiment="search"),
        "champion_decided": True,
        "evidence": dict(zip(ARMS, view.verdict.evidence.tolist(), strict=True)),
        "evidence_required": view.verdict.required,
        "settings_differ": [],
        "impressions_per_client": None,
        "forecast": {"seconds": None, "low": None, "high": None, "why_not": "computing"},
    }
    assert 0 < found["champion_progress"] < 1


def test_an_address_with_a_name_returns_one_experiment(service: Service) -> None:
    commit(service.monitoring.observer, task(config({"search": ARMS, "ads": ("x", "y")})))
    everything = shown(service)
    assert list(everything) == ["ads", "search"]
    assert shown(service, "/api/experiments/ads") == {"ads": everything["ads"]}


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_experiment_may_be_called_anything(service: Service, name: str) -> None:
    commit(service.monitoring.observer, task(config({name: ARMS, "end": ARMS, "a": ARMS})))
    path = f"/api/experiments/{quote(name, safe='')}"
    assert shown(service, path) == {name: shown(service)[name]}
    with Assignments.from_url(str(service.client.base_url.join(path)), every=0.01) as assignments:
        assert assignments.wait_for(name)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("serch", "'serch' is in no partition of this process; did you mean 'search'?"),
        ("", "'' is in no partition of this process."),
        ("%FF%00", "'\ufffd\x00' is in no partition of this process."),
        ("y" * 300, f"'{'y' * 80}' is in no partition of this process."),
    ],
)
def test_another_name_is_refused_in_a_sentence(service: Service, path: str, sentence: str) -> None:
    commit(service.monitoring.observer, task(config({"search": ARMS})))
    answer = service.get(f"/api/experiments/{path}")
    assert answer.status_code == 404
    assert answer.json() == {"error": f"experiment {sentence}"}


def test_a_wrong_name_is_not_compared_with_thousands(service: Service) -> None:
    names = [f"search{number}" for number in range(MAX_COMPARED + 1)]
    commit(service.monitoring.observer, task(config(dict.fromkeys(names, ARMS))))
    answer = service.get("/api/experiments/search")
    assert answer.json() == {"error": "experiment 'search' is in no partition of this process."}


def test_the_experiments_of_a_lost_partition_are_removed(service: Service) -> None:
    metrics = service.monitoring.observer
    commit(metrics, task(config({"search": ARMS})), task(config({"ads": ("x", "y")}), partition=1))
    assert list(shown(service)) == ["ads", "search"]
    metrics.lost([1])
    assert list(shown(service)) == ["search"]


def test_the_same_is_shown_after_a_restart(service: Service) -> None:
    metrics, configured = service.monitoring.observer, config({"search": ARMS}, decide_every=3)
    values = [*duels("search", 0, "bm25", "ltr", "abbtb"), impression("i-1"), click("c-1", "?")]
    log = [Record(at, value, STREAM_TIME + at) for at, value in enumerate(values)]
    watched = task(configured)
    watched.fold(log)
    entries = watched.take_commit().entries
    metrics.committed([watched], 0.02)
    before = shown(service)
    assert before["search"]["open"] == {"impressions": 1, "clicks": 1}

    metrics.lost([0])
    again = task(configured, entries=entries)
    metrics.restored(again)
    assert shown(service) == before
    assert again.resume_offset == 0, "what is open must be read again"
    again.fold(log)
    metrics.reread(again)
    assert shown(service) == before
    again.fold([Record(len(log), b"not of this experiment", STREAM_TIME)])
    commit(metrics, again)
    assert shown(service) == before
    (view,) = metrics.figures.experiments()
    assert not view.active, "it has had no record since"


def test_it_is_followed_by_the_client(service: Service) -> None:
    metrics, watched = service.monitoring.observer, task(config({"search": ("x", "y")}))
    commit(metrics, watched)
    url = str(service.client.base_url.join("/api/experiments"))
    with Assignments.from_url(url, every=0.01) as assignments:
        assert assignments.wait_for("search")
        assert assignments.draw("search").epoch == 1
        fold(watched, *duels("search", 0, "x", "y", "aaaaa"), control("pause"))
        commit(metrics, watched)
        (last,) = (view.epoch for view in metrics.figures.experiments())
        eventually(lambda: assignments.draw("search") == Draw("x", "x", last))
        metrics.lost([0])
        eventually(lambda: assignments.age("search") > 0.05)
        assert assignments.draw("search") == Draw("x", "x", last), "the last one holds"
