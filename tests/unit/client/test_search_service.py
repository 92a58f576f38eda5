"""The example docs/examples/search_service.py."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from streamduel.client import Assignments, EventLog
from streamduel.client.feeds import FileFeed
from tests.unit.client.bed import alone, eventually, record

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "search_service.py"

Visit = Callable[[httpx.AsyncClient], Awaitable[None]]


@pytest.fixture
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("search_service", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Files:
    """What streamduel writes and what the service writes."""

    def __init__(self, folder: Path) -> None:
        self.assignments = folder / "assignments.jsonl"
        self.clicks = folder / "clicks.jsonl"

    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.clicks.read_text().splitlines()]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    files = Files(tmp_path)
    monkeypatch.delenv("KAFKA", raising=False)
    monkeypatch.setenv("ASSIGNMENTS", str(files.assignments))
    monkeypatch.setenv("CLICKS", str(files.clicks))
    monkeypatch.setattr(FileFeed, "every", 0.01)
    monkeypatch.setattr("streamduel.client.feeds.FIRST_PAUSE", 0.01)
    return files


def serve(example: ModuleType, visit: Visit) -> None:
    """Run the service during a test."""

    async def live() -> None:
        transport = httpx.ASGITransport(app=example.app)
        async with (
            example.app.router.lifespan_context(example.app),
            httpx.AsyncClient(transport=transport, base_url="http://search") as browser,
        ):
            await visit(browser)

    asyncio.run(live())


async def search(browser: httpx.AsyncClient, query: str, **more: Any) -> dict[str, Any]:
    answer = await browser.get("/search", params={"query": query, "session": "s1", **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_lists_are_interleaved_and_clicks_are_logged(example: ModuleType, files: Files) -> None:
    both = record(3, {("words", "votes"): 1.0}, experiment="recipes")
    files.assignments.write_text(both + "\n")

    async def visit(browser: httpx.AsyncClient) -> None:
        assert example.client["assignments"].wait_for("recipes")
        first = await search(browser, "onion pie")
        second = await search(browser, "onion pie", page=1, impression=first["impression"])
        assert (first["rank"], second["rank"]) == (0, 3)
        assert first["impression"] == second["impression"]
        assert sorted(first["results"] + second["results"]) == sorted(example.by_words("onion pie"))
        for rank in (1, 4):
            where = {"impression": first["impression"], "rank": rank}
            assert (await browser.post("/click", params=where)).status_code == 204

    serve(example, visit)
    shown, one, other = files.logged()
    assert (shown["type"], shown["a"], shown["b"], shown["epoch"]) == (
        "impression", "words", "votes", 3
    )  # fmt: skip
    assert sorted(shown["docs"]) == sorted(example.by_words("onion pie"))
    assert [(click["type"], click["rank"]) for click in (one, other)] == [
        ("click", 1),
        ("click", 4),
    ]
    assert {click["impression"] for click in (one, other)} == {shown["id"]}


def test_before_the_first_assignment_the_default_ranker_is_served(
    example: ModuleType, files: Files
) -> None:
    async def visit(browser: httpx.AsyncClient) -> None:
        found = await search(browser, "lemon cake")
        assert found["results"] == example.by_words("lemon cake")[:3]
        files.assignments.write_text(alone("votes", 1, experiment="recipes") + "\n")
        eventually(lambda: example.client["assignments"].draw("recipes").epoch == 1)
        found = await search(browser, "lemon cake")
        assert found["results"] == example.by_votes("lemon cake")[:3]
        assert found["impression"] is None
        found = await search(browser, "lemon cake", page=1)
        assert found["results"] == example.by_votes("lemon cake")[3:]

    serve(example, visit)
    assert [(each["type"], each["a"], each["b"], each["winner"]) for each in files.logged()] == [
        ("duel", "words", "words", None), ("duel", "votes", "votes", None)
    ]  # fmt: skip


def test_instead_of_a_pair_that_it_lacks_the_service_serves_one_ranker(
    example: ModuleType, files: Files
) -> None:
    files.assignments.write_text(record(3, {("votes", "new"): 1.0}, experiment="recipes") + "\n")

    async def visit(browser: httpx.AsyncClient) -> None:
        assert example.client["assignments"].wait_for("recipes")
        found = await search(browser, "lemon cake")
        assert found["results"] == example.by_words("lemon cake")[:3]
        assert found["impression"] is None

    serve(example, visit)
    assert [(each["type"], each["a"], each["b"]) for each in files.logged()] == [
        ("duel", "words", "words")
    ]


def test_a_search_without_results_is_not_logged(example: ModuleType, files: Files) -> None:
    both = record(3, {("words", "votes"): 1.0}, experiment="recipes")
    files.assignments.write_text(both + "\n")

    async def visit(browser: httpx.AsyncClient) -> None:
        assert example.client["assignments"].wait_for("recipes")
        found = await search(browser, "sushi", impression="i-1")
        assert found == {"impression": None, "rank": 0, "results": []}

    serve(example, visit)
    assert files.logged() == []


@pytest.mark.parametrize("wrong", [{"impression": "i" * 257}, {"page": -1}, {"page": 4}])
def test_an_invalid_search_is_a_client_error(
    example: ModuleType, files: Files, wrong: dict[str, Any]
) -> None:
    async def visit(browser: httpx.AsyncClient) -> None:
        asked = {"query": "soup", "session": "s", **wrong}
        assert (await browser.get("/search", params=asked)).status_code == 422

    serve(example, visit)
    assert files.logged() == []


@pytest.mark.parametrize(
    ("where", "status"),
    [
        ({"impression": "i", "rank": "12"}, 422), ({"impression": "i", "rank": "-1"}, 422),
        ({"impression": "", "rank": "0"}, 400), ({"impression": "i" * 257, "rank": "0"}, 400),
    ],
)  # fmt: skip
def test_an_invalid_click_is_a_client_error(
    example: ModuleType, files: Files, where: dict[str, str], status: int
) -> None:
    async def visit(browser: httpx.AsyncClient) -> None:
        assert (await browser.post("/click", params=where)).status_code == status

    serve(example, visit)
    assert files.logged() == []


def test_with_kafka_the_service_reads_and_writes_kafka(
    example: ModuleType, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def from_kafka(servers: str, **options: Any) -> Assignments:
        opened.append(("assignments", servers))
        return Assignments.from_file(files.assignments, **options)

    def to_kafka(servers: str) -> EventLog:
        opened.append(("clicks", servers))
        return EventLog.to_file(files.clicks)

    monkeypatch.setenv("KAFKA", "broker:9092")
    monkeypatch.setattr(Assignments, "from_kafka", from_kafka)
    monkeypatch.setattr(EventLog, "to_kafka", to_kafka)

    async def visit(browser: httpx.AsyncClient) -> None:
        await search(browser, "soup")

    serve(example, visit)
    assert opened == [("assignments", "broker:9092"), ("clicks", "broker:9092")]
    assert [each["type"] for each in files.logged()] == ["duel"]
