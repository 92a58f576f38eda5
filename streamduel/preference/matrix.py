"""The preference matrix p_ij = P(arm i beats arm j): reading and checking it."""

from __future__ import annotations

import re
import zipfile
import zlib
from os import PathLike
from pathlib import Path
from typing import IO, Final

import numpy as np
import numpy.typing as npt

from streamduel.errors import PreferenceError
from streamduel.preference.arrays import Floats

TOLERANCE: Final = 0.001
"""How far p_ij + p_ji may be from 1: published matrices are rounded to two or three decimals."""

MAX_ARMS: Final = 4_000
"""A matrix of this many arms takes 128 MB, and computations need several of that size."""

MAX_BYTES: Final = 500_000_000
"""The largest file: 4,000 times 4,000 numbers of 25 characters take 400 MB."""

ARCHIVE_KEY: Final = "PMat"
"""The array that is read from an `.npz` archive with several."""

# 0.6 + 0.401 differs from 1 by 0.001 and a rounding error.
_ROUNDING: Final = 1e-12
_SEPARATOR = re.compile(r"\s*,\s*|\s+")
_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,  # a compression that this Python does not know
    RuntimeError,  # an encrypted archive
)


def check(array: npt.ArrayLike, source: str = "The preference matrix") -> Floats:
    """A checked preference matrix.

    Required are K rows of K numbers from 0 to 1, K from 2 to `MAX_ARMS`, with p_ij + p_ji = 1
    within `TOLERANCE`, and so 1/2 within half of that on the diagonal. The result is antisymmetric
    about 1/2: pairs that add up to 1 in float64 are unchanged, others become
    (p_ij + 1 - p_ji) / 2, and the diagonal 1/2.

    Args:
        array: (K, K), [i, j] the probability that i beats j.
        source: the subject of error sentences, such as a file's name.

    Returns:
        (K, K), a new array in which p_ij > p_ji if and only if i beats j.

    Raises:
        PreferenceError: this is not a preference matrix; names the first wrong place, with rows
            and columns from 1.

    >>> check([[0.5, 0.7], [0.2995, 0.5]]).tolist()
    [[0.5, 0.70025], [0.29974999999999996, 0.5]]
    """
    try:
        given = np.asarray(array)
        if given.dtype.kind not in "biuf":
            raise ValueError
    except ValueError:
        raise PreferenceError(f"{source} must be K rows of K numbers.") from None
    _check_shape(given.shape, source)
    p = given.astype(np.float64)
    _check_entries(p, source)
    # Where p >= p.T, `upper` is from 1/2 to 1, and 1 - upper has no rounding error.
    upper = 0.5 + np.abs(p - p.T) / 2
    p = np.where(p + p.T == 1, p, np.where(p >= p.T, upper, 1 - upper))
    np.fill_diagonal(p, 0.5)
    return p


def _check_shape(shape: tuple[int, ...], source: str) -> None:
    """Refuse arrays that are not K times K, too small or too large."""
    if len(shape) != 2 or shape[0] != shape[1]:
        found = " x ".join(map(str, shape)) or "one number"
        raise PreferenceError(f"{source} must have as many rows as columns (found {found}).")
    if not 2 <= shape[0] <= MAX_ARMS:
        raise PreferenceError(f"{source} must have from 2 to {MAX_ARMS} rows (found {shape[0]}).")


def _check_entries(p: Floats, source: str) -> None:
    """Refuse numbers that are not probabilities, and pairs that do not add up to 1."""
    impossible = ~((p >= 0) & (p <= 1))  # NaN is neither
    if impossible.any():
        row, column = np.argwhere(impossible)[0].tolist()
        raise PreferenceError(
            f"{source}: row {row + 1}, column {column + 1} must be from 0 to 1"
            f" (found {p.item(row, column)})."
        )
    uneven = np.abs(p + p.T - 1) > TOLERANCE + _ROUNDING
    if not uneven.any():
        return
    row, column = np.argwhere(uneven)[0].tolist()
    there, back = p.item(row, column), p.item(column, row)
    if row == column:
        raise PreferenceError(
            f"{source}: row {row + 1}, column {row + 1}, an arm against itself, must be 0.5 within"
            f" {TOLERANCE / 2} (found {there})."
        )
    raise PreferenceError(
        f"{source}: row {row + 1}, column {column + 1} and row {column + 1}, column {row + 1} must"
        f" add up to 1 within {TOLERANCE} (found {there} and {back})."
    )


