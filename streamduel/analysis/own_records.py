"""Whether rows are streamduel's own records, or those of a program that names types like it."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from streamduel.analysis.fields import Chosen, Columns, plain
from streamduel.formats.reading import look_up
from streamduel.record_rules import TYPES
from streamduel.records import InputEvent

RARE: Final = 0.1
"""Clicks for each duel or list below which clicks do not tell whose log it is."""

DUELS: Final = frozenset({"duel", "duels", "interleaving"})
JOINED: Final = frozenset({"impression", "click"})
"""Types of records that make duels, alone or together."""


def are_own(rows: Sequence[dict[str, Any]], chosen: Chosen) -> bool:
    """Whether the rows are records of streamduel, and not of a log that names other types like it.

    Most records must have the fields of streamduel, also most of the duels and lists alone, and of
    the clicks if they are not rare. Only those of a less frequent type may all be invalid, as those
    of one faulty client are.
    """
    column = chosen.columns.get("type", "type")
    if not _typed(rows, column):
        return False
    known, own = Counter[str](), Counter[str]()
    for row in rows:
        known[(of := str(row.get(column)).lower())] += 1
        named = row | {field: row.get(column) for field, column in chosen.columns.items()}
        # As JSON: `convert` takes no array where a record keeps its text (`msgspec.Raw`). What JSON
        # cannot have, such as an integer of 80 bits, is not streamduel's.
        with contextlib.suppress(msgspec.MsgspecError, OverflowError, UnicodeError):
            msgspec.json.decode(msgspec.json.encode(named, enc_hook=str), type=InputEvent)
            own[of] += 1

    def are_most(types: Collection[str]) -> bool:
        return 2 * sum(own[of] for of in types) >= sum(known[of] for of in types)

    lists = DUELS | {"impression"}
    are_rare = known["click"] < RARE * sum(known[of] for of in lists)
    return are_most(TYPES) and are_most(lists) and (are_rare or are_most(["click"]))


def _typed(rows: Sequence[dict[str, Any]], column: str) -> bool:
    """Whether most rows name a type of streamduel's records."""
    known = sum(str(row.get(column)).lower() in TYPES for row in rows)
    return 0 < len(rows) < 2 * known


def type_column(
    columns: Sequence[str], rows: Sequence[dict[str, Any]], chosen: Chosen
) -> str | None:
    """The column that names each record's type.

    Beside other types, impressions alone or clicks alone are those of another program, which calls
    the rest of them `purchase` or `view`.
    """
    if "type" in chosen.columns:
        return chosen.columns["type"] if chosen.columns["type"] in columns else None
    named = [
        each for each in columns
        if plain(each) in {"type", "recordtype", "kind", "eventtype", "event"}
    ]  # fmt: skip
    for column in named:
        types = {str(row[column]).lower() for row in rows if row.get(column) is not None}
        if _typed(rows, column) and (types <= {*TYPES} or types & DUELS or types >= JOINED):
            return column
    return None


def have_own_values(rows: Sequence[dict[str, Any]], columns: Columns) -> bool:
    """Whether winners and teams are sides, as in streamduel's records, and not rankers."""
    for field, known in (("winner", {"a", "b", "tie"}), ("teams", {"a", "b", "null", "none"})):
        if field in columns.fields:
            values = (look_up(row, [columns.fields[field]]).value for row in rows)
            there = [
                re.findall(r"[\w-]+", str(each).lower()) for each in values if each is not None
            ]
            others = sum(not known.issuperset(each) for each in there)
            if 2 * others > len(there):
                return False
    return True
