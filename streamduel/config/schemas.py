"""Generates the JSON Schemas of the records and of the configuration.

python -m streamduel.config.schemas docs/schemas

They are generated from the classes that check records and configurations.
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from streamduel.config.model import SECTIONS, Config, settings_model
from streamduel.config.shape import Schema
from streamduel.connector import Connector, load_connector, own_connector_names
from streamduel.formats import FORMATS
from streamduel.records import Assignment, DeadLetter, InputEvent
from streamduel.section import Section

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

NULL: Final[Schema] = {"type": "null"}

NOTES: Final = ("default", "description", "examples")
"""What a schema tells about a key, beside its values."""

RECORDS: Final[dict[str, type[msgspec.Struct]]] = {
    str(record.__struct_config__.tag): record
    for record in (*get_args(InputEvent), Assignment, DeadLetter)
}


def schemas() -> dict[str, Schema]:
    """Every schema by its name."""
    found = {name: record_schema(record) for name, record in RECORDS.items()}
    return {**found, "configuration": configuration_schema()}


def record_schema(record: type[msgspec.Struct]) -> Schema:
    """The schema of a type of records; unknown fields are allowed."""
    schema = msgspec.json.schema(record)
    definitions = schema["$defs"]
    whole = definitions.pop(record.__name__)
    if definitions:
        whole["$defs"] = definitions
    return _finished(whole)


def configuration_schema() -> Schema:
    """The schema of the configuration with the sections of the connectors that streamduel ships."""
    schema = _own_schema(Config)
    definitions: Schema = schema["$defs"]
    for section in SECTIONS:
        description = schema["properties"][section]["description"]
        options = []
        for name in own_connector_names():
            settings = _section_schema(section, name, load_connector(name))
            definitions.update(settings.pop("$defs", {}))
            definitions[f"{name}.{section}"] = settings
            options.append({"$ref": f"#/$defs/{name}.{section}"})
        schema["properties"][section] = {"description": description, "anyOf": options}
    return _finished(schema)


def _section_schema(section: str, name: str, connector: Connector) -> Schema:
    schema = settings_model(section, connector).model_json_schema()
    schema["properties"]["connector"] = {"const": name}
    required = {"connector", *schema.get("required", [])}
    if section == "source":
        _add_format(schema)
    else:  # shared keys may come from the source
        required -= connector.shared_settings
    schema["required"] = sorted(required)
    return schema


def _add_format(source: Schema) -> None:
    """Add the key `format`, which is no connector's own."""
    definitions = source.setdefault("$defs", {})
    options: list[Schema] = [{"enum": [*FORMATS]}]
    for name, model in FORMATS.items():
        settings = _own_schema(model)
        definitions.update(settings.pop("$defs", {}))
        definitions[f"format.{name}"] = {**settings, "required": ["name"]}
        options.append({"$ref": f"#/$defs/format.{name}"})
    source["properties"]["format"] = {
        "anyOf": [*options, NULL],
        "default": None,
        "description": "The format of another program's click log; see docs/formats.md.",
    }


def _own_schema(model: type[Section]) -> Schema:
    """The schema of a section, in which an optional section or list may be without content."""
    schema = model.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        for name, key in part.get("properties", {}).items():
            if isinstance(key.get("default"), dict | list):
                notes = {note: key.pop(note) for note in NOTES if note in key}
                options = key.get("anyOf", [key])
                nullable = options if NULL in options else [*options, NULL]
                part["properties"][name] = {"anyOf": nullable, **notes}
    return schema


def _finished(schema: Schema) -> Schema:
    return {"$schema": DIALECT, **_tidy(schema)}


def _tidy(schema: Any, *, named: bool = False) -> Any:
    """Remove pydantic's generated titles, and the indentation of docstrings."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidied = {}
    for key, value in schema.items():
        if key == "title" and not named:
            continue
        if key == "description" and not named:
            tidied[key] = inspect.cleandoc(value)
        else:
            tidied[key] = _tidy(value, named=key in {"properties", "$defs"})
    return tidied


def files() -> dict[str, str]:
    """The text of each file by its name."""
    return {
        f"{name}.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in schemas().items()
    }


def main(folder: str) -> None:
    """Write all files into a folder."""
    for name, text in files().items():
        Path(folder, name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
