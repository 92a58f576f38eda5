"""The fields of a click log, and the columns of other people's logs that hold them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from streamduel.analysis.names import (
    ENVELOPES,
    LOSERS,
    NAMES,
    NAMES_OF_SIDES,
    OF_OBJECTS,
    OF_SIDES,
    OPPONENTS,
    RANKERS,
    SEGMENTS,
)
from streamduel.errors import ConfigurationError, nearest, shortened
from streamduel.records import MAX_SEGMENTS

OF_LISTS: Final = OF_SIDES | {"teams", "winner"}
"""Fields that only lists and duels have."""

OF_LISTS_ONLY: Final = frozenset({"a", "b", "clicks", "clicked_docs"})
"""Fields that a log of clicks, apart from their lists, does not have."""

OF_CLICKS_ONLY: Final = frozenset({"impression", "clicked"})
"""Fields that only a log of clicks has."""

OF_OTHERS: Final = (OF_SIDES - {"wins_a", "wins_b"}) | {"clicked_docs", "clicked", "segment"}
"""Fields that streamduel's own records do not have, or, as `segment`, have in another form."""

OF_RECORDS: Final = frozenset({"type", "arm"})
"""Fields of logs whose records have types."""


class Chosen:
    """The columns given with `--map FIELD=COLUMN`.

    Args:
        texts: as written; `segment` may be given several times.

    Raises:
        ConfigurationError: one is not FIELD=COLUMN, or there is no such field.

    >>> Chosen(["a=left_ranker", "segment=country", "segment=device"]).columns
    {'a': 'left_ranker'}
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.columns: dict[str, str] = {}
        self.segments: list[str] = []
        for text in texts:
            field, equals, column = (part.strip() for part in text.partition("="))
            if not equals or not field or not column:
                raise ConfigurationError(
                    f"--map must be FIELD=COLUMN, such as a=left_ranker (found {text!r})."
                )
            if field not in NAMES:
                hint = nearest(field, NAMES) or "."
                raise ConfigurationError(
                    f"--map must name one of {', '.join(NAMES)} (found {field!r}){hint}"
                )
            if field == "segment":
                self.segments.append(column)
            elif field in self.columns:
                raise ConfigurationError(
                    f"--map must name a column once for '{field}' (found "
                    f"'{self.columns[field]}' and '{column}')."
                )
            else:
                self.columns[field] = column
        a = self.columns.get("a")
        if a is not None and a == self.columns.get("b"):
            raise ConfigurationError(
                f"--map must name different columns for a and b (found '{a}' for both)."
            )

    def plus(self, field: str, column: str) -> Chosen:
        """These columns, and one more."""
        chosen = Chosen([])
        chosen.columns, chosen.segments = self.columns | {field: column}, self.segments
        return chosen

    @property
    def wanted(self) -> list[str]:
        """All columns, each once."""
        return list(dict.fromkeys([*self.columns.values(), *self.segments]))

    def check(self, columns: Iterable[str]) -> None:
        """Refuse a column that no part of the log has."""
        known = set(columns)
        for column in self.wanted:
            if column not in known and column.split(".")[0] not in known:
                hint = nearest(column, known) or "."
                listed = ", ".join(sorted(known)[:20]) or "none"
                raise ConfigurationError(
                    f"--map names the column '{column}', which the log does not have"
                    f"{hint} Its columns are {shortened(listed, 400)}."
                )


def plain(column: str) -> str:
    """A column's name for comparisons, in lower case, without separators.

    Inside an object it is the last part, and the object's name before it if that says more.

    >>> plain("Left_Ranker"), plain("attributes.ranker-a"), plain("user.id"), plain("payload.id")
    ('leftranker', 'rankera', 'userid', 'id')
    >>> plain("left.ranker"), plain("rankers.a"), plain("test.left")
    ('leftranker', 'rankera', 'left')
    """
    *outer, last = (re.sub(r"[^a-z0-9]", "", part) for part in column.lower().split("."))
    if not outer or outer[-1] in ENVELOPES:
        return last
    whole = (outer[-1] + last, outer[-1].removesuffix("s") + last)
    if last in OF_OBJECTS:
        return whole[0]
    return next((name for name in whole if name in NAMES_OF_SIDES), last)


def segment_name(column: str) -> str:
    """The name of a segment in a column.

    >>> segment_name("user.country"), segment_name("user.device.type")
    ('country', 'device.type')
    """
    *outer, last = column.split(".")
    return last if plain(column) == plain(last) else f"{outer[-1]}.{last}"


class Columns(NamedTuple):
    """Where a table or the objects of a file have the fields.

    Attributes:
        fields: the column of each field.
        segments: the columns that are segments.
    """

    fields: dict[str, str]
    segments: list[str]

    @property
    def tell_winners(self) -> bool:
        """Whether there may be duels in the columns."""
        there = self.fields.keys()
        return (
            bool({"winner", "teams", "won_a", "won_b"} & there)
            or {"wins_a", "wins_b"} <= there
            or {"clicks_a", "clicks_b"} <= there
            or {"score_a", "score_b"} <= there
        )


def own_columns(chosen: Chosen) -> Columns:
    """The fields of streamduel's own records, which have their own names."""
    fields = {name: name for name in NAMES if name not in OF_OTHERS}
    return Columns({**fields, **chosen.columns}, chosen.segments or ["segment"])


