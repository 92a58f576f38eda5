"""What `run --until-end` says of files whose times or order lose clicks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from streamduel.cli.file_order import FileOrder
from streamduel.errors import StreamduelError
from streamduel.stream.inspection import Report
from streamduel.testing import encode as encoded
from tests.logs import ARMS
from tests.unit.cli.commands import configure, run

T0 = 1_790_000_000_000


def encode(record: dict[str, Any]) -> bytes:
    return encoded(record) + b"\n"


@pytest.mark.parametrize("first", ["impression", "click"])
def test_run_says_that_the_order_of_a_file_loses_clicks(tmp_path: Path, first: str) -> None:
    records = [
        record
        for number in range(300)
        for record in (
            {
                "type": "impression", "experiment": "search", "id": f"i{number}", "a": ARMS[0],
                "b": ARMS[1], "teams": ["a", "b"], "ts": T0 + 60_000 * number,
            },
            {
                "type": "click", "experiment": "search", "id": f"c{number}",
                "impression": f"i{number}", "rank": 0, "ts": T0 + 60_000 * number + 5_000,
            },
        )
    ]  # fmt: skip
    config = configure(tmp_path)
    log = tmp_path / "clicks.jsonl"
    log.write_bytes(b"".join(map(encode, records)))
    good = run(config, "--until-end")
    assert (good.status, good.err) == (0, "")
    shutil.rmtree(tmp_path / "state")
    shutil.rmtree(tmp_path / "out")
    log.write_bytes(b"".join(map(encode, sorted(records, key=lambda each: each["type"] != first))))
    result = run(config, "--until-end")
    assert result.status == 1
    assert "search: " in result.out, "the table is shown nevertheless"
    assert "the order of the lines lost " in result.err
    assert "of 300 clicks of experiment 'search'" in result.err
    assert "streamduel analyze" in result.err
    again = run(config, "--until-end")
    assert (again.status, again.err) == (1, result.err), "the state is as wrong as before"


def test_late_clicks_that_find_their_impressions_are_not_lost(tmp_path: Path) -> None:
    def at(second: int, kind: str, name: str, **fields: Any) -> dict[str, Any]:
        return {
            "type": kind,
            "experiment": "search",
            "id": name,
            "ts": T0 + 1000 * second,
            **fields,
        }

    pair: dict[str, Any] = {"a": ARMS[0], "b": ARMS[1]}
    records = [at(10_000, "duel", "first", winner="a", **pair)]
    for number in range(10):
        click = at(1, "click", f"c{number}", impression=f"i{number}", rank=0)
        records += [click, at(0, "impression", f"i{number}", teams=["a", "b"], **pair)]
    records.append(at(20_000, "duel", "last", winner="b", **pair))
    (tmp_path / "clicks.jsonl").write_bytes(b"".join(map(encode, records)))
    result = run(configure(tmp_path), "--until-end", "--json")
    assert (result.status, result.err) == (0, "")
    found = json.loads(result.out)["experiments"]["search"]
    assert (found["duels"], found["tallies"]["late"], found["tallies"]["unjoined"]) == (12, 0, 0)


@pytest.mark.parametrize(("times", "status"), [({}, 1), ({"ts": T0}, 0)])
def test_run_says_that_no_record_has_a_time(
    tmp_path: Path, times: dict[str, int], status: int
) -> None:
    """Join windows that are open at the end of a file with times are those of its last minutes."""
    record = {
        "type": "impression", "experiment": "search", "id": "i", "a": ARMS[0], "b": ARMS[1],
        "teams": ["a", "b"], **times,
    }  # fmt: skip
    (tmp_path / "clicks.jsonl").write_bytes(encode(record))
    config = configure(tmp_path)
    for _ in range(2):
        result = run(config, "--until-end", "--quiet")
        assert result.status == status
        assert ("no record has a timestamp" in result.err) == bool(status)


def checked(waiting: dict[str, int], *tasks: tuple[int, dict[str, tuple[int, int]]]) -> str:
    """What is said of open impressions, and of tasks: stream time, and clicks lost and all."""
    order = FileOrder()
    commits: Any = [
        SimpleNamespace(
            stream_time=time,
            experiments={
                name: SimpleNamespace(
                    out_of_order=SimpleNamespace(lost=lost, clicks=clicks),
                    outcomes=SimpleNamespace(late=lost, unjoined=1),
                )
                for name, (lost, clicks) in found.items()
            },
        )
        for time, found in tasks
    ]
    order.committed(commits, 0.0)
    report: Any = SimpleNamespace(
        ignored={},
        dead_letters={},
        experiments={
            name: SimpleNamespace(
                tallies={"dead_letter": 0}, open={"impressions": count, "clicks": 0}
            )
            for name, count in waiting.items()
        },
    )
    try:
        order.check(report)
    except StreamduelError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("ignored", "warned"), [({}, True), ({"no query": 1}, False)])
def test_ignored_records_are_usable(ignored: dict[str, int], warned: bool) -> None:
    """They are in the right format, and say nothing about rankers."""
    with capture_logs() as logged:
        FileOrder().check(Report({}, {"invalid_json": 1}, ignored))
    assert [it["event"] for it in logged] == ["no usable record"] * warned


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"a": (1, 100)}, ""),
        ({"a": (2, 100)}, "lost 2 of 100 clicks of experiment 'a': "),
        ({"a": (2, 100), "b": (1, 100)}, "lost 2 of 100 clicks of experiment 'a': "),
        ({"a": (3, 100), "b": (2, 100)}, "of experiment 'a' (and 1 more): "),
        (
            {"a": (400, 10_000), "b": (300, 1000), "c": (20, 100)},
            "lost 300 of 1,000 clicks of experiment 'b' (and 2 more): ",
        ),
    ],
)
def test_the_experiment_that_lost_the_largest_share_is_named(
    found: dict[str, tuple[int, int]], said: str
) -> None:
    assert said in checked({}, (T0, found))
    assert bool(checked({}, (T0, found))) == bool(said)


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        ({"a": 0}, ""),
        ({"a": 1, "b": 2, "c": 0}, "(2 open impressions of experiment 'b')"),
        ({"a": 1}, "(1 open impression of experiment 'a')"),
    ],
)
def test_the_experiment_with_most_open_impressions_is_named(
    waiting: dict[str, int], said: str
) -> None:
    assert said in checked(waiting, (0, {}))
    assert bool(checked(waiting, (0, {}))) == bool(said)
    assert checked(waiting, (1, {})) == ""
