"""Environment variables that override keys of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamduel.config.document import Document, Location, parse_value
from streamduel.config.model import SECTIONS, Config, settings_model
from streamduel.config.shape import Shape, is_text
from streamduel.connector import connector_names, load_connector
from streamduel.errors import ConfigurationError, nearest

PREFIX: Final = "STREAMDUEL_"


def override(document: Document, environment: Mapping[str, str]) -> None:
    """Apply variables such as `STREAMDUEL_SOURCE__TOPIC=clicks` to a document.

    Raises:
        ConfigurationError: a variable names an unknown section.
    """
    # The connectors first: their settings define which values are text.
    for variable in sorted(environment, key=lambda name: (not name.endswith("CONNECTOR"), name)):
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


def _set(document: Document, parents: list[str], last: str, variable: str, text: str) -> None:
    mapping = document.values
    location: Location = ()
    for name in parents:
        key = _existing(mapping, name)
        location = (*location, key)
        below = mapping.get(key)
        if isinstance(below, dict):
            mapping[key] = dict(below)  # an alias elsewhere keeps its value
        else:
            mapping[key] = {}
            document.variables[location] = variable
        mapping = mapping[key]
    key = _existing(mapping, last)
    location = (*location, key)
    mapping[key] = text if _is_text(document.values, location) else parse_value(text)
    document.variables[location] = variable


def _existing(mapping: dict[str, Any], name: str) -> str:
    """The key of this name in any case; a key that does not exist is lower case."""
    for key in mapping:
        if isinstance(key, str) and key.lower() == name.lower():
            return key
    return name.lower()


def _is_text(values: dict[str, Any], location: Location) -> bool:
    """Whether a key holds text, so that a password of digits stays one."""
    section, *rest = location
    if section not in SECTIONS or not rest:
        return is_text(Shape(Config).at(location))
    if rest == ["connector"]:
        return True
    name = values[section].get("connector")
    if name not in connector_names():
        return False
    return is_text(Shape(settings_model(str(section), load_connector(name))).at(rest))
