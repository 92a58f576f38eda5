"""What all sections of the configuration have in common."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from streamduel.records import MAX_NAME

MAX_ARMS: Final = 1000
"""A decision of some policies takes time and memory quadratic in the number of arms."""

# Strict: `true` is no integer, and a quoted number is a mistake to report.
Integer = Annotated[int, Field(strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME, strict=True)]
Pair = Annotated[list[Name], Field(min_length=2, max_length=2)]


class Section(BaseModel):
    """A mapping of the configuration, in which unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)
