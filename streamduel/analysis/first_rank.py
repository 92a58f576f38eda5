"""Whether the ranks of clicks in another program's log begin with 0 or with 1."""

from __future__ import annotations

from typing import Final

from streamduel.analysis.engine import Engine
from streamduel.errors import counted

MANY_CLICKS: Final = 100
"""Among so many clicks, some are on the first rank with a team: it has more than any other."""


def first_rank(engine: Engine) -> int:
    """The number of the first rank: 1 if that alone fits, else 0.

    It alone fits if no click has rank 0, and one has the number of ranks of its list, or
    `MANY_CLICKS` could be on the first rank with a team if ranks began with 0. A first rank without
    a team, such as an advertisement, may have no clicks at all. The checks tell what is assumed
    where no click has rank 0.
    """
    least, beyond, clicks, with_team, nearest = engine.rows(
        """
        SELECT min(rank), bool_or(rank = len(teams)), count(*),
            count(*) FILTER (first = 0), min(rank - first)
        FROM (
            SELECT rank, teams, len(teams) - len(ltrim(teams, '-')) AS first FROM (
                SELECT unnest(clicks).rank AS rank, teams FROM kept
                WHERE is_numbered AND kind = 'interleaving'
                UNION ALL
                SELECT rank, teams FROM clicks WHERE is_numbered AND outcome = 'accepted'
            )
        )
        """
    )[0]
    if least is None or least < 1:
        return 0
    is_one = beyond or with_team >= MANY_CLICKS or (clicks >= MANY_CLICKS and nearest >= 1)
    verdict, sentence = "fine", "ranks are taken to begin with 1."
    if not is_one:
        why = "first ranks without a team may have none"
        if with_team == clicks:
            why = f"fewer than {MANY_CLICKS} clicks do not show that they begin with 1"
        verdict, sentence = (
            "warning",
            f"ranks are taken to begin with 0, because {why}. If they begin with 1, subtract 1 with"
            " --sql.",
        )
    engine.rows(
        "INSERT INTO readings VALUES ('ranks', ?, ?)",
        [verdict, f"None of {counted(clicks, 'click')} has rank 0; {sentence}"],
    )
    return int(is_one)
