"""Every invalid record is one dead letter with a sentence, and changes nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from streamduel.record_rules import TYPES
from streamduel.records import Rejected
from tests.unit.stream.folding import (
    DUEL,
    DUELS,
    INTERLEAVING,
    Partition,
    letters,
    text,
)
from tests.unit.stream.refusing import told, verdict

ID = "a string of 1 to 256 characters"
ARM = "an arm's name, a string of 1 to 256 characters"
COUNT = "an integer from 0 to 2^40"
TYPE = "one of " + ", ".join(f"'{name}'" for name in TYPES)
TEAMS = "an array with 'a', 'b' or null for each rank"
CLICKS = "an array of ranks, or of objects with a 'rank'"
CLICK = "a rank (an integer from 0), or an object with a 'rank'"
TIME = "an integer of milliseconds from 0 to 2^53, or null"

FIELDS: dict[str, str] = {
    "type": TYPE, "id": ID, "experiment": ID, "a": ARM, "b": ARM,
    "winner": "'a', 'b', 'tie' or null", "wins_a": COUNT, "wins_b": COUNT, "ties": COUNT,
    "teams": TEAMS, "clicks": CLICKS,
}  # fmt: skip
OPTIONAL = {"winner", "teams", "clicks"}


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"{", "it ends too early"),
        (text(DUEL)[:-1], "it ends too early"),
        (text(DUEL)[:-5], "it ends too early"),
        (b"clicked!", "invalid character (byte 0)"),
        (text(DUEL) + b"x", "trailing characters (byte 95)"),
        (text(DUEL) + text(DUEL), "trailing characters (byte 95)"),
        (text(DUEL)[:-1] + b",}", "trailing comma in object (byte 94)"),
        (b"\xef\xbb\xbf" + text(DUEL), "invalid character (byte 0)"),
        (text(DUELS, wins_a=float("nan")), "invalid character (byte 91)"),
        (text(DUELS, wins_a=float("inf")), "invalid character (byte 91)"),
        (text(DUELS, wins_a=float("-inf")), "invalid character (byte 92)"),
        (text(DUEL, note=float("nan")), "invalid character (byte 103)"),
        (text(DUEL, id="\ud800"), "unexpected end of escaped utf-16 surrogate pair (byte 30)"),
        (text(DUEL, id="\udc00"), "invalid utf-16 surrogate pair (byte 30)"),
        (text(DUEL, note="\ud800"), "it has half a surrogate pair"),
    ],
    ids=told,
)
def test_the_sentence_for_invalid_json(value: bytes, detail: str) -> None:
    assert verdict(value) == ("invalid_json", f"the value is not JSON: {detail}.")


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (b"\xff", "invalid start byte (byte 0)"),
        (text(DUEL, winner="?").replace(b"?", b"\xff"), "invalid start byte (byte 91)"),
        (text(DUEL, note="?").replace(b"?", b"\xff"), "invalid start byte (byte 104)"),
        (text(DUEL, note="?").replace(b"note", b"n\xffte"), "invalid start byte (byte 97)"),
        (text(DUEL, note="?").replace(b"?", "\ud800".encode("utf-8", "surrogatepass")),
         "invalid continuation byte (byte 104)"),
        (text(DUEL, note="?").replace(b"?", b"\xc3"), "invalid continuation byte (byte 104)"),
        (text(DUEL) + b"\xe2\x82", "unexpected end of data (byte 94)"),
    ],
    ids=["alone", "field", "ignored-field", "key", "surrogate", "half-character", "end"],
)  # fmt: skip
def test_the_sentence_for_invalid_utf_8(value: bytes, detail: str) -> None:
    assert verdict(value) == ("invalid_json", f"the value is not UTF-8: {detail}.")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b"[]", "an array of 0"), (b"[1, 2]", "an array of 2"), (b'"a"', "'a'"), (b"3", "3"),
        (b"1.5", "1.5"), (b"true", "true"), (b"null", "null"),
    ],
)  # fmt: skip
def test_the_sentence_for_json_that_is_not_an_object(value: bytes, found: str) -> None:
    assert verdict(value) == (
        "invalid_record", f"the value is {found}; a record is a JSON object.",
    )  # fmt: skip


def test_the_sentence_for_a_tombstone() -> None:
    assert verdict(None) == (
        "invalid_record", "the value is null (a tombstone); a record is a JSON object.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("record", "field"),
    [(record, field) for record in (DUEL, DUELS, INTERLEAVING) for field in record],
    ids=lambda it: it["type"] if isinstance(it, dict) else it,
)
def test_a_missing_field_is_named_with_its_allowed_values(
    record: dict[str, Any], field: str
) -> None:
    value = json.dumps({name: it for name, it in record.items() if name != field}).encode()
    assert verdict(value) == (
        "invalid_record", f"the record misses the field '{field}'; it must be {FIELDS[field]}.",
    )  # fmt: skip


WRONG: list[tuple[Any, str]] = [
    (True, "true"), (None, "null"), (1.5, "1.5"), (-1, "-1"), ({"x": 1}, "an object"), ([[]], ""),
    ("", "''"),
]  # fmt: skip


def wrong_values() -> Iterator[tuple[dict[str, Any], str, Any, str]]:
    for record in (DUEL, DUELS, INTERLEAVING):
        for field in record:
            for value, found in WRONG:
                if value == [[]] or (value is None and field == "winner"):
                    continue
                yield record, field, value, found


@pytest.mark.parametrize(("record", "field", "value", "found"), list(wrong_values()), ids=told)
def test_a_wrong_value_is_shown_with_the_allowed_values(
    record: dict[str, Any], field: str, value: Any, found: str
) -> None:
    assert verdict(text(record, **{field: value})) == (
        "invalid_record", f"{field} must be {FIELDS[field]} (found {found}).",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (text(DUEL, type="dual"), f"type must be {TYPE} (found 'dual'); did you mean 'duel'?"),
        (text(DUEL, type="clicks"), f"type must be {TYPE} (found 'clicks'); did you mean 'click'?"),
        (b'{"type": "duel", "type": "duels"}',
         "the record has the field 'type' twice, with different values."),
        (text(DUEL, id="x" * 257), f"id must be {ID} (found '{'x' * 78}…)."),
        (text(DUEL, winner="A"), "winner must be 'a', 'b', 'tie' or null (found 'A')."),
        (text(DUEL, winner=None),
         "winner must be 'a', 'b' or 'tie' in a duel of two arms (found null)."),
        (text(DUEL, ts=-1), f"ts must be {TIME} (found -1)."),
        (text(DUEL, ts="now"), f"ts must be {TIME} (found 'now')."),
        (text(DUEL, ts=1.5), f"ts must be {TIME} (found 1.5)."),
        (text(DUEL, ts=2**53 + 1), f"ts must be {TIME} (found 9007199254740993)."),
        (text(DUELS, wins_a=2**40 + 1), f"wins_a must be {COUNT} (found 1099511627777)."),
        (text(DUELS, wins_b=2**70), f"wins_b must be {COUNT} (found {2**70})."),
        (text(DUELS, ties=1.0), f"ties must be {COUNT} (found 1.0)."),
        (text(DUELS, wins_a="?").replace(b'"?"', b"1e999"),
         "the record has a number that is out of range."),
        (text(DUELS, wins_a="?").replace(b'"?"', b"9" * 5000),
         "the record has a number that is out of range."),
        (text(DUELS, wins_a=0, wins_b=0),
         "wins_a, wins_b and ties must add up to between 1 and 2^40 (found 0)."),
        (text(DUELS, wins_a=2**40),
         "wins_a, wins_b and ties must add up to between 1 and 2^40 (found 1099511627777)."),
        (text(DUELS, b="bm25"),
         "a and b must be two arms (found 'bm25' twice); only a 'duel' may have one arm on both "
         "sides."),
        (text(INTERLEAVING, b="bm25"),
         "a and b must be two arms (found 'bm25' twice); only a 'duel' may have one arm on both "
         "sides."),
        (text(INTERLEAVING, teams=["a", "c"]), "teams[1] must be 'a', 'b' or null (found 'c')."),
        (text(INTERLEAVING, teams=["a", ["b"]]),
         "teams[1] must be 'a', 'b' or null (found an array of 1)."),
        (text(INTERLEAVING, clicks=[0, -1]), f"clicks[1] must be {CLICK} (found -1)."),
        (text(INTERLEAVING, clicks=[0.5]), f"clicks[0] must be {CLICK} (found 0.5)."),
        (text(INTERLEAVING, clicks=[True]), f"clicks[0] must be {CLICK} (found true)."),
        (text(INTERLEAVING, clicks=["0"]), f"clicks[0] must be {CLICK} (found '0')."),
        (text(INTERLEAVING, clicks=[None]), f"clicks[0] must be {CLICK} (found null)."),
        (text(INTERLEAVING, clicks=[{}]),
         "clicks[0] misses the field 'rank'; it must be an integer from 0."),
        (text(INTERLEAVING, clicks=[{"rank": -1}]),
         "clicks[0].rank must be an integer from 0 (found -1)."),
        (text(INTERLEAVING, clicks=[{"rank": 0, "ts": -2}]),
         f"clicks[0].ts must be {TIME} (found -2)."),
        (text(INTERLEAVING, clicks=[{"rank": 0, "action": 3}]),
         "clicks[0].action must be a string of 1 to 64 characters (found 3)."),
        (text(INTERLEAVING, clicks=[0, 3]),
         "clicks has rank 3, outside the list: 'teams' has 3 ranks, from 0."),
        (text(INTERLEAVING, clicks=[{"rank": 9}]),
         "clicks has rank 9, outside the list: 'teams' has 3 ranks, from 0."),
        (text(INTERLEAVING, teams=[]),
         "clicks has rank 0, outside the list: 'teams' has 0 ranks, from 0."),
    ],
    ids=told,
)  # fmt: skip
def test_the_sentence_for_a_contradictory_record(value: bytes, sentence: str) -> None:
    assert verdict(value) == ("invalid_record", sentence)


def test_an_entry_of_a_long_list_is_refused_without_naming_it() -> None:
    teams = ["a"] * 500 + ["c"] + ["b"] * 499
    sentence = "teams[500] must be 'a', 'b' or null."
    assert verdict(text(INTERLEAVING, teams=teams)) == ("invalid_record", sentence)


@pytest.mark.parametrize("field", ["clicks", "teams", "id"])
def test_a_field_given_twice_and_wrong_once_is_refused(field: str) -> None:
    """If both are valid, the last one counts."""
    twice = text(INTERLEAVING, **{field: [5.5]})[:-1] + f', "{field}": {{}}}}'.encode()
    assert verdict(twice)[0] == "invalid_record"


@pytest.mark.parametrize("record", [DUEL, DUELS, INTERLEAVING], ids=lambda record: record["type"])
@pytest.mark.parametrize("side", ["a", "b"])
def test_an_unknown_arm_is_named_with_the_nearest_one(record: dict[str, Any], side: str) -> None:
    reason, sentence = verdict(text(record, **{side: "ltr-v9"}))
    assert reason == "unknown_arm"
    assert sentence.startswith(
        "unknown arm 'ltr-v9' in experiment 'search'; did you mean 'ltr-v2'? "
    )
    assert sentence.endswith("ts arms are bm25, ltr-v1, ltr-v2.")


def test_an_arm_without_a_near_name_gets_no_suggestion() -> None:
    assert verdict(text(DUEL, a="unheard")) == (
        "unknown_arm",
        "unknown arm 'unheard' in experiment 'search'; its arms are bm25, ltr-v1, ltr-v2.",
    )


def test_an_unknown_experiment_is_named_with_the_nearest_one() -> None:
    reason, sentence = verdict(text(DUEL, experiment="serach"))
    assert reason == "unknown_experiment"
    assert sentence.startswith("unknown experiment 'serach'; did you mean 'search'? ")
    assert sentence.endswith("onfigured are 'ads', 'search'.")


def test_an_experiment_without_a_near_name_gets_no_suggestion() -> None:
    assert verdict(text(DUEL, experiment="unheard")) == (
        "unknown_experiment", "unknown experiment 'unheard'; configured are 'ads', 'search'.",
    )  # fmt: skip


def test_a_record_in_the_wrong_partition_names_the_right_one() -> None:
    partition = Partition(home=lambda experiment: int(experiment == "search"))
    (letter,) = letters(partition.fold(text(DUEL)))
    assert letter["reason"] == "wrong_partition"
    assert letter["error"] == (
        "experiment 'search' belongs to partition 1 (found in 0); the record's key must be the "
        "experiment's name, and its producer's partitioner Kafka's default, murmur2."
    )


@pytest.mark.parametrize(
    "value",
    [
        text(DUEL, note={"deep": [1, 2]}, extra=None),
        text(DUEL, id="x" * 256),
        text(DUEL, id="\U0001f50e"),
        text(DUEL, id="\0"),
        text(DUEL, ts=2**53),
        text(DUEL, ts=None),
        text(DUEL, winner=None, b="bm25"),
        text(DUEL, winner="a", b="bm25"),
        text(DUELS, wins_a=10**6, wins_b=0),
        text(DUELS, wins_a=0, wins_b=0, ties=1),
        text(INTERLEAVING, clicks=[]),
        text(INTERLEAVING, teams=[], clicks=[]),
        text(INTERLEAVING, clicks=[2, 2, {"rank": 1, "ts": None, "action": "save", "more": 1}]),
        text(DUEL, client=None, query=None, segment=None),
        text(DUEL, client="\U0001f50e" * 256, query="q" * 1024, segment="s" * 256),
        text(DUEL, query="", segment=""),
        text(DUEL, segment={str(number): "s" * 256 for number in range(8)}),
        text(DUEL, segment={}),
        b" \n" + text(DUEL) + b"\r\n",
        json.dumps({**DUEL, "id": "é"}, ensure_ascii=False).encode(),
    ],
    ids=told,
)
def test_valid_records_are_accepted(value: bytes) -> None:
    partition = Partition()
    assert not letters(partition.fold(value))
    assert partition.tallies()["accepted"] == 1


SEGMENT = "a string of at most 256 characters, an object of at most 8 such strings by name, or null"
CLIENT = "client must be a string of 1 to 256 characters, or null"
QUERY = "query must be a string of at most 1024 characters, or null"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"client": ""}, f"{CLIENT} (found '')."),
        ({"client": 7}, f"{CLIENT} (found 7)."),
        ({"client": ["u-1"]}, f"{CLIENT} (found an array of 1)."),
        ({"query": True}, f"{QUERY} (found true)."),
        ({"segment": 7}, f"segment must be {SEGMENT} (found 7)."),
        ({"segment": ["phone"]}, f"segment must be {SEGMENT} (found an array of 1)."),
        ({"segment": dict.fromkeys("abcdefghi", "x")},
         f"segment must be {SEGMENT} (found an object)."),
        ({"segment": {"device": 7}},
         "segment['device'] must be a string of at most 256 characters (found 7)."),
        ({"segment": {"": "phone"}},
         "segment must be an object whose names have 1 to 256 characters (found an object)."),
    ],
    ids=told,
)  # fmt: skip
@pytest.mark.parametrize("record", [DUEL, DUELS, INTERLEAVING], ids=lambda it: it["type"])
def test_the_sentence_for_an_origin(
    record: dict[str, Any], fields: dict[str, Any], sentence: str
) -> None:
    assert verdict(text(record, **fields)) == ("invalid_record", sentence)


class Skipped(NamedTuple):
    """Records that a source could not read."""

    offset: int
    value: Rejected
    timestamp: int = -1
    key: None = None


def test_a_source_may_refuse_records_itself() -> None:
    partition = Partition()
    refused = Rejected("too_large", "the batch of offsets 0 to 3 is too large.")
    partition.task.fold([Skipped(3, refused)])
    [letter] = letters(partition.task.take_commit())
    assert (letter["reason"], letter["error"], letter["offset"], letter["value"]) == (
        "too_large", refused.sentence, 3, None,
    )  # fmt: skip
    assert partition.task.next_offset == 4


@pytest.mark.parametrize("field", ["type", "winner"])
def test_a_value_that_looks_like_the_end_of_an_error_is_shown(field: str) -> None:
    reason, sentence = verdict(text(DUEL, **{field: "x - at `$.id`"}))
    assert (reason, sentence.split(" must")[0]) == ("invalid_record", field)
    assert "(found 'x - at `$.id`')" in sentence


@pytest.mark.parametrize(
    "segment",
    ['{"a": 5, "a": "x"}', '{"a": 5}, "segment": {"a": "x"}', '{"a": 5}, "segment": 7',
     '{"a": "' + 300 * "x" + '", "b": [' + 3000 * "[]," + "[]]}",
     '{"' + 300 * "a" + '": 5}'],
    ids=["name twice", "twice", "another type", "long", "long name"],
)  # fmt: skip
def test_a_wrong_segment_is_refused(segment: str) -> None:
    reason, sentence = verdict(text(DUEL)[:-1] + f', "segment": {segment}}}'.encode())
    assert reason == "invalid_record"
    assert sentence.startswith("segment")
    assert len(sentence) < 400
