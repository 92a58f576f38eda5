"""Whether arms win more in one group of their duels than in the other, for any mix of pairs.

Of each stratum, such as a pair, both groups get the same weight, so that neither the strength of
an arm nor the frequency of a stratum is taken for a difference. All duels of a client are one
wager, as in `streamduel.preference.clients`; the weights are those after its limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamduel.analysis.engine import Engine
from streamduel.preference.clients import ClientSums, log_evidence_of_clients
from streamduel.preference.evidence import log_evidence_of


class Difference(NamedTuple):
    """The win rates of two groups of decided duels.

    Attributes:
        duels: of the strata with duels in both groups.
        first: the weighted win rate of the first group.
        second: that of the second group.
        evidence: that they differ in the direction of these rates, in nats, as the less sure of
            two views: duels as independent, and clients.
    """

    duels: int
    first: float
    second: float
    evidence: float


def difference(engine: Engine, rows: str, most: float | None) -> Difference | None:
    """The difference between two groups of duels; None if no stratum has both.

    Args:
        engine: with the tables that `rows` reads.
        rows: a query of decided duels: `stratum`, `is_second`, `is_won`, `client`, and
            how many `times` there was one.
        most: the duels that a client counts for at most; None: all duels are independent.
    """
    duels, *of_duels = _sums(engine, rows, None)
    if not duels:
        return None
    views: list[Sequence[float]] = [of_duels]
    if most is not None:
        views.append(_sums(engine, rows, most)[1:])
    evidence = []
    for is_of_clients, (weight, lead, squares, _) in enumerate(views):
        ahead = np.array([abs(lead)])
        if is_of_clients:
            none = np.zeros(1)
            sums = ClientSums(ahead, none, np.array([squares]), none, none, most or 1.0)
            evidence.append(float(log_evidence_of_clients(sums)[0]))
        else:  # as many fair coins have at least the variance of the weighted duels
            evidence.append(float(log_evidence_of(weight + ahead, weight - ahead)[0]))
    weight, lead, _, first = views[-1]
    return Difference(duels, first / weight, (first - lead) / weight, min(evidence))


def _sums(engine: Engine, rows: str, most: float | None) -> tuple[int, float, float, float, float]:
    """Duels, weight of a group, wins of the first less the second, squares, wins of the first."""
    client = "NULL::VARCHAR" if most is None else "client"
    [row] = engine.rows(
        f"""
        WITH cells AS (
            SELECT stratum, is_second, {client} AS client, sum(times)::DOUBLE AS n,
                sum(CASE WHEN is_won THEN times / 2 ELSE -times / 2 END) AS s
            FROM ({rows}) GROUP BY ALL
        ), clients AS (
            SELECT client, least(1, {most or 1} / sum(n)) AS u FROM cells
            WHERE client IS NOT NULL GROUP BY client
        ), limited AS (
            SELECT cells.*, coalesce(u, 1) AS u FROM cells LEFT JOIN clients USING (client)
        ), halves AS (
            SELECT stratum, is_second, sum(n * u) AS total FROM limited GROUP BY ALL
        ), weights AS (
            SELECT *, min(total) OVER of_both / total AS w, count(*) OVER of_both AS sides
            FROM halves WINDOW of_both AS (PARTITION BY stratum)
        ), weighed AS (
            SELECT client, is_second, n, u * w AS w, s,
                CASE WHEN is_second THEN -1 ELSE 1 END * u * w * s AS y
            FROM limited JOIN weights USING (stratum, is_second) WHERE sides = 2
        ), wagers AS (
            SELECT sum(y) ** 2 AS q FROM weighed WHERE client IS NOT NULL GROUP BY client
            UNION ALL SELECT n * w ** 2 / 4 FROM weighed WHERE client IS NULL
        )
        SELECT coalesce(sum(n), 0)::BIGINT, sum(n * w) FILTER (NOT is_second), sum(y),
            (SELECT sum(q) FROM wagers), sum(w * (s + n / 2)) FILTER (NOT is_second) FROM weighed
        """
    )
    duels, weight, lead, squares, wins = row
    return int(duels), weight, lead, squares, wins
