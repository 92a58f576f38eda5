"""Segments: parts of the traffic, each with its own champion, and whether they disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import structs

from streamduel.analysis.counting import Part, Rules, count
from streamduel.analysis.engine import Engine
from streamduel.analysis.findings import Judged
from streamduel.analysis.report import Finding
from streamduel.errors import readable
from streamduel.preference.segments import Disagreement, disagreement
from streamduel.records import MAX_NAME, MAX_SEGMENTS

MAX_VALUES: Final = 20
"""Segments of one kind that are analyzed, the largest: each lowers the others' confidence."""

Segment = tuple[str, str]
"""The kind of a segment, and its name."""


def find_segments(engine: Engine) -> list[Segment]:
    """Make the view `by_segment`, and return its segments by their number.

    Each text of the field `segment` is read once; a log may have as many texts as duels. As in the
    service, a plain one belongs to every kind that has a segment of this name.
    """
    engine.run(
        "looking for segments",
        f"""
        CREATE TABLE named_segments AS
        WITH texts AS (
            SELECT segment AS text, sum(n) AS n FROM duels WHERE segment IS NOT NULL GROUP BY text
        ), named AS (
            SELECT text, n, s.kind, s.name, s.place, starts_with(text, '{{') AS is_object
            FROM (SELECT text, n, unnest(segments_of(text)) AS s FROM texts)
            WHERE len(s.name) BETWEEN 1 AND {MAX_NAME} AND len(s.kind) <= {MAX_NAME}
        ), of_kinds AS (
            SELECT kind, name, min(place) AS place FROM named WHERE is_object GROUP BY kind, name
        )
        SELECT text, n, coalesce(k.kind, named.kind) AS kind, named.name,
            coalesce(k.place, named.place) AS place
        FROM named LEFT JOIN of_kinds AS k ON NOT is_object AND k.name = named.name
        """,
    )
    engine.run(
        "ranking segments",
        f"""
        CREATE TABLE largest_segments AS
        WITH kinds AS (
            SELECT kind, row_number() OVER (ORDER BY sum(n) DESC, min(place), kind) AS of_kind
            FROM named_segments GROUP BY kind QUALIFY of_kind <= {MAX_SEGMENTS}
        ), sizes AS (
            SELECT of_kind, kind, name,
                row_number() OVER (PARTITION BY kind ORDER BY sum(n) DESC, name) AS of_name
            FROM named_segments JOIN kinds USING (kind) GROUP BY of_kind, kind, name
            QUALIFY of_name <= {MAX_VALUES}
        )
        SELECT kind, name, row_number() OVER (ORDER BY of_kind, of_name) - 1 AS number FROM sizes;
        CREATE TABLE numbered_segments AS
        SELECT text, number FROM named_segments JOIN largest_segments USING (kind, name);
        CREATE VIEW by_segment AS
        SELECT s.*, m.number FROM scored AS s JOIN numbered_segments AS m ON m.text = s.segment
        """,
    )
    return engine.rows("SELECT kind, name FROM largest_segments ORDER BY number")


def judge_segments(
    engine: Engine,
    arms: Mapping[str, Sequence[str]],
    credit: str,
    rules: Rules,
    segments: Sequence[Segment],
    view: str = "by_segment",
) -> dict[str, dict[str, dict[str, Judged]]]:
    """What each segment of each experiment says: by experiment, kind and name.

    Confidence and intervals are corrected for the number of segments that are looked at. `view` has
    the duels, with the numbers of their segments.
    """
    if not segments:
        return {}
    sizes = {name: len(each) for name, each in arms.items()}
    counted = count(engine, sizes, [credit], [rules], view=view)
    looks = Counter(part.experiment for part in counted)
    found: dict[str, dict[str, dict[str, Judged]]] = {}
    for part in sorted(counted, key=_order):
        kind, name = segments[part.segment or 0]
        judged = Judged(counted[part][credit], rules, looks[part.experiment])
        if judged.duels > judged.counts.alone:
            found.setdefault(part.experiment, {}).setdefault(kind, {})[name] = judged
    return found


def _order(part: Part) -> tuple[str, int]:
    return part.experiment, part.segment or 0


def findings_of(
    segments: Mapping[str, Mapping[str, Judged]], arms: Sequence[str]
) -> dict[str, dict[str, Finding]]:
    """The findings of one experiment's segments: of duels of two arms, as the service counts."""
    return {
        kind: {
            name: structs.replace(judged.finding(arms), duels=judged.duels - judged.counts.alone)
            for name, judged in of_kind.items()
        }
        for kind, of_kind in segments.items()
    }


def disagreements_of(
    segments: Mapping[str, Mapping[str, Judged]], arms: Sequence[str]
) -> dict[str, Disagreement]:
    """For each kind, whether its segments disagree by more than chance.

    They do if the intervals of a pair's win rate in two segments do not overlap. All intervals of
    all segments hold together with a probability of 95 %.
    """
    return {
        kind: disagreement(
            kind, {name: judged.pairs(arms) for name, judged in of_kind.items()}, readable
        )
        for kind, of_kind in segments.items()
        if len(of_kind) > 1
    }
