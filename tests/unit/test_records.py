"""The wire format: what programs that write and read records rely on."""

from __future__ import annotations

import json
import re
import tracemalloc
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from streamduel import records
from streamduel.config import schemas
from streamduel.record_rules import _RULES, ACTION_FIELDS, ALLOWED, contradiction
from streamduel.stream.coding import Coder
from streamduel.stream.experiment import Experiment
from tests.unit.stream.folding import Partition, config, letters

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
EXAMPLES = [
    line
    for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    for line in block.strip().split("\n\n")
]
INPUTS = {str(event.__struct_config__.tag): event for event in typing.get_args(records.InputEvent)}


def test_every_record_type_has_its_rules_its_coder_and_its_effect() -> None:
    """A type that one of them lacks would end the service with its first record."""
    assert set(INPUTS.values()) == set(_RULES) == set(Coder._CODERS) == set(Experiment._HANDLERS)


def example(type_: str) -> list[str]:
    return [text for text in EXAMPLES if json.loads(text)["type"] == type_]


@pytest.mark.parametrize("text", EXAMPLES, ids=lambda text: json.loads(text)["type"])
def test_each_example_on_the_page_is_a_record(text: str) -> None:
    kind = schemas.RECORDS[json.loads(text)["type"]]
    assert isinstance(msgspec.json.decode(text, type=kind), kind)


def test_documents_that_decide_nothing_take_no_memory() -> None:
    """As Python lists, empty arrays took 44 times their text."""
    docs = msgspec.Raw(b"[" + b"[]," * 10_000 + b"[]]")
    record = msgspec.json.encode({**json.loads(example("interleaving")[0]), "docs": docs})
    tracemalloc.start()
    try:
        found = msgspec.json.decode(record, type=records.InputEvent)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(found, records.Interleaving)
    assert size < len(record)


@pytest.mark.parametrize("type_", schemas.RECORDS)
def test_the_page_shows_each_type_and_all_of_its_fields(type_: str) -> None:
    shown = {field for text in example(type_) for field in json.loads(text)}
    fields = {field.name for field in msgspec.structs.fields(schemas.RECORDS[type_])}
    optional = {"encoding", "truncated", "size"}
    assert fields - optional <= shown
    assert all(f"`{field}`" in PAGE for field in fields)


def test_every_input_example_is_accepted() -> None:
    texts = [text.encode() for type_ in INPUTS for text in example(type_)]
    partition = Partition(config(search={"arms": ["bm25", "ltr-v1", "ltr-v2", "ltr-v3"]}))
    assert not letters(partition.fold(*texts))
    assert partition.tallies()["accepted"] == len(texts)


@pytest.mark.parametrize("type_", INPUTS)
def test_every_input_type_has_a_rule(type_: str) -> None:
    for text in example(type_):
        assert contradiction(msgspec.json.decode(text, type=INPUTS[type_])) is None


def paths(kind: inspect.Type, path: str = "") -> Iterator[str]:
    """The path of every field below a type, as it is named in the sentence about its value."""
    match kind:
        case inspect.StructType(fields=fields):
            for field in fields:
                name = f"{path}.{field.encode_name}" if path else field.encode_name
                yield name
                yield from paths(field.type, name)
        case inspect.ListType(item_type=item):
            yield f"{path}[]"
            yield from paths(item, f"{path}[]")
        case inspect.UnionType(types=types):
            for member in types:
                yield from paths(member, path)


@pytest.mark.parametrize("type_", INPUTS)
def test_every_input_field_has_a_sentence(type_: str) -> None:
    assert {"type", *paths(inspect.type_info(INPUTS[type_]))} <= ALLOWED.keys()


def test_every_action_has_its_fields() -> None:
    assert set(ACTION_FIELDS) == set(typing.get_args(records.Action))


def test_every_action_is_described() -> None:
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    assert set(ACTION_FIELDS) == set(rows(PAGE, "action"))
    found = [name.replace("-", "_") for name in rows(page, "ACTION")]
    sections = {"apply", "note"}  # described in sections of that page
    assert set(ACTION_FIELDS) - sections == set(found)


def rows(page: str, head: str) -> list[str]:
    """The first words of a table's rows."""
    table = page.split(f"\n| {head} |")[1].split("\n\n", maxsplit=1)[0]
    return re.findall(r"^\| `([\w-]+)", table, re.MULTILINE)


def reasons() -> dict[str, str]:
    """The example sentence of each reason on the page."""
    return dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| `([^|]+)` \|$", PAGE, re.MULTILINE))


def test_every_reason_is_on_the_page() -> None:
    assert reasons().keys() == set(typing.get_args(records.Reason))


def record(**changes: Any) -> bytes:
    good = {"type": "duel", "id": "i-1", "experiment": "search", "a": "bm25", "b": "ltr-v1",
            "winner": "a"}  # fmt: skip
    return json.dumps({**good, **changes}).encode()


@pytest.mark.parametrize(
    ("reason", "value"),
    [
        ("invalid_json", b'{"type": "du'),
        ("invalid_record", record(winner="A")),
        ("unknown_experiment", record(experiment="serach")),
        ("unknown_arm", record(a="bm52")),
        ("too_large", record(note="x" * 2**20)),
        ("wrong_partition", record(experiment="ads", a="x", b="y")),
    ],
)
def test_each_reasons_example_is_what_is_said(reason: str, value: bytes) -> None:
    partition = Partition(home=lambda experiment: int(experiment == "ads"))
    (letter,) = letters(partition.fold(value))
    assert letter["reason"] == reason
    assert letter["error"] == reasons()[reason]


@pytest.mark.parametrize("type_", schemas.RECORDS)
def test_schemas_allow_fields_that_are_not_known_yet(type_: str) -> None:
    assert "additionalProperties" not in schemas.record_schema(schemas.RECORDS[type_])


@pytest.mark.parametrize("kind", [records.Assignment, records.DeadLetter])
def test_readers_written_today_can_read_what_is_added_tomorrow(kind: type[Any]) -> None:
    text = next(text for text in EXAMPLES if json.loads(text)["type"] == kind.__struct_config__.tag)
    assert msgspec.json.decode(json.dumps({**json.loads(text), "new": 1}), type=kind)
