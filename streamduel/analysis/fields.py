"""The fields of a click log, and the columns of other people's logs that hold them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from streamduel.errors import ConfigurationError, nearest, shortened
from streamduel.records import MAX_SEGMENTS

RANKERS: Final = (
    "arm", "ranker", "model", "system", "side", "variant", "algorithm", "algo", "method", "policy",
    "engine", "config", "version", "strategy",
)  # fmt: skip
"""What logs of interleaving tests call a ranker."""

SIDES_A: Final = ("a", "left", "1", "first", "control", "baseline")
SIDES_B: Final = ("b", "right", "2", "second", "treatment", "candidate", "challenger")
"""What they call its side."""

LOSERS: Final = ("loser", "rejected")
"""What they call the ranker of a row that has lost, beside the one that has won."""

OF_OBJECTS: Final = frozenset(
    {"id", "uuid", "guid", "name", "key", "hash", "token", "text", "type"}
)
"""Names inside an object that say something only with the name of the object, as in `user.id`."""

ENVELOPES: Final = frozenset(
    {
        "meta", "metadata", "attributes", "data", "payload", "properties", "context", "record",
        "message", "body", "value", "fields", "source", "after",
    }
)  # fmt: skip
"""Objects that hold a whole record; their names say nothing."""

OPPONENTS: Final = tuple(
    it + end
    for it in ("opponent", "rival", "competitor", "versus", "vs", "against", *LOSERS)
    for end in ("", *RANKERS, "name", "id")
)
"""What they call the other ranker of a row that is about one."""


def _of_side(sides: Sequence[str]) -> tuple[str, ...]:
    """Names of the column with the ranker of a side, such as leftranker and rankeraname."""
    return tuple(
        name + end
        for end in ("", "name", "id")
        for it in RANKERS
        for side in sides
        for name in (it + side, side + it)
    )


def _count_of_side(sides: Sequence[str], *words: str) -> tuple[str, ...]:
    """Names of a number of one side, such as winsleft, leftwins and rankerawins."""
    return tuple(
        name
        for word in words
        for side in sides
        for name in (word + side, side + word, *(of + word for it in RANKERS
                                                 for of in (it + side, side + it)))
    )  # fmt: skip


LIST_IDS: Final = tuple(
    f"{it}{end}"
    for end in ("id", "uuid", "guid")
    for it in ("impression", "list", "query", "search", "request", "serp", "interleaving")
)
"""What they call the id of a list."""

CLICK_COUNTS: Final = (
    "clicks", "clickcount", "nclicks", "numclicks", "clicked", "conversions", "purchases", "orders",
    "bookings", "plays",
)  # fmt: skip
"""What they call the clicks of a side, or what users did instead of clicking."""

DONE: Final = (
    "purchased", "bought", "ordered", "converted", "booked", "played", "watched", "streamed",
)  # fmt: skip
"""Of a row or object for one result: what users did instead of clicking."""

SCORES: Final = ("score", "credit", "credits", "points", "reward")
"""What they call a number of a side, of which the larger one wins."""

CLIENTS: Final = (
    *(it + end for it in ("client", "user", "visitor", "cookie", "member", "account", "customer",
                          "shopper") for end in ("", "id")),
    "uid", "userpseudoid", "fullvisitorid", "distinctid",
    *(it + end
      for it in ("client", "user", "visitor", "cookie", "member", "account", "customer", "shopper",
                 "anonymous", "anon", "person", "buyer", "guest", "reader", "viewer", "subscriber",
                 "consumer", "profile", "participant", "respondent", "annotator", "rater", "worker")
      for end in ("id", "uuid", "guid", "key", "hash", "token")),
    *(it + end for it in ("session", "visit", "device", "browser")
      for end in ("id", "uuid", "guid", "key", "hash", "token")),
    "session", "fingerprint",
    *(it + ip for ip in ("ip", "ipaddress", "ipaddr", "iphash")
      for it in ("", "client", "user", "remote")),
)  # fmt: skip
"""What they call a client, persons before sessions and addresses."""

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "type": ("type", "recordtype"),
    "experiment": ("experiment", "experimentname", "experimentid", "exp", "test", "testname",
                   "testid", "abtest"),
    "a": ("a", "l", "left", *_of_side(SIDES_A), "control", "baseline", "aname",
          *(side + end for side in ("left", "control", "baseline") for end in ("name", "id"))),
    "b": ("b", "r", "right", *_of_side(SIDES_B), "treatment", "candidate", "challenger", "variant",
          "bname", *OPPONENTS,
          *(side + end for side in ("right", "treatment", "candidate", "challenger", "variant")
            for end in ("name", "id"))),
    "wins_a": _count_of_side(SIDES_A, "wins", "win"),
    "wins_b": _count_of_side(SIDES_B, "wins", "win"),
    "won_a": (*_count_of_side(SIDES_A, "won", "iswinner"),
              *(f"winner{it}{side}" for it in RANKERS for side in SIDES_A)),
    "won_b": (*_count_of_side(SIDES_B, "won", "iswinner"),
              *(f"winner{it}{side}" for it in RANKERS for side in SIDES_B)),
    "score_a": _count_of_side(SIDES_A, *SCORES),
    "score_b": _count_of_side(SIDES_B, *SCORES),
    "ties": ("ties", "tie", "draws", "tied", "draw", "istie", "winnertie"),
    "teams": ("teams", "team", "sides", "teamassignment", "teamassignments", "assignment",
              "assignments", "interleaving", "teamdraft", "sources", "rankers", "attribution",
              "teamsbyrank", *(it + of for of in ("teams", "sides", "sources", "rankers")
                               for it in ("rank", "result", "doc", "item", "interleaved"))),
    "clicks": ("clicks", "clicked", "clickedranks", "clickranks", "clickedpositions",
               "clickpositions", "clickedrank", "clickrank", "clickedposition", "clickposition"),
    "clicks_a": ("clickedrankera", *_count_of_side(SIDES_A, *CLICK_COUNTS)),
    "clicks_b": ("clickedrankerb", *_count_of_side(SIDES_B, *CLICK_COUNTS)),
    "clicked_docs": tuple(
        name for it in ("doc", "docid", "document", "documentid", "item", "itemid", "id", "result",
                        "product", "productid")
        for name in (f"clicked{it}s", f"clicked{it}")
    ),
    "clicked": ("clicked", "isclicked", "isclick", "wasclicked", "click"),
    "winner": ("winner", "winnerside", "winningside", "winnerarm", "winning", "outcome", "result",
               "preferred", "preference", "won", "wonby", "winnername", "winnerid",
               *(word + it for word in ("winning", "winner", "preferred", "chosen")
                 for it in RANKERS)),
    "docs": ("docs", "documents", "docids", "documentids", "results", "resultids", "items",
             "itemids", "hits", "hitids"),
    "chances": ("chances", "chancesa", "probabilities"),
    "impression": ("impression", *LIST_IDS),
    "rank": ("rank", "position", "pos", "clickedrank", "clickrank", "clickposition", "ordinal",
             "slot", *(it + of for of in ("rank", "position")
                       for it in ("result", "doc", "document", "item", "product", "listing",
                                  "display", "serp"))),
    "doc": ("doc", "docid", "document", "documentid", "item", "itemid", "clickeddoc", "objectid"),
    "action": ("action", "clickaction", "clicktype", "event", "eventtype", "actionname",
               "type"),
    "id": ("id", "impressionid", "eventid", "recordid", "uuid", "guid", *LIST_IDS, "duelid",
           "comparisonid", "clickid", "qid"),
    "ts": ("ts", "timestamp", "time", "tsms", "timestampms", "timems", "datetime",
           *(it + of for of in ("time", "timestamp", "ts", "at", "date")
             for it in ("event", "created", "logged", "shown", "served", "request", "search",
                        "query", "impression", "click", "clicked", "occurred", "received")),
           "when", "date", "day", "dt", "epoch", "epochms", "unixtime"),
    "client": CLIENTS,
    "query": ("query", "userquery", "querytext", "q", "searchterm", "searchphrase", "keywords"),
    "segment": (),
    "arm": ("arm",),
}  # fmt: skip
"""Names of each field, in lower case and without separators; the first that a log has counts. A
column is one field only, that of the first row with its name."""

OF_SIDES: Final = frozenset(
    f"{what}_{side}" for what in ("wins", "won", "score", "clicks") for side in "ab"
)
"""Fields of which each tells how one side did."""

NAMES_OF_SIDES: Final = frozenset(name for field in {"a", "b"} | OF_SIDES for name in NAMES[field])
"""Names that an object and what is inside it may have together, as in `clicks.left`."""

SEGMENTS: Final = (
    "country", "countrycode", "device", "devicetype", "devicecategory", "channel", "platform",
    "locale", "language", "market", "region", "class", "queryclass", "querytype", "intent",
    "category", "cohort",
)  # fmt: skip
"""Names of columns that are segments, as are those that begin with `segment`."""

OF_LISTS: Final = OF_SIDES | {"teams", "winner"}
"""Fields that only lists and duels have."""

OF_LISTS_ONLY: Final = frozenset({"a", "b", "clicks", "clicked_docs"})
"""Fields that a log of clicks, apart from their lists, does not have."""

OF_CLICKS_ONLY: Final = frozenset({"impression", "clicked"})
"""Fields that only a log of clicks has."""

SHOWN: Final = (
    "impression", "impressions", "exposure", "view", "viewed", "views", "shown", "show", "seen",
    "display", "displayed", "served", "pageview", "serp", "serpview", "search", "query", "request",
    "response", "result", "results", "render", "load", "scroll", "hover",
)  # fmt: skip
"""Actions in logs of events that are no clicks, in lower case and without separators."""

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
    for column in sorted(columns, key=lambda each: each.count(".")):  # outer ones first
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
