"""Assignments over HTTP, from the monitoring port of a running streamduel."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

import msgspec

from streamduel.client.feeds import FeedRecord
from streamduel.errors import ClientError

EVERY_SECONDS: Final = 2.0
"""Seconds between two requests: an assignment that is a few seconds old costs little."""

SILENCE_SECONDS: Final = 3.0
"""Timeout of connecting and of each read; the service answers in milliseconds."""

ANSWER_SECONDS: Final = 10.0
"""Timeout of a whole answer."""

MAX_ANSWER_BYTES: Final = 16 << 20
"""A hundred rankers have some 5,000 pairs of 100 bytes: half a megabyte for an experiment."""

CHUNK_BYTES: Final = 1 << 16
"""Bytes read at a time, between two checks of the timeout."""

_NULL: Final = b"null"

# Without redirects: the headers may contain credentials.
_HANDLERS: Final = (
    ProxyHandler,
    HTTPHandler,
    HTTPSHandler,
    HTTPErrorProcessor,
    HTTPDefaultErrorHandler,
)


class _Entry(msgspec.Struct):
    """An experiment; its assignment is decoded later, so that an invalid one affects no other."""

    assignment: msgspec.Raw = msgspec.Raw(_NULL)


class _Answer(msgspec.Struct):
    experiments: dict[str, _Entry]


class UrlFeed:
    """Polls the monitoring port of a running streamduel.

    Args:
        url: such as `http://streamduel:9400/api/experiments`.
        every: seconds between two requests.
        headers: headers of the requests, such as `Authorization`; they are never logged.

    Raises:
        ClientError: the URL is not an HTTP URL, or contains a password.
    """

    def __init__(
        self, url: str, every: float = EVERY_SECONDS, headers: Mapping[str, str] | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.username is not None or parts.password is not None:
            raise ClientError(
                "the URL of the assignments must not contain a user or a password; pass them "
                "in the header 'Authorization'."
            )
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ClientError(
                "the URL of the assignments must be an HTTP URL such as "
                f"'http://streamduel:9400/api/experiments' (found '{url}')."
            )
        self.every = every
        self._url = url
        self._headers = {"Accept": "application/json", **(headers or {})}
        self._opener = OpenerDirector()
        for handler in _HANDLERS:
            self._opener.add_handler(handler())

    def poll(self) -> Iterator[FeedRecord]:
        """The assignment of every experiment in the answer.

        Raises:
            ClientError: the answer is invalid.
            OSError: there is no answer.
        """
        request = Request(self._url, headers=self._headers)  # noqa: S310 - HTTP only, see above
        deadline = time.monotonic() + ANSWER_SECONDS
        try:
            with self._opener.open(request, timeout=SILENCE_SECONDS) as response:
                text = self._read(response, deadline)
        except HTTPError as error:
            error.close()
            raise ClientError(f"{self._url} answered with status {error.code}.") from None
        try:
            answer = msgspec.json.decode(text, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ClientError(f"{self._url} gave an invalid answer: {error}.") from None
        for entry in answer.experiments.values():
            if (assignment := bytes(entry.assignment)) != _NULL:
                yield FeedRecord(assignment)

    def _read(self, response: Any, deadline: float) -> bytes:
        text = b""
        while chunk := response.read1(CHUNK_BYTES):
            text += chunk
            if len(text) > MAX_ANSWER_BYTES:
                raise ClientError(
                    f"{self._url} answered with more than {MAX_ANSWER_BYTES >> 20} MB."
                )
            if time.monotonic() > deadline:
                raise ClientError(f"{self._url} took more than {ANSWER_SECONDS:.0f} s to answer.")
        return text

    def close(self) -> None:
        """Do nothing: each request has its own connection."""
