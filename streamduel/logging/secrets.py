"""Secrets, and how they are hidden in the application log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from pydantic import BaseModel, SecretBytes, SecretStr
from structlog.typing import EventDict, WrappedLogger

HIDDEN: Final = "**********"
"""The replacement of a secret, as in pydantic."""

OWN_KEYS: Final = frozenset({"timestamp", "level", "logger"})
"""Keys whose values are made by the log itself."""

SECRET_KEY: Final = re.compile("passw|secret|credential|api_?key|token", re.IGNORECASE)
"""The value of a key that matches is always hidden."""


def secrets_of(value: object) -> Iterator[str]:
    """The secrets in settings, at any depth.

    >>> class Settings(BaseModel):
    ...     user: str
    ...     password: SecretStr
    >>> list(secrets_of([Settings(user="ada", password="correct horse")]))
    ['correct horse']
    """
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, SecretBytes):
        yield value.get_secret_value().decode(errors="replace")
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from secrets_of(getattr(value, name))
    elif isinstance(value, Mapping):
        yield from secrets_of(list(value.values()))
    elif isinstance(value, list | tuple | set):
        for each in value:
            yield from secrets_of(each)


class Secrets:
    """A processor that hides known secrets anywhere in a line: values, errors, tracebacks.

    Libraries may put their arguments into any error message, so known secrets are replaced wherever
    they occur.

    >>> secrets = Secrets()
    >>> secrets.add(["correct horse"])
    >>> secrets(None, "error", {"event": "failed", "error": "refused 'correct horse'"})
    {'event': 'failed', 'error': "refused '**********'"}
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, secrets: Iterable[str]) -> None:
        """Hide these too, plain and in quoted forms."""
        for secret in secrets:
            self._known |= {secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret)}
        self._known.discard("")
        # The longest first: a secret may be a prefix of another one.
        longest_first = sorted(self._known, key=lambda each: (-len(each), each))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if self._known else None

    def redact(self, text: str) -> str:
        """The text with the secrets hidden."""
        return self._pattern.sub(HIDDEN, text) if self._pattern else text

    def __call__(self, _: WrappedLogger, __: str, line: EventDict) -> EventDict:
        """The line with the secrets hidden.

        The names of our own events are constants and never changed, even if a password is a part of
        one, so that filters can rely on them.
        """
        own = line.get("_from_structlog", False)
        return {
            key: value if key in OWN_KEYS or (key == "event" and own) else self._clean(key, value)
            for key, value in line.items()
        }

    def _clean(self, key: str, value: Any) -> Any:
        if key.startswith("_") or value is None:  # structlog's own keys, never shown
            return value
        if SECRET_KEY.search(key):
            return HIDDEN
        if isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {str(name): self._clean(str(name), each) for name, each in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return [self._clean(key, each) for each in value]
        return self.redact(str(value))
