"""Exceptions, and the parts that error sentences share: what, found, allowed, nearest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import ne
from typing import Final

MAX_COMPARED: Final = 50
"""Names that one from the click log is compared with, about 1 µs each. With more, no name is
suggested: a service that logs a wrong name must not take the time of the others."""

MAX_COMPARED_LENGTH: Final = 64
"""Characters of a name from the click log that is compared; names that people write are shorter."""


MAX_SHOWN: Final = 80
"""Characters of a name in a sentence or a table."""

MAX_BITS: Final = 4096
"""Of an integer that is converted to text: Python refuses 4,300 digits, and takes long before."""

MAX_NEAREST: Final = 256
"""Characters of a name for which a close one is looked for: the search takes time in proportion."""

FOLDED_AGAIN: Final = (
    "the click log is then folded again from its beginning, with the same result if it is complete "
    "and the configuration is the first one"
)
"""The end of a sentence that advises to start over without snapshots."""


class StreamduelError(Exception):
    """Base class of all errors; the command line shows the message without a traceback."""


class ConfigurationError(StreamduelError):
    """The configuration is invalid; the command line exits with status 2."""


class PolicyError(StreamduelError, ValueError):
    """A policy got a parameter, an arm or an outcome outside what it allows."""


class ParameterError(PolicyError):
    """A value of a policy's parameter is not allowed.

    Args:
        parameter: its name.
        predicate: what it must be, to be continued after its name: "must be … (found …)."
    """

    def __init__(self, parameter: str, predicate: str) -> None:
        super().__init__(parameter, predicate)  # all arguments, so that it can be pickled
        self.parameter = parameter
        self.predicate = predicate

    def __str__(self) -> str:
        return f"policy.{self.parameter} {self.predicate}"


class PreferenceError(StreamduelError, ValueError):
    """A preference matrix is invalid, or does not fit its use."""


class InterleavingError(StreamduelError, ValueError):
    """Rankings or lengths cannot be interleaved, or clicks cannot be credited."""


class ClientError(StreamduelError):
    """A ranker service asked for an invalid record or an impossible list."""


class BufferFullError(ClientError):
    """Nothing was logged: the buffer of unwritten records is full."""


class SnapshotError(StreamduelError):
    """A snapshot does not fit the configuration or the click log."""


class ConnectorError(StreamduelError):
    """A permanent error of the outside world: retrying does not help."""


class MissingError(ConnectorError):
    """A topic or a file that the configuration names does not exist.

    Args:
        sentence: as of every error.
        created_by_run: whether `streamduel run` creates it, so that nothing is wrong before.
    """

    def __init__(self, sentence: str, *, created_by_run: bool) -> None:
        super().__init__(sentence)
        self.created_by_run = created_by_run


class UncertainError(ConnectorError):
    """A record may or may not have been written; repeat the write with the same record id."""


class Fenced(StreamduelError):  # noqa: N818 - the field's word for it
    """This process lost the partitions of its commit.

    Nothing of the commit became visible, or that is unknown; `Outlet.load` shows which. The runner
    discards its uncommitted work; the partitions' new owner repeats it.
    """


def nearest(name: str, allowed: Iterable[str]) -> str:
    """The closest allowed name as `; did you mean 'x'?`, or an empty string.

    >>> nearest("rubc", ["rucb", "ccb"])
    "; did you mean 'rucb'?"
    >>> nearest("RUCB", ["rucb", "ccb"])
    "; did you mean 'rucb'?"
    >>> nearest("entirely different", ["rucb", "ccb"])
    ''
    """
    return _nearest(name, tuple(allowed)) if len(name) <= MAX_NEAREST else ""


@lru_cache(maxsize=128)  # a service asks `draw` for a wrong experiment with every search
def _nearest(name: str, allowed: tuple[str, ...]) -> str:
    by_lower = {known.lower(): known for known in reversed(allowed)}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=1)
    return f"; did you mean '{by_lower[close[0]]}'?" if close else ""


def another_format(found: int, readable: range) -> str:
    """The end of a sentence about a stored file or entry whose format this release does not read.

    >>> another_format(9, range(6, 8))
    'format 9; this release reads formats 6 to 7: use one that reads format 9.'
    """
    return (
        f"format {found}; this release reads formats {readable[0]} to {readable[-1]}: use one that "
        f"reads format {found}."
    )


def listed(names: Sequence[str], quote: str = "") -> str:
    """The first ten names, for a sentence.

    >>> listed(["bm25", "ltr"]), listed("abcdefghijk", "'")
    ('bm25, ltr', "'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', …")
    """
    first = ", ".join(f"{quote}{name}{quote}" for name in names[:10])
    return f"{first}, …" if len(names) > 10 else first


def enumerated(names: Sequence[str]) -> str:
    """All of a few names, for a sentence.

    >>> enumerated(["0"]), enumerated(["0", "1", "2"])
    ('0', '0, 1 and 2')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def similar(name: str, allowed: Sequence[str]) -> str:
    """As `nearest`, for a name from the click log: one that differs in a single character.

    A character may differ, be missing, be one too many, or have changed places with its neighbour.
    Names of more than `MAX_COMPARED_LENGTH` characters, and more names than `MAX_COMPARED`, are not
    compared.

    >>> similar("ltr-v11", ["bm25", "ltr-v1"]), similar("serach", ["search"])
    ("; did you mean 'ltr-v1'?", "; did you mean 'search'?")
    >>> similar("LTR-v1", ["ltr-v1", "ltr-v2"])
    "; did you mean 'ltr-v1'?"
    >>> similar("ltr", ["bm25", "ltr-v1"])
    ''
    """
    if len(name) > MAX_COMPARED_LENGTH or len(allowed) > MAX_COMPARED:
        return ""
    wanted = name.lower()
    close = [
        known for known in allowed
        if abs(len(known) - len(wanted)) <= 1 and _is_similar(wanted, known.lower())
    ]  # fmt: skip
    if not close:
        return ""
    return f"; did you mean '{max(close, key=lambda known: (known.lower() == wanted, known))}'?"


