"""The files connector's sections of the configuration."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

from streamduel.connector import Contradiction
from streamduel_files.outlet import ASSIGNMENTS, DEAD_LETTERS, SNAPSHOT

STANDARD_INPUT: Final = Path("-")

MAX_PART_BYTES: Final = 255
"""What the usual file systems allow."""


def _named(path: object) -> object:
    if path == "" or "\0" in str(path):
        raise ValueError(f"must be a path (found {path!r})")
    try:
        longest = max((len(os.fsencode(part)) for part in Path(str(path)).parts), default=0)
    except UnicodeEncodeError:
        raise ValueError(f"must be a path in UTF-8 (found {path!r})") from None
    if longest > MAX_PART_BYTES:
        raise ValueError(
            f"must have file names of at most {MAX_PART_BYTES} bytes (found one of {longest})"
        )
    return path


def _folder(path: Path) -> Path:
    if path.name == str(STANDARD_INPUT):
        raise ValueError(
            "must be a directory (found '-'); only source.path may be a standard stream"
        )
    return path


def _beside_configuration(path: Path, info: ValidationInfo) -> Path:
    directory: Path = (info.context or {}).get("directory", Path())
    try:
        return path if path == STANDARD_INPUT else directory / path.expanduser()
    except RuntimeError:
        raise ValueError(f"must be in a home directory that exists (found '{path}')") from None


BesidePath = Annotated[Path, BeforeValidator(_named), AfterValidator(_beside_configuration)]
"""A path that, when relative, is relative to the configuration file."""


def _in_utf_8(path: Path) -> Path:
    """A click log, whose name snapshots contain."""
    try:
        path.name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"must have a file name in UTF-8 (found {path.name!r})") from None
    return path


Folder = Annotated[BesidePath, AfterValidator(_folder)]


KAFKA_KEYS: Final = {
    "client": "a file is read without one",
    "control_topic": "in a file, control records come in the click log",
}
"""Keys of `source` that only the connector kafka has, and why the files need none."""


class FilesSettings(BaseModel):
    """The settings of all three sections."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    connector: Literal["files"]


class FileSourceSettings(FilesSettings):
    """A click log as JSON Lines."""

    path: Annotated[BesidePath, AfterValidator(_in_utf_8)] = Field(
        description="The file: plain, gzipped (.gz), or '-' for standard input, which must repeat "
        "the log from its first line at a restart.",
        examples=["clicks.jsonl"],
    )

    @model_validator(mode="before")
    @classmethod
    def _no_keys_of_kafka(cls, section: Any) -> Any:
        for key, why in KAFKA_KEYS.items():
            if isinstance(section, dict) and section.get(key) is not None:
                raise ValueError(f"{key} needs the connector kafka; {why}")
        return section


class FileSinkSettings(FilesSettings):
    """The directory of assignments and dead letters."""

    path: Folder = Field(
        description="A directory for assignments.jsonl and dead_letters.jsonl.", examples=["out/"]
    )


class FileSnapshotSettings(FilesSettings):
    """The directory of the snapshots."""

    path: Folder = Field(description="A directory for snapshot.json.", examples=["state/"])


def contradictions(
    source: FileSourceSettings | None, sink: FileSinkSettings, snapshots: FileSnapshotSettings
) -> Iterator[Contradiction]:
    """A click log that is a file of the sink or the snapshots, to which the service writes itself.

    Args:
        source: None if the click log is in no file.
        sink: the directory of the outputs.
        snapshots: the directory of the snapshots.
    """
    if source is None or source.path == STANDARD_INPUT:
        return
    for file, key in (
        (sink.path / ASSIGNMENTS, "sink.path"),
        (sink.path / DEAD_LETTERS, "sink.path"),
        (snapshots.path / SNAPSHOT, "snapshots.path"),
    ):
        if os.path.realpath(source.path) == os.path.realpath(file):
            wrong = f"must not be the {file.name} of {key}, which the service writes."
            yield Contradiction("source", "path", wrong)
