"""Sentences about mistakes in a configuration: the key, the value found, what is allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError

from streamduel.config.document import Location, kind_shown
from streamduel.config.shape import Schema, Shape, allowed, is_secret, is_text
from streamduel.errors import escaped, nearest, shown

KEY: Final = "[key]"
"""Pydantic's mark for a mistake in a key instead of its value."""

EXPONENT: Final = re.compile(r"[-+]?[0-9.]+[eE][-+]?[0-9]+")
"""A number that YAML 1.1 may take as text, such as 1e-2."""

QUOTES: Final = "; quotes make it a string"
"""The advice about a value or a key that YAML takes for another type."""

MAX_MISTAKES: Final = 100
"""Mistakes that are shown: nobody reads more, and each takes time to explain."""

PREDICATES: Final = ("must ", "has ")
"""Beginnings of a validator's message that continue the key's name; others follow a colon."""


class Problem(NamedTuple):
    """A setting of an experiment that contradicts another one, or the arms.

    Attributes:
        key: its key in the experiment, such as `stop.confidence`; None: the policy as a whole.
        sentence: what it must be, to be continued after the key: "must be … (found …)."; a whole
            sentence without a key.
    """

    key: str | None
    sentence: str

    def below(self, where: str) -> str:
        """The sentence with the whole key.

        >>> Problem("horizon", "must be at least 10 (found 2).").below("experiments.search")
        'experiments.search.horizon must be at least 10 (found 2).'
        >>> Problem(None, "unknown policy 'rubc'.").below("experiments.search")
        "experiments.search: unknown policy 'rubc'."
        """
        return (
            f"{where}: {self.sentence}"
            if self.key is None
            else f"{where}.{self.key} {self.sentence}"
        )


class Mistake(NamedTuple):
    """A mistake: its location, and a sentence with the key, the value and what is allowed."""

    location: Location
    sentence: str

    def at(self, place: str) -> str:
        """The sentence with the place where the mistake is written.

        >>> Mistake(("seed",), "seed is missing.").at("search.yaml, line 3")
        'seed is missing (search.yaml, line 3).'
        >>> Mistake(("seed",), "seed must be an integer (found 'x').").at("search.yaml, line 3")
        "seed must be an integer (found 'x'; search.yaml, line 3)."
        """
        if self.sentence.endswith(")."):
            return f"{self.sentence[:-2]}; {place})."
        if self.sentence.endswith("."):
            return f"{self.sentence[:-1]} ({place})."
        return f"{self.sentence} ({place})"


def mistakes(
    error: ValidationError,
    model: type[BaseModel],
    prefix: Location = (),
    others: Sequence[str] = (),
) -> Iterator[Mistake]:
    """The mistakes that pydantic found with a model: the first ones, and the number of the rest.

    Args:
        error: of the model.
        model: what was checked.
        prefix: its place in the whole.
        others: keys that are allowed beside those of the model, because another one checks them.
    """
    shape = Shape(model)
    errors = error.errors(include_url=False)[:MAX_MISTAKES]
    hints = {
        (found["loc"][:-1], nearest(str(found["loc"][-1]), _keys(shape, found["loc"], others)))
        for found in errors if found["type"] == "extra_forbidden"
    }  # fmt: skip
    for found in errors:
        if found["type"] == "missing" and _as_hint(found["loc"]) in hints:
            continue  # the sentence about the misspelt key names it
        location = (*prefix, *found["loc"])
        yield Mistake(location, _sentence(shape, prefix, found["loc"], dict(found), others))
    if (rest := error.error_count() - MAX_MISTAKES) > 0:
        yield Mistake(prefix, f"{rest:,} more mistakes are not shown.")


def _keys(shape: Shape, location: Location, others: Sequence[str]) -> list[str]:
    """The keys that are allowed beside one."""
    further = others if len(location) == 1 else ()
    return sorted([*(shape.at(location[:-1]) or {}).get("properties", {}), *further])


def _as_hint(location: Location) -> tuple[Location, str]:
    """A key's mapping, and what the sentence about a misspelling of the key suggests there."""
    name = str(location[-1])
    return location[:-1], nearest(name, [name])


def _sentence(
    shape: Shape,
    prefix: Location,
    location: Location,
    found: dict[str, Any],
    others: Sequence[str],
) -> str:
    kind, value = found["type"], found["input"]
    if kind == "invalid_key" or KEY in location:
        return _wrong_key(shape, prefix, location, value)
    where = dotted((*prefix, *location))
    schema = shape.at(location)
    if kind == "extra_forbidden":
        keys = _keys(shape, location, others)
        # Behind a colon without a space, or an equals sign, there may be a password.
        name, *rest = re.split("[:=]", str(location[-1]), maxsplit=1)
        where = dotted((*prefix, *location[:-1], f"{name}…" if rest else name))
        hint = nearest(name, keys) or "."
        return f"unknown key '{where}'{hint} Allowed there: {', '.join(keys)}."
    if kind == "value_error":
        text = str(found["ctx"]["error"])
        end = "" if text.endswith(("?", ".")) else "."
        return f"{where}{'' if text.startswith(PREDICATES) else ':'} {text}{end}"
    wanted = allowed(schema) if schema else found["msg"]
    if kind == "missing":
        description = schema.get("description", "").split("\n")[0].rstrip(".") if schema else ""
        return f"{where} is missing: {description[:1].lower()}{description[1:] or wanted}."
    return f"{where} must be {wanted} (found {_found(schema, value)}){_hint(schema or {}, value)}"


def _found(schema: Schema | None, value: Any) -> str:
    if not is_secret(schema):
        return shown(value)
    return kind_shown(value) if (schema or {}).get("type") == "object" else "a secret"


def _hint(schema: Schema, value: Any) -> str:
    if isinstance(value, str):
        if schema.get("type") == "number" and EXPONENT.fullmatch(value):
            return "; in YAML, an exponent needs a point and a sign, as in 1.0e-2."
        if schema.get("type") == "integer" and EXPONENT.fullmatch(value):
            return "; in YAML, a number with an exponent is no integer; write its digits."
        return nearest(value, schema.get("enum", [])) or "."
    needs_quotes = is_text(schema) and isinstance(value, bool | int | float)
    return f"{QUOTES}." if needs_quotes and "enum" not in schema else "."


def _wrong_key(shape: Shape, prefix: Location, location: Location, key: Any) -> str:
    parent = location[: -2 if location[-1] == KEY else -1]
    where = dotted((*prefix, *parent)) or "the configuration"
    names = (shape.at(parent) or {}).get("propertyNames", {})
    wanted = allowed({"type": "string", **names})
    hint = "" if isinstance(key, str) else QUOTES
    return f"{where} has the key {shown(key, json=True)}; a key must be {wanted}{hint}."


def dotted(location: Location) -> str:
    """A location in the notation of error sentences.

    >>> dotted(("experiments", "search", "arms", 2))
    'experiments.search.arms[2]'
    """
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return escaped(text)
