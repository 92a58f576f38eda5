"""The allowed values of each key, from the JSON Schemas of the models, and in words.

Error sentences, environment variables and the generated reference use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pydantic import BaseModel

READABLE: Final = 2**32
"""Powers of two from here on are written as such."""

Schema = dict[str, Any]


class Shape:
    """A model's JSON Schema, to look up what a key allows."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.schema: Schema = model.model_json_schema()

    def at(self, location: Sequence[str | int]) -> Schema | None:
        """The schema of a key or entry with references resolved; None if it has none."""
        found = self.resolved(self.schema)
        for step in location:
            options = [_below(option, step) for option in found.get("anyOf", [found])]
            below = next((option for option in options if isinstance(option, dict)), None)
            if below is None:
                return None
            found = self.resolved(below)
        return found

    def keys(self, location: Sequence[str | int] = ()) -> Iterator[tuple[str, Schema, bool]]:
        """The keys of a mapping, each with its schema and whether it is required."""
        mapping = self.at(location) or {}
        for name, schema in mapping.get("properties", {}).items():
            yield name, self.resolved(schema), name in mapping.get("required", [])

    def resolved(self, schema: Schema) -> Schema:
        """A schema with its reference resolved, and `nullable` instead of a choice with null."""
        options = schema.get("anyOf", [])
        others = [option for option in options if option.get("type") != "null"]
        if len(others) == 1:
            schema = {**others[0], **_without(schema, "anyOf"), "nullable": True}
        if "$ref" in schema:
            definition = self.schema["$defs"][schema["$ref"].rpartition("/")[2]]
            schema = {**definition, **_without(schema, "$ref")}
        return schema


def _below(schema: Schema, step: str | int) -> Any:
    if isinstance(step, int):
        return schema.get("items")
    return schema.get("properties", {}).get(step) or schema.get("additionalProperties")


def _without(schema: Schema, key: str) -> Schema:
    return {name: value for name, value in schema.items() if name != key}


def is_secret(schema: Schema | None) -> bool:
    """Whether errors must not repeat a value."""
    return bool(schema and schema.get("writeOnly"))


def is_text(schema: Schema | None) -> bool:
    """Whether a value is a string, even if YAML reads it as another type."""
    return bool(schema and schema.get("type") == "string")


def is_path(schema: Schema | None) -> bool:
    """Whether a value is the path of a file or a directory."""
    return bool(schema and schema.get("format") == "path")


def allowed(schema: Schema) -> str:
    """The values that a schema allows, to complete "must be ...".

    >>> allowed({"type": "integer", "minimum": 0, "maximum": 65535})
    'an integer from 0 to 65535'
    >>> allowed({"enum": ["half", "drop"], "type": "string"})
    "'half' or 'drop'"
    """
    words = [_allowed(option) for option in schema.get("anyOf", [schema])]
    if schema.get("nullable"):
        words.append("null")
    return ", or ".join(words)


def _allowed(schema: Schema) -> str:
    if "enum" in schema or "const" in schema:
        return one_of(schema.get("enum") or [schema["const"]])
    kind = schema.get("type", "")
    if kind == "integer":
        return "an integer" + _integers(schema)
    if kind == "number":
        return "a number" + _reals(schema)
    if kind == "string":
        return _strings(schema)
    entries = _size(schema, _SIZES.get(kind, ""), "entry", "entries")
    return _WORDS.get(kind, "of another type") + entries


_WORDS: Final = {"boolean": "true or false", "array": "a list", "object": "a mapping"}
_SIZES: Final = {"array": "Items", "object": "Properties"}


def _strings(schema: Schema) -> str:
    kind = "a path" if is_path(schema) else "a string"
    pattern = f" that matches {schema['pattern']}" if "pattern" in schema else ""
    return kind + _size(schema, "Length", "character", "characters") + pattern


def _integers(schema: Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMaximum" in schema:
        most = schema["exclusiveMaximum"] - 1
    if most is None:
        return "" if least is None else f" of at least {least}"
    return f" from {least} to {_number(most)}"


def _reals(schema: Schema) -> str:
    words = {"minimum": "at least", "exclusiveMinimum": "above",
             "maximum": "at most", "exclusiveMaximum": "below"}  # fmt: skip
    bounds = [f"{word} {schema[name]:g}" for name, word in words.items() if name in schema]
    return f" {' and '.join(bounds)}" if bounds else ""


def _number(number: int) -> str:
    for value, suffix in ((number, ""), (number + 1, " - 1")):
        if value >= READABLE and value & (value - 1) == 0:
            return f"2^{value.bit_length() - 1}{suffix}"
    return str(number)


def _size(schema: Schema, what: str, one: str, many: str) -> str:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if most is None:
        return f" of at least {least} {one if least == 1 else many}" if least else ""
    if least == most:
        return f" of {most} {many}"
    return f" of {least} to {most} {many}" if least else f" of at most {most} {many}"


def one_of(names: Iterable[str]) -> str:
    """A choice of names.

    >>> one_of(["a", "b", "c"])
    "'a', 'b' or 'c'"
    """
    *others, last = (f"'{name}'" for name in names)
    return f"{', '.join(others)} or {last}" if others else last
