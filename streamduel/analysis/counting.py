"""Sums over duels: wins by pair, and what statistics by clients need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final, Literal, NamedTuple

import numpy as np

from streamduel.analysis.engine import Engine, quoted
from streamduel.preference.arrays import Floats
from streamduel.preference.clients import USUAL, ClientSums

Ties = Literal["half", "drop"]
NoClick = Literal["tie", "drop"]


class Rules(NamedTuple):
    """How ties and lists without clicks count, as in an experiment's configuration."""

    ties: Ties = "half"
    no_click: NoClick = "tie"

    @property
    def title(self) -> str:
        """As the sensitivity table shows it."""
        if self.ties == "drop":
            return "ties: drop"
        return "ties: half" if self.no_click == "tie" else "no_click: drop"


DEFAULT_RULES: Final = Rules()

ALL_RULES: Final = (DEFAULT_RULES, Rules(no_click="drop"), Rules(ties="drop"))
"""Those that differ: with `ties: drop`, a list without clicks is dropped in any case."""


@dataclass(frozen=True, eq=False)
class Counts:
    """The duels of K arms by one credit function, [i, j] from the side of i.

    Attributes:
        won: (K, K), how often i beat j.
        even: (K, K), symmetric: ties with clicks, or of records without clicks to count.
        unclicked: (K, K), symmetric: lists without clicks.
        alone: duels of an arm with itself.
        clients: sums over clients, by the title of the rules under which duels count; empty if no
            client has two duels of a pair.
    """

    won: Floats
    even: Floats
    unclicked: Floats
    alone: int
    clients: Mapping[str, ClientSums] = field(default_factory=dict)

    @classmethod
    def none(cls, n_arms: int) -> Counts:
        """No duels yet."""
        won, even, unclicked = np.zeros((3, n_arms, n_arms))
        return cls(won, even, unclicked, alone=0)

    def added(self, i: int, j: int, numbers: Sequence[int]) -> Counts:
        """These counts with those of one pair: wins of i and of j, ties with clicks and without."""
        if i == j:
            return replace(self, alone=self.alone + sum(numbers))
        won, lost, even, unclicked = numbers
        self.won[i, j] += won
        self.won[j, i] += lost
        for cells, number in ((self.even, even), (self.unclicked, unclicked)):
            cells[[i, j], [j, i]] += number
        return self

    def ties(self, rules: Rules) -> Floats:
        """(K, K), symmetric: the ties that count."""
        if rules.ties == "drop":
            return np.zeros_like(self.even)
        return self.even + (self.unclicked if rules.no_click == "tie" else 0)

    def wins(self, rules: Rules) -> Floats:
        """(K, K): a tie that counts is half a win each way."""
        return self.won + self.ties(rules) / 2


class Part(NamedTuple):
    """A part of the duels of an experiment.

    Attributes:
        experiment: its name.
        segment: the number of a segment in the table `segments`; None: all duels.
    """

    experiment: str
    segment: int | None = None


def make_views(engine: Engine, names: Sequence[str]) -> None:
    """Make the view `scored`: duels, with twice the outcome for the first arm of the pair."""
    scores = ", ".join(
        f"CASE WHEN flipped THEN 2 - {each} ELSE {each} END AS {each}" for each in names
    )
    engine.rows(
        f"CREATE VIEW scored AS SELECT d.experiment, i, j, n, client, ts, segment, is_unclicked,"
        f" flipped, is_interleaved, {scores} FROM duels AS d JOIN credited AS c ON c.id = d.pattern"
    )


def count(
    engine: Engine,
    n_arms: Mapping[str, int],
    names: Sequence[str],
    rules: Sequence[Rules],
    *,
    view: str | None = None,
) -> dict[Part, dict[str, Counts]]:
    """Count the duels of each part by each credit function.

    Args:
        engine: with the view `scored`.
        n_arms: the number of arms of each experiment.
        names: of the credit functions.
        rules: how ties count, for the sums over clients; those of each are kept.
        view: `scored` with the `number` of a part, each of which is counted; None: all duels.
    """
    source = view or "(SELECT *, NULL::INTEGER AS number FROM scored)"
    same = _first_equals(engine, names)
    different = list(dict.fromkeys(same.values()))
    counted = _count(engine, source, "true", n_arms, different)
    most = _count_clients(engine, source, different, rules)
    if most:
        without_client = _count(engine, source, "client IS NULL", n_arms, different)
        ways = list(product(different, rules))
        for part, of_clients in _client_sums(engine, n_arms, ways, most).items():
            for (credit, each), sums in of_clients.items():
                if part in without_client:
                    _add_without_client(sums, without_client[part][credit], each)
            for credit in different:
                by_rules = {each.title: of_clients[credit, each] for each in rules}
                counted[part][credit] = replace(counted[part][credit], clients=by_rules)
    return {part: {name: each[same[name]] for name in names} for part, each in counted.items()}


def _first_equals(engine: Engine, names: Sequence[str]) -> dict[str, str]:
    """For each credit function the first one with the same outcomes, which is counted for it.

    In a log with at most one click per list, or with winners, all have the same.
    """
    pairs = [(name, other) for i, name in enumerate(names) for other in names[:i]]
    columns = ["count(*)", *(f"coalesce(bool_and({x} = {y}), true)" for x, y in pairs)]
    (row,) = engine.rows(f"SELECT {', '.join(columns)} FROM credited")
    same = {name: name for name in names}
    for (name, other), equal in zip(pairs, row[1:], strict=True):
        if equal:
            same[name] = same[other]
    return same


