"""What logs of other programs call the fields of a click log, sides, rankers and clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

RANKERS: Final = (
    "arm", "ranker", "model", "system", "side", "variant", "algorithm", "algo", "method", "policy",
    "engine", "config", "version", "strategy",
)  # fmt: skip
"""What logs of interleaving tests call a ranker."""

SIDES_A: Final = ("a", "left", "1", "first", "control", "baseline")
SIDES_B: Final = ("b", "right", "2", "second", "treatment", "candidate", "challenger")
"""What other programs call its side."""

PLACES: Final = frozenset({"a", "b", "left", "right", "1", "2", "first", "second"})
"""Sides that are no names of rankers."""

LOSERS: Final = ("loser", "rejected")
"""What other programs call the ranker of a row that has lost, beside the one that has won."""

OF_OBJECTS: Final = frozenset(
    {"id", "uuid", "guid", "name", "key", "hash", "token", "text", "type"}
)
"""Names inside an object that say something only with the name of the object, as in `user.id`."""

ENVELOPES: Final = frozenset(
    {
        "meta", "metadata", "attributes", "data", "payload", "jsonpayload", "properties", "context",
        "record", "message", "body", "value", "fields", "source", "after", "event", "json", "log",
        "entry", "details", "params", "parameters",
    }
)  # fmt: skip
"""Objects that hold a whole record; their names say nothing."""

OPPONENTS: Final = tuple(
    it + end
    for it in ("opponent", "rival", "competitor", "versus", "vs", "against", *LOSERS)
    for end in ("", *RANKERS, "name", "id")
)
"""What other programs call the other ranker of a row that is about one."""


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
    for it in (
        "impression",
        "list",
        "query",
        "search",
        "request",
        "serp",
        "interleaving",
        "trace",
        "sessionquery",
        "exposure",
        "display",
        "ranking",
    )
)
"""What other programs call the id of a list."""

CLICK_COUNTS: Final = (
    "clicks", "clickcount", "nclicks", "numclicks", "clicked", "conversions", "purchases", "orders",
    "bookings", "plays",
)  # fmt: skip
"""What other programs call the clicks of a side, or what users did instead of clicking."""

DONE: Final = (
    "purchased", "bought", "ordered", "converted", "booked", "played", "watched", "streamed",
)  # fmt: skip
"""Of a row or object for one result: what users did instead of clicking."""

SCORES: Final = ("score", "credit", "credits", "points", "reward")
"""What other programs call a number of a side, of which the larger one wins."""

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
"""What other programs call a client, persons before sessions and addresses."""

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "type": ("type", "recordtype"),
    "experiment": ("experiment", "experimentname", "experimentid", "exp", "test", "testname",
                   "testid", "abtest"),
    "a": ("a", "l", "left", *_of_side(SIDES_A), "control", "baseline", "champion", "first", "aname",
          *(side + end for side in ("left", "control", "baseline", "champion")
            for end in ("name", "id"))),
    "b": ("b", "r", "right", *_of_side(SIDES_B), "treatment", "candidate", "challenger", "variant",
          "second", "bname", *OPPONENTS,
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
              "origins", "contributors", "contributions", "teamsbyrank",
              *(it + of for of in ("teams", "sides", "sources", "rankers")
                for it in ("rank", "result", "doc", "item", "interleaved"))),
    "clicks": ("clicks", "clicked", "clickevents", "interactions", "events",
               *(of + it for it in ("ranks", "positions", "indices", "indexes", "rank", "position",
                                    "index") for of in ("clicked", "click"))),
    "clicks_a": ("clickedrankera", *_count_of_side(SIDES_A, *CLICK_COUNTS)),
    "clicks_b": ("clickedrankerb", *_count_of_side(SIDES_B, *CLICK_COUNTS)),
    "clicked_docs": tuple(
        name for it in ("doc", "docid", "document", "documentid", "item", "itemid", "id", "result",
                        "product", "productid")
        for name in (f"clicked{it}s", f"clicked{it}")
    ),
    "clicked": ("clicked", "isclicked", "isclick", "wasclicked", "click"),
    "winner": ("winner", "winnerside", "winningside", "winnerarm", "winning", "outcome", "result",
               "preferred", "preference", "won", "wonby", "winnername", "winnerid", "vote", "voted",
               "verdict", "choice", "judgment", "judgement",
               *(word + it for word in ("winning", "winner", "preferred", "chosen")
                 for it in RANKERS)),
    "docs": ("docs", "documents", "docids", "documentids", "results", "resultids", "items",
             "itemids", "hits", "hitids", "ranking", "rankedlist", "rankedresults"),
    "chances": ("chances", "chancesa", "probabilities"),
    "impression": ("impression", *LIST_IDS, "qid"),
    "rank": ("rank", "position", "pos", "ordinal", "slot",
             *(of + it for it in ("rank", "position", "index") for of in ("clicked", "click")),
             *(it + of for of in ("rank", "position")
                       for it in ("result", "doc", "document", "item", "product", "listing",
                                  "display", "serp"))),
    "doc": ("doc", "docid", "document", "documentid", "item", "itemid", "clickeddoc", "objectid",
            "productid", "sku", "listingid"),
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

SHOWN: Final = (
    "impression", "impressions", "exposure", "view", "viewed", "views", "shown", "show", "seen",
    "display", "displayed", "served", "pageview", "serp", "serpview", "search", "query", "request",
    "response", "result", "results", "render", "load", "scroll", "hover",
)  # fmt: skip
"""Actions in logs of events that are no clicks, in lower case and without separators."""
