"""Exports as programs may write them: drawn at random, with the counts that they must give.

`python -m tests.unit.analysis.random_exports 0:1000` reads the exports of these seeds, and prints
those that are refused or give other counts.
"""

from __future__ import annotations

import random
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import NamedTuple

from streamduel.analysis.report import ExperimentAnalysis
from tests.unit.analysis.exports import OPTIONS, Row, iso, lists, only, winner, written

ARMS = (("bm25", "ltr"), ("bm25", "ltr", "dense"), ("control", "treatment"), ("v1", "v2", "v3"))

IDS = ("id", "query_id", "qid", "search_id", "requestId", "impression_id", "serp_id", "trace_id")
SIDES = (
    ("a", "b"), ("ranker_a", "ranker_b"), ("left", "right"), ("rankerA", "rankerB"),
    ("control", "treatment"), ("model1", "model2"), ("first", "second"), ("Arm A", "Arm B"),
    ("baseline", "candidate"), ("champion", "challenger"), ("left_system", "right_system"),
)  # fmt: skip
TIMES: dict[str, Callable[[Row], object]] = {
    "ts": lambda r: r["ts"], "timestamp": lambda r: r["ts"] // 1000, "created_at": iso,
    "@timestamp": lambda r: iso(r)[:19], "event_time": lambda r: r["ts"] / 1000,
}  # fmt: skip
CLIENTS = ("user_id", "uid", "visitor_id", "session_id", "customer_id", "cookie")
RANKERS = ("ranker", "model", "arm", "algorithm", "system")

OTHERS: dict[str, Callable[[random.Random], object]] = {
    "page": lambda r: r.randrange(3), "num_results": lambda r: r.randrange(99),
    "app_version": lambda r: f"4.{r.randrange(5)}", "source": lambda r: r.choice(["web", "ios"]),
    "_id": lambda _: None, "event_type": lambda _: "interleaved",
    "result": lambda _: "ok", "status": lambda _: 200, "team": lambda _: "search",
    "choice": lambda _: None, "is_bot": lambda _: False,
    "label": lambda r: r.choice(["short", "long"]), "score": lambda r: r.random(),
    "method": lambda _: "team_draft", "shown_first": lambda r: r.choice("ab"),
    "bucket": lambda r: r.choice("ABC"), "partition": lambda r: r.randrange(4),
    "offset": lambda r: r.randrange(10**9), "took": lambda r: r.randrange(90),
    "group": lambda r: r.choice(["control", "treatment"]), "version": lambda r: r.randrange(3),
    "user_query": lambda r: r.choice(["red shoes", "hats"]), "country_code": lambda _: "DE",
}  # fmt: skip
"""Columns that have nothing to do with duels."""

ENVELOPES = ("payload", "data", "message", "_source", "record")


class Export(NamedTuple):
    """Files with the same duels.

    Attributes:
        shape: what they look like.
        files: the rows of each.
    """

    shape: str
    files: list[list[Row]]


