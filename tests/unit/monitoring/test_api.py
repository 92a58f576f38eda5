"""The API beyond `/api/experiments`: the matrix in counts, and the history."""

from __future__ import annotations

import csv
import html
import io
import json
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from streamduel.monitoring import api
from streamduel.monitoring.experiments_csv import COLUMNS
from streamduel.stream.tallies import Outcomes
from streamduel.testing import encode
from tests.unit.monitoring.fold import commit, config, duels, fold, task
from tests.unit.monitoring.served import Service
from tests.unit.monitoring.test_experiments import UNUSUAL

ARMS = ("bm25", "ltr", "dense")


def test_the_api_has_every_outcome_of_records() -> None:
    assert api.Tallies.__struct_fields__ == Outcomes.__struct_fields__


def answered(service: Service, path: str) -> dict[str, Any]:
    answer = service.get(path)
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def test_the_evidence_is_kept_for_the_next_answer(service: Service) -> None:
    watched = task(config({"search": ARMS}))
    fold(watched, *duels("search", 0, "bm25", "ltr", "bbbtbb"))
    commit(service.monitoring.observer, watched)
    evidence = answered(service, "/api/experiments")["experiments"]["search"]["evidence"]
    (view,) = service.monitoring.observer.figures.experiments()
    kept = vars(view.verdict).get("evidence")
    assert kept is not None, "or a thousand experiments are computed for each ranker service"
    assert dict(zip(ARMS, kept.tolist(), strict=True)) == evidence


def test_the_matrix_has_the_counts_with_the_best_arm_first(service: Service) -> None:
    watched = task(config({"search": ARMS}))
    fold(watched, *duels("search", 0, "bm25", "ltr", "bbbtbb"))
    fold(watched, *duels("search", 10, "dense", "ltr", "b"))
    commit(service.monitoring.observer, watched)
    found = answered(service, "/api/matrix/search")
    pairs = found.pop("pairs")
    assert found == {
        "experiment": "search",
        "of": 3,
        "arms": ["ltr", "dense", "bm25"],
        "wins": [[0.0, 1.0, 5.5], [0.0, 0.0, 0.0], [0.5, 0.0, 0.0]],
    }
    (view,) = service.monitoring.observer.figures.experiments()
    among = [ARMS.index(arm) for arm in found["arms"]]
    assert pairs == json.loads(msgspec.json.encode(list(view.verdict.pairs(ARMS, among))))
    assert pairs[1] | {"win_rate": None, "interval": None} == {
        "a": "ltr", "b": "bm25", "duels": 6, "wins_a": 5, "wins_b": 0, "ties": 1,
        "win_rate": None, "interval": None,
    }  # fmt: skip


def test_the_matrix_is_bounded(service: Service) -> None:
    arms = [f"arm{number}" for number in range(300)]
    watched = task(config({"search": arms}))
    fold(watched, *duels("search", 0, "arm250", "arm7", "aaa"))
    commit(service.monitoring.observer, watched)
    found = answered(service, "/api/matrix/search")
    assert found["of"] == 300
    assert len(found["arms"]) == len(found["wins"]) == len(found["wins"][0]) == api.MAX_MATRIX_ARMS
    assert found["arms"][0] == "arm250"


def test_the_history_ends_with_the_present_view(service: Service) -> None:
    watched = task(config({"search": ARMS}))
    commit(service.monitoring.observer, watched)
    for number in range(3):
        fold(watched, *duels("search", 10 * number, "bm25", "ltr", "bbbtb"))
        commit(service.monitoring.observer, watched)
        list(service.monitoring.history.update(service.monitoring.observer.figures))
    (view,) = service.monitoring.observer.figures.experiments()
    found = answered(service, "/api/history/search")
    assert (found["experiment"], found["kind"]) == ("search", "condorcet")
    assert [point["duels"] for point in found["points"]][-3:] == [5, 10, 15]
    last = found["points"][-1]
    assert last["champion_confidence"] == view.confidence
    assert last["champion_progress"] == view.verdict.progress > 0
    assert (last["regret"], last["regret_bound"]) == (
        view.regret["condorcet"],
        view.regret_bound["condorcet"],
    )


@pytest.mark.parametrize("name", UNUSUAL)
@pytest.mark.parametrize("what", ["matrix", "history"])
def test_an_experiment_may_be_called_anything(service: Service, what: str, name: str) -> None:
    commit(service.monitoring.observer, task(config({name: ARMS})))
    assert answered(service, f"/api/{what}/{quote(name, safe='')}")["experiment"] == name


@pytest.mark.parametrize("what", ["matrix", "history"])
def test_another_name_is_refused_in_a_sentence(service: Service, what: str) -> None:
    commit(service.monitoring.observer, task(config({"search": ARMS})))
    answer = service.get(f"/api/{what}/serch")
    assert answer.status_code == 404
    assert answer.json() == {
        "error": "experiment 'serch' is in no partition of this process; did you mean 'search'?"
    }


