"""The demo's loop from beginning to end, without waiting."""

from __future__ import annotations

import json
import re
import resource
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from streamduel import policies
from streamduel.cli.demo import _policy
from streamduel.client import Draw, Merged
from streamduel.config import load
from streamduel.demo.loop import TURN, _most_informative
from streamduel.demo.rankers import make_rankers
from streamduel.demo.report import SURE, sentence
from streamduel.demo.run import CLICKS, CONFIGURATION, Result
from streamduel.demo.search import RecipeSearch, Visit
from streamduel.errors import ConfigurationError, StreamduelError
from streamduel.monitoring import figures
from streamduel.stream.inspection import ExperimentReport, inspect
from streamduel.stream.observer import Observer
from tests.unit.demo.bed import BEGAN, Clock, played


def report(folder: Path) -> ExperimentReport:
    loaded = load(folder / CONFIGURATION, {})
    archive = loaded.outlet_connector.open_archive(loaded.sink, loaded.snapshots)
    return inspect(archive, loaded.config.experiments).experiments["recipes"]


@pytest.mark.parametrize("seed", range(6))
def test_the_best_ranker_is_found_with_confidence(tmp_path: Path, seed: int) -> None:
    """Of the seeds 0 to 19 all find it; their confidences are from 0.968 to 0.998."""
    world, ledger, picture = played(tmp_path, seed=seed)
    assert picture is not None
    assert picture.view.champion == world.best
    assert picture.view.confidence >= SURE
    assert ledger.regret < 0.6 * ledger.uniform_regret(ledger.impressions)


def test_equal_seeds_give_equal_demos_to_the_last_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the speed, and however long the users wait for a commit."""
    folders = [tmp_path / "fast", tmp_path / "slow"]
    for folder in folders:
        folder.mkdir()
    played(folders[0], impressions=400)
    monkeypatch.setattr("streamduel.demo.run.COMMIT_MS", 30)
    played(folders[1], impressions=400, speed=20.0, clock=Clock(tick=0.3))
    for name in (CLICKS, "out/assignments.jsonl", "state/snapshot.json"):
        one, other = ((folder / name).read_bytes() for folder in folders)
        assert one == other, name


def test_the_example_of_the_readme(tmp_path: Path) -> None:
    world, ledger, picture = played(tmp_path)
    assert picture is not None
    assert sentence(world, ledger, picture) == (
        "After 1,000 impressions top_two says that ltr-v1 is the best, and it is "
        "(confidence 0.950). Showing all pairs equally would have cost a regret of 167 instead "
        "of 48, and 574 more impressions with one of the 3 worse rankers."
    )


def test_the_loop_is_closed(tmp_path: Path) -> None:
    """What is served is what the assignment of the record's epoch asked for."""
    played(tmp_path, impressions=300)
    assignments = {}
    for line in (tmp_path / "out" / "assignments.jsonl").read_bytes().splitlines():
        assignment = json.loads(line)
        pairs = {frozenset((pair["a"], pair["b"])) for pair in assignment["pairs"]}
        assignments[assignment["epoch"]] = pairs, assignment["offset"]
    records = [json.loads(line) for line in (tmp_path / CLICKS).read_bytes().splitlines()]
    assert len(records) == 300
    interleaved = [record for record in records if record["type"] == "interleaving"]
    assert len(interleaved) > 250
    for number, record in enumerate(records):
        if record["type"] == "interleaving":
            pairs, offset = assignments[record["epoch"]]
            assert frozenset((record["a"], record["b"])) in pairs
            assert number - TURN <= offset < number or record["epoch"] == 1
        assert record["ts"] == 1000 * BEGAN + 10 * number
    state = report(tmp_path)
    assert state.duels == 300
    assert state.tallies["accepted"] == 300


def test_the_demo_ends_after_so_many_impressions_and_no_more(tmp_path: Path) -> None:
    _, ledger, _ = played(tmp_path, impressions=TURN + 3)
    assert ledger.impressions == TURN + 3
    assert report(tmp_path).offset["next"] == TURN + 3


def test_the_demo_ends_after_so_many_seconds(tmp_path: Path) -> None:
    clock = Clock()
    _, ledger, _ = played(tmp_path, impressions=10**6, seconds=10.0, speed=20.0, clock=clock)
    assert ledger.impressions == 200
    assert clock.now == pytest.approx(10.0)


@pytest.mark.parametrize(("seconds", "impressions"), [(5.0, 5), (5.5, 6), (0.4, 1)])
def test_no_wait_exceeds_the_time_limit(tmp_path: Path, seconds: float, impressions: int) -> None:
    clock = Clock()
    _, ledger, _ = played(tmp_path, impressions=10**6, seconds=seconds, speed=1.0, clock=clock)
    assert clock.now == pytest.approx(seconds)
    assert ledger.impressions == impressions


