"""Checks of the clients: bots, and whether a few clients decide."""

from __future__ import annotations

from typing import Final

from streamduel.analysis.engine import Engine
from streamduel.analysis.report import Check, Clients, Finding
from streamduel.errors import counted, readable
from streamduel.preference.verdict import LEVEL, at_least
from streamduel.stream.client_cap import DOMINATED

SKEWED: Final = 5
"""How many times the duels of the average client the busiest one has where a few may decide."""

OUTLANDISH: Final = 50
"""A client with so many times the median number of duels is no usual user, if it has `MANY`."""

MANY: Final = 100
"""Duels that a busy user may have."""

UNNAMED: Final = 0.1
"""The share of duels without a client from which on heavy users among them may decide."""


def bots(engine: Engine, found: Clients) -> Check:
    """Whether clients with far more duels than the median have many of all.

    Args:
        engine: with the view `duels_of_clients`, of one experiment.
        found: its clients.
    """
    name = "bots"
    if not found.clients:
        return Check(name, "unknown", "The records name no clients, so bots cannot be recognised.")
    median, crawlers, of_crawlers = engine.rows(
        f"""
        WITH placed AS (
            SELECT n, sum(clients) OVER (ORDER BY n) AS upto, sum(clients) OVER () AS total
            FROM (SELECT n, count(*) AS clients FROM duels_of_clients GROUP BY n)
        ), usual AS (  -- `median` would hold all clients in memory
            SELECT (min(n) FILTER (2 * upto >= total) + min(n) FILTER (2 * upto > total)) / 2 AS m
            FROM placed
        )
        SELECT any_value(m), count(*) FILTER (n > greatest({MANY}, {OUTLANDISH} * m)),
            coalesce(sum(n) FILTER (n > greatest({MANY}, {OUTLANDISH} * m)), 0)
        FROM duels_of_clients, usual
        """
    )[0]
    share = float(of_crawlers) / max(1, found.duels + found.unnamed)
    sentence = (
        f"The median client has {median:g} duel{'' if median == 1 else 's'}, the busiest"
        f" {found.busiest:,}; {share:.1%} of the duels are of {counted(crawlers, 'client')} with"
        " far more duels than the median."
    )
    if share <= DOMINATED:
        return Check(name, "fine", sentence)
    return Check(
        name,
        "warning",
        f"{sentence} They have little influence on the confidence; check which clients they are.",
    )


def dependence(engine: Engine, finding: Finding, clients: Clients) -> Check:
    """Whether a few clients decide."""
    name, others = "dependence on clients", _others(engine)
    if not clients.clients:
        sentence = "The records name no clients; all duels are taken as independent."
        if not others:
            return Check(name, "unknown", sentence)
        return Check(
            name,
            "warning",
            f"{sentence} If {_listed(others)} names them, say so, --map client={others[0]}: a few"
            " clients may make the difference.",
        )
    sentence = f"{counted(clients.duels, 'duel')}, {counted(clients.clients, 'client')}."
    total = clients.duels + clients.unnamed
    if clients.unnamed:
        sentence += (
            f" {clients.unnamed:,} of {total:,} duels name no client and are taken as independent."
        )
    more = f" {_listed(others)} may name them instead: --map client={others[0]}." if others else ""
    if clients.confidence_of_duels >= LEVEL > finding.confidence:
        few = clients.busiest * clients.clients > SKEWED * clients.duels
        why = "a few clients make the difference" if few else "clients repeat themselves"
        return Check(
            name,
            "warning",
            f"{sentence} As independent duels they would give"
            f" {at_least(clients.confidence_of_duels)} confidence, with clients as the unit"
            f" {at_least(finding.confidence)}: {why}.{more}",
        )
    if clients.unnamed > UNNAMED * total:
        return Check(
            name,
            "warning",
            f"{sentence} A few clients among them may make the difference.{more}",
        )
    if clients.unit == "duel":
        return Check(name, "fine", f"{sentence} None has two duels of one pair.")
    return Check(name, "fine", f"{sentence} Clients are the unit of the confidence.")


def _others(engine: Engine) -> list[str]:
    """Columns that may hold the clients, and are not taken for them."""
    rows = engine.rows("SELECT DISTINCT col FROM other_clients ORDER BY col LIMIT 3")
    return [readable(column, 80) for (column,) in rows]


def _listed(columns: list[str]) -> str:
    return " or ".join(f"'{column}'" for column in columns)