@pytest.mark.parametrize("path", ["experiments", "segments"])
def test_an_experiment_may_be_missing_because_its_partition_is(service: Service, path: str) -> None:
    def refused(status: int) -> str:
        answer = service.get(f"/api/{path}/ads")
        assert answer.status_code == status
        page = service.get("/experiments/ads")
        assert page.status_code == status
        assert ("No such experiment" in page.text) == (status == 404)
        sentence = str(answer.json()["error"])
        assert sentence[1:].rstrip(".") in html.unescape(page.text)
        return sentence

    assert refused(503) == "no partition is assigned to this process."
    observer, search = service.monitoring.observer, task(config({"search": ARMS}))
    observer.gained([0, 1])
    assert refused(503) == "partitions 0, 1 are being restored."
    observer.restored(search)
    commit(observer, search)
    assert refused(503) == "partition 1 is being restored."
    observer.lost([1])
    assert refused(404) == "experiment 'ads' is in no partition of this process."


def table(service: Service, path: str = "/api/experiments.csv") -> list[dict[str, str]]:
    answer = service.get(path)
    assert answer.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_the_table_of_experiments_as_csv(service: Service) -> None:
    names = ["search", "=cmd", "ads, old"]
    running = task(config(dict.fromkeys(names, ARMS), owner='team "x"'))
    fold(running, *duels("search", 0, "ltr", "bm25", "a" * 30))
    commit(service.monitoring.observer, running)
    rows = table(service)
    assert tuple(rows[0]) == tuple(COLUMNS)
    assert [row["experiment"] for row in rows] == ["'=cmd", "ads, old", "search"]
    assert (rows[2]["champion"], rows[2]["duels"], rows[2]["owner"]) == ("ltr", "30", 'team "x"')
    found = table(service, "/api/experiments.csv?sort=-duels&q=s")
    assert [row["experiment"] for row in found] == ["search", "ads, old"]


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_no_name_is_a_formula_of_a_spreadsheet(service: Service, begin: str) -> None:
    running = task(config({f"{begin}1": (f"{begin}a", f"{begin}b")}, owner=f"{begin}me"))
    commit(service.monitoring.observer, running)
    (row,) = table(service)
    for text in (row["experiment"], row["champion"], row["owner"]):
        assert text.startswith(f"'{begin}")


def test_examples_are_shown_as_text(service: Service) -> None:
    """Queries and documents come from users: they are neither markup nor control characters."""
    running = task(config({"search": ARMS}))
    shown = {
        "type": "interleaving", "experiment": "search", "a": "ltr", "b": "bm25",
        "query": "<script>alert(1)</script>\u202e", "teams": ["b", None, *"ab" * 5],
        "docs": ["<b>7</b>", "both", *(f"d{rank}" for rank in range(10))], "clicks": [0, 11, 11],
    }  # fmt: skip
    counted = {"type": "duels", "experiment": "search", "id": "n", "a": "ltr", "b": "bm25"}
    fold(
        running,
        encode({**counted, "wins_a": 510, "wins_b": 500, "ties": 0}),
        *(encode({**shown, "id": number}) for number in ("first", "second")),
    )
    commit(service.monitoring.observer, running)
    [found] = answered(service, "/api/examples/search")["examples"]
    assert (found["query"], found["winner"], found["clicks"]) == (shown["query"], "b", [0, 11])
    page = service.get("/experiments/search").text
    assert "<script>alert" not in page
    assert "\u202e" not in page
    for text in (
        "“<bdi>&lt;script&gt;alert(1)&lt;/script&gt;\\u202e</bdi>”",
        '<td></td>      <td class="clicked"><bdi>&lt;b&gt;7&lt;/b&gt;</bdi> <b>clicked</b></td>',
        '<td colspan="2" class=""><bdi>both</bdi></td>',
        "<bdi>bm25</bdi> <b>won</b>",
        "2 more ranks, clicked: 12<",
        "Record at offset 2<",
    ):
        assert text in page.replace("\n", "")
    assert service.get("/api/examples/nothing").status_code == 404


def test_the_record_of_an_experiment(service: Service) -> None:
    about = {
        "owner": "alice", "hypothesis": "ltr wins", "links": ["https://example.org/1"],
        "notes": "mobile only",
    }  # fmt: skip
    running = task(config({"search": ARMS}, **about))
    note = {"type": "control", "id": "n", "experiment": "search", "action": "note", "text": "hm"}
    fold(running, encode({**note, "actor": "bob"}))
    commit(service.monitoring.observer, running)
    found = answered(service, "/api/record/search")
    assert {key: found[key] for key in about} == about
    assert [it["event"] for it in found["timeline"]] == ["started", "note"]
    assert (found["timeline"][1]["text"], found["timeline"][1]["actor"]) == ("hm", "bob")
    page = service.get("/experiments/search").text
    for text in ("ltr wins", "https://example.org/1", "mobile only", "note: <bdi>hm</bdi>", "bob"):
        assert text in page
    assert service.get("/api/record/nothing").status_code == 404
