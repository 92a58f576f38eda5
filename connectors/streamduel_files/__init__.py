"""JSON Lines files and standard input: the connector that needs no broker.

Runs on Linux, macOS and Windows; standard input (`path: '-'`) is not supported on Windows. Tested
on Linux.
"""

from collections.abc import Iterable, Iterator

from streamduel.connector import Connector, Failpoint, Source, SourceOptions
from streamduel_files.append import append_line
from streamduel_files.diagnosis import diagnose
from streamduel_files.outlet import FileArchive, FileOutlet
from streamduel_files.settings import (
    STANDARD_INPUT,
    FileSinkSettings,
    FileSnapshotSettings,
    FileSourceSettings,
    contradictions,
)
from streamduel_files.source import FileSource


def _open_source(settings: FileSourceSettings, options: SourceOptions) -> FileSource:
    return FileSource(settings.path, to_end=options.until_end)


def _open_log(settings: FileSourceSettings, options: SourceOptions) -> FileSource:  # noqa: ARG001
    return FileSource(settings.path, to_end=True, serves=False)


def _open_outlet(
    sink: FileSinkSettings,
    snapshots: FileSnapshotSettings,
    source: Source,  # noqa: ARG001 - a file's only partition has one possible owner
    failpoint: Failpoint,
) -> FileOutlet:
    return FileOutlet(sink.path, snapshots.path, failpoint)


def _open_archive(sink: FileSinkSettings, snapshots: FileSnapshotSettings) -> FileArchive:
    return FileArchive(sink.path, snapshots.path)


def _append(settings: FileSourceSettings, records: Iterable[tuple[bytes, bytes]]) -> Iterator[str]:
    for _, value in records:  # a line has no key
        yield append_line(settings.path, value)


connector = Connector(
    source_settings=FileSourceSettings,
    sink_settings=FileSinkSettings,
    snapshot_settings=FileSnapshotSettings,
    open_source=_open_source,
    open_log=_open_log,
    open_outlet=_open_outlet,
    open_archive=_open_archive,
    append=_append,
    contradictions=contradictions,
    diagnose=diagnose,
    folder=lambda settings: settings.path,
    read_once=lambda settings: settings.path == STANDARD_INPUT,
)

__all__ = ["connector"]
