"""Clients of a click log, as `inspect` and `run` show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamduel.testing import encode
from tests.unit.cli.commands import Streamduel, configure, inspected, run


@pytest.mark.parametrize(("clients", "dependent"), [(600, False), (4, True)])
def test_confidence_of_dependent_duels_is_doubted(
    streamduel: Streamduel, tmp_path: Path, clients: int, dependent: bool
) -> None:
    records = [
        {"type": "duel", "id": f"{number}", "experiment": "search", "a": "x", "b": "y",
         "winner": "a", "client": f"user {number % clients}"}
        for number in range(600)
    ]  # fmt: skip
    (tmp_path / "clicks.jsonl").write_bytes(b"".join(encode(each) + b"\n" for each in records))
    config = configure(tmp_path, {"experiments.search.arms": ["x", "y"]})
    done = run(config, "--until-end")
    assert done.status == 0, done.err
    found = inspected(streamduel, tmp_path)["experiments"]["search"]["impressions_per_client"]
    assert found == pytest.approx(600 / clients, rel=0.45)
    for out in (done.out, streamduel("inspect", config).out):
        assert ("duels of one client are not independent" in out) == dependent
