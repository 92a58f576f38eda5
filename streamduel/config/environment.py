"""Environment variables that override keys of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

from streamduel.config.document import Document, Location, parse_value
from streamduel.config.messages import dotted
from streamduel.config.model import SECTIONS, Config, settings_model
from streamduel.config.shape import Schema, Shape, is_path, is_text
from streamduel.connector import connector_names, load_connector
from streamduel.errors import ConfigurationError, nearest
from streamduel.formats import FORMATS

PREFIX: Final = "STREAMDUEL_"

FORMAT: Final[Location] = ("source", "format")
"""The section that its name alone may stand for."""


def override(document: Document, environment: Mapping[str, str]) -> None:
    """Apply variables such as `STREAMDUEL_SOURCE__TOPIC=clicks` to a document.

    Raises:
        ConfigurationError: a variable names an unknown section, or is not UTF-8.
    """
    for variable in sorted(environment, key=_order):
        if not variable.startswith(PREFIX):
            continue
        *parents, last = variable.removeprefix(PREFIX).split("__")
        section = (parents or [last])[0].lower()
        if section in Config.model_fields:
            _set(document, parents, last, variable, environment[variable])
        elif parents:  # without "__" it is another program's variable
            hint = nearest(section, Config.model_fields) or "."
            raise ConfigurationError(
                f"unknown key '{section}' in the environment variable {variable}{hint}"
            )


def _order(variable: str) -> tuple[int, bool, str]:
    """Sections before their keys; of these first the ones that define which others are text."""
    defines = variable.upper().endswith(("__CONNECTOR", "__FORMAT__NAME"))
    return variable.count("__"), not defines, variable


def _set(document: Document, parents: list[str], last: str, variable: str, text: str) -> None:
    values = mapping = document.values
    location: Location = ()
    schema = _schema(values, location)
    for name in parents:
        key = _key(mapping, name, schema)
        location = (*location, key)
        schema = _schema(values, location)
        below = mapping.get(key)
        if isinstance(below, dict):
            mapping[key] = dict(below)  # an alias elsewhere keeps its value
        elif below is None and schema.get("nullable") and location in document.variables:
            return  # a variable turns the section off, also where the image sets one of its keys
        elif location == FORMAT and isinstance(below, str):
            mapping[key] = {"name": below}
        else:
            mapping[key] = {}
            document.variables[location] = variable
        mapping = mapping[key]
    key = _key(mapping, last, schema)
    location = (*location, key)
    schema = _schema(values, location)
    if not (is_path(schema) or _is_utf_8(text)):  # names of directories may have any bytes
        raise ConfigurationError(
            f"{dotted(location)} must be UTF-8 text (environment variable {variable})."
        )
    # A password of digits stays text.
    mapping[key] = text if is_text(schema) else parse_value(text)
    document.variables[location] = variable


def _is_utf_8(text: str) -> bool:
    """Whether a variable has no bytes that Python keeps as halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _key(mapping: dict[str, Any], name: str, schema: Schema) -> str:
    """The key of this name: the same one, or else one that differs in case.

    A new key is lower case. Where the user chooses the keys, case has a meaning: a new one remains
    as it is, unless it is all upper case, as names of variables often are.
    """
    same = [key for key in mapping if isinstance(key, str) and key.lower() == name.lower()]
    if same:
        return name if name in same else same[0]
    chosen = isinstance(schema.get("additionalProperties"), dict)
    return name if chosen and not name.isupper() else name.lower()


def _schema(values: dict[str, Any], location: Location) -> Schema:
    """What a key allows; empty if that is unknown."""
    section, rest = (str(location[0]) if location else "", location[1:])
    if section not in SECTIONS or not rest:
        return _shape(Config).at(location) or {}
    if rest == ("connector",):
        return {"type": "string"}
    if location[:2] == FORMAT:
        form = values[section].get("format")
        model = FORMATS.get(str(form.get("name") if isinstance(form, dict) else form))
        return (_shape(model).at(rest[1:]) if model else None) or {}
    name = values[section].get("connector")
    if name not in connector_names():
        return {}
    return _shape(settings_model(section, load_connector(name))).at(rest) or {}


@cache
def _shape(model: type[BaseModel]) -> Shape:
    """A model's shape, which takes some 10 ms to make."""
    return Shape(model)
