"""Any record gives valid events, or is ignored or rejected."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.formats import (
    Ignored,
    SolrSettings,
    Translator,
    UbiSettings,
)
from streamduel.records import InputEvent, Rejected
from tests.unit.formats.samples import CLICK, CREDITED, QUERY, RESPONSE, SOLR_CLICK

TRANSLATORS: list[Translator] = [
    UbiSettings().translate,
    UbiSettings(experiment="s", clicks_by="rank", first_ordinal=0).translate,
    UbiSettings(sides="events", pair=["bm25", "ltr-v1"]).translate,
    SolrSettings().translate,
]
SAMPLES = [QUERY, CLICK, CREDITED, RESPONSE, SOLR_CLICK]

samples = st.sampled_from([json.dumps(sample) for sample in SAMPLES]).map(json.loads)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
long = st.sampled_from(["x" * size for size in (256, 257, 1024, 1025)])
scalars = st.none() | st.booleans() | numbers | st.text(max_size=5) | long
anything = st.recursive(
    scalars | samples,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
Place = tuple[Any, int | str]


def places(record: Any) -> list[Place]:
    """The location of every value in a record."""
    found: list[Place] = []
    steps = range(len(record)) if isinstance(record, list) else list(record)
    for step in steps:
        found.append((record, step))
        if isinstance(record[step], dict | list):
            found += places(record[step])
    return found


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A sample with other values in up to three of its places."""
    record = draw(samples)
    for _ in range(draw(st.integers(1, 3))):
        if not (there := places(record)):
            break
        parent, step = there[draw(st.integers(0, len(there) - 1))]
        if draw(st.booleans()):
            parent[step] = draw(anything)
        else:
            del parent[step]
    return json.dumps(record).encode()


def outcome(translate: Translator, value: bytes) -> list[InputEvent] | Ignored | Rejected:
    try:
        return translate(value)
    except (Ignored, Rejected) as verdict:
        return verdict


def check(value: bytes) -> None:
    for translate in TRANSLATORS:
        first, second = outcome(translate, value), outcome(translate, value)
        match first:
            case Ignored():
                assert 1 <= len(first.reason) <= 64
                assert str(first) == str(second)
            case Rejected():
                assert first.sentence.endswith(".")
                assert len(first.sentence) < 500
                assert str(first) == str(second)
            case _:
                assert first
                assert first == second
                check_sound(first)


def check_sound(events: list[InputEvent]) -> None:
    """Check that streamduel's decoder accepts the events."""
    for event in events:
        assert msgspec.json.decode(msgspec.json.encode(event), type=InputEvent) == event


@given(mutated())
@settings(max_examples=400, deadline=None, derandomize=True)
def test_a_record_that_is_nearly_right(value: bytes) -> None:
    check(value)


@given(anything)
@settings(deadline=None, derandomize=True)
def test_any_json(value: Any) -> None:
    check(json.dumps(value).encode())


@given(st.binary(max_size=40))
@settings(deadline=None, derandomize=True)
def test_any_bytes(value: bytes) -> None:
    check(value)


@pytest.mark.parametrize("sample", SAMPLES, ids=["query", "click", "credited", "response", "solr"])
def test_a_record_that_is_cut_off(sample: dict[str, Any]) -> None:
    value = json.dumps(sample).encode()
    for end in range(len(value)):
        check(value[:end])