def _is_similar(name: str, known: str) -> bool:
    if len(name) == len(known):
        differing = sum(map(ne, name, known))
        if differing != 2:
            return bool(differing < 2)
    place = next((at for at, pair in enumerate(zip(name, known, strict=False)) if ne(*pair)), None)
    if place is None:
        return True  # one character more at the end
    left, right = name[place:], known[place:]
    if len(left) == len(right):
        return left[1::-1] + left[2:] == right
    return left[1:] == right or left == right[1:]


def shown(value: object, limit: int = 80, *, json: bool = False) -> str:
    """A found value as an error sentence repeats it, cut to a readable length.

    Args:
        value: the value.
        limit: characters at most.
        json: name null, objects and arrays as JSON does, instead of as YAML does.

    >>> shown("bm25"), shown(True), shown(None), shown([1, 2]), shown({"a": 1})
    ("'bm25'", 'true', 'nothing', 'a list of 2', 'a mapping of 1')
    >>> shown(None, json=True), shown([1, 2], json=True), shown({"a": 1}, json=True)
    ('null', 'an array of 2', 'an object')
    >>> shown(16**5000)
    'a number of more than 1,000 digits'
    """
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null" if json else "nothing"
    if isinstance(value, dict):
        if json:
            return "an object"
        return f"a mapping of {len(value)}" if value else "an empty mapping"
    if isinstance(value, list):
        kind = "an array" if json else "a list"
        return f"{kind} of {len(value)}" if value or json else "an empty list"
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        text = "a number of more than 1,000 digits"
    else:
        text = repr(value[:limit] if isinstance(value, str) else value)
    return shortened(text, limit)


def shortened(text: str, limit: int) -> str:
    """A text of at most `limit` characters; an ellipsis marks where it was cut.

    >>> shortened("condorcet", 5)
    'cond…'
    """
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def counted(count: int, what: str) -> str:
    """A number with its noun.

    >>> counted(1, "record"), counted(1500, "late click")
    ('1 record', '1,500 late clicks')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def escaped(text: str) -> str:
    r"""A text on one line, with control characters and others without a shape escaped.

    >>> escaped("Größe & Preis"), escaped("two\nlines"), escaped("a\u202eb")
    ('Größe & Preis', 'two\\nlines', 'a\\u202eb')
    """
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


def legible(name: str) -> str:
    """A name that can be read and clicked on, whatever characters it has.

    >>> legible("bm25"), legible("  ")
    ('bm25', '«  »')
    """
    text = escaped(name)
    return text if text.strip() else f"«{text}»"


def readable(name: str, limit: int = MAX_SHOWN) -> str:
    r"""A legible name of bounded length, which keeps its beginning and its end.

    Names such as those of versions often differ at their ends only.

    >>> readable("ltr\x1b[31m"), readable("ranker-of-clicks-v1", 8)
    ('ltr\\x1b[31m', 'rank…-v1')
    """
    ends = name if len(name) <= 2 * limit else f"{name[:limit]}{name[-limit:]}"
    text = legible(ends)
    if len(text) <= limit:
        return text
    first = limit // 2
    return f"{text[:first]}…{text[len(text) - (limit - 1 - first) :]}"


WAY_ON: Final = (
    "To read the new topic from its beginning: 'streamduel repair new-log CONFIG'; to run "
    "without a control topic: set source.control_topic to null."
)


def control_topic_cut_off(topic: str, partition: int, end: int, offset: int) -> str:
    """The sentence about a control topic that ends before an offset that was reached."""
    return (
        f"partition {partition} of source.control_topic '{topic}' ends at offset {end}, but "
        f"{offset} was reached before; was the topic recreated? Restore it. {WAY_ON}"
    )
