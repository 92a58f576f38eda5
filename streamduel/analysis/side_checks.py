"""Checks of the sides of lists and duels: their names, and whether they are drawn fairly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from streamduel.analysis.differences import difference
from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.report import Check
from streamduel.errors import counted, readable
from streamduel.preference.evidence import unfairness
from streamduel.preference.exponential import exp
from streamduel.stream.alarms import UNFAIR
from streamduel.stream.team_patterns import WHOLE

FEW: Final = 100
"""Duels of a ranker that may be on one side by chance."""

ONE_SIDED: Final = 0.95
"""The share of a ranker's duels on one side from which users' habits may decide."""


def named(engine: Engine, experiment: str, arms: Sequence[str]) -> list[Check]:
    """Whether the log names no rankers, so that its sides are in their place, or one twice."""
    (sides_only,) = engine.rows(
        "SELECT bool_and(is_flat AND a = 'a' AND b = 'b') FROM events WHERE kind <> 'click'"
        f" AND problem IS NULL AND experiment = {quoted(experiment)}"
    )[0]
    if sides_only:
        return [Check("rankers", "warning", "The log names no rankers; sides are compared.")]
    alike: dict[str, list[str]] = {}
    for arm in arms:
        alike.setdefault("".join(arm.split()).lower(), []).append(arm)
    listed = [" and ".join(map(readable, each)) for each in alike.values() if each[1:]]
    if not listed:
        return []
    sentence = (
        f"{'; '.join(listed[:3])} are different rankers here, and differ only in case or spaces. If"
        " they are one, write the name alike in all rows, such as with --sql."
    )
    return [Check("rankers", "warning", sentence)]


def fairness(engine: Engine, experiment: str) -> list[Check]:
    """Team fairness and the sample ratio, of the sides and of each arm against its opponents.

    In team draft a coin decides whose turn it is, so documents, top ranks and prominent ranks
    balance in the long run, for any rankings.
    """
    rows = engine.rows(
        f"""
        WITH looks AS (
            SELECT teams, len(teams) - len(replace(teams, 'a', '')) AS ours,
                len(teams) - len(replace(teams, 'b', '')) AS theirs,
                (teams[1] = 'a')::INTEGER AS top, (teams[1] = 'b')::INTEGER AS other_top,
                {WHOLE} * list_sum([
                    CASE teams[r] WHEN 'a' THEN 1 / r WHEN 'b' THEN -1 / r ELSE 0 END
                    for r in range(1, len(teams) + 1)
                ]) / list_sum([1 / r for r in range(1, len(teams) + 1)]) AS lead
            FROM (SELECT DISTINCT teams FROM lists WHERE teams <> '')
        )
        SELECT a, b, count(*), sum(ours), sum(theirs), sum(top), sum(other_top), sum(round(lead))
        FROM lists JOIN looks USING (teams)
        WHERE experiment = {quoted(experiment)} AND NOT is_outside AND NOT is_sides
        GROUP BY a, b
        """
    )
    if not rows:
        nothing = "The log has no lists with teams, so this cannot be checked."
        return [
            Check("team fairness", "unknown", nothing),
            Check("sample ratio", "unknown", nothing),
        ]
    tallies: dict[str, list[float]] = {}
    for a, b, *numbers in rows:
        own = shown, ours, theirs, top, other_top, lead = tuple(float(each) for each in numbers)
        mirrored = shown, theirs, ours, other_top, top, -lead
        for name, added in (("side a", own), (a, own), (b, mirrored)):
            tally = tallies.setdefault(name, [0.0] * 6)
            tallies[name] = [x + y for x, y in zip(tally, added, strict=True)]
    documents = {name: (each[1], each[2]) for name, each in tallies.items()}
    prominence = {
        name: ((each[0] + each[5] / WHOLE) / 2, (each[0] - each[5] / WHOLE) / 2)
        for name, each in tallies.items()
    }
    tops = {name: (each[3], each[4]) for name, each in tallies.items()}
    n_lists = sum(int(row[2]) for row in rows)
    return [
        _even("team fairness", {"documents": documents, "prominent ranks": prominence}, n_lists),
        _even("sample ratio", {"top ranks": tops}, n_lists),
    ]


def sides(engine: Engine, experiment: str, credit: str, most: float | None) -> list[Check]:
    """Whether rankers change sides, and whether the side decides about wins if they do.

    Args:
        engine: with the view `scored`.
        experiment: its name.
        credit: the credit function that decides.
        most: the duels that a client counts for at most; None: all duels are independent.
    """
    found = [*_placed(engine, experiment), *_won(engine, experiment, credit, most)]
    return ([each for each in found if each.verdict != "fine"] or found)[:1]


def _won(engine: Engine, experiment: str, credit: str, most: float | None) -> list[Check]:
    """Whether side a wins half of the lists, where both orders of a pair count equally."""
    decided = (
        f"FROM scored WHERE experiment = {quoted(experiment)} AND is_interleaved AND i <> j"
        f" AND {credit} <> 1"
    )
    if not engine.rows(f"SELECT 1 {decided} LIMIT 1"):
        return []
    columns = f"(i, j) AS stratum, flipped AS is_second, {credit} = 2 AS is_won, client, 1 AS times"
    found = difference(engine, f"SELECT {columns} {decided}", most)
    if found is None:
        sentence = (
            "Each pair was served in one order only, so that a fault of one side cannot be told"
            " from a preference. Swap the sides in half of the lists."
        )
        return [Check("sides", "unknown", sentence)]
    share = (1 + found.first - found.second) / 2
    lists = f"{counted(found.duels, 'decided list')} of pairs in both orders"
    if 1 - 2 * exp(-found.evidence) <= UNFAIR:
        return [Check("sides", "fine", f"{lists}: no sign that one side wins more often.")]
    sentence = (
        f"Side a wins {share:.1%} of the {lists}, where half is expected: look for clicks that are"
        " lost, or counted twice, on one side. Until then, do not trust the win rates, nor the"
        " result of pairs that are served in one order more often."
    )
    return [Check("sides", "failed", sentence)]


def _placed(engine: Engine, experiment: str) -> list[Check]:
    """Whether rankers change sides, in a log that says which one was on the left, or first."""
    columns = [
        readable(column, 80)
        for (column,) in engine.rows("SELECT DISTINCT col FROM places ORDER BY 1")
    ]
    if not columns:
        return []
    rows = engine.rows(
        f"""
        WITH duels AS (
            SELECT a, b FROM events WHERE is_flat AND problem IS NULL AND kind <> 'click'
                AND a <> b AND experiment = {quoted(experiment)}
        ), placed AS (SELECT a AS arm, 1 AS place FROM duels UNION ALL SELECT b, 0 FROM duels)
        SELECT arm, avg(place) AS share, count(*) FROM placed GROUP BY arm
        HAVING count(*) >= {FEW} ORDER BY greatest(share, 1 - share) DESC, arm LIMIT 1
        """
    )
    share = max(rows[0][1], 1 - rows[0][1]) if rows else 0.5
    if share <= ONE_SIDED:
        return [Check("sides", "fine", "No ranker is nearly always on one side.")]
    arm, first, _ = rows[0]
    where = f"in '{min(columns)}'" if first > 1 / 2 else f"on the side other than '{min(columns)}'"
    sentence = (
        f"{readable(arm)} is {where} in {share:.1%} of its duels: a preference for this side cannot"
        " be told from one for the ranker. Draw the sides at random."
    )
    return [Check("sides", "warning", sentence)]


def _even(
    name: str, features: Mapping[str, Mapping[str, tuple[float, float]]], lists: int
) -> Check:
    """Whether coins are fair."""
    coins = {(who, what): coin for what, each in features.items() for who, coin in each.items()}
    confidence = unfairness(coins.values())
    if confidence <= UNFAIR:
        return Check(name, "fine", f"{counted(lists, 'list')}: no sign of unfair interleaving.")
    (who, what), coin = max(coins.items(), key=lambda each: unfairness([each[1]]))
    share = coin[0] / sum(coin)
    return Check(
        name,
        "failed",
        f"{readable(who)} has {share:.1%} of the {what}, where fair coins give half. Do not trust"
        " the result until the service that interleaves is fixed, unless its method is not"
        " team draft.",
    )
