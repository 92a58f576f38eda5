"""The plug-in object: what the entry point `files` of `streamduel.connectors` names."""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel

from streamduel.connector import Failpoint, Outlet, Source
from streamduel_files.append import append
from streamduel_files.outlet import FileArchive, FileOutlet
from streamduel_files.settings import (
    FileSinkSettings,
    FileSnapshotSettings,
    FileSourceSettings,
)
from streamduel_files.source import FileSource


class FilesConnector:
    """JSON Lines in, JSON Lines and one snapshot file out; see `streamduel.connector`."""

    source_settings = FileSourceSettings
    sink_settings = FileSinkSettings
    snapshot_settings = FileSnapshotSettings
    shared_settings: frozenset[str] = frozenset()

    def open_source(self, settings: BaseModel, to_end: bool) -> Source:
        """The click log, followed as it grows or up to its present end."""
        return FileSource(cast(FileSourceSettings, settings).path, to_end=to_end)

    def open_log(self, settings: BaseModel) -> Source:
        """The click log up to its present end."""
        return self.open_source(settings, to_end=True)

    def open_outlet(
        self,
        sink: BaseModel,
        snapshots: BaseModel,
        source: Source,  # noqa: ARG002 - nobody else can own a file's only partition
        failpoint: Failpoint,
    ) -> Outlet:
        """The output files and the snapshot file, to write to."""
        outlet = FileOutlet(
            cast(FileSinkSettings, sink).path,
            cast(FileSnapshotSettings, snapshots).path,
            failpoint,
        )
        return Outlet(outlet, outlet)

    def open_archive(self, sink: BaseModel, snapshots: BaseModel) -> Outlet:
        """The output files and the snapshot file, to read from."""
        archive = FileArchive(
            cast(FileSinkSettings, sink).path, cast(FileSnapshotSettings, snapshots).path
        )
        return Outlet(archive, archive)

    def append(self, settings: BaseModel, key: bytes, value: bytes) -> str:  # noqa: ARG002
        """Add a line to the click log; a line has no key."""
        return append(cast(FileSourceSettings, settings).path, value)
