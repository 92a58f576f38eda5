"""A bed made of a connector's own settings, as a configuration gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamduel.connector import Connector, Failpoint, Outlet, Source, no_failpoint


class Configured:
    """One connector, opened as the service and `inspect` open it."""

    def __init__(
        self, connector: Connector, source: dict[str, object], sink: dict[str, object],
        snapshots: dict[str, object], append: Callable[[Sequence[bytes]], None],
    ) -> None:  # fmt: skip
        self._connector = connector
        self._source = connector.source_settings.model_validate(source)
        self._sink = connector.sink_settings.model_validate(sink)
        self._snapshots = connector.snapshot_settings.model_validate(snapshots)
        self._append = append

    def append(self, values: Sequence[bytes]) -> None:
        self._append(values)

    def append_one(self, key: bytes, value: bytes) -> str:
        return self._connector.append(self._source, key, value)

    def source(self) -> Source:
        return self._connector.open_source(self._source, True)

    def outlet(self, source: Source, failpoint: Failpoint = no_failpoint) -> Outlet:
        return self._connector.open_outlet(self._sink, self._snapshots, source, failpoint)

    def archive(self) -> Outlet:
        return self._connector.open_archive(self._sink, self._snapshots)
