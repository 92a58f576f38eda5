"""Arguments for Kafka, checked for both client libraries before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamduel.errors import ClientError


def settings_in(kafka: Mapping[str, Any] | None) -> dict[str, Any]:
    """The settings that a service has chosen, a copy; ClientError: they are no mapping.

    >>> settings_in(None)
    {}
    """
    if kafka is not None and not isinstance(kafka, Mapping):
        raise ClientError(f"kafka must be a dict of settings (found {type(kafka).__name__}).")
    return dict(kafka or {})


def brokers_in(servers: str | Sequence[str]) -> list[str]:
    """The addresses of brokers, at least one; ClientError: there is none, or one is no text.

    >>> brokers_in("kafka-1:9092, kafka-2:9092,")
    ['kafka-1:9092', 'kafka-2:9092']
    """
    try:
        parts = servers.split(",") if isinstance(servers, str) else servers
        brokers = [stripped for stripped in map(str.strip, parts) if stripped]
    except TypeError:  # no sequence of texts
        raise invalid_brokers(repr(servers)) from None
    if not brokers:
        raise invalid_brokers("none")
    return brokers


def invalid_brokers(found: str) -> ClientError:
    """The error about brokers."""
    return ClientError(
        f"bootstrap_servers must have host:port of one or more brokers (found {found})."
    )