def find_columns(columns: Sequence[str], chosen: Chosen, *, typed: bool) -> Columns:
    """The columns of a log that was not written for streamduel, by their names.

    Args:
        columns: the columns of a table or the fields of JSON objects, nested ones with dots.
        chosen: those that the user gave.
        typed: whether a column names the type of each record, as streamduel's own records do.

    >>> find_columns(["qid", "left_ranker", "right_ranker", "winner", "country"], Chosen([]),
    ...              typed=False).fields
    {'a': 'left_ranker', 'b': 'right_ranker', 'winner': 'winner', 'id': 'qid'}
    >>> find_columns(["impression_id", "position", "time"], Chosen([]), typed=False).fields
    {'impression': 'impression_id', 'rank': 'position', 'ts': 'time'}
    """
    found = {field: column for field, column in chosen.columns.items() if _has(columns, column)}
    segments = [column for column in chosen.segments if _has(columns, column)]
    taken = {*found.values(), *segments}
    free: dict[str, str] = {}
    objects = {column.rsplit(".", 1)[0] for column in columns if "." in column}
    for column in sorted(columns, key=lambda each: (each.count("."), each[:1] == "_")):
        # Outer ones first, and `id` before the `_id` of a document store.
        if column not in taken and column not in objects:
            free.setdefault(plain(column), column)
    skipped = _skipped(free, found, typed=typed)
    for field, names in NAMES.items():
        if field in found or field in skipped:
            continue
        matching = [free[name] for name in names if name in free]
        if matching:
            found[field] = matching[0]
            del free[plain(matching[0])]
    if "a" not in found and plain(found.get("b", "")) in OPPONENTS:
        of_one = (name + end for name in RANKERS for end in ("", "name", "id"))
        found.update([("a", free[name]) for name in of_one if name in free][:1])
        if plain(found["b"]).startswith(LOSERS):
            if "chosen" in free:  # in logs without losers, what is clicked
                found.setdefault("winner", free["chosen"])
            if "winner" in found:
                found["a"] = found["winner"]
    if typed and "impression" in found and not {"rank", "doc"} & found.keys():
        of_click = {"doc": "clicked_docs", "rank": "clicks"}  # also of a record of its own
        found.update({field: found[same] for field, same in of_click.items() if same in found})
    if not segments:
        of_segments = (name for name in free if name in SEGMENTS or name.startswith("segment"))
        segments = [free[name] for name in of_segments][:MAX_SEGMENTS]
    return Columns(found, segments)


def _skipped(free: Mapping[str, str], found: Mapping[str, str], *, typed: bool) -> frozenset[str]:
    """The fields that a log of this kind does not have."""
    if typed:
        return frozenset()
    there = {field for field, names in NAMES.items() if any(name in free for name in names)}
    there.update(found)
    apart = not {"clicks", "clicked_docs"} & found.keys() and bool(there & {"rank", "doc"})
    if apart and not there & OF_LISTS:
        return OF_RECORDS | OF_LISTS_ONLY
    if apart and "teams" in there and not there & {"clicks", "clicked_docs"}:
        return OF_RECORDS  # lists and clicks in one table
    return OF_RECORDS | OF_CLICKS_ONLY


def _has(columns: Sequence[str], column: str) -> bool:
    return column in columns or any(column.startswith(f"{each}.") for each in columns)
