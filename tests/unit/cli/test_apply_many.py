"""`control apply` to several experiments: what is written when it ends in between."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamduel import connector
from streamduel.errors import ConnectorError, UncertainError
from tests.unit.cli.commands import Streamduel, configure, run

NAMES = ("ads", "search", "shop")

AGAIN = "epeat the command: it writes only what is not written yet.\n"


def many(folder: Path, **settings: Any) -> Path:
    arms = {"arms": ["bm25", "dense"], **settings}
    return configure(folder, {"experiments": dict.fromkeys(NAMES, arms)})


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """That of running experiments, with one change of each."""
    (tmp_path / "clicks.jsonl").touch()
    result = run(many(tmp_path), "--until-end", "--quiet")
    assert result.status == 0, result.err
    return many(tmp_path, slate=2)


def written(config: Path) -> list[str]:
    log = config.with_name("clicks.jsonl").read_bytes()
    return [json.loads(line)["experiment"] for line in log.splitlines()]


@pytest.mark.parametrize(
    ("error", "done", "status", "sentence"),
    [
        (KeyboardInterrupt(), 0, 130, f"Interrupted with 0 of 3 records written; r{AGAIN}"),
        (KeyboardInterrupt(), 2, 130, f"Interrupted with 2 of 3 records written; r{AGAIN}"),
        (ConnectorError("No."), 0, 1, "streamduel: No.\n"),
        (ConnectorError("No."), 2, 1,
         f"streamduel: No. Before, 2 of 3 records were written. R{AGAIN}"),
        (UncertainError("Silence."), 0, 1, f"streamduel: Silence. R{AGAIN}"),
        (UncertainError("Silence."), 1, 1,
         f"streamduel: Silence. Before, 1 of 3 records were written. R{AGAIN}"),
    ],
)  # fmt: skip
def test_the_same_command_writes_the_rest(
    streamduel: Streamduel, config: Path, monkeypatch: pytest.MonkeyPatch,
    error: BaseException, done: int, status: int, sentence: str,
) -> None:  # fmt: skip
    files = connector.load_connector("files")
    append = files.append

    def failing(settings: Any, records: Iterable[tuple[bytes, bytes]]) -> Iterator[str]:
        records = list(records)
        yield from append(settings, records[:done])
        if isinstance(error, UncertainError):  # the record arrives
            list(append(settings, records[done : done + 1]))
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(files, "append", failing)
        result = streamduel("control", "apply", config, "--yes")
    assert (result.status, len(result.out.splitlines())) == (status, done)
    assert result.err.endswith(f"shop:\n  slate: 1 → 2\n{sentence}")
    again = streamduel("control", "apply", config, "--yes")
    assert again.status == 0
    assert written(config) == [*NAMES]


def test_a_record_that_is_too_large_leaves_all_unwritten(
    streamduel: Streamduel, config: Path
) -> None:
    arms, large = {"arms": ["bm25", "dense"]}, {"class": [f"{it:0100}" for it in range(32)]}
    changed = {"ads": {**arms, "slate": 2}, "search": arms, "shop": {**arms, "segments": large}}
    changes = {"experiments": changed, "limits.max_record_bytes": 2000}
    result = streamduel("control", "apply", configure(config.parent, changes), "--yes")
    assert (result.status, result.out, written(config)) == (2, "", [])
    assert "bytes; limits.max_record_bytes allows 2000." in result.err
