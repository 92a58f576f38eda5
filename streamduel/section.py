"""What all sections of the configuration have in common."""

from __future__ import annotations

from typing import Annotated, Any, Final, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic.fields import FieldInfo

from streamduel.records import MAX_NAME

MAX_ARMS: Final = 1000
"""A decision of some policies takes time and memory quadratic in the number of arms."""

FROM_FILE: Final = {"from": "file"}
"""The context in which a configuration file is validated."""


def _usable(topic: str) -> str:
    if topic in {".", ".."}:
        raise ValueError(f"must not be '.' or '..', which Kafka does not allow (found '{topic}')")
    return topic


# Strict: `true` is no integer, and a quoted number is a mistake to report.
Integer = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME, strict=True)]
TopicName = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9._-]+$", min_length=1, max_length=249, strict=True),
    AfterValidator(_usable),
]
Pair = Annotated[list[Name], Field(min_length=2, max_length=2)]


class Section(BaseModel):
    """A mapping of the configuration, in which unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty(cls, values: Any, info: ValidationInfo) -> Any:
        """Take an optional section or list without content, which YAML reads as null, as absent.

        Only of a file: control records with null have always been refused, and a replay must
        refuse them again.
        """
        if not isinstance(values, dict) or info.context != FROM_FILE:
            return values
        empty = {
            name for name, field in cls.model_fields.items()
            if values.get(name, ...) is None and _may_be_empty(field)
        }  # fmt: skip
        return {name: value for name, value in values.items() if name not in empty}


def _may_be_empty(field: FieldInfo) -> bool:
    """Whether a key is an optional section or list, in which null has no meaning of its own."""
    has_null = type(None) in get_args(field.annotation)
    return isinstance(field.default, Section | dict | list) and not has_null