@pytest.mark.parametrize("arms", [2, 20])
@pytest.mark.parametrize("name", policies.names())
def test_every_policy_takes_the_horizon_of_the_shortest_demo(name: str, arms: int) -> None:
    assert _policy(name, arms, 0, 1)[0] == name


def test_the_newest_list_with_a_duel_and_clicks_is_shown() -> None:
    alone, duel = Draw("bm25", "bm25"), Draw("bm25", "dense-v1")
    page = Merged([0], ["a"])
    visits = [
        Visit(0, alone, page, [0]), Visit(1, duel, page, []), Visit(2, duel, page, []),
        Visit(3, duel, page, [0]), Visit(4, duel, page, [0, 0]), Visit(5, alone, page, [0]),
    ]  # fmt: skip
    assert _most_informative(visits).query == 4
    assert _most_informative([*visits[:3], visits[5]]).query == 2
    assert _most_informative([visits[0], visits[5]]).query == 5


def test_the_status_page_is_that_of_a_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching: list[str] = []

    def watch(*_: object, observers: Sequence[Observer]) -> None:
        watching.extend(type(each).__name__ for each in observers)

    monkeypatch.setattr("streamduel.demo.run.serve", watch)
    played(tmp_path, page=True, port=0)
    assert watching == ["Metrics", "RecentDeadLetters", "Loop"]


def test_all_clicks_are_folded_before_a_stop(tmp_path: Path) -> None:
    clock = Clock()
    _, ledger, picture = played(tmp_path, speed=20.0, clock=clock, stop=lambda: clock.now > 5.2)
    assert picture is not None
    assert ledger.impressions == 100
    assert picture.view.duels == report(tmp_path).duels == 100


def test_a_stop_before_the_first_impression_shows_nothing(tmp_path: Path) -> None:
    _, ledger, picture = played(tmp_path, stop=lambda: True)
    assert (ledger.impressions, picture) == (0, None)


@pytest.mark.parametrize("name", policies.names())
def test_every_policy_runs(tmp_path: Path, name: str) -> None:
    _, parameters = _policy(name, 5, 7, 300)
    given = ",".join(f"{key}={value}" for key, value in parameters.items())
    _, ledger, picture = played(
        tmp_path, title=f"{name}:{given}" if given else name, arms=5, impressions=300
    )
    assert picture is not None
    assert ledger.impressions == 300
    assert picture.view.duels == 300


@pytest.mark.parametrize(
    ("gone", "sentence"),
    [
        ("state/snapshot.json", None),  # it is replaced at each commit anyway
        ("state", "state cannot be written to: No such file"),
        (
            "out/assignments.jsonl",
            "the assignments can no longer be read: was the directory removed?",
        ),
    ],
)
def test_removed_files_end_the_demo_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str, sentence: str | None
) -> None:
    monkeypatch.setattr("streamduel.demo.search.FILE_TIMEOUT", 0.5)
    clock = Clock()

    def take_away() -> bool:
        if clock.now > 2:
            shutil.rmtree(tmp_path / gone, ignore_errors=True)
            if (tmp_path / gone).is_file():
                (tmp_path / gone).unlink()
        return clock.now > 10

    if sentence is None:
        assert played(tmp_path, speed=20.0, clock=clock, stop=take_away).progress
    else:
        with pytest.raises(StreamduelError, match=re.escape(sentence)):
            played(tmp_path, speed=20.0, clock=clock, stop=take_away)


def test_a_full_disk_ends_the_demo_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamduel.demo.search.FILE_TIMEOUT", 0.5)
    world = make_rankers(2, 0)
    draw, page = Draw("bm25", "dense-v1"), Merged([0, 1], ["a", "b"])
    with RecipeSearch(world, Path("nothing.jsonl"), Path("/dev/full"), lambda n: n) as search:
        search.log(Visit(0, draw, page, [1]))
        with pytest.raises(StreamduelError, match="cannot be written: is the disk full"):
            search.flush()


def test_a_folder_that_cannot_be_written_to_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"gone/streamduel\.yaml cannot be written: No"):
        played(tmp_path / "gone")


def test_a_configuration_that_is_written_in_part_is_removed(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(ConfigurationError, match="cannot be written: File too"):
            played(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


def test_the_page_reports_no_stall_after_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "MAX_WAIT_SECONDS", 2.0)
    found: list[int] = []

    def ended(_: Result, url: str | None, stop: Callable[[], bool]) -> None:
        def ask() -> None:
            with closing(HTTPConnection(urlsplit(url or "").netloc)) as connection:
                connection.request("GET", "/readyz")
                found.append(connection.getresponse().status)

        time.sleep(2.1)
        ask()
        assert not stop()
        ask()

    played(tmp_path, impressions=20, page=True, port=0, ended=ended)
    assert found == [503, 200]