def _count(
    engine: Engine, source: str, where: str, n_arms: Mapping[str, int], names: Sequence[str]
) -> dict[Part, dict[str, Counts]]:
    """Count the duels of each part and pair."""
    kinds = (" = 2", " = 0", " = 1 AND is_unclicked = 0", " = 1 AND is_unclicked = 1")
    sums = ", ".join(
        f"coalesce(sum(n) FILTER ({credit}{kind}), 0)::BIGINT" for credit in names for kind in kinds
    )
    engine.run(
        "counting duels",
        f"CREATE OR REPLACE TABLE counted AS SELECT experiment, number, i, j, {sums}"
        f" FROM {source} WHERE {where} GROUP BY experiment, number, i, j",
    )
    found: dict[Part, dict[str, Counts]] = {}
    for experiment, number, i, j, *numbers in engine.rows("SELECT * FROM counted"):
        part = Part(experiment, number)
        if part not in found:
            found[part] = {credit: Counts.none(n_arms[experiment]) for credit in names}
        of_part = found[part]
        for place, credit in enumerate(names):
            of_part[credit] = of_part[credit].added(i, j, numbers[4 * place : 4 * place + 4])
    return found


def _count_clients(
    engine: Engine, source: str, names: Sequence[str], rules: Sequence[Rules]
) -> dict[str, float]:
    """Make the table `by_client`; m of each experiment where a client has two duels of a pair."""
    numbers = {"n": "true"}  # all duels of a client, for m
    for credit, each in product(names, rules):
        numbers[_number(credit, each)] = that_count(credit, each)
    columns = ", ".join(
        [f"coalesce(sum(n) FILTER ({those}), 0)::DOUBLE AS {n}" for n, those in numbers.items()]
        + [f"sum(n * ({credit} - 1))::DOUBLE / 2 AS s_{credit}" for credit in names]
    )
    engine.run(
        "counting duels of clients",
        f"CREATE OR REPLACE TABLE by_client AS SELECT experiment, number, i, j, client, {columns}"
        f" FROM {source} WHERE i <> j AND client IS NOT NULL"
        " GROUP BY experiment, number, i, j, client",
    )
    rows = engine.rows(  # `quantile_disc` would hold all clients in memory
        f"""
        WITH usual AS (
            SELECT experiment, n, sum(clients) OVER (PARTITION BY experiment ORDER BY n) AS upto,
                sum(clients) OVER (PARTITION BY experiment) AS total
            FROM (SELECT experiment, n, count(*) AS clients FROM by_client GROUP BY experiment, n)
        )
        SELECT experiment, min(n) FILTER (upto >= {USUAL} * total) FROM usual
        GROUP BY experiment HAVING max(n) > 1
        """
    )
    return {experiment: float(most) for experiment, most in rows}


def that_count(credit: str, rules: Rules) -> str:
    """The condition, in SQL, of the duels that count."""
    if rules.ties == "drop":
        return f"{credit} <> 1"
    return "is_unclicked = 0" if rules.no_click == "drop" else "true"


def _number(credit: str, rules: Rules) -> str:
    """The column of `by_client` with a client's duels that count: one for equal conditions."""
    if rules.ties == "drop":
        return f"decided_{credit}"
    return "clicked" if rules.no_click == "drop" else "n"


def _client_sums(
    engine: Engine,
    n_arms: Mapping[str, int],
    ways: Sequence[tuple[str, Rules]],
    most: Mapping[str, float],
) -> dict[Part, dict[tuple[str, Rules], ClientSums]]:
    """The sums over the clients of `by_client`, for each credit function and rules."""
    cases = " ".join(f"WHEN {quoted(each)} THEN {m}" for each, m in most.items())
    limit = f"CASE experiment {cases} END"
    sums = ", ".join(
        f"sum({term})"
        for credit, rules in ways
        for n in [_number(credit, rules)]
        for weight in [f"least(1, {limit} / greatest({n}, 1))"]
        for lead, duels in [(f"{weight} * s_{credit}", f"{weight} * {n}")]
        for term in (lead, duels, f"({lead}) ** 2", f"({lead}) * ({duels})", f"({duels}) ** 2")
    )
    rows = engine.rows(
        f"SELECT experiment, number, i, j, {sums} FROM by_client"
        f" WHERE experiment IN ({', '.join(map(quoted, most))}) GROUP BY experiment, number, i, j"
    )
    found: dict[Part, dict[tuple[str, Rules], ClientSums]] = {}
    for experiment, number, i, j, *numbers in rows:
        part, size = Part(experiment, number), n_arms[experiment]
        if part not in found:
            found[part] = {way: ClientSums.none(size, most[experiment]) for way in ways}
        for place, way in enumerate(ways):
            _put(found[part][way], i, j, numbers[5 * place : 5 * place + 5])
    return found


def _put(sums: ClientSums, i: int, j: int, numbers: Sequence[float]) -> None:
    """Set the sums of a pair, and of the pair seen from the other side."""
    for name, number in zip(sums._fields, numbers, strict=False):
        cells = getattr(sums, name)
        cells[i, j] = number
        cells[j, i] = -number if name in {"lead", "products"} else number


def _add_without_client(sums: ClientSums, counts: Counts, rules: Rules) -> None:
    """Add duels that name no client, each as the only one of a client."""
    lead = (counts.won - counts.won.T) / 2
    duels = counts.won + counts.won.T + counts.ties(rules)
    sums.lead[:] += lead
    sums.products[:] += lead
    sums.lead_squares[:] += (counts.won + counts.won.T) / 4
    sums.duels[:] += duels
    sums.duel_squares[:] += duels
