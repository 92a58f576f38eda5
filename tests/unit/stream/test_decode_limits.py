"""Records that are too deep, too large or too long."""

from __future__ import annotations

import pytest

from streamduel.stream.decode import RecordDecoder
from tests.unit.stream.folding import DUEL, DUELS, INTERLEAVING, Partition, config, letters, text
from tests.unit.stream.refusing import told, verdict


def nested(opening: bytes, closing: bytes) -> bytes:
    """A valid record with brackets in an ignored field."""
    return text(DUEL, note="?").replace(b'"?"', opening + closing)


@pytest.mark.parametrize("levels", [200, 1_000, 100_000])
@pytest.mark.parametrize("where", ["alone", "in a field", "in an ignored field"])
def test_deep_nesting_is_refused_in_every_field(levels: int, where: str) -> None:
    brackets = b"[" * levels, b"]" * levels
    if where == "alone":
        value, depth = b"[" + b"".join(brackets) + b"]", levels + 1
    elif where == "in a field":
        value, depth = text(DUEL, id="?").replace(b'"?"', b"".join(brackets)), levels + 1
    else:
        value, depth = nested(*brackets), levels + 1
    assert verdict(value) == (
        "invalid_record",
        f"the record is nested {depth} levels deep; at most 200 are allowed.",
    )


@pytest.mark.parametrize(
    "value",
    [b"[" * 100_000, b'{"a":' * 1_000, nested(b"[" * 300, b"]" * 299), nested(b"[" * 300, b"")],
    ids=told,
)
def test_unclosed_deep_nesting_is_invalid_json(value: bytes) -> None:
    assert verdict(value) == (
        "invalid_json", "the value is not JSON: its brackets do not match.",
    )  # fmt: skip


def test_nesting_up_to_the_limit_and_brackets_in_text_are_accepted() -> None:
    partition = Partition()
    brackets = nested(b"[" * 199, b"]" * 199), text(DUEL, id="2", note="[" * 1_000)
    assert not letters(partition.fold(*brackets))
    assert partition.tallies()["accepted"] == 2


def test_a_record_of_ten_megabytes_is_too_large() -> None:
    value = text(DUEL, note="x" * 10_000_000)
    assert verdict(value) == (
        "too_large",
        f"the record has {len(value)} bytes; limits.max_record_bytes allows 1048576.",
    )


@pytest.mark.parametrize(("spare", "refused"), [(0, False), (-1, True)])
def test_the_size_limit_is_exact(spare: int, refused: bool) -> None:
    value = text(DUEL, note="x" * 1_000)
    limits = {"max_record_bytes": len(value) + spare}
    partition = Partition(config(limits=limits))
    assert [letter["reason"] for letter in letters(partition.fold(value))] == (
        ["too_large"] if refused else []
    )


def test_the_verdict_does_not_depend_on_the_depth_of_the_call_stack() -> None:
    decode = RecordDecoder(2**20)

    def below(frames: int) -> object:
        return below(frames - 1) if frames else decode(nested(b"[" * 199, b"]" * 199))

    assert below(0) == below(500)


@pytest.mark.parametrize(
    "number",
    ["1e-310", "4.9E-324", "123456789e-320", "1.5123e-305", "1e-0310", "1e-9999", "1e-200",
     "0." + "0" * 208 + "1e-99", "1" * 105 + "e-400", "4.0223467713119385201e-100"],
)  # fmt: skip
@pytest.mark.parametrize("count", [1, 1000])
def test_a_record_with_numbers_that_are_slow_to_read_is_refused(number: str, count: int) -> None:
    chances = f"[{number}{f', {number}' * (count - 1)}]"
    value = text(INTERLEAVING, teams=["a"] * count, clicks=[], chances="?")
    assert verdict(value.replace(b'"?"', chances.encode())) == (
        "invalid_record",
        "the record has a number with an exponent below -199, or one with 20 digits or more and "
        "an exponent below -9; write fewer digits, or 0.",
    )


@pytest.mark.parametrize(
    ("fields", "chance"),
    [
        ({}, "1e-199"), ({}, "1.2345678901234567e-99"), ({}, "0.12345678901234567890123"),
        ({}, "1e-05"), ({"query": "is 2e-308 , or [1e-310] small?"}, "0.5"),
        ({"query": '"1e-310 "'}, "0.5"), ({"query": "\\"}, "0.5"),
        ({"id": "1234567e-3102-4b1e-310c-0000000e-310"}, "0.5"),
    ],
)  # fmt: skip
def test_other_numbers_and_texts_that_resemble_slow_ones_are_accepted(
    fields: dict[str, str], chance: str
) -> None:
    value = text(INTERLEAVING, teams=["a"], clicks=[], **fields, chances="?")
    value = value.replace(b'"?"', f"[{chance}]".encode())
    partition = Partition()
    assert not letters(partition.fold(value, text(DUEL, id="2")))
    assert partition.tallies()["accepted"] == 2


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (text(DUELS, wins_a=10**6, wins_b=1, ties=0),
         "wins_a, wins_b and ties add up to 1000001 duels; limits.max_duels_per_record allows "
         "1000000."),
        (text(INTERLEAVING, teams=["a"] * 1001, clicks=[]),
         "teams has 1001 entries; limits.max_ranks allows 1000."),
        (text(INTERLEAVING, clicks=[0] * 1001),
         "clicks has 1001 entries; limits.max_ranks allows 1000."),
    ],
    ids=told,
)  # fmt: skip
def test_a_record_above_a_limit_names_the_limit(value: bytes, sentence: str) -> None:
    assert verdict(value) == ("invalid_record", sentence)
