"""Validation of preference matrices, reading of files, and error messages."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamduel.errors import PreferenceError
from streamduel.preference import matrix
from streamduel.preference.arrays import Floats
from streamduel.preference.matrix import check, read
from tests.unit.preference.matrices import CYCLE, ORDER, matrices, of_upper

TWO = [[0.5, 0.75], [0.25, 0.5]]


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(PreferenceError) as caught:
        action()
    sentence = str(caught.value)
    assert sentence.endswith(").")
    assert "\n" not in sentence
    return sentence


@given(matrices())
def test_valid_matrix_copied_unchanged(p: Floats) -> None:
    checked = check(p)
    assert checked.tolist() == p.tolist()
    assert not np.shares_memory(checked, p)


def test_published_decimals_unchanged() -> None:
    p = [[0.5, 0.55, 0.61], [0.45, 0.5, 0.58], [0.39, 0.42, 0.5]]
    assert check(p).tolist() == p


@given(st.lists(st.floats(0, 1), min_size=6, max_size=6), st.lists(st.floats(-4e-4, 4e-4)))
def test_result_antisymmetric_about_one_half(upper: list[float], errors: list[float]) -> None:
    given_p = of_upper(upper, 4)
    given_p.reshape(-1)[: len(errors[:16])] += errors[:16]
    given_p = np.clip(given_p, 0, 1)
    p = check(given_p)
    assert (p + p.T == 1).all()
    assert (np.diag(p) == 0.5).all()
    assert ((p >= 0) & (p <= 1)).all()
    assert check(p).tolist() == p.tolist()
    apart = ~np.eye(4, dtype=bool)
    assert p[apart] == pytest.approx(((given_p + 1 - given_p.T) / 2)[apart], abs=1e-15)
    # Winners follow from the given numbers; leads below the precision of 1/2 may become ties.
    clear = apart & (np.abs(given_p - given_p.T) > 1e-15)
    assert ((p > p.T) == (given_p > given_p.T))[clear].all()


def test_small_deviations_split_evenly() -> None:
    p = check([[0.5004, 0.7], [0.301, 0.4996]])
    assert p == pytest.approx(np.array([[0.5, 0.6995], [0.3005, 0.5]]), abs=1e-15)


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        ([[0.5, 1.5], [-0.5, 0.5]], "m: row 1, column 2 must be from 0 to 1 (found 1.5)."),
        ([[0.5, 0.5], [-1e-9, 0.5]], "m: row 2, column 1 must be from 0 to 1 (found -1e-09)."),
        ([[0.5, np.nan], [0.5, 0.5]], "m: row 1, column 2 must be from 0 to 1 (found nan)."),
        ([[0.5, 0.5], [np.inf, 0.5]], "m: row 2, column 1 must be from 0 to 1 (found inf)."),
        (
            [[0.5, 0.7], [0.3011, 0.5]],
            "m: row 1, column 2 and row 2, column 1 must add up to 1 within 0.001"
            " (found 0.7 and 0.3011).",
        ),
        (
            [[0.5, 0.5], [0.5, 0.5006]],
            "m: row 2, column 2, an arm against itself, must be 0.5 within 0.0005 (found 0.5006).",
        ),
        ([[0.5]], "m must have from 2 to 4000 rows (found 1)."),
        ([], "m must have as many rows as columns (found 0)."),
        (0.5, "m must have as many rows as columns (found one number)."),
        ([[0.5, 0.5]], "m must have as many rows as columns (found 1 x 2)."),
        (np.zeros((2, 2, 2)), "m must have as many rows as columns (found 2 x 2 x 2)."),
    ],
)
def test_invalid_matrices_rejected(array: npt.ArrayLike, sentence: str) -> None:
    assert refusal(lambda: check(array, "m")) == sentence


@pytest.mark.parametrize("array", [[[0.5, 0.5], [0.5]], [["a", "b"], ["c", "d"]], None, [[1j]]])
def test_non_numeric_values_rejected(array: npt.ArrayLike) -> None:
    with pytest.raises(PreferenceError, match=re.escape("m must be K rows of K numbers.")):
        check(array, "m")


def test_tolerance_is_inclusive() -> None:
    assert check([[0.5, 0.6], [0.401, 0.5]])[0, 1] == pytest.approx(0.5995)


def test_too_many_arms_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(matrix, "MAX_ARMS", 3)
    assert "from 2 to 3 rows (found 4)" in refusal(lambda: check(ORDER))
    path = tmp_path / "p.txt"
    path.write_text("0.5\n" * 4)
    assert "from 2 to 3 lines of numbers (found more)" in refusal(lambda: read(path))
    path.write_text("0.5 " * 4)
    assert "line 1 must have from 2 to 3 numbers (found more)" in refusal(lambda: read(path))
    np.save(tmp_path / "p.npy", ORDER)
    assert "from 2 to 3 rows (found 4)" in refusal(lambda: read(tmp_path / "p.npy"))


@pytest.mark.parametrize(
    "text",
    [
        "0.5 0.75\n0.25 0.5\n",
        "0.5,0.75\n0.25,0.5",
        "  0.5 ,\t0.75\r\n\r\n# a comment\n 0.25, .5 # another\n\n",
        "\ufeff5e-1 0.75\n0.25 0.5\n",
    ],
)
def test_text_formats(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.txt"
    path.write_text(text, encoding="utf-8")
    assert read(path).tolist() == TWO
    assert read(str(path)).tolist() == TWO


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# none\n\n", " must have K lines of K numbers (found no number)."),
        (
            "0.5 0.5\n\n0.5 x\n",
            ", line 3, column 2 must be a number from 0 to 1 (found 'x').",
        ),
        ("0.5,,0.5\n", ", line 1, column 2 must be a number from 0 to 1 (found '')."),
        ("0.5;0.5\n", ", line 1, column 1 must be a number from 0 to 1 (found '0.5;0.5')."),
        ("0_5 0.5\n", ", line 1, column 1 must be a number from 0 to 1 (found '0_5')."),
        (
            "z" * 50,
            f", line 1, column 1 must be a number from 0 to 1 (found '{'z' * 40}…').",
        ),
        (
            "0.5 0.5 0.5\n# c\n0.5 0.5\n0.5 0.5 0.5\n",
            ", line 3 must have 3 numbers, one for each line of the matrix (found 2).",
        ),
        (
            "0.5 0.5\n0.5 0.5\n0.5 0.5\n",
            " must have as many lines as numbers in a line (found lines: 3, numbers in each: 2).",
        ),
        ("0.5\n", " must have from 2 to 4000 rows (found 1)."),
        ("0.5 nan\n0.5 0.5\n", ": row 1, column 2 must be from 0 to 1 (found nan)."),
        ("0.5 1e999\n0.5 0.5\n", ": row 1, column 2 must be from 0 to 1 (found inf)."),
        ("", " must have from 1 to 500000000 bytes (found an empty file)."),
    ],
)
def test_invalid_text_rejected(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "p.txt"
    path.write_text(text)
    assert refusal(lambda: read(path)) == f"{path}{problem}"


def test_unreadable_files_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "missing.txt"
    assert (
        refusal(lambda: read(missing)) == f"{missing} must be a file (found nothing of this name)."
    )
    assert refusal(lambda: read(tmp_path)) == f"{tmp_path} must be a file (found a directory)."
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert refusal(lambda: read(pipe)) == f"{pipe} must be a file (found a device or a pipe)."
    below = tmp_path / "p.txt" / "below.txt"
    (tmp_path / "p.txt").write_bytes(b"0.5 \xff")
    assert "Not a directory" in refusal(lambda: read(below))
    assert "can't decode" in refusal(lambda: read(tmp_path / "p.txt"))
    assert "null" in refusal(lambda: read("a\0b"))
    monkeypatch.setattr(matrix, "MAX_BYTES", 4)
    assert "from 1 to 4 bytes (found 5)" in refusal(lambda: read(tmp_path / "p.txt"))


def test_array_files(tmp_path: Path) -> None:
    np.save(tmp_path / "p.NPY", ORDER)  # numpy appends its own ending
    (tmp_path / "p.NPY.npy").rename(tmp_path / "p.NPY")
    assert read(tmp_path / "p.NPY").tolist() == ORDER.tolist()
    np.save(tmp_path / "single.npy", np.asfortranarray(CYCLE, dtype=np.float32))
    assert read(tmp_path / "single.npy").tolist() == CYCLE.tolist()
    np.savez_compressed(tmp_path / "one.npz", names=np.arange(4), anything=ORDER, second=CYCLE)
    assert read(tmp_path / "one.npz").tolist() == ORDER.tolist()
    np.savez(tmp_path / "two.npz", other=ORDER, PMat=CYCLE)
    assert read(tmp_path / "two.npz").tolist() == CYCLE.tolist()


def test_pickled_objects_rejected(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
            return os.mkdir, (str(tmp_path / "sprung"),)

    trap = np.array([[Trap(), Trap()], [Trap(), Trap()]], dtype=object)
    np.save(tmp_path / "p.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "p.npz", PMat=trap)
    for name, source in [("p.npy", "p.npy"), ("p.npz", "p.npz, array PMat")]:
        expected = f"{tmp_path / source} must hold an array of real numbers (found object)."
        assert refusal(lambda name=name: read(tmp_path / name)) == expected  # type: ignore[misc]
    assert not (tmp_path / "sprung").exists()


def test_archives_without_matrix_rejected(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    np.savez(path, a=np.zeros(3), b=np.zeros((2, 2, 2)))
    assert refusal(lambda: read(path)) == (
        f"{path} must hold an array of two dimensions (found a, b)."
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "nothing")
    assert "(found no array)" in refusal(lambda: read(path))
    np.savez(path, a=np.zeros((2, 3)))
    assert refusal(lambda: read(path)) == (
        f"{path}, array a must have as many rows as columns (found 2 x 3)."
    )


def test_oversized_archive_rejected_before_unpacking(
    tmp_path: Path,
) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
    )
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        archive.writestr("PMat.npy", header.getvalue())
    (tmp_path / "p.npy").write_bytes(header.getvalue())
    for name in ("p.npz", "p.npy"):
        sentence = refusal(lambda name=name: read(tmp_path / name))  # type: ignore[misc]
        assert "must have from 2 to 4000 rows (found 1000000)" in sentence


@pytest.mark.parametrize("name", ["p.npy", "p.npz"])
def test_damaged_files_rejected(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "p.npy":
        np.save(path, ORDER)
    else:
        np.savez_compressed(path, PMat=ORDER)
    whole = path.read_bytes()
    path.write_bytes(b"0.5 0.5\n0.5 0.5\n")
    assert f"{path} must be readable" in refusal(lambda: read(path))
    for end in range(1, len(whole), 7):
        path.write_bytes(whole[:end])
        refusal(lambda: read(path))
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:  # a matrix read despite the damage has passed validation
            p = read(path)
        except PreferenceError:
            continue
        assert check(p).tolist() == p.tolist()


def test_trailing_comma_allowed(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text("0.5, 0.75,\n0.25, 0.5 ,\n")
    assert read(file).tolist() == TWO
