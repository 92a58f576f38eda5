"""Generated logs of interleaving tests, as other programs would write them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.report import ExperimentAnalysis

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


ROWS = lists(2500)
WINS = {
    "ltr": sum(r["a" if winner(r) == "a" else "b"] == "ltr" for r in ROWS if winner(r) != "tie")
}
TIES = sum(winner(row) == "tie" for row in ROWS)
WINS["bm25"] = len(ROWS) - TIES - WINS["ltr"]


def only(*logs: Path, **settings: object) -> ExperimentAnalysis:
    found = analyze(Request([str(log) for log in logs], **settings)).experiments  # type: ignore[arg-type]
    (experiment,) = found.values()
    return experiment


def check(found: ExperimentAnalysis) -> None:
    """The analysis has the counts of `ROWS`, and its champion."""
    assert found.champion == "ltr"
    (pair,) = found.pairs
    assert (pair.a, pair.b, pair.ties) == ("bm25", "ltr", TIES)
    assert (pair.wins_a, pair.wins_b) == (WINS["bm25"], WINS["ltr"])


def named(**names: Callable[[Row], object]) -> list[Row]:
    """The rows with other columns."""
    return [{name: value(row) for name, value in names.items()} for row in ROWS]


def iso(row: Row) -> str:
    return datetime.fromtimestamp(row["ts"] / 1000, UTC).isoformat()


SHAPES: dict[str, list[Row]] = {
    "winner by name": named(
        query_id=lambda r: r["id"], left_ranker=lambda r: r["a"], right_ranker=lambda r: r["b"],
        winner=lambda r: "" if winner(r) == "tie" else r[winner(r)], timestamp=iso,
    ),
    "winner by side": named(
        RankerA=lambda r: r["a"], RankerB=lambda r: r["b"], time=lambda r: r["ts"] / 1000,
        Outcome=lambda r: {"a": "left", "b": "right", "tie": "draw"}[winner(r)],
    ),
    "teams and clicks": named(
        qid=lambda r: r["id"], model_a=lambda r: r["a"], model_b=lambda r: r["b"],
        teams=lambda r: r["teams"], clicked_ranks=lambda r: r["clicks"],
    ),
    "teams as text": named(
        qid=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"],
        teams=lambda r: "".join(r["teams"]).upper().translate({65: "L", 66: "R"}),
        clicks=lambda r: ",".join(map(str, r["clicks"])),
    ),
    "teams by name": named(
        qid=lambda r: r["id"], teams=lambda r: [r[team] for team in r["teams"]],
        clicks=lambda r: r["clicks"],
    ),
    "ranks from one": named(
        qid=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        clicks=lambda r: [rank + 1 for rank in r["clicks"]],
    ),
    "ranks from one in long lists": named(
        qid=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"],
        teams=lambda r: [*r["teams"], *"abab"], clicks=lambda r: [rank + 1 for rank in r["clicks"]],
    ),
    "flags": named(
        qid=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        clicks=lambda r: [rank in r["clicks"] for rank in range(10)],
    ),
    "clicks of each side": named(
        a=lambda r: r["a"], b=lambda r: r["b"], clicks_a=lambda r: int(winner(r) == "a"),
        clicks_b=lambda r: int(winner(r) == "b"),
    ),
    "purchases of each side": named(
        id=lambda r: r["id"], ranker_left=lambda r: r["a"], ranker_right=lambda r: r["b"],
        left_purchases=lambda r: 2 * (winner(r) == "a"), right_purchases=lambda r: winner(r) == "b",
    ),
    "credits of each side": named(
        qid=lambda r: r["id"], first_ranker=lambda r: r["a"], second_ranker=lambda r: r["b"],
        credit_first=lambda r: 0.25 + (winner(r) == "a"),
        credit_second=lambda r: 0.25 + (winner(r) == "b"),
    ),
    "first or second": named(
        ranker_a=lambda r: r["a"], ranker_b=lambda r: r["b"],
        preferred=lambda r: {"a": "first", "b": "second", "tie": "none"}[winner(r)],
    ),
    "counts": named(
        a=lambda r: r["a"], b=lambda r: r["b"], wins_a=lambda r: int(winner(r) == "a"),
        wins_b=lambda r: int(winner(r) == "b"), ties=lambda r: int(winner(r) == "tie"),
    ),
    "winner by number": named(
        ranker_1=lambda r: r["a"], ranker_2=lambda r: r["b"],
        winner=lambda r: {"a": 1, "b": 2, "tie": 0}[winner(r)],
    ),
    "winner by sign": named(
        a=lambda r: r["a"], b=lambda r: r["b"],
        outcome=lambda r: {"a": 1, "b": -1, "tie": 0}[winner(r)],
    ),
    "winner by column": named(
        control=lambda _: "bm25", treatment=lambda _: "ltr",
        winner=lambda r: {"bm25": "control", "ltr": "treatment", None: None}[r.get(winner(r))],
    ),
    "one click": named(
        qid=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"],
        teams=lambda r: "|".join(r["teams"]),
        clicked_rank=lambda r: r["clicks"][0] if r["clicks"] else -1,
    ),
    "clicks as objects": named(
        qid=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        clicks=lambda r: [{"position": rank, "ts": 5} for rank in r["clicks"]],
    ),
    "a repeated query": named(
        query_id=lambda r: f"query {len(r['id'])}", session_id=lambda r: r["id"],
        a=lambda r: r["a"], b=lambda r: r["b"], winner=winner,
    ),
    "words in the other order": named(
        system_left=lambda r: r["a"], system_right=lambda r: r["b"], outcome=winner,
    ),
    "whether one side won": named(
        request_uuid=lambda r: r["id"], left=lambda r: r["a"], right=lambda r: r["b"],
        left_won=lambda r: {"a": True, "b": False, "tie": None}[winner(r)],
    ),
    "whether each side won": named(
        id=lambda r: r["id"], first_model=lambda r: r["a"], second_model=lambda r: r["b"],
        first_model_won=lambda r: int(winner(r) == "a"),
        second_model_won=lambda r: int(winner(r) == "b"),
    ),
    "wins that are true or false": named(
        ranker_a=lambda r: r["a"], ranker_b=lambda r: r["b"],
        wins_a=lambda r: winner(r) == "a", wins_b=lambda r: winner(r) == "b",
    ),
    "winner by the name of its column": named(
        left_system_name=lambda r: r["a"], right_system_name=lambda r: r["b"],
        outcome=lambda r: {"a": "left_system_name", "b": "right_system_name"}.get(winner(r)),
    ),
    "winner with a verb": named(
        left=lambda r: r["a"], right=lambda r: r["b"],
        outcome=lambda r: {"a": "left_won", "b": "Right wins", "tie": "no_winner"}[winner(r)],
    ),
    "counts of clicks": named(
        control=lambda _: "bm25", treatment=lambda _: "ltr",
        control_clicks=lambda r: int(r.get(winner(r)) == "bm25"),
        treatment_clicks=lambda r: int(r.get(winner(r)) == "ltr"),
    ),
    "clicks on documents": named(
        id=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        docs=lambda r: [f"{r['id']}/{rank}" for rank in range(10)],
        clicks=lambda r: [f"{r['id']}/{rank}" for rank in r["clicks"]],
    ),
    "0 or 1 for each rank": named(
        id=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        clicks=lambda r: [int(rank in r["clicks"]) for rank in range(10)],
    ),
    "clicks on documents with numbers": named(
        id=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        doc_ids=lambda _: list(range(9, -1, -1)),
        clicked_doc_ids=lambda r: " ".join(str(9 - rank) for rank in r["clicks"]),
    ),
    "typed, with other names": named(
        record_type=lambda _: "interleaving", impression_id=lambda r: r["id"],
        arm_a=lambda r: r["a"], arm_b=lambda r: r["b"], teams=lambda r: r["teams"],
        clicks=lambda r: r["clicks"],
    ),
}  # fmt: skip

OPTIONS = {
    "json": "FORMAT json", "json.gz": "FORMAT json, COMPRESSION gzip", "csv": "FORMAT csv",
    "tsv.gz": "FORMAT csv, COMPRESSION gzip, DELIMITER '\t'",
    "parquet": "FORMAT parquet, COMPRESSION gzip", "zst": "FORMAT json, COMPRESSION zstd",
}  # fmt: skip


def sentence(found: ExperimentAnalysis, name: str) -> str:
    """The sentence of a check that is not fine."""
    (check,) = [check for check in found.checks if check.name == name]
    assert check.verdict in {"warning", "failed"}
    return check.sentence
