"""The files of a click log; formats are detected from the content, not from the names."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from streamduel.errors import ConfigurationError, StreamduelError, shortened

Format = Literal["json", "csv", "parquet"]
Compression = Literal["none", "gzip", "zstd"]

SUFFIXES: Final = (
    ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt", ".log", ".parquet", ".pq",
    ".gz", ".zst",
)  # fmt: skip
"""Names of the files of a folder that are read; a folder may also hold marks such as `_SUCCESS`."""

REMOTE: Final = ("s3://", "gs://", "gcs://", "r2://", "az://", "http://", "https://", "hf://")
"""Addresses that DuckDB reads itself."""

OTHERS: Final = {
    b"PK\x03\x04": (
        "a ZIP archive, as those of Excel are", "unpack it, or save the table as CSV",
    ),
    b"SQLite format 3\0": (
        "an SQLite database",
        "read it with --sql \"ATTACH 'FILE' AS db (TYPE sqlite); SELECT * FROM db.TABLE\"",
    ),
    b"Obj\x01": ("Avro", "read it with --sql \"SELECT * FROM read_avro('FILE')\""),
    b"ARROW1\0\0": ("Arrow", "convert it to Parquet"),
}  # fmt: skip
"""How files of other formats begin, what they are, and what to do with them."""

HEAD: Final = 65_536
"""Bytes of a file from which its format is detected."""

HEAD_LINES: Final = 20
"""Lines among which the format, or the header of CSV, is looked for."""

MAX_FILES: Final = 100_000


class File(NamedTuple):
    """A file of the click log.

    Attributes:
        path: its path or address.
        format: what it contains.
        compression: of JSON and CSV; Parquet has its own inside.
        layout: of JSON: one object per line, one array, or objects over several lines.
        original: the file that the user has named, if `path` is a decompressed copy of it.
        lines: the first lines of CSV, where they are known without DuckDB.
    """

    path: str
    format: Format
    compression: Compression
    layout: Literal["newline_delimited", "array", "unstructured"] = "newline_delimited"
    original: str = ""
    lines: tuple[str, ...] = ()

    @property
    def pattern(self) -> str:
        """What DuckDB reads: every path is a pattern there, and a file's matches that file only.

        >>> File("log[1].csv", "csv", "none").pattern
        './log[[]1].csv'
        """
        if self.path.startswith(REMOTE):
            return self.path
        escaped = re.sub(r"[*?\[]", r"[\g<0>]", self.path)
        # DuckDB takes a leading ~ for the home directory.
        return escaped if Path(self.path).is_absolute() else f"./{escaped}"


class _EmptyFileError(ConfigurationError):
    """A file has no content."""


def find(logs: Iterable[str], folder: Path) -> tuple[list[File], list[str]]:
    """The files that the arguments name, in their order, and the empty ones, which are left out.

    An export writes an empty file for an hour without traffic.

    Args:
        logs: files, folders, patterns such as `logs/*.parquet`, or addresses.
        folder: for a Parquet file that was compressed as a whole.

    Raises:
        ConfigurationError: there is no such file, or all are empty.
        StreamduelError: a file cannot be read.
    """
    files: dict[File, None] = {}
    empty: dict[str, _EmptyFileError] = {}
    for log in logs:
        if log.startswith(REMOTE):
            files[_remote(log)] = None
            continue
        for path in paths(log):
            _check_name(path)
            try:
                files[_local(path, folder)] = None
            except _EmptyFileError as error:
                empty[str(path)] = error
        if len(files) > MAX_FILES:
            raise ConfigurationError(f"a log has at most {MAX_FILES:,} files (found more).")
    if empty and not files:
        raise next(iter(empty.values()))
    return list(files), list(empty)


def paths(log: str) -> list[Path]:
    """The files that one argument names, in the order of their names.

    Raises:
        ConfigurationError: there is none, or one that cannot be read.
    """
    if not log:
        raise ConfigurationError(
            "LOG must be a file, a directory, a pattern or an address (found '', as from a variable"
            " that is not set)."
        )
    path = Path(log)
    try:
        path.is_dir()
    except OSError as error:  # such as a name that is too long
        named = shortened(log, 200)
        raise ConfigurationError(f"'{named}' cannot be read: {error.strerror}.") from None
    if path.is_dir():
        inside = sorted(_inside(path))
        if not inside:
            raise ConfigurationError(
                f"the directory '{log}' has no file that ends with {', '.join(SUFFIXES)}."
            )
        return inside
    if path.is_file():
        return [path]
    if path.exists():
        raise ConfigurationError(
            f"'{log}' must be a regular file, because it is read several times; write it to one."
        )
    if any(sign in log for sign in "*?["):
        root = Path(path.anchor) if path.is_absolute() else Path()
        pattern = str(path.relative_to(path.anchor)) if path.is_absolute() else log
        found = sorted(each for each in root.glob(pattern) if each.is_file())
        if found:
            return found
        raise ConfigurationError(f"no file matches '{log}'.")
    raise ConfigurationError(f"there is no file '{log}'.")


def _inside(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        # Without it, a directory that cannot be read would be left out silently.
        raise ConfigurationError(f"'{error.filename}' cannot be read: {error.strerror}.") from error

    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [each for each in folders if each[0] not in "._"]
        for name in names:
            if Path(name).suffix.lower() in SUFFIXES and name[0] not in "._":
                yield Path(parent, name)


def _remote(address: str) -> File:
    """An address that DuckDB reads itself; the name determines the format."""
    name = address.split("?", maxsplit=1)[0].lower()
    compression: Compression = (
        "gzip" if name.endswith(".gz") else "zstd" if name.endswith(".zst") else "none"
    )
    stem = name.removesuffix(".gz").removesuffix(".zst")
    if stem.endswith((".parquet", ".pq")):
        return File(address, "parquet", "none")
    return File(address, "csv" if stem.endswith((".csv", ".tsv")) else "json", compression)


def _check_name(path: Path) -> None:
    """DuckDB takes names in UTF-8 only."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ConfigurationError(
            f"the name of a file must be UTF-8 (found {str(path)!r}); rename it."
        ) from None


