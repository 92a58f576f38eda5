"""The rules for input records that their types cannot express, and the sentences about violations.

The service checks what it reads with them, and the client checks what it is about to send.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, get_args

from streamduel.errors import shortened, shown, similar
from streamduel.records import (
    MARKER,
    MAX_ACTION,
    MAX_COUNT,
    MAX_DOC,
    MAX_NAME,
    MAX_NOTE,
    MAX_QUERY,
    MAX_SEGMENTS,
    MAX_SETTINGS,
    Action,
    Click,
    Control,
    Duel,
    Duels,
    Impression,
    InputEvent,
    Interleaving,
)

TYPES: Final = tuple(str(event.__struct_config__.tag) for event in get_args(InputEvent))
"""The values of the field `type` of input records."""

ACTION_FIELDS: Final[Mapping[Action, tuple[str, ...]]] = {
    "pause": (),
    "resume": (),
    "add_arm": ("arm",),
    "retire_arm": ("arm",),
    "reset": (),
    "freeze_pair": ("a", "b"),
    "unfreeze_pair": (),
    "apply": ("settings",),
    "note": ("text",),
}
"""The fields of a control record that each action needs."""

_NAME: Final = f"a string of 1 to {MAX_NAME} characters"
_ARM: Final = f"an arm's name, {_NAME}"
_DOC: Final = f"a document's id, a string of 1 to {MAX_DOC} characters"
_CLICK_ACTION: Final = f"a string of 1 to {MAX_ACTION} characters"
_COUNT: Final = f"an integer from 0 to 2^{MAX_COUNT.bit_length() - 1}"
_TIME: Final = "an integer of milliseconds from 0 to 2^53, or null"
_SETTINGS: Final = f"an object with 1 to {MAX_SETTINGS} keys of the experiment's configuration"
_SEGMENT: Final = f"a string of at most {MAX_NAME} characters"

ALLOWED: Final = {
    "type": "one of " + ", ".join(f"'{name}'" for name in TYPES),
    "id": _NAME,
    "experiment": _NAME,
    "a": _ARM,
    "b": _ARM,
    "winner": "'a', 'b', 'tie' or null",
    "wins_a": _COUNT,
    "wins_b": _COUNT,
    "ties": _COUNT,
    "ts": _TIME,
    "teams": "an array with 'a', 'b' or null for each rank",
    "teams[]": "'a', 'b' or null",
    "clicks": "an array of ranks, or of objects with a 'rank'",
    "clicks[]": "a rank (an integer from 0), or an object with a 'rank'",
    "clicks[].rank": "an integer from 0",
    "clicks[].ts": _TIME,
    "clicks[].action": _CLICK_ACTION,
    "action": "one of " + ", ".join(f"'{name}'" for name in ACTION_FIELDS),
    "click.action": _CLICK_ACTION,
    "arm": _ARM,
    "like": f"{_ARM}, or null",
    "docs": "an array with a document's id for each rank, or null",
    "docs[]": _DOC,
    "chances": "an array with a number from 0 to 1, or null, for each rank",
    "chances[]": "a number from 0 to 1, or null",
    "epoch": "an integer from 1 to 2^53, or null",
    "impression": f"the id of an impression, {_NAME}",
    "rank": "an integer from 0, or null",
    "doc": f"{_DOC}, or null",
    "client": f"{_NAME}, or null",
    "query": f"a string of at most {MAX_QUERY} characters, or null",
    "segment": f"{_SEGMENT}, an object of at most {MAX_SEGMENTS} such strings by name, or null",
    "segment[]": _SEGMENT,
    "segment{}": f"an object whose names have 1 to {MAX_NAME} characters",
    "actor": f"{_NAME}, or null",
    "text": f"a string of 1 to {MAX_NOTE} characters, or null",
    "settings": f"{_SETTINGS}, or null",
    "settings{}": f"an object whose keys have 1 to {MAX_NAME} characters",
}
"""The allowed values of each field, by its path; `TYPE.FIELD` where a field's name has two uses."""

_NAMES: Final[Mapping[str, Sequence[str]]] = {
    ALLOWED["type"]: TYPES,
    ALLOWED["action"]: tuple(ACTION_FIELDS),
}
"""Names that a record may have misspelled, by what is allowed."""

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def contradiction(record: InputEvent) -> str | None:
    """The first rule that a record of valid fields violates, as a sentence; None if it is valid.

    >>> contradiction(Click("c-1", "search", "i-1"))
    "a click must name a 'rank' or a 'doc' (found neither)."
    """
    return _RULES[type(record)](record)


def _duel(record: Duel) -> str | None:
    if record.winner is None and record.a != record.b:
        return "winner must be 'a', 'b' or 'tie' in a duel of two arms (found null)."
    return None


def _two_arms(record: Duels | Impression | Interleaving) -> str | None:
    if record.a == record.b:
        return (
            f"a and b must be two arms (found '{record.a}' twice); only a 'duel' may have one arm"
            " on both sides."
        )
    return None


def _duels(record: Duels) -> str | None:
    total = record.wins_a + record.wins_b + record.ties
    if (problem := _two_arms(record)) is None and not 1 <= total <= MAX_COUNT:
        return (
            "wins_a, wins_b and ties must add up to between 1 and "
            f"2^{MAX_COUNT.bit_length() - 1} (found {total})."
        )
    return problem


def _entries(name: str, entries: list[Any] | None, ranks: int) -> str | None:
    if entries is not None and len(entries) != ranks:
        return (
            f"{name} must have an entry for each rank, {ranks} as 'teams' has"
            f" (found {len(entries)})."
        )
    return None


