"""What is wrong with a configuration, in sentences: the key, the value found, what is allowed."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel, SecretStr, ValidationError

from streamduel.errors import nearest

SHOWN: Final = 60
"""Characters of a found value that a sentence repeats."""

_TYPES: Final = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "path_type": "a path",
}


def sentences(
    error: ValidationError, model: type[BaseModel], document: Mapping[str, Any], prefix: str = ""
) -> Iterator[str]:
    """One sentence for each mistake that pydantic found in a document.

    Args:
        error: pydantic's.
        model: the model that was validated against, to know the allowed keys.
        document: what was validated, to know the value found.
        prefix: the key under which the document stands in the whole configuration.
    """
    for mistake in error.errors(include_url=False):
        location = [step for step in mistake["loc"] if step != "[key]"]
        where = _where([prefix, *location] if prefix else location)
        yield _sentence(where, location, dict(mistake), model)


def _sentence(
    where: str, location: list[int | str], mistake: dict[str, Any], model: type[BaseModel]
) -> str:
    kind, context = mistake["type"], mistake.get("ctx", {})
    if kind == "extra_forbidden":
        allowed = _keys(model, location[:-1])
        hint = nearest(str(location[-1]), allowed)
        return f"unknown key '{where}'{hint or '.'} Allowed there: {', '.join(allowed)}."
    if kind == "missing":
        return f"{where} is missing{_meaning(model, location)}."
    if kind == "value_error":
        text = str(context["error"])
        return f"{where} {text}" if text.endswith(("?", ".")) else f"{where} {text}."
    allowed = _allowed(kind, context, mistake["msg"])
    value = mistake["input"]
    hint = ""
    if kind == "literal_error" and isinstance(value, str):
        options = [option.strip(" '") for option in context["expected"].split(" or ")]
        hint = nearest(value, options)
    return f"{where} must be {allowed} (found {_shown(value, model, location)}){hint or '.'}"


def _allowed(kind: str, context: Mapping[str, Any], message: str) -> str:
    if kind in _TYPES:
        return _TYPES[kind]
    match kind:
        case "greater_than_equal":
            return f"at least {context['ge']}"
        case "greater_than":
            return f"greater than {context['gt']}"
        case "less_than_equal":
            return f"at most {context['le']}"
        case "less_than":
            return f"less than {context['lt']}"
        case "literal_error":
            return str(context["expected"])
        case "string_too_short":
            return f"a string of at least {context['min_length']} character"
        case "string_too_long":
            return f"a string of at most {context['max_length']} characters"
        case "too_short":
            return f"at least {context['min_length']} long"
        case "too_long":
            return f"at most {context['max_length']} long"
    return message.removeprefix("Input should be ").removeprefix("Value error, ")


def _where(location: list[int | str]) -> str:
    """`experiments.search.arms[2]` for a pydantic location."""
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def _shown(value: Any, model: type[BaseModel], location: list[int | str]) -> str:
    if _field_type(model, location) is SecretStr:
        return "a secret"
    match value:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list():
            return f"a list of {len(value)}"
        case bool():
            return str(value).lower()
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _keys(model: type[BaseModel], location: list[int | str]) -> list[str]:
    found = _model_at(model, location)
    return sorted(found.model_fields) if found else []


def _meaning(model: type[BaseModel], location: list[int | str]) -> str:
    parent = _model_at(model, location[:-1])
    field = parent.model_fields.get(str(location[-1])) if parent else None
    return f": {field.description.rstrip('.')}" if field and field.description else ""


def _field_type(model: type[BaseModel], location: list[int | str]) -> Any:
    parent = _model_at(model, location[:-1])
    field = parent.model_fields.get(str(location[-1])) if parent and location else None
    if field is None:
        return None
    options = [kind for kind in _options(field.annotation) if kind is not type(None)]
    return options[0] if options else None


def _model_at(model: type[BaseModel], location: list[int | str]) -> type[BaseModel] | None:
    """The model that validates a location, followed through mappings and optional fields."""
    current: Any = model
    for step in location:
        if isinstance(current, type) and issubclass(current, BaseModel):
            field = current.model_fields.get(str(step))
            current = field.annotation if field else None
        else:
            arguments = typing.get_args(current)
            current = arguments[-1] if arguments else None
        current = next((kind for kind in _options(current) if kind is not type(None)), None)
    return current if isinstance(current, type) and issubclass(current, BaseModel) else None


def _options(annotation: Any) -> tuple[Any, ...]:
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Annotated:
        return _options(typing.get_args(annotation)[0])
    return (annotation,)