def read(path: str | PathLike[str]) -> Floats:
    r"""The preference matrix in a file, checked as by `check`.

    A file whose name ends in `.npy` holds one array, one in `.npz` the array `PMat` or else the
    first with two dimensions; pickled objects are never loaded. Any other file is UTF-8 text: K
    lines of K numbers separated by blanks or commas. Blank lines, and what follows a `#`, are
    skipped.

    Args:
        path: of the file.

    Returns:
        (K, K), antisymmetric about 1/2.

    Raises:
        PreferenceError: the file does not exist, cannot be read, or has no preference matrix;
            names the file and the place.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.txt")
    ...     _ = path.write_text("# two arms\n0.5, 0.75\n0.25, 0.5\n")
    ...     read(path).tolist()
    [[0.5, 0.75], [0.25, 0.5]]
    """
    file, source = Path(path), str(path)
    try:
        _check_file(file, source)
        array = _array_in(file, source)
    except PreferenceError:
        raise
    except FileNotFoundError:
        raise PreferenceError(f"{source} must be a file (found nothing of this name).") from None
    except _UNREADABLE as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise PreferenceError(
            f"{source} must be readable, as text in UTF-8, .npy or .npz (found:"
            f" {' '.join(reason.split()).rstrip('.')})."
        ) from error
    return check(array, source)


def _check_file(file: Path, source: str) -> None:
    """Refuse other things than files (reading a pipe may never end), empty and too large files."""
    size = file.stat().st_size
    if not file.is_file():
        found = "a directory" if file.is_dir() else "a device or a pipe"
        raise PreferenceError(f"{source} must be a file (found {found}).")
    if not 0 < size <= MAX_BYTES:
        found = f"{size}" if size else "an empty file"
        raise PreferenceError(f"{source} must have from 1 to {MAX_BYTES} bytes (found {found}).")


def _array_in(file: Path, source: str) -> npt.NDArray[np.generic]:
    """The array in a file of any format."""
    format_name = file.suffix.lower()
    if format_name == ".npz":
        return _array_in_archive(file, source)
    if format_name == ".npy":
        with file.open("rb") as stream:
            _check_shape(_shape_in(stream, source), source)
            return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
    with file.open(encoding="utf-8-sig") as lines:
        return _array_in_text(lines, source)


def _shape_in(stream: IO[bytes], source: str) -> tuple[int, ...]:
    """The shape in an array's header; the stream is then at its beginning again.

    A few compressed bytes can be an array larger than the memory, and an array of objects runs code
    when it is loaded: both are refused before anything is loaded.
    """
    try:
        if np.lib.format.read_magic(stream) == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    except Exception as error:  # numpy parses it as Python text and raises whatever that does
        raise ValueError("the header of the array is damaged") from error
    if dtype.kind not in "biuf":
        raise PreferenceError(f"{source} must hold an array of real numbers (found {dtype}).")
    stream.seek(0)
    return shape


def _array_in_archive(file: Path, source: str) -> npt.NDArray[np.generic]:
    """The array `PMat` of an `.npz` archive, or else the first with two dimensions."""
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        names.sort(key=lambda name: name != f"{ARCHIVE_KEY}.npy")  # stable
        for name in names:
            array_source = f"{source}, array {name.removesuffix('.npy')}"
            with archive.open(name) as stream:
                shape = _shape_in(stream, array_source)
                if len(shape) == 2:
                    _check_shape(shape, array_source)
                    return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
    found = ", ".join(name.removesuffix(".npy") for name in names) or "no array"
    raise PreferenceError(f"{source} must hold an array of two dimensions (found {found}).")


def _array_in_text(lines: IO[str], source: str) -> Floats:
    """The numbers of a text, one row to a line."""
    rows: list[Floats] = []
    places: list[int] = []
    for place, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        # Some programs end each line of a table with a comma.
        rows.append(_numbers_in(text.removesuffix(",").rstrip(), f"{source}, line {place}"))
        places.append(place)
        if len(rows) > MAX_ARMS:
            raise PreferenceError(
                f"{source} must have from 2 to {MAX_ARMS} lines of numbers (found more)."
            )
    if not rows:
        raise PreferenceError(f"{source} must have K lines of K numbers (found no number).")
    lengths = [len(row) for row in rows]
    if len(set(lengths)) == 1 and lengths[0] != len(rows):
        raise PreferenceError(
            f"{source} must have as many lines as numbers in a line (found lines: {len(rows)},"
            f" numbers in each: {lengths[0]})."
        )
    for place, length in zip(places, lengths, strict=True):
        if length != len(rows):
            raise PreferenceError(
                f"{source}, line {place} must have {len(rows)} numbers, one for each line of the"
                f" matrix (found {length})."
            )
    return np.array(rows)


def _numbers_in(text: str, source: str) -> Floats:
    """The numbers of one line."""
    words = _SEPARATOR.split(text, maxsplit=MAX_ARMS)
    if len(words) > MAX_ARMS:
        raise PreferenceError(f"{source} must have from 2 to {MAX_ARMS} numbers (found more).")
    numbers = np.empty(len(words))
    for column, word in enumerate(words):
        try:
            if "_" in word:  # which Python allows in a number
                raise ValueError
            numbers[column] = float(word)
        except ValueError:
            found = repr(word if len(word) <= 40 else word[:40] + "…")
            raise PreferenceError(
                f"{source}, column {column + 1} must be a number from 0 to 1 (found {found})."
            ) from None
    return numbers
