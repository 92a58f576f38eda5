"""What the checks of connectors run on: a connector with a click log of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from streamduel.connector import (
    Archive,
    Connector,
    Failpoint,
    Outlet,
    Source,
    SourceOptions,
    no_failpoint,
)


class ConnectorFixture(Protocol):
    """One connector with a click log of one partition, ready to be tested."""

    def append(self, values: Sequence[bytes]) -> None:
        """Add records to the click log, as producers do."""

    def append_controls(self, records: Sequence[tuple[bytes, bytes]]) -> list[str]:
        """Add records, as `streamduel control` does; their places."""

    def source(self) -> Source:
        """Open a source, as the service does; two may be open, as those of two processes."""

    def outlet(self, source: Source, failpoint: Failpoint = no_failpoint) -> Outlet:
        """Open an outlet, as the service does."""

    def archive(self) -> Archive:
        """Open an archive, as `inspect` does."""

    def log(self) -> Source:
        """Open a reader of the click log, as `replay` does."""

    def dead_letters(self) -> Sequence[bytes]:
        """The values of all visible dead letters, in order."""


class ConfiguredConnector:
    """A `ConnectorFixture` made from a connector and its settings.

    Args:
        connector: the plug-in.
        source: the configuration's section `source`.
        sink: the section `sink`.
        snapshots: the section `snapshots`.
        append: adds records to the click log's only partition.
        dead_letters: returns the values of all visible dead letters, in order.
    """

    def __init__(
        self, connector: Connector, source: Mapping[str, Any], sink: Mapping[str, Any],
        snapshots: Mapping[str, Any], append: Callable[[Sequence[bytes]], None],
        dead_letters: Callable[[], Sequence[bytes]],
    ) -> None:  # fmt: skip
        self._connector = connector
        self._source = connector.source_settings.model_validate(source)
        self._sink = connector.sink_settings.model_validate(sink)
        self._snapshots = connector.snapshot_settings.model_validate(snapshots)
        self._append = append
        self._dead_letters = dead_letters

    def append(self, values: Sequence[bytes]) -> None:
        """Add records to the click log."""
        self._append(values)

    def append_controls(self, records: Sequence[tuple[bytes, bytes]]) -> list[str]:
        """Add records with the connector's own `append`."""
        return list(self._connector.append(self._source, records))

    def source(self) -> Source:
        """Open a source that ends at the click log's end at the time of `seek`."""
        return self._connector.open_source(self._source, SourceOptions(until_end=True))

    def outlet(self, source: Source, failpoint: Failpoint = no_failpoint) -> Outlet:
        """Open an outlet."""
        return self._connector.open_outlet(self._sink, self._snapshots, source, failpoint)

    def archive(self) -> Archive:
        """Open an archive."""
        return self._connector.open_archive(self._sink, self._snapshots)

    def log(self) -> Source:
        """Open a reader of the click log up to its end at the time of `seek`."""
        return self._connector.open_log(self._source, SourceOptions(until_end=True))

    def dead_letters(self) -> Sequence[bytes]:
        """The visible dead letters."""
        return self._dead_letters()
