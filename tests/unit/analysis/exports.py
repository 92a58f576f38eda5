"""Generated logs of interleaving tests, as other programs would write them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb

START = 1_790_000_000_000
"""Milliseconds since 1970."""

Row = dict[str, Any]


def lists(
    n: int,
    preference: Callable[[Row], float] = lambda _: 0.58,
    seed: int = 5,
    clients: int = 1000,
    arms: Sequence[str] = ("bm25", "ltr"),
) -> list[Row]:
    """Lists of ten ranks by team draft, of which most have one click.

    The click is on a document of the second arm with the probability `preference`.
    """
    rng, rows = random.Random(seed), []
    for number in range(n):
        row: Row = {
            "id": f"q-{number}", "a": arms[0], "b": arms[1], "ts": START + number * 700,
            "client": f"u-{rng.randrange(clients)}", "country": rng.choice(["de", "fr"]),
            "teams": [side for _ in range(5) for side in rng.sample("ab", 2)], "clicks": [],
        }  # fmt: skip
        if rng.random() < 0.7:
            side = "b" if rng.random() < preference(row) else "a"
            row["clicks"] = [rng.choice([r for r, team in enumerate(row["teams"]) if team == side])]
        if rng.random() < 0.5:  # which side an arm is on means nothing
            row["a"], row["b"] = row["b"], row["a"]
            row["teams"] = ["ba"["ab".index(team)] for team in row["teams"]]
        rows.append(row)
    rng.shuffle(rows)
    return rows


def winner(row: Row) -> str:
    """The winner of a list with at most one click: a, b or tie."""
    return str(row["teams"][row["clicks"][0]]) if row["clicks"] else "tie"


def json_lines(path: Path, rows: Iterable[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def written(path: Path, rows: Sequence[Row], options: str) -> Path:
    """Write a table with DuckDB's COPY, such as to `FORMAT parquet, COMPRESSION gzip`."""
    source = json_lines(path.with_suffix(".source"), rows)
    with duckdb.connect() as connection:
        table = f"read_json('{source}', format = 'newline_delimited', sample_size = -1)"
        connection.execute(f"COPY (FROM {table}) TO '{path}' ({options})")
    source.unlink()
    return path
