"""The plug-in object: what the entry point `kafka` of `streamduel.connectors` names."""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel

from streamduel.connector import Failpoint, Outlet, Source
from streamduel_kafka import append, archive, sink, source
from streamduel_kafka.settings import SHARED, SinkSettings, SnapshotSettings, SourceSettings


class KafkaConnector:
    """A topic in, compacted topics out, one transaction per commit; see `streamduel.connector`."""

    source_settings = SourceSettings
    sink_settings = SinkSettings
    snapshot_settings = SnapshotSettings
    shared_settings = SHARED

    def open_source(self, settings: BaseModel, to_end: bool) -> Source:  # noqa: ARG002
        """A member of the group; a topic holds no half records to complete at its end."""
        return source.open_source(cast(SourceSettings, settings))

    def open_log(self, settings: BaseModel) -> Source:
        """All partitions, as nobody's member."""
        return source.open_log(cast(SourceSettings, settings))

    def open_outlet(
        self, sink_settings: BaseModel, snapshots: BaseModel, log: Source, failpoint: Failpoint
    ) -> Outlet:
        """The topics of assignments, dead letters and snapshots, and the transactions on them."""
        return sink.open_outlet(
            cast(SinkSettings, sink_settings), cast(SnapshotSettings, snapshots), log, failpoint
        )

    def open_archive(self, sink_settings: BaseModel, snapshots: BaseModel) -> Outlet:
        """The assignments and the snapshots, to read from."""
        return archive.open_archive(
            cast(SinkSettings, sink_settings), cast(SnapshotSettings, snapshots)
        )

    def append(self, settings: BaseModel, key: bytes, value: bytes) -> str:
        """One record, in the partition of its key."""
        return append.append(cast(SourceSettings, settings), key, value)