def _local(path: Path, folder: Path) -> File:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise StreamduelError(f"'{path}' cannot be read ({error.strerror}).") from error
    if not head:
        raise _EmptyFileError(f"'{path}' is empty.")
    if head.startswith(b"PAR1"):
        return File(str(path), "parquet", "none")
    for magic, (kind, advice) in OTHERS.items():
        if head.startswith(magic):
            raise StreamduelError(f"'{path}' is {kind}; {advice}.")
    if head[8:12] == b"DUCK":  # behind a checksum
        sql = "ATTACH 'FILE' AS db; SELECT * FROM db.TABLE"
        raise StreamduelError(f"'{path}' is a DuckDB database; read it with --sql \"{sql}\".")
    compression: Compression = "none"
    if head.startswith(b"\x1f\x8b"):
        compression, head = "gzip", _gunzipped(path, head)
    elif head.startswith(b"\x28\xb5\x2f\xfd"):
        return _zstd(path)
    elif head.startswith((b"BZh", b"\xfd7zXZ")):
        copy = _decompressed(path, folder, head)
        try:
            return _local(copy, folder)._replace(original=str(path))
        except StreamduelError as error:
            raise type(error)(str(error).replace(str(copy), str(path))) from None
    if head.startswith(b"PAR1"):
        copy = _decompressed(path, folder, b"\x1f\x8b")
        return File(str(copy), "parquet", "none", original=str(path))
    return _text(str(path), head, compression)


def _zstd(path: Path) -> File:
    """A file that only DuckDB can decompress here: its name determines the format."""
    stem = path.name.lower().removesuffix(".zst").removesuffix(".zstd")
    return File(str(path), "csv" if stem.endswith((".csv", ".tsv")) else "json", "zstd")


def _gunzipped(path: Path, head: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD)
    except zlib.error as error:
        raise StreamduelError(f"'{path}' cannot be decompressed ({error}).") from error


def _decompressed(path: Path, folder: Path, magic: bytes) -> Path:
    """A copy without the compression, which needs random access inside."""
    copy = folder / f"decompressed-{len(list(folder.iterdir()))}"
    opener = (
        gzip.open if magic.startswith(b"\x1f") else bz2.open if magic[:1] == b"B" else lzma.open
    )
    try:
        with opener(path, "rb") as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise StreamduelError(f"'{path}' cannot be decompressed ({error}).") from error
    return copy


def _text(path: str, head: bytes, compression: Compression) -> File:
    """Text is JSON if it begins like JSON, else CSV."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise StreamduelError(
            f"'{path}' is UTF-16; convert it to UTF-8, such as with iconv -f utf-16 -t utf-8."
        )
    if b"\0" in head[:1024]:
        raise StreamduelError(
            f"'{path}' is neither JSON, CSV nor Parquet: it begins with "
            f"{shortened(repr(head[:12]), 60)}."
        )
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start:
        raise _EmptyFileError(f"'{path}' has blank lines only.")
    if start.split() in ([b"[]"], [b"[", b"]"]):
        raise _EmptyFileError(f"'{path}' has an empty array only.")
    if start.startswith(b"["):
        return File(path, "json", compression, "array")
    lines = [line for line in start.splitlines()[:HEAD_LINES] if line.strip()]
    if any(_is_object(line) for line in lines):
        return File(path, "json", compression)
    _check_utf8(path, head)
    if start.startswith(b"{"):
        return File(path, "json", compression, "unstructured")
    first = start.split(b"\n")[:HEAD_LINES]
    texts = tuple(line.decode(errors="replace").rstrip() for line in first)
    return File(path, "csv", compression, lines=texts)


def _check_utf8(path: str, head: bytes) -> None:
    """DuckDB would leave out rows with other encodings."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        raise StreamduelError(
            f"'{path}' is not UTF-8 (byte 0x{head[error.start]:02x} in line {line}); convert it, "
            "such as with iconv -f windows-1252 -t utf-8."
        ) from None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
