"""The sentences in which a configuration is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from streamduel.config import load
from streamduel.errors import ConfigurationError

PLACE = r"(\S+/(search|kafka)\.yaml(, line \d+)?|environment variable STREAMDUEL\w+)"
PLACES_IN_SENTENCES = re.compile(rf" \({PLACE}\)|; {PLACE}(?=\)\.)")


def told(path: Path, text: str | bytes, environment: dict[str, str] | None = None) -> list[str]:
    """The sentences about a configuration, without their places."""
    return [without_place(sentence) for sentence in placed(path, text, environment)]


def placed(path: Path, text: str | bytes, environment: dict[str, str] | None = None) -> list[str]:
    """The sentences about a configuration."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigurationError) as refused:
        load(path, environment or {})
    return str(refused.value).replace(str(path.parent), "HERE").splitlines()


def without_place(text: str) -> str:
    return PLACES_IN_SENTENCES.sub("", text)


def case(it: object) -> str:
    """The name of a test case: the beginning of its sentence."""
    return it.partition(" (found")[0][:70] if isinstance(it, str) else ""


def keys(section: type[BaseModel], *others: str) -> str:
    """The allowed keys of a section, as a sentence lists them."""
    return ", ".join(sorted([*section.model_fields, *others]))
