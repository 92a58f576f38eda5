"""JSON, times and ids of records in other formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamduel.formats import UbiSettings
from streamduel.formats.reading import (
    Found,
    compose,
    document,
    integer,
    look_up,
    milliseconds,
    name,
    short,
)
from streamduel.records import MAX_DOC, MAX_NAME, MAX_TIME, Rejected
from tests.unit.formats.samples import TS, verdict

TRANSLATE = UbiSettings(experiment="search").translate


@pytest.mark.parametrize(
    "value",
    [
        "2026-09-21T14:13:20Z", "2026-09-21T14:13:20.000+00:00", "2026-09-21T14:13:20.000+0000",
        "2026-09-21T16:13:20+02:00", "2026-09-21T14:13:20", "2026-09-21 14:13:20",
        "2026-09-21T14:13:20.000999999Z", TS, str(TS), float(TS), TS + 0.9,
    ],
)  # fmt: skip
def test_times_are_read_in_all_notations(value: Any) -> None:
    assert milliseconds(Found("timestamp", value)) == TS


@pytest.mark.parametrize("value", [0, "0", "1970-01-01T00:00:00Z", "1970-01-01"])
def test_time_begins_in_1970(value: Any) -> None:
    assert milliseconds(Found("timestamp", value)) == 0


@pytest.mark.parametrize(
    "value",
    [
        -1, "-1", "1969-12-31T23:59:59.999Z", MAX_TIME + 1, 1e300, -0.5e9, True, [], {}, "", "now",
        "1" * 17, "٣", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+14:00",
    ],
)  # fmt: skip
def test_other_times_are_rejected(value: Any) -> None:
    with pytest.raises(Rejected, match="must be a time since 1970"):
        milliseconds(Found("timestamp", value))


def test_a_missing_time_is_allowed() -> None:
    assert milliseconds(Found("timestamp", None)) is None


@pytest.mark.parametrize(("read", "most"), [(name, MAX_NAME), (document, MAX_DOC)])
def test_names_and_documents_have_bounds(read: Callable[[Found], str], most: int) -> None:
    for text in ("x", "x" * most):
        assert read(Found("field", text)) == text
    for wrong in ("", "x" * (most + 1), None, True, ["x"]):
        with pytest.raises(Rejected, match=f"a string of 1 to {most} characters"):
            read(Found("field", wrong))


@pytest.mark.parametrize("value", [7, "7", 7.0, MAX_TIME, str(MAX_TIME)])
def test_integers_are_read_from_the_least_on(value: Any) -> None:
    assert integer(Found("field", value), 7) == int(value)
    assert integer(Found("field", value), 0) == int(value)


@pytest.mark.parametrize("value", [6, "6", 6.0, 7.5, -7, MAX_TIME + 1, True, None, "", "seven", []])
def test_other_integers_are_rejected(value: Any) -> None:
    with pytest.raises(Rejected, match="field must be an integer from 7 "):
        integer(Found("field", value), 7)


def test_fields_are_looked_up_by_path() -> None:
    record = {"a": {"b": 1, "c": "", "d": None, "e": False}, "b": [1]}
    assert look_up(record, ["a.x", "a.b.c", "a.b"]) == Found("a.b", 1)
    assert look_up(record, ["a.c", "a.d", "b.0"]) == Found("a.c", None)
    assert look_up(record, ["a.e"]) == Found("a.e", False)
    assert look_up(record, []).value is None


part = st.none() | st.integers(-9, 9) | st.text(alphabet='",[]\\x', max_size=3)


@given(st.lists(st.tuples(part, part), min_size=2, max_size=2, unique=True))
def test_different_parts_make_different_ids(both: list[tuple[Any, Any]]) -> None:
    first, second = (compose("click", *parts) for parts in both)
    assert first != second


@given(st.text(max_size=600))
def test_only_long_ids_are_hashed(text: str) -> None:
    assert len(short(text)) <= 256
    assert (short(text) == text) == (len(text) <= 256)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (b"", "invalid_json: the value is not JSON: it is empty."),
        (b" \r", "invalid_json: the value is not JSON: it is empty."),
        (b'{"query_id": "q', "invalid_json: the value is not JSON: it ends too early."),
        (b'"\\ud83d', "invalid_json: the value is not JSON: it has half a surrogate pair."),
        (b"click!", "invalid_json: the value is not JSON: invalid character (byte 0)."),
        (b'{"message": "\xff"}', "invalid_json: the value is not UTF-8: invalid start byte"
         " (byte 13)."),
        (b"[1, 2]", "invalid_record: the value is an array of 2; a record is a JSON object."),
        (b"null", "invalid_record: the value is null; a record is a JSON object."),
        (b'{"query_id": ' + b"9" * 5000 + b"}", "invalid_record: the record has a number that is"
         " out of range."),
        (b"[" * 10**6, "invalid_record: the record is nested too deep."),
    ],
    ids=range(10),
)  # fmt: skip
def test_records_that_are_not_json_objects_are_rejected(value: bytes, told: str) -> None:
    assert verdict(TRANSLATE, value) == told