def _impression(record: Impression) -> str | None:
    ranks = len(record.teams)
    return (
        _two_arms(record)
        or _entries("docs", record.docs, ranks)
        or _entries("chances", record.chances, ranks)
    )


def _interleaving(record: Interleaving) -> str | None:
    ranks = len(record.teams)
    if problem := _two_arms(record) or _entries("chances", record.chances, ranks):
        return problem
    for click in record.clicks:
        rank = click if isinstance(click, int) else click.rank
        if rank >= ranks:
            return f"clicks has rank {rank}, outside the list: 'teams' has {ranks} ranks, from 0."
    return None


def _click(record: Click) -> str | None:
    if record.rank is None and record.doc is None:
        return "a click must name a 'rank' or a 'doc' (found neither)."
    return None


def _control(record: Control) -> str | None:
    needed = ACTION_FIELDS[record.action]
    if "arm" in needed and record.arm is None:
        return f"'{record.action}' must name an 'arm' (found none)."
    if record.action == "add_arm" and record.like == record.arm:
        return f"like must name another arm than 'arm' (found '{shortened(str(record.arm), 80)}')."
    if "b" in needed and (None in {record.a, record.b} or record.a == record.b):
        found = f"'{shortened(record.a, 80)}' twice" if record.a and record.b else "at most one"
        return f"'{record.action}' must name two arms, 'a' and 'b' (found {found})."
    if "text" in needed and record.text is None:
        return f"'{record.action}' must have a 'text' (found none)."
    if "settings" in needed and record.settings is None:
        return f"'{record.action}' must have 'settings' (found none)."
    return None


_RULES: Final[Mapping[type, Callable[[Any], str | None]]] = {
    Duel: _duel,
    Duels: _duels,
    Interleaving: _interleaving,
    Impression: _impression,
    Click: _click,
    Control: _control,
}


class Limits(Protocol):
    """The limits of the configuration for one record; see `LimitSettings`."""

    @property
    def max_ranks(self) -> int:
        """Entries of each list."""

    @property
    def max_duels_per_record(self) -> int:
        """Duels of a `duels` record."""


_LISTS: Final[Mapping[type, tuple[str, ...]]] = {
    Interleaving: ("teams", "clicks", "chances"),  # its docs are text that nobody decodes
    Impression: ("teams", "docs", "chances"),
}


def over_limit(record: InputEvent, limits: Limits) -> str | None:
    """The first limit that a record exceeds, as a sentence; None if it exceeds none."""
    if isinstance(record, Duels):
        duels, most = record.wins_a + record.wins_b + record.ties, limits.max_duels_per_record
        if duels > most:
            return (
                f"wins_a, wins_b and ties add up to {duels} duels; limits.max_duels_per_record "
                f"allows {most}."
            )
    for name in _LISTS.get(type(record), ()):
        entries = getattr(record, name)
        if entries is not None and len(entries) > limits.max_ranks:
            return too_many_ranks(name, len(entries), limits.max_ranks)
    return None


def too_many_ranks(name: str, entries: int, most: int) -> str:
    """The sentence about a list with more entries than `limits.max_ranks`."""
    return f"{name} has {entries} entries; limits.max_ranks allows {most}."


def misfit(record: Mapping[str, Any], message: str) -> str:
    """The sentence about a record that does not fit its type: the field, what is allowed and found.

    The message is that of the `msgspec.ValidationError` of decoding it as an `InputEvent`.
    """
    # The message may repeat a value of the record, so the path is what follows the last separator.
    what, separator, path = message.rpartition("`$")
    if not separator:
        what, path = message, ""
    in_key = what.endswith(" - at `key` in ")
    path = path.removesuffix("`").removeprefix(".")
    if what.startswith("Object missing required field"):
        field = what.split("`")[1]
        where = f"{path} misses the field" if path else "the record misses the field"
        path = f"{path}.{field}" if path else field
        return f"{where} '{field}'; it must be {_allowed(path, record)}."
    found, is_at_path = _at(record, path)
    if path == "segment[...]":  # msgspec does not say which name, and it may be given twice
        items = found.items() if isinstance(found, dict) else ()
        for name, value in items:
            if not _is_segment(value):
                return (
                    f"segment['{name[:80]}'] must be {ALLOWED['segment[]']} "
                    f"(found {shown(value, json=True)})."
                )
    if path == "type" and found == MARKER:
        return (
            f"a '{MARKER}' is written by streamduel itself, and this one names no record of "
            "source.control_topic, or none is configured: its record then takes effect once it is."
        )
    if path == "type" and found in TYPES:
        return "the record has the field 'type' twice, with different values."
    allowed = _allowed(path + "{}" if in_key else path, record)
    if not is_at_path:
        return f"{path} must be {allowed}."
    hint = similar(found, _NAMES.get(allowed, ())) if isinstance(found, str) else ""
    return f"{path} must be {allowed} (found {shown(found, json=True)}){hint or '.'}"


def _is_segment(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NAME


def _allowed(path: str, record: Mapping[str, Any]) -> str:
    path = re.sub(r"\[\d+\]", "[]", path).replace("[...]", "[]")
    special = ALLOWED.get(f"{record.get('type')}.{path}")
    return special or ALLOWED.get(path, "a value of the documented type")


def _at(record: Any, path: str) -> tuple[Any, bool]:
    """The value at a path as msgspec writes it, such as `clicks[2].rank`.

    If the path leads into a value that was not decoded: that value, and False.
    """
    for index, name in _STEP.findall(path):
        try:
            record = record[int(index)] if index else record[name]
        except (KeyError, IndexError, TypeError):
            return record, False
    return record, True
