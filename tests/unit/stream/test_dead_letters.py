"""Dead letters contain the record, fit into a message, and are counted once."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from streamduel.connector import Message
from streamduel.records import DeadLetter, Reason, Rejected
from streamduel.stream.dead_letters import MAX_MESSAGE_BYTES, dead_letter
from streamduel.stream.decode import named_experiment
from streamduel.testing import Record
from tests.logs import POISON
from tests.unit.stream.folding import DUEL, Partition, config, letters, text

LIMIT = Rejected("too_large", "it is too large.")


def letter_of(value: bytes | None, key: bytes | None = None) -> tuple[Message, dict[str, Any]]:
    message = dead_letter(Record(17, value, 5, key), LIMIT, "clicks", 3)
    return message, json.loads(message.value)


def test_a_dead_letter_contains_record_position_and_reason() -> None:
    partition = Partition()
    commit = partition.fold(text(DUEL), b'{"type": "duel"}', key=b"search")
    (message,) = commit.dead_letters
    assert message.key == b"search"
    assert json.loads(message.value) == {
        "type": "dead_letter",
        "reason": "invalid_record",
        "error": "the record misses the field 'id'; it must be a string of 1 to 256 characters.",
        "topic": "clicks",
        "partition": 0,
        "offset": 1,
        "value": '{"type": "duel"}',
    }


def test_a_tombstones_value_stays_null() -> None:
    message, letter = letter_of(None)
    assert letter["value"] is None
    assert message.key is None


def test_text_is_kept_as_it_is() -> None:
    assert letter_of('{"é": "\U0001f50e"'.encode())[1]["value"] == '{"é": "\U0001f50e"'


@pytest.mark.parametrize("value", [b"\xff\xfe\x00", b'{"a": "\xed\xa0\x80"}', b"cut \xc3"])
def test_a_value_that_is_not_utf_8_is_kept_as_base64(value: bytes) -> None:
    _, letter = letter_of(value)
    assert letter["encoding"] == "base64"
    assert base64.b64decode(letter["value"]) == value


@pytest.mark.parametrize(
    "value",
    [b"x" * 2_000_000, b"\0" * 300_000, b'"' * 700_000, b"\xff" * 900_000, "é".encode() * 600_000],
    ids=["long", "six-for-one", "two-for-one", "binary", "cut-in-a-character"],
)
def test_a_value_that_does_not_fit_is_cut_and_marked(value: bytes) -> None:
    message, letter = letter_of(value)
    assert len(message.value) <= MAX_MESSAGE_BYTES
    assert letter["truncated"] is True
    assert letter["size"] == len(value)
    encoded = letter.get("encoding") == "base64"
    kept = base64.b64decode(letter["value"]) if encoded else letter["value"].encode()
    assert value.startswith(kept)
    assert len(kept) >= 100_000


def test_a_value_that_just_fits_is_whole() -> None:
    _, letter = letter_of(b"x" * 999_000)
    assert len(letter["value"]) == 999_000
    assert "truncated" not in letter
    assert "size" not in letter


def test_a_huge_record_does_not_make_a_huge_dead_letter() -> None:
    commit = Partition().fold(text(DUEL, note="x" * 10_000_000))
    (message,) = commit.dead_letters
    assert len(message.value) < 200_000
    assert letters(commit)[0]["size"] == 10_000_000 + len(text(DUEL, note=""))


def test_a_huge_key_is_cut() -> None:
    message, _ = letter_of(b"{", key=b"k" * 100_000)
    assert message.key == b"k" * 1024


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (b'{"experiment": "search"}', "search"),
        (b'{"experiment": 5}', ""),
        (b"{", ""),
        (b"[]", ""),
        (None, ""),
        (b"\xff", ""),
    ],
)
def test_the_experiment_of_a_refused_value_is_found(value: bytes | None, name: str) -> None:
    assert named_experiment(value) == name


@pytest.mark.parametrize(
    ("value", "key", "counted"),
    [
        (text(DUEL, winner="x"), None, {"search": 1, "ads": 0}),
        (b"{", b"ads", {"search": 0, "ads": 1}),
        (text(DUEL, winner="x"), b"ads", {"search": 1, "ads": 0}),
        (b"{", b"\xff", {"search": 0, "ads": 0}),
        (b"{", None, {"search": 0, "ads": 0}),
        (text(DUEL, experiment="serach"), b"search", {"search": 0, "ads": 0}),
    ],
)
def test_a_dead_letter_counts_for_the_experiment_that_it_names(
    value: bytes, key: bytes | None, counted: dict[str, int]
) -> None:
    partition = Partition()
    partition.fold(value, key=key)
    assert {name: partition.tallies(name)["dead_letter"] for name in counted} == counted
    assert partition.task.dead_letters.total() == 1


def test_the_experiment_of_a_dead_letter_does_not_depend_on_the_call_stack() -> None:
    value = b'{"experiment": "search", "note": ' + b"[" * 800 + b"]" * 800 + b"}"

    def below(frames: int) -> tuple[int, int]:
        if frames:
            return below(frames - 1)
        partition = Partition()
        partition.fold(value)
        return partition.tallies()["dead_letter"], partition.task.dead_letters.total()

    assert below(0) == below(300) == (0, 1)


def test_a_hundred_invalid_records_in_a_row_do_not_stop_the_fold() -> None:
    partition = Partition()
    poison = [POISON[number % len(POISON)] for number in range(100)]
    commit = partition.fold(text(DUEL, id="before"), *poison, text(DUEL, id="after"))
    assert [letter["offset"] for letter in letters(commit)] == list(range(1, 101))
    assert partition.task.dead_letters.total() == 100
    assert partition.tallies()["accepted"] == 2
    assert partition.duels() == 2


def test_dead_letters_are_counted_across_a_restart() -> None:
    first = Partition()
    first.fold(b"{", text(DUEL, a="nobody"))
    first.fold(None)
    second = Partition(entries=first.entries)
    second.fold(b"[")
    assert second.task.dead_letters == {"invalid_json": 2, "unknown_arm": 1, "invalid_record": 1}
    assert second.tallies()["dead_letter"] == 1


def test_every_reason_is_in_the_record_schema() -> None:
    partition = Partition(config(limits={"max_record_bytes": 300}), home=lambda name: name == "ads")
    commit = partition.fold(
        b"{", b"[]", text(DUEL, experiment="nowhere"), b"x" * 301, text(DUEL, a="nobody"),
        text(DUEL, experiment="ads"),
    )  # fmt: skip
    found: list[Reason] = [letter["reason"] for letter in letters(commit)]
    assert found == [
        "invalid_json", "invalid_record", "unknown_experiment", "too_large", "unknown_arm",
        "wrong_partition",
    ]  # fmt: skip
    for message in commit.dead_letters:
        assert isinstance(msgspec.json.decode(message.value, type=DeadLetter), DeadLetter)
