"""An analysis counts what the service counts, whatever the order of the rows and their format."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.counting import Rules
from streamduel.analysis.report import ExperimentAnalysis
from streamduel.cli.arguments import load_config
from streamduel.cli.inspect import read_report
from tests.logs import ARMS, values
from tests.unit.cli.commands import configure, run

LATER = [
    msgspec.json.encode(
        {"type": "duel", "id": f"later-{number}", "experiment": "search", "a": ARMS[0],
         "b": ARMS[0], "winner": None, "ts": 1_790_000_000_000 + minute * 60_000}
    )
    for number, minute in enumerate((4, 8, 12, 16, 20) * 40)
]  # fmt: skip
"""Stream time goes on until all join windows are closed."""

LOG = [value for _, value in values(21, 6000, poison=0.005)]


def in_time(lines: list[bytes]) -> list[bytes]:
    """Sorted by time; a line without one keeps its place."""

    def moment(place: int) -> float:
        try:
            found = json.loads(lines[place])
            return float(found["ts"]) if isinstance(found, dict) else 0.0
        except (ValueError, KeyError):
            return 0.0

    return [lines[place] for place in sorted(range(len(lines)), key=moment)]


@pytest.fixture(scope="module", params=[Rules(), Rules("drop"), Rules("half", "drop")])
def rules(request: pytest.FixtureRequest) -> Rules:
    found: Rules = request.param
    return found


@pytest.fixture(scope="module")
def served(rules: Rules, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `inspect` shows after the service has folded the log in the order of time."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "clicks.jsonl").write_bytes(b"\n".join(in_time([*LOG, *sorted(LATER)])) + b"\n")
    changes = {
        "experiments.search.ties": rules.ties,
        "experiments.search.no_click": rules.no_click,
        "experiments.search.policy": {"name": "uniform"},
        "experiments.search.decide_every": 1000,
    }
    config = configure(folder, changes)
    result = run(config, "--until-end")
    assert result.status == 0, result.err
    report = msgspec.to_builtins(read_report(load_config(config)))
    found: dict[str, Any] = report["experiments"]["search"]
    return found


def analyzed(path: Path, rules: Rules) -> ExperimentAnalysis:
    return analyze(Request([str(path)], experiment="search", rules=rules)).experiments["search"]


def test_wins_of_a_shuffled_log_are_those_of_the_service(
    served: dict[str, Any], rules: Rules, tmp_path: Path
) -> None:
    lines = [*LOG, *LATER]
    random.Random(3).shuffle(lines)
    path = tmp_path / "shuffled.gz"
    path.write_bytes(gzip.compress(b"\n".join(lines)))

    found = analyzed(path, rules)

    order = [found.arms.index(arm) for arm in served["arms"]]
    assert [[found.wins[i][j] for j in order] for i in order] == served["wins"]
    assert found.duels == served["duels"]


def test_records_have_the_outcomes_of_the_service(served: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "clicks.jsonl"
    path.write_bytes(b"\n".join([*LOG, *LATER]))

    tallies = analyzed(path, Rules()).tallies

    for outcome in ("accepted", "duplicate", "late", "unjoined"):
        assert tallies[outcome] == served["tallies"][outcome], outcome


def test_parquet_and_csv_say_the_same_as_json_lines(rules: Rules, tmp_path: Path) -> None:
    lines = [line for line in LOG if line.startswith(b'{"type":') and b'"mystery"' not in line]
    source = tmp_path / "clicks.jsonl"
    source.write_bytes(b"\n".join(lines))
    table = f"read_json('{source}', format = 'newline_delimited', sample_size = -1)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (FROM {table}) TO '{tmp_path / 'clicks'}' (FORMAT parquet)")
        connection.execute(f"COPY (FROM {table}) TO '{tmp_path / 'table'}' (FORMAT csv)")
    expected = analyzed(source, rules)

    for name in ("clicks", "table"):
        found = analyzed(tmp_path / name, rules)
        assert (found.wins, found.duels) == (expected.wins, expected.duels), name
