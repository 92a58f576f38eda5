"""Crediting: every pattern of clicks is credited once, by every credit function.

Lists with the same teams at the clicked ranks, the same clicks and the same chances have the same
winner. A log of a hundred million lists of ten ranks has some thousand patterns, so that the
project's own credit functions, in Python, take no time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from streamduel.analysis.engine import Engine, quoted
from streamduel.errors import ConfigurationError, listed
from streamduel.interleaving.credit import CREDITS, Click, Credit, Shown, create

CREDITED_AT_ONCE: Final = 10_000

POWER_LAW: Final = 1
"""The parameter `eta`, where propensities were not measured: the usual one."""

_ENTRY = re.compile(r"([ab-])(\d+)(?:@([^:]*))?(?::(.*))?", re.DOTALL)

_DECIDED: Final = {"=a": 2, "=b": 0, "=t": 1, "=n": 1}
"""Twice the outcome for side a of duels that were credited before."""


def functions(name: str, weights: Mapping[str, float]) -> dict[str, Credit]:
    """The credit functions to compare, the wanted one first.

    Those with a required parameter that is not known here are left out.

    Args:
        name: the wanted one.
        weights: of actions, the parameter `weights`; none: not known.

    Raises:
        InterleavingError: there is no such credit function, or a parameter of it is not known.
    """
    known: dict[str, object] = {"eta": POWER_LAW, **({"weights": weights} if weights else {})}
    found = {}
    for each in dict.fromkeys([name, *CREDITS]):
        declared = CREDITS[each].parameters if each in CREDITS else {}
        unknown = any(required and one not in known for one, required in declared.items())
        if each == name or not unknown:
            found[each] = create(each, **{one: known[one] for one in declared if one in known})
    return found


def fit(engine: Engine, by_name: Mapping[str, Credit], wanted: str) -> dict[str, Credit]:
    """The credit functions for which the log says enough about the clicks.

    Args:
        engine: with the table `lists`.
        by_name: the credit functions.
        wanted: the name of the one that determines the champion.

    Raises:
        ConfigurationError: the log says too little for the wanted one.
    """
    sides_only, counted = engine.rows(
        "SELECT coalesce(bool_or(is_sides), false), coalesce(bool_or(is_counted), false) FROM lists"
    )[0]
    unsaid = {"order": counted, "ranks": sides_only}
    unfit = {name: [need for need in CREDITS[name].needs if unsaid[need]] for name in by_name}
    found = {name: each for name, each in by_name.items() if not unfit[name]}
    if unfit[wanted]:
        raise ConfigurationError(
            f"--credit {wanted} needs the {unfit[wanted][0]} of the clicks, and for some lists only"
            f" the clicks of each side are known (allowed: {', '.join(sorted(found))})."
        )
    return found


def credit(engine: Engine, by_name: Mapping[str, Credit]) -> None:
    """Make the table `credited`: for each pattern, twice the outcome for side a by each function.

    Args:
        engine: with the table `patterns`.
        by_name: the credit functions.
    """
    total = engine.rows("SELECT count(*) FROM patterns")[0][0]
    path = engine.folder / "credited.csv"
    used, done = list(by_name.values()), 0
    with path.open("w", encoding="ascii") as file:
        while done < total:
            rows = engine.rows(
                f"SELECT id, pattern FROM patterns WHERE id >= {done}"
                f" AND id < {done + CREDITED_AT_ONCE} ORDER BY id"
            )
            for id_, pattern in rows:
                outcomes = credit_pattern(pattern, used)
                file.write(f"{id_},{int(pattern == '')},{','.join(map(str, outcomes))}\n")
            done += CREDITED_AT_ONCE
            engine.done("crediting", min(1.0, done / total))
    columns = ", ".join(f"'{each}': 'TINYINT'" for each in ("is_unclicked", *by_name))
    engine.run(
        "reading credits",
        f"CREATE TABLE credited AS SELECT * FROM read_csv({quoted(str(path))}, header = false,"
        f" columns = {{'id': 'INTEGER', {columns}}})",
    )


def check_weights(engine: Engine, weights: Collection[str]) -> None:
    """Let the checks say that no click has an action with a weight, which may be misspelt.

    Args:
        engine: with the tables `lists` and `readings`.
        weights: the actions.
    """
    if not weights:
        return
    actions = engine.keep(
        "counting actions",
        "SELECT coalesce(click.action, 'click') AS action, count(*) AS n"
        " FROM (SELECT unnest(clicks) AS click FROM lists) GROUP BY 1",
    )
    named = f"SELECT action FROM {actions} WHERE action IN ({', '.join(map(quoted, weights))})"
    found = {action for (action,) in engine.rows(named)}
    missing = [action for action in weights if action not in found]
    if missing:
        frequent = engine.rows(f"SELECT action FROM {actions} ORDER BY n DESC, action LIMIT 11")
        there = listed([action for (action,) in frequent], "'")
        engine.rows(
            "INSERT INTO readings VALUES ('weights', 'warning', ?)",
            [
                f"Of the actions of --weight, no click has {listed(missing, chr(39))};"
                f" {f'clicks have {there}' if there else 'the log has no clicks'}."
            ],
        )


def credit_pattern(pattern: str, used: Sequence[Credit]) -> list[int]:
    r"""Twice the outcome for side a: 2 when it wins, 1 for a tie, 0 when side b wins.

    Args:
        pattern: as `pattern_of` in `macros.sql` writes it.
        used: credit functions.

    >>> from streamduel.interleaving.credit import click_count, first_click
    >>> credit_pattern("b3\x1fa0\x1fa1", [click_count, first_click]), credit_pattern("=b", [])
    ([2, 0], [])
    """
    if pattern in _DECIDED:
        return [_DECIDED[pattern]] * len(used)
    entries = [_ENTRY.fullmatch(part) for part in pattern.split("\x1f")] if pattern else []
    found = [entry.groups() for entry in entries if entry is not None]
    clicks = [Click(int(rank), action or "click") for _, rank, _, action in found]
    n_ranks = max((click.rank for click in clicks), default=-1) + 1
    teams: list[str | None] = [None] * n_ranks
    chances: list[float | None] = [None] * n_ranks
    for click, (team, _, chance, _) in zip(clicks, found, strict=True):
        teams[click.rank] = None if team == "-" else team
        chances[click.rank] = float(chance) if chance else None
    known = any(chance is not None for _, _, chance, _ in found)
    shown = Shown(teams, chances if known else None)
    return [round(2 * function(shown, clicks)) for function in used]
