"""The examples of docs/client.md."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import streamduel
from streamduel.client import Assignments, EventLog, InMemoryFeed
from streamduel.client.assignment import stable_fraction
from tests.unit.client.bed import PATIENCE, eventually, record

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "client.md").read_text()
README = (ROOT / "client" / "README.md").read_text()
UNKNOWN = record(17, {("bm25", "new"): 1.0})
"""A pair with an arm that the service does not have."""

FIRST, SECURITY, TESTING = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(
    ("records", "logged"),
    [((), ["duel"]), ((record(),), ["impression", "click"]), ((UNKNOWN,), ["duel"])],
)
def test_the_readme_of_the_distribution_closes_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: tuple[str, ...], logged: list[str]
) -> None:
    clicks = tmp_path / "clicks.jsonl"

    def follow(_: str, **options: Any) -> Assignments:
        assignments = Assignments(InMemoryFeed(*records), **options)
        assert not records or assignments.wait_for("search", PATIENCE)
        return assignments

    monkeypatch.setattr(Assignments, "from_kafka", follow)
    monkeypatch.setattr(EventLog, "to_kafka", lambda _: EventLog.to_file(clicks))
    names: dict[str, Any] = {"rankers": dict.fromkeys(("bm25", "ltr"), list), "query": "ab"}
    exec(re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0], names)
    names["events"].close()
    names["assignments"].close()
    types = [json.loads(line)["type"] for line in clicks.read_text().splitlines()]
    assert types == logged


def test_the_readme_of_the_distribution_lists_its_extras() -> None:
    project = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"]
    extras = re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE)
    assert sorted(extras) == sorted(project["optional-dependencies"])


@pytest.mark.parametrize("folder", [".", "client"])
def test_the_version_of_a_distribution_is_that_of_the_package(folder: str) -> None:
    configured = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
    assert "version" in configured["project"].get("dynamic", ())
    source = ROOT / folder / configured["tool"]["hatch"]["version"]["path"]
    assert source.resolve() == Path(streamduel.__file__).resolve()


def test_the_distributions_allow_the_same_versions() -> None:
    """The lowest versions are tested with the service's."""
    client, service = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
        for folder in ("client", ".")
    )
    extras = service["optional-dependencies"]
    allowed = {*service["dependencies"], *chain.from_iterable(extras.values())}
    for needed in (client["dependencies"], *client["optional-dependencies"].values()):
        assert allowed.issuperset(needed)


def first_screen(monkeypatch: pytest.MonkeyPatch, assignment: str, clicks: Path) -> dict[str, Any]:
    """The names of the first example, with an assignment from memory and a click log in a file."""
    monkeypatch.setattr(
        Assignments,
        "from_kafka",
        lambda _, **options: Assignments(InMemoryFeed(assignment), **options),
    )
    monkeypatch.setattr(EventLog, "to_kafka", lambda _: EventLog.to_file(clicks))
    names: dict[str, Any] = {
        "rankers": {"bm25": lambda query: ["d1", query], "ltr": lambda query: [query, "d1"]}
    }
    exec(FIRST, names)
    return names


def test_the_first_screen_serves_one_ranker_instead_of_a_pair_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clicks = tmp_path / "clicks.jsonl"
    names = first_screen(monkeypatch, UNKNOWN, clicks)
    with names["assignments"] as assignments, names["events"]:
        assert assignments.wait_for("search", PATIENCE)
        assert names["search"]("d2", "session") == (None, ["d1", "d2"])
    [logged] = map(json.loads, clicks.read_text().splitlines())
    assert (logged["type"], logged["a"], logged["b"]) == ("duel", "bm25", "bm25")


def test_the_first_screen_closes_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clicks = tmp_path / "clicks.jsonl"
    names = first_screen(monkeypatch, record(), clicks)
    with names["assignments"] as assignments, names["events"]:
        assert assignments.wait_for("search", PATIENCE)
        impression, docs = names["search"]("d2", "session")
        names["clicked"](impression, 1)
    assert sorted(docs) == ["d1", "d2"]
    assert clicks.read_text().count(impression) == 2


def test_passwords_reach_both_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Mapping[str, Any]] = []

    def open_client(_: object, settings: Mapping[str, Any], *__: str) -> None:
        opened.append(settings)
        raise OSError("nobody at home")

    monkeypatch.setattr("streamduel.client.kafka.open_client", open_client)
    monkeypatch.setattr(Path, "read_text", lambda _: "s3cret\n")
    names: dict[str, Any] = {"Assignments": Assignments, "EventLog": EventLog}
    exec(SECURITY, names)
    with names["assignments"], names["events"] as events:
        events.duel("search", "x", "x", None)
        eventually(lambda: len(opened) >= 2)
        events.close(timeout=0)
    for settings in opened:
        assert settings["bootstrap_servers"] == ["kafka-1:9093"]
        assert settings["security_protocol"] == "SASL_SSL"
        assert settings["sasl_plain_password"] == "s3cret"


def test_the_example_of_a_test_passes() -> None:
    names: dict[str, Any] = {}
    exec(TESTING, names)
    names["feed"].add(record())


def test_the_documented_hash_gives_the_same_draw() -> None:
    vectors = re.findall(r'^(\["search",17,.*\]) +(0\.\d+)$', PAGE, re.MULTILINE)
    assert len(vectors) == 2
    for array, number in vectors:
        eight = blake2b(array.encode("ascii"), digest_size=8).digest()
        assert int.from_bytes(eight) // 2**11 / 2**53 == float(number)
        assert stable_fraction(*json.loads(array)) == float(number)