class Draw:
    """Draws one export of some lists."""

    def __init__(self, rng: random.Random, rows: Sequence[Row]) -> None:
        self._rng, self._rows = rng, rows
        arms = {row["a"] for row in rows}
        self._id = rng.choice(IDS)
        self._a, self._b = rng.choice([pair for pair in SIDES if arms.isdisjoint(pair)])
        self._time, self._client = rng.choice(list(TIMES)), rng.choice(CLIENTS)
        others = rng.sample(sorted(OTHERS), rng.choice([0, 2, 6]))
        self._others = [each for each in others if each not in {self._id, self._client}]

    def export(self) -> Export:
        """One of the shapes, perhaps with each record in an object."""
        shape = self._rng.choice(SHAPES)
        files = shape(self)
        name = f"{shape.__name__.strip('_')} {self._id} {self._a} {self._others}"
        if len(files) == 1 and self._rng.random() < 0.3:
            around = self._rng.choice(ENVELOPES)
            files = [[{"n": number, around: row} for number, row in enumerate(files[0])]]
            name += f" in {around}"
        for rows in files:
            self._rng.shuffle(rows)
        return Export(name, files)

    def _row(self, row: Row, **more: object) -> Row:
        of_list = random.Random(row["id"])
        others = {name: OTHERS[name](of_list) for name in self._others}
        if "_id" in others:
            others["_id"] = f"{self._rng.random()}"  # of each row
        about = {self._id: row["id"], self._time: TIMES[self._time](row)}
        return others | about | {self._client: row["client"]} | more

    def _pair(self, row: Row, **more: object) -> Row:
        return self._row(row, **{self._a: row["a"], self._b: row["b"]}, **more)

    def _winners(self) -> list[list[Row]]:
        column = self._rng.choice(["winner", "outcome", "preferred", "vote", "winning_ranker"])
        forms: list[Callable[[Row], object]] = [
            lambda r: r.get(winner(r), "tie"), winner,
            lambda r: {"a": "left", "b": "right"}.get(winner(r)),
            lambda r: {"a": self._a, "b": self._b, "tie": "draw"}[winner(r)],
        ]  # fmt: skip
        form = self._rng.choice(forms)
        return [[self._pair(row, **{column: form(row)}) for row in self._rows]]

    def _clicks_of_sides(self) -> list[list[Row]]:
        word = self._rng.choice(["clicks", "credit", "num_clicks", "purchases"])
        return [[
            self._pair(row, **{f"{word}_{side}": int(winner(row) == side) for side in "ab"})
            for row in self._rows
        ]]  # fmt: skip

    def _lists(self) -> list[list[Row]]:
        column = self._rng.choice(["teams", "attribution", "origins", "drafted_by"])
        forms: list[Callable[[Row], object]] = [
            lambda r: r["teams"], lambda r: "".join(r["teams"]),
            lambda r: [r[team] for team in r["teams"]],
        ]  # fmt: skip
        form, first = self._rng.choice(forms), self._rng.choice([0, 1])
        clicks = self._rng.choice(["clicks", "clicked_positions", "click_ranks", "clicked_docs"])
        rows = []
        for row in self._rows:
            docs = self._docs(row)
            clicked = [docs[r] if clicks == "clicked_docs" else r + first for r in row["clicks"]]
            rows.append(self._pair(row, **{column: form(row), "docs": docs, clicks: clicked}))
        return [rows]

    def _results(self) -> list[list[Row]]:
        rank, ranker = self._rng.choice(["position", "rank", "slot"]), self._rng.choice(RANKERS)
        clicked = self._rng.choice(["clicked", "is_click", "purchased"])
        return [[
            self._row(row, **{rank: place, ranker: row[side], clicked: place in row["clicks"]})
            for row in self._rows for place, side in enumerate(row["teams"])
        ]]  # fmt: skip

    def _objects_of_results(self) -> list[list[Row]]:
        column, team = self._rng.choice(["results", "items"]), self._rng.choice(["team", "origin"])
        return [[
            self._pair(row, **{column: [
                {"doc_id": doc, team: row[side], "clicked": place in row["clicks"]}
                for place, (doc, side) in enumerate(zip(self._docs(row), row["teams"], strict=True))
            ]})
            for row in self._rows
        ]]  # fmt: skip

    def _ranker_rows(self) -> list[list[Row]]:
        ranker, number = self._rng.choice(RANKERS), self._rng.choice(["clicks", "credit", "won"])
        return [[
            self._row(row, **{ranker: row[side], number: int(winner(row) == side)})
            for row in self._rows for side in "ba"
        ]]  # fmt: skip

    def _objects(self) -> list[list[Row]]:
        column = self._rng.choice(["clicks", "credits", "clicks_by_ranker", "scores"])
        return [[
            self._row(row, **{column: {row[side]: int(winner(row) == side) for side in "ab"}})
            for row in self._rows
        ]]  # fmt: skip

    def _arrays(self) -> list[list[Row]]:
        column = self._rng.choice(["rankers", "models", "pair"])
        told: list[Callable[[Row], Row]] = [
            lambda r: {"clicks": [int(winner(r) == side) for side in "ab"]},
            lambda r: {"winner": r.get(winner(r))},
            lambda r: {"winner_index": {"a": 0, "b": 1}.get(winner(r))},
        ]
        form = self._rng.choice(told)
        return [[self._row(r, **{column: [r["a"], r["b"]]}, **form(r)) for r in self._rows]]

    def _events(self) -> list[list[Row]]:
        kind = self._rng.choice(["event", "type", "action"])
        shown, click = self._rng.choice([("impression", "purchase"), ("view", "click")])
        return [[
            {**event, kind: click if "position" in event else shown}
            for event in chain.from_iterable(self._two_files())
        ]]  # fmt: skip

    def _two_files(self) -> list[list[Row]]:
        teams = self._rng.choice(["teams", "attribution"])
        shown = [
            self._pair(row, **{teams: row["teams"], "docs": self._docs(row)}) for row in self._rows
        ]
        clicks = [
            {self._id: row["id"], self._time: TIMES[self._time](row), "position": rank + 1}
            for row in self._rows for rank in row["clicks"]
        ]  # fmt: skip
        return [shown, clicks]

    @staticmethod
    def _docs(row: Row) -> list[str]:
        return [f"{row['id']}/{place}" for place in range(len(row["teams"]))]


