"""What is wrong with a configuration, in sentences: the key, the value found, what is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from streamduel.config.shape import Shape, Step, allowed, is_secret, is_text
from streamduel.errors import nearest, shown

KEY: Final = "[key]"
"""Pydantic's mark for a mistake in a key itself, not in what stands under it."""

PREDICATES: Final = ("must ", "has ")
"""How a validator's own message goes on after the key's name; any other is set off by a colon."""


def sentences(
    error: ValidationError, model: type[BaseModel], prefix: tuple[Step, ...] = ()
) -> Iterator[str]:
    """One sentence for each mistake that pydantic found.

    Args:
        error: pydantic's.
        model: the model that was validated against, to know what is allowed.
        prefix: where the validated part stands in the whole configuration.
    """
    shape = Shape(model)
    for mistake in error.errors(include_url=False):
        yield _sentence(shape, prefix, mistake["loc"], dict(mistake))


def _sentence(
    shape: Shape, prefix: tuple[Step, ...], location: tuple[Step, ...], mistake: dict[str, Any]
) -> str:
    kind, value = mistake["type"], mistake["input"]
    if kind == "invalid_key" or KEY in location:
        return _wrong_key(shape, prefix, location, value)
    where = place((*prefix, *location))
    schema = shape.at(location)
    if kind == "extra_forbidden":
        keys = sorted((shape.at(location[:-1]) or {}).get("properties", {}))
        hint = nearest(str(location[-1]), keys) or "."
        return f"unknown key '{where}'{hint} Allowed there: {', '.join(keys)}."
    if kind == "value_error":
        text = str(mistake["ctx"]["error"])
        end = "" if text.endswith(("?", ".")) else "."
        return f"{where}{'' if text.startswith(PREDICATES) else ':'} {text}{end}"
    wanted = allowed(schema) if schema else mistake["msg"]
    if kind == "missing":
        description = schema.get("description", "").split("\n")[0].rstrip(".") if schema else ""
        return f"{where} is missing: {_lower(description) or wanted}."
    found = "a secret" if is_secret(schema) else shown(value)
    return f"{where} must be {wanted} (found {found}){_hint(schema, value)}"


def _hint(schema: dict[str, Any] | None, value: Any) -> str:
    if isinstance(value, str):
        return nearest(value, (schema or {}).get("enum", [])) or "."
    quoted = is_text(schema) and isinstance(value, bool | int | float)
    return "; quotes make it a string." if quoted and "enum" not in (schema or {}) else "."


def _wrong_key(shape: Shape, prefix: tuple[Step, ...], location: tuple[Step, ...], key: Any) -> str:
    parent = location[: -2 if location[-1] == KEY else -1]
    where = place((*prefix, *parent)) or "the configuration"
    names = (shape.at(parent) or {}).get("propertyNames", {})
    wanted = allowed({"type": "string", **names})
    return f"{where} has the key {shown(key)}; a key must be {wanted}."


def _lower(description: str) -> str:
    """A description in the middle of a sentence."""
    return description[:1].lower() + description[1:]


def place(location: tuple[Step, ...]) -> str:
    """Where something stands, as people write it.

    >>> place(("experiments", "search", "arms", 2))
    'experiments.search.arms[2]'
    """
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
