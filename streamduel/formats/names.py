"""Which experiment and which arms a record is about, from what a log calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamduel.formats.reading import Found, look_up, name
from streamduel.formats.settings import FormatSettings
from streamduel.formats.translator import Ignored
from streamduel.records import Side

Pair = tuple[str, str]


def experiment(record: dict[str, Any], settings: FormatSettings, paths: Sequence[str]) -> str:
    """The experiment that a record belongs to.

    Args:
        record: the record.
        settings: which may name it for all records.
        paths: where else the record names it.

    Raises:
        Ignored: nobody names any.
    """
    if settings.experiment is not None:
        return settings.experiment
    found = look_up(record, paths)
    if found.value is None:
        raise Ignored("no experiment")
    return name(found)


def configured_pair(settings: FormatSettings) -> Pair | None:
    """The two arms of lists that do not name theirs, if there are such."""
    return None if settings.pair is None else (settings.pair[0], settings.pair[1])


def arm(found: Found, arms: Mapping[str, str]) -> str:
    """An arm by what the log calls it.

    Args:
        found: where the log does so.
        arms: arms by what the log calls them; others are called by their own names.
    """
    label = name(found, "an arm's name, a string of 1 to 256 characters")
    return arms.get(label, label)


def pair_in(labels: Sequence[str | None]) -> Pair:
    """The two arms whose documents a list shows, in their order.

    Raises:
        Ignored: the list shows documents of fewer, so that nobody knows who else competed.
    """
    shown = list(dict.fromkeys(label for label in labels if label is not None))
    if len(shown) < 2:
        raise Ignored("list of one side")
    return shown[0], shown[1]


def side(label: str | None, pair: Pair, where: str) -> Side | None:
    """The side of an arm in a pair; `a` and `b` mean the sides, unless arms are called so.

    Raises:
        Rejected: it is neither's.

    >>> side("bm25", ("ltr", "bm25"), "teams"), side("a", ("ltr", "bm25"), "teams")
    ('b', 'a')
    """
    if label is None:
        return None
    if label in pair:
        return "a" if label == pair[0] else "b"
    if label == "a":
        return "a"
    if label == "b":
        return "b"
    raise Found(where, label).misfit(f"'{pair[0]}' or '{pair[1]}'")


def labels(found: Found, docs: Sequence[str] | None, arms: Mapping[str, str]) -> list[str | None]:
    """Per rank, which arm brought its document, or None.

    Args:
        found: a list with an arm for each rank, or an object with an arm for each document.
        docs: the documents, if they are known.
        arms: as for `arm`.

    Raises:
        Rejected: it is neither, or does not fit the documents.
    """
    by_rank: Any = found.value
    if isinstance(by_rank, dict) and docs is not None:
        by_rank = [by_rank.get(doc) for doc in docs]
    if not isinstance(by_rank, list):
        raise found.misfit("an array with an arm, or null, for each rank")
    if docs is not None and len(by_rank) != len(docs):
        raise found.misfit(f"an array with an arm, or null, for each of {len(docs)} documents")
    return [
        None if label is None else arm(Found(f"{found.where}[{rank}]", label), arms)
        for rank, label in enumerate(by_rank)
    ]