SHAPES = tuple(
    value for name, value in vars(Draw).items()
    if name.startswith("_") and not name.startswith("__")
    and name not in {"_row", "_pair", "_docs"}
)  # fmt: skip


def differences(seed: int, folder: Path) -> Iterator[str]:
    """What the export of a seed gives that it must not."""
    rng = random.Random(seed)
    pairs = list(combinations(rng.choice(ARMS), 2))
    rows = [
        {**row, "id": f"{row['id']}-{number}"}
        for number, pair in enumerate(pairs)
        for row in lists(150, seed=seed, clients=60, arms=pair)
    ]
    export = Draw(rng, rows).export()
    suffix = rng.choice(sorted(OPTIONS))
    if suffix in {"csv", "tsv.gz"} and any(map(_has_objects, export.files)):
        suffix = "json"  # DuckDB writes objects to CSV as text that is no JSON
    logs = [
        written(folder / f"{seed}-{number}.{suffix}", file, OPTIONS[suffix])
        for number, file in enumerate(export.files)
    ]
    try:
        found = counts(only(*logs))
    except Exception:
        yield f"seed {seed}: {suffix}, {export.shape}: {traceback.format_exc()}"
        return
    expected = Counter(outcome(row) for row in rows)
    if found != expected:
        yield f"seed {seed}: {suffix}, {export.shape}: {found}, but not {expected}"


def _has_objects(rows: Sequence[Row]) -> bool:
    return any(
        isinstance(value, dict)
        or (isinstance(value, list) and value and isinstance(value[0], dict))
        for value in rows[0].values()
    )


def outcome(row: Row) -> tuple[str, ...]:
    """The winner and the loser; of a tie both, in the order of their names, and `tie`."""
    arms = (row["a"], row["b"])
    side = winner(row)
    return (*sorted(arms), "tie") if side == "tie" else arms if side == "a" else arms[::-1]


def counts(found: ExperimentAnalysis) -> Counter[tuple[str, ...]]:
    """How often each outcome is in an analysis."""
    of_pairs: Counter[tuple[str, ...]] = Counter()
    for pair in found.pairs:
        of_pairs[pair.a, pair.b] = pair.wins_a
        of_pairs[pair.b, pair.a] = pair.wins_b
        of_pairs[(*sorted([pair.a, pair.b]), "tie")] = pair.ties
    return +of_pairs


def main(seeds: str) -> None:
    """Read the exports of some seeds."""
    begin, _, end = seeds.partition(":")
    for seed in range(int(begin), int(end)):
        with tempfile.TemporaryDirectory() as folder:
            for difference in differences(seed, Path(folder)):
                print(difference, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
